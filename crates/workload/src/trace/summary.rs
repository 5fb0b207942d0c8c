//! Computes the summary of a trace, its figures, in one pass over its records. The memory grows with the
//! number of disjoint runs of pages that the trace touches.

use super::load::Trace;
use super::page_set::PageSets;
use super::paging::Paging;
use super::record::Record;
use super::skipped::Skipped;
use crate::Op;
use fulgurite_base::{Nanos, SpecError};
use std::ops::Range;

/// The figures of a trace. Footprints and reuse count pages, and sizes are in the trace's unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The number of requests of all kinds.
    pub requests: u64,
    /// The figures of the reads.
    pub reads: OpSummary,
    /// The figures of the writes.
    pub writes: OpSummary,
    /// The figures of the trims.
    pub trims: OpSummary,
    /// The number of reads divided by the number of requests.
    pub read_share: f64,
    /// The number of distinct pages that any request touches.
    pub footprint_pages: u64,
    /// The time of the last request, relative to the first one.
    pub duration: Nanos,
    /// The number of requests per second of the duration; `None` if the trace has no times or no duration.
    pub rate_requests_s: Option<f64>,
    /// The most requests in one second, with seconds counted from the first request. `None` if the trace has
    /// no times or is shorter than a second, because such a trace's peak would be below its rate.
    pub peak_requests_s: Option<u64>,
    /// The squared coefficient of variation of the times between requests: 1 for random arrivals, more for
    /// bursts. `None` if the trace has no times.
    pub burstiness: Option<f64>,
    /// The number of volumes; zero in formats without volumes.
    pub volumes: usize,
    /// The share of requests that start at the end of the previous one.
    pub sequential_share: f64,
    /// The share of requests that touch a page of an earlier request.
    pub reuse_share: f64,
    /// The lines that were skipped, grouped by reason.
    pub skipped: Vec<Skipped>,
    /// The number of records whose time decreased and was clamped.
    pub clamped: u64,
}

/// The figures of the requests of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpSummary {
    /// The number of requests of this operation.
    pub requests: u64,
    /// The lengths of the requests; `None` if there are none.
    pub sizes: Option<Sizes>,
    /// The number of distinct pages that the requests touch.
    pub footprint_pages: u64,
}

/// The distribution of the lengths of requests, in the trace's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The shortest length.
    pub min: u64,
    /// The mean length.
    pub mean: f64,
    /// The longest length.
    pub max: u64,
}

impl Trace {
    /// Returns the figures of this trace with pages of `page_bytes` bytes (without effect if the unit is
    /// pages).
    ///
    /// Fails if `page_bytes` is zero.
    pub fn summary(&self, page_bytes: u64) -> Result<Summary, SpecError> {
        self.summary_of(self.records(), page_bytes)
    }

    /// Returns the figures of the requests to each volume, in the order of first appearance. The lines that
    /// were skipped and the clamped times belong to no volume.
    ///
    /// Fails if `page_bytes` is zero.
    pub fn summaries_by_volume(&self, page_bytes: u64) -> Result<Vec<Summary>, SpecError> {
        let mut volumes: Vec<Vec<Record>> = vec![Vec::new(); self.volumes().len()];
        for record in self.records() {
            // Volume 0 means that the format has no volumes.
            if let Some(volume) = (record.volume as usize).checked_sub(1) {
                volumes[volume].push(*record);
            }
        }
        let summary = |records: &mut Vec<Record>| {
            let first = records.first().map_or(Nanos::ZERO, |record| record.at);
            records.iter_mut().for_each(|record| record.at = record.at - first);
            let summary = self.summary_of(records, page_bytes)?;
            Ok(Summary { volumes: 1, skipped: Vec::new(), clamped: 0, ..summary })
        };
        volumes.iter_mut().map(summary).collect()
    }

    fn summary_of(&self, records: &[Record], page_bytes: u64) -> Result<Summary, SpecError> {
        let paging = Paging::new(self.unit(), page_bytes)?;
        let [mut reads, mut writes, mut trims] = [(); 3].map(|()| Tally::default());
        let mut touched = PageSets::default();
        let (mut sequential, mut reused) = (0u64, 0u64);
        let (mut duration, mut previous_end) = (Nanos::ZERO, None);
        let (mut second, mut in_second, mut peak, mut squares) = (0, 0u64, 0u64, 0f64);
        for record in records {
            let pages = paging.pages(record);
            match record.op {
                Op::Read => &mut reads,
                Op::Write => &mut writes,
                Op::Trim => &mut trims,
            }
            .add(record, pages.clone());
            reused += u64::from(touched.insert(record.volume, pages));
            sequential += u64::from(previous_end == Some((record.volume, record.start)));
            previous_end = Some((record.volume, record.start + record.length));
            if record.at.0 / 1_000_000_000 != second {
                (second, in_second) = (record.at.0 / 1_000_000_000, 0);
            }
            in_second += 1;
            peak = peak.max(in_second);
            // The reader ensures that times never decrease, so the difference is not negative.
            squares += ((record.at.0 - duration.0) as f64).powi(2);
            duration = record.at;
        }
        let requests = records.len() as u64;
        let share = |count: u64| count as f64 / requests as f64;
        let has_times = duration > Nanos::ZERO;
        // A single request has no gap, so the divisor is at least one.
        let gaps = requests.saturating_sub(1).max(1) as f64;
        let mean_gap = duration.0 as f64 / gaps;
        Ok(Summary {
            peak_requests_s: (duration >= Nanos(1_000_000_000)).then_some(peak),
            burstiness: has_times.then(|| squares / gaps / (mean_gap * mean_gap) - 1.0),
            volumes: self.volumes().len(),
            requests,
            read_share: share(reads.requests),
            reads: reads.finish(),
            writes: writes.finish(),
            trims: trims.finish(),
            footprint_pages: touched.pages(),
            duration,
            rate_requests_s: has_times.then(|| requests as f64 / duration.as_secs_f64()),
            sequential_share: share(sequential),
            reuse_share: share(reused),
            skipped: self.skipped().to_vec(),
            clamped: self.clamped(),
        })
    }
}

/// The accumulated counts for an [`OpSummary`].
#[derive(Default)]
struct Tally {
    requests: u64,
    total: u128,
    range: Option<(u64, u64)>,
    pages: PageSets,
}

impl Tally {
    fn add(&mut self, record: &Record, pages: Range<u64>) {
        let length = record.length;
        let (min, max) = self.range.unwrap_or((length, length));
        self.range = Some((min.min(length), max.max(length)));
        self.requests += 1;
        self.total += u128::from(length);
        self.pages.insert(record.volume, pages);
    }

    fn finish(self) -> OpSummary {
        let mean = self.total as f64 / self.requests as f64;
        OpSummary {
            requests: self.requests,
            sizes: self.range.map(|(min, max)| Sizes { min, mean, max }),
            footprint_pages: self.pages.pages(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Format, TraceOptions, TraceReader};
    use std::io::Cursor;

    #[test]
    fn the_figures_of_a_small_trace() {
        let text =
            "1,10,28,4096,0\n1,11,28,8192,8\n1,11,2a,512,1\n1,14,12,0,0\n1,9,28,1024,800\n1,14,2a,512,2\n";
        let reader =
            TraceReader::new("cloudphysics", text.as_bytes(), None, TraceOptions::default()).unwrap();
        let summary = Trace::read(reader).unwrap().summary(4096).unwrap();
        let sizes = |min, mean, max| Some(Sizes { min, mean, max });
        let expected = Summary {
            requests: 5,
            reads: OpSummary { requests: 3, sizes: sizes(1024, 13312.0 / 3.0, 8192), footprint_pages: 4 },
            writes: OpSummary { requests: 2, sizes: sizes(512, 512.0, 512), footprint_pages: 1 },
            trims: OpSummary::default(),
            read_share: 0.6,
            footprint_pages: 4,
            duration: Nanos(4_000_000_000),
            rate_requests_s: Some(1.25),
            // The gaps are 1, 0, 0 and 3 seconds, because the decreasing time is clamped.
            peak_requests_s: Some(3),
            burstiness: Some(1.5),
            volumes: 0,
            sequential_share: 0.2,
            reuse_share: 0.4,
            skipped: vec![Skipped { reason: "a command other than read, write and unmap", count: 1 }],
            clamped: 1,
        };
        assert_eq!(summary, expected);
    }

    /// The rule: a peak, a count of requests in a whole second, is never below the rate of the trace. So a
    /// trace shorter than a second has no peak.
    #[test]
    fn a_trace_of_less_than_a_second_has_no_peak() {
        for (last, peak) in [("0.999", None), ("1.0", Some(2))] {
            let text = format!("0,0,512,R,0.0\n0,8,512,R,0.5\n0,8,512,R,{last}\n");
            let reader = TraceReader::new("t.spc", Cursor::new(text), None, TraceOptions::default()).unwrap();
            let summary = Trace::read(reader).unwrap().summary(4096).unwrap();
            assert_eq!(summary.peak_requests_s, peak, "{last}");
        }
    }

    #[test]
    fn a_trace_without_times_has_no_rate() {
        let reader = TraceReader::new(
            "t",
            "R 5\nR 6\nR 5".as_bytes(),
            Some(Format::PAGE_OPS),
            TraceOptions::default(),
        )
        .unwrap();
        let summary = Trace::read(reader).unwrap().summary(4096).unwrap();
        assert_eq!((summary.duration, summary.rate_requests_s), (Nanos::ZERO, None));
        assert_eq!((summary.reads.footprint_pages, summary.writes.sizes), (2, None));
        assert_eq!((summary.sequential_share, summary.reuse_share), (1.0 / 3.0, 1.0 / 3.0));
    }
}
