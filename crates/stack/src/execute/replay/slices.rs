//! Keeps the response times of each slice of a workload apart, so that a row can tell how much its tail
//! depends on the slice.

use crate::{Column, Row};
use fulgurite_base::{Histogram, Nanos};
use fulgurite_workload::Op;

/// The number of slices, which have equal numbers of requests.
const SLICES: u64 = 8;

/// The response times of each slice in one round: those of all requests, of reads and of writes.
pub(super) struct Slices {
    ops: u64,
    latency: Vec<[Histogram; 3]>,
}

impl Slices {
    /// Creates slices of a workload with `ops` requests.
    pub(super) fn new(ops: u64) -> Slices {
        Slices { ops, latency: (0..SLICES).map(|_| Default::default()).collect() }
    }

    /// Returns the slice of request number `at`, which counts on over the passes.
    pub(super) fn of(&self, at: u64) -> usize {
        let at = u128::from(at % self.ops.max(1));
        (at * u128::from(SLICES) / u128::from(self.ops.max(1))) as usize
    }

    /// Counts a completed request.
    pub(super) fn record(&mut self, slice: usize, op: Op, latency: Nanos) {
        let [all, reads, writes] = &mut self.latency[slice];
        all.record(latency);
        match op {
            Op::Read => reads.record(latency),
            Op::Write => writes.record(latency),
            Op::Trim => {}
        }
    }

    /// Forgets the requests so far.
    pub(super) fn restart(&mut self) {
        self.latency.iter_mut().flatten().for_each(Histogram::clear);
    }

    /// Sets the columns about the worst slice.
    pub(super) fn set(&self, row: &mut Row) {
        let columns = [
            Column::LatencyP99SliceMaxNs,
            Column::ReadLatencyP99SliceMaxNs,
            Column::WriteLatencyP99SliceMaxNs,
        ];
        for (at, column) in columns.into_iter().enumerate() {
            row.set_some(column, self.latency.iter().filter_map(|slice| slice[at].percentile_ns(99.0)).max());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight slices cover a workload in order, also one whose length is no multiple of eight, and each pass
    /// begins with the first slice again.
    #[test]
    fn a_pass_is_divided_into_eight_slices_in_order() {
        let slices = Slices::new(20);
        let of: Vec<usize> = (0..20).map(|at| slices.of(at)).collect();
        assert_eq!(of, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7]);
        assert_eq!((slices.of(20), slices.of(59)), (0, 7));
        assert_eq!(Slices::new(u64::MAX).of(u64::MAX - 1), 7);
    }

    #[test]
    fn the_worst_slice_is_told_for_each_kind_of_request() {
        let mut slices = Slices::new(8);
        for (slice, op, us) in [(0, Op::Read, 10), (3, Op::Read, 40), (3, Op::Trim, 90), (7, Op::Write, 20)] {
            slices.record(slice, op, Nanos(us));
        }
        let mut row = Row::default();
        slices.set(&mut row);
        let told = [
            Column::LatencyP99SliceMaxNs,
            Column::ReadLatencyP99SliceMaxNs,
            Column::WriteLatencyP99SliceMaxNs,
        ];
        assert_eq!(told.map(|column| row.number(column)), [Some(90.0), Some(40.0), Some(20.0)]);
    }
}
