//! A scan's course over the rows: whether each row is the next one, and whether none is left out.
//!
//! While others insert, a row may turn up or not. The rows that were committed before the scan began must be there.

use crate::engine::Session;
use crate::rows::{Rows, SLOTS};
use anyhow::{Result, ensure};

/// A scan that is under way, or several that continue each other.
pub struct Course {
    rows: Rows,
    /// All turns below this were committed when the scan began.
    committed: u64,
    /// Slots of a gap that may hold committed rows; the others need no look.
    slots: u64,
    /// The first position that has not been passed.
    next: u64,
    passed: u64,
}

impl Course {
    /// From `row` on. `committed` was asked for before the scan began.
    pub fn new(rows: Rows, row: u64, committed: u64) -> Course {
        let slots = 1 + committed.saturating_sub(rows.loaded()).div_ceil(rows.loaded());
        Course { rows, committed, slots, next: rows.position(row), passed: 0 }
    }

    /// The scan has come to `key`; returns its row.
    ///
    /// # Errors
    /// It was never written, is not behind the one before, or a row between them is missing.
    pub fn pass(&mut self, key: &[u8]) -> Result<u64> {
        let row = self.rows.row(key)?;
        let position = self.rows.position(row);
        ensure!(position >= self.next, "a scan goes back to row {row}");
        self.nothing_is_missing(position)?;
        self.next = position + 1;
        self.passed += 1;
        Ok(row)
    }

    /// The scan has ended and says that it `found` so many rows of `wanted`: less only at the end of the table.
    ///
    /// # Errors
    /// It was other than that.
    pub fn finish(&self, found: usize, wanted: usize) -> Result<()> {
        ensure!(found as u64 == self.passed, "a scan gives {} rows and says {found}", self.passed);
        ensure!(found <= wanted, "a scan for {wanted} rows gives {found}");
        if found == wanted { Ok(()) } else { self.nothing_is_missing(self.rows.room()) }
    }

    /// No row that must be there stands from the next position to the one before `end`.
    fn nothing_is_missing(&self, end: u64) -> Result<()> {
        let mut position = self.next;
        while position < end {
            let slot = position % SLOTS;
            if slot < self.slots {
                let row = self.rows.at(position);
                ensure!(self.rows.turn(row) >= self.committed, "a scan leaves out row {row}");
                position += 1;
            } else {
                position += SLOTS - slot;
            }
        }
        Ok(())
    }
}

/// Scans the whole table: each row of a turn below `committed` must be there with a right value, and no other.
///
/// # Errors
/// It is otherwise.
pub fn whole(session: &mut dyn Session, rows: Rows, committed: u64) -> Result<()> {
    const PART: usize = 1000;
    let mut course = Course::new(rows, 0, committed);
    loop {
        let before = course.passed;
        let from = rows.key(rows.at(course.next));
        let found = session.scan(&from, PART, &mut |key, value| {
            let row = course.pass(key)?;
            rows.check(row, value).map(drop)
        })?;
        ensure!(course.passed - before == found as u64, "a scan gives other rows than it says");
        if found < PART || course.next == rows.room() {
            course.nothing_is_missing(rows.room())?;
            ensure!(course.passed == committed, "{} rows, and {committed} were inserted", course.passed);
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: u64 = 1000;

    /// A scan from row 0 over the positions for which `is_there` holds, with `committed` turns, over `wanted` rows.
    fn scan(committed: u64, wanted: usize, is_there: impl Fn(u64) -> bool) -> Result<()> {
        let rows = Rows::new(LOADED);
        let mut course = Course::new(rows, 0, committed);
        let found: Vec<u64> = (0..rows.room()).filter(|&position| is_there(position)).take(wanted).collect();
        for &position in &found {
            course.pass(&rows.key(rows.at(position)))?;
        }
        course.finish(found.len(), wanted)
    }

    fn turn_at(position: u64) -> u64 {
        let rows = Rows::new(LOADED);
        rows.turn(rows.at(position))
    }

    #[test]
    fn rows_that_were_committed_before_must_be_there_and_others_may() {
        let committed = LOADED + 300;
        let sound = |position| turn_at(position) < committed;
        // Rows that were inserted during the scan: some of them turn up.
        let ahead = |position| sound(position) || turn_at(position) < committed + 900 && position % 3 == 0;
        for wanted in [1, 100, 5000] {
            scan(committed, wanted, sound).unwrap();
            scan(committed, wanted, ahead).unwrap();
        }
        let rows = Rows::new(LOADED);
        for missing in [0, 5, LOADED - 1, LOADED, LOADED + 299] {
            let without = |position| sound(position) && rows.at(position) != missing;
            assert!(scan(committed, 5000, without).is_err(), "{missing}");
        }
    }

    #[test]
    fn a_scan_that_ends_early_or_goes_back_is_refused() {
        assert!(scan(LOADED, 5000, |position| position % SLOTS == 0 && position < 990 * SLOTS).is_err());
        let rows = Rows::new(LOADED);
        let mut course = Course::new(rows, 5, LOADED);
        course.pass(&rows.key(5)).unwrap();
        assert!(course.pass(&rows.key(5)).is_err());
        assert!(course.finish(2, 5).is_err());
    }

    /// While a store is loaded the rows that are there are those of the first turns.
    #[test]
    fn an_unfinished_load_has_the_rows_of_the_first_turns() {
        let committed = 400;
        scan(committed, 5000, |position| turn_at(position) < committed).unwrap();
        let last = Rows::new(LOADED).nth(399);
        let without = |position| turn_at(position) < committed && position != last * SLOTS;
        assert!(scan(committed, 5000, without).is_err());
    }
}
