//! The policy `auto`: chooses the write-back policy from the measured throughput of the drive.
//!
//! A single number for a drive's asymmetry or concurrency misleads, because both depend on the load. So the
//! choice follows from the curves of throughput over queue depth. With `n` writes in flight, a page costs the
//! drive 1 / X(n), where X is the throughput of writes. The batch size n_w is the smallest queue depth whose
//! throughput is within a tenth of the best, because a longer batch would hardly be cheaper. If two
//! concurrent writes are no faster than two in sequence, a batch gains nothing and n_w is 1. The evictions
//! for prefetching are limited by the number of reads that overlap. There are always spare frames, so that a
//! read goes before the write of the victim: twice the batch, so that one batch is under write while the next
//! fills, and at least two.

use super::policy::{MeasuredDrive, WriteBack};
use super::raw::LEAST;
use fulgurite_base::{NoOptions, SpecError};

pub(super) fn resolve(_: &NoOptions, drive: &mut dyn MeasuredDrive) -> Result<WriteBack, SpecError> {
    let [reads, writes] = drive.curves()?;
    Ok(choose(&reads, &writes))
}

/// Returns the smallest queue depth whose throughput is within a tenth of the best. The pairs of a curve are
/// a queue depth, in rising order, and requests per second.
fn knee(curve: &[(u32, f64)]) -> u32 {
    let best = curve.iter().map(|(_, throughput)| *throughput).fold(0.0, f64::max);
    curve.iter().find(|(_, throughput)| *throughput >= 0.9 * best).map_or(1, |(n, _)| *n)
}

/// Returns the write-back policy for a drive with these throughput curves of reads and writes of one page.
fn choose(reads: &[(u32, f64)], writes: &[(u32, f64)]) -> WriteBack {
    let n_w = knee(writes);
    // Only frames that the batch has written can be evicted as clean, so `n_w` bounds the evictions.
    let n_e = knee(reads).min(n_w);
    let buffers = 2 * n_w;
    let policy = WriteBack { n_e, buffers, buffers_least: LEAST, ..WriteBack::ace(n_w) };
    match n_w {
        // Without batches, the policy is RAW, which prefetches with every read.
        1 => WriteBack { batches: false, ..policy },
        _ => WriteBack { under_way: buffers, ..policy },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(throughput: impl Fn(u32) -> f64) -> Vec<(u32, f64)> {
        [1, 2, 4, 8, 16, 32].map(|n| (n, throughput(n))).to_vec()
    }

    #[test]
    fn the_knee_of_the_curve_is_the_batch() {
        // On this drive, eight requests overlap fully; more are queued.
        let eight = curve(|n| f64::from(n.min(8)));
        let policy = choose(&eight, &eight);
        assert_eq!((policy.n_w, policy.n_e, policy.buffers), (8, 8, 16));
        // Misses share two batches under write, and at least one frame is spare.
        assert_eq!((policy.batches, policy.under_way, policy.buffers_least), (true, 16, 1));
        // On a drive without write concurrency, there are no batches, and reads still go before writes.
        let serial = choose(&eight, &curve(|_| 1.0));
        assert_eq!((serial.n_w, serial.n_e, serial.buffers), (1, 1, 2));
        assert_eq!((serial.batches, serial.under_way, serial.buffers_least), (false, u32::MAX, 1));
        // If reads do not overlap, no frame is evicted for prefetching.
        assert_eq!(choose(&curve(|_| 1.0), &eight).n_e, 1);
        // The throughput of writes hardly rises beyond a queue depth of 4.
        assert_eq!(choose(&eight, &curve(|n| f64::from(n.min(4)) + 0.01 * f64::from(n))).n_w, 4);
        // A throughput of nine is within a tenth of ten, so the queue depth with nine is chosen.
        assert_eq!(choose(&eight, &[(1, 8.0), (2, 9.0), (4, 10.0)]).n_w, 2);
    }
}
