//! Assigns the rows that threads insert during a measurement, and tracks which of them are committed.
//!
//! Rows are inserted in the order of turns (`Rows::nth`). A thread takes the turns of a batch just before it
//! commits them. All turns below a mark are committed: a reader may request these rows, and a scan must find
//! them. Turns above the mark may be committed or not.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by the threads of a run.
pub struct Inserts {
    first: u64,
    end: u64,
    flights: Mutex<Flights>,
    committed: AtomicU64,
}

struct Flights {
    next: u64,
    /// The first turn of each batch that has been taken but not committed.
    open: Vec<u64>,
}

impl Inserts {
    /// Assigns the turns from `first` to `end`. Rows of earlier turns are in the store.
    pub fn new(first: u64, end: u64) -> Inserts {
        let flights = Mutex::new(Flights { next: first, open: Vec::new() });
        Inserts { first, end, flights, committed: AtomicU64::new(first) }
    }

    /// Takes the next `most` turns, fewer at the end. The caller commits them and then calls `landed`.
    pub fn take(&self, most: usize) -> Range<u64> {
        let mut flights = self.flights();
        let taken = flights.next..self.end.min(flights.next + most as u64);
        if !taken.is_empty() {
            flights.next = taken.end;
            flights.open.push(taken.start);
        }
        taken
    }

    /// Records that the turns of a batch are committed.
    pub fn landed(&self, taken: &Range<u64>) {
        let mut flights = self.flights();
        flights.open.retain(|&start| start != taken.start);
        let mark = flights.open.iter().copied().min().unwrap_or(flights.next);
        // This happens under the lock, so that the mark never decreases.
        self.committed.store(mark, Ordering::Release);
    }

    /// All turns below this are committed.
    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    /// The turns that were inserted and are known to be committed.
    pub fn done(&self) -> Range<u64> {
        self.first..self.committed()
    }

    fn flights(&self) -> MutexGuard<'_, Flights> {
        // A panic in a thread ends the run anyway.
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_has_not_landed_holds_back_the_mark() {
        let inserts = Inserts::new(10, 19);
        let (first, second) = (inserts.take(4), inserts.take(4));
        assert_eq!((&first, &second), (&(10..14), &(14..18)));
        inserts.landed(&second);
        assert_eq!(inserts.committed(), 10);
        inserts.landed(&first);
        assert_eq!(inserts.done(), 10..18);
    }

    #[test]
    fn the_last_batch_is_shorter_and_then_there_is_none() {
        let inserts = Inserts::new(0, 5);
        assert_eq!(inserts.take(4), 0..4);
        let last = inserts.take(4);
        assert_eq!(last, 4..5);
        assert!(inserts.take(4).is_empty());
        inserts.landed(&last);
        assert_eq!(inserts.committed(), 0);
        inserts.landed(&(0..4));
        assert_eq!(inserts.committed(), 5);
    }
}
