//! Computes the summary of a trace, its figures, in one pass over its records and in bounded memory.

use super::footprint::{Footprint, RUNS_AT_MOST};
use super::load::Trace;
use super::paging::Paging;
use super::record::{Record, Unit};
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
    /// Half the width of an interval around `footprint_pages` that should have the exact number in 95 of 100 cases.
    /// `None` if all footprints are exact.
    pub footprint_error: Option<u64>,
    /// The mean number of distinct pages that are requested in a minute, over all whole minutes. `None` if the trace
    /// has no times or is shorter than a minute.
    pub working_set_pages: Option<f64>,
    /// The index of dispersion, the variance of the requests in a second over their mean: 1 for random arrivals, more
    /// for bursts. `None` if the trace has no times or is shorter than two seconds.
    pub dispersion: Option<f64>,
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
    /// The share of requests that touch a page of an earlier request. If the footprint is not exact, it is the share
    /// of requests whose first page was requested before, from a sample.
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
        let mut summing = Summing::new(self.unit(), page_bytes)?;
        for record in self.records() {
            summing.add(record);
        }
        let summary = summing.finish();
        let (volumes, skipped) = (self.volumes().len(), self.skipped().to_vec());
        Ok(Summary { volumes, skipped, clamped: self.clamped(), ..summary })
    }
}

/// The figures of the requests so far. Its memory is bounded.
pub struct Summing {
    paging: Paging,
    reads: Tally,
    writes: Tally,
    trims: Tally,
    touched: Footprint,
    requests: u64,
    sequential: u64,
    /// The requests for which those stand of which it is known whether they touch a page of an earlier one, and those
    /// of them that do.
    known: u64,
    reused: u64,
    /// The time of the first request.
    origin: Option<Nanos>,
    /// The time of the last request since the first one.
    duration: Nanos,
    previous_end: Option<(u32, u64)>,
    /// The sum of the squared times between requests.
    squares: f64,
    second: Window,
    minute: Window,
    peak: u64,
    /// The sum of the squared numbers of requests in a second.
    squares_of_second: f64,
    /// The pages of the current minute, and the sum of those of each minute before.
    in_minute: Footprint,
    pages_of_minutes: f64,
    most: usize,
}

/// A record that was added to the figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Added {
    /// The time since the first request.
    pub at: Nanos,
    /// The pages that the record covers.
    pub pages: Range<u64>,
    /// Whether it begins at the end of the record before.
    pub is_sequential: bool,
}

/// A window of time, and the requests in it.
#[derive(Default)]
struct Window {
    number: u64,
    requests: u64,
}

const SECOND: u64 = 1_000_000_000;

impl Summing {
    /// Creates the figures of no requests, for records in `unit` and pages of `page_bytes` bytes (without effect if
    /// the unit is pages).
    ///
    /// Fails if `page_bytes` is zero.
    pub fn new(unit: Unit, page_bytes: u64) -> Result<Summing, SpecError> {
        Summing::within(unit, page_bytes, RUNS_AT_MOST)
    }

    /// Creates the figures of one of many volumes, which take less memory.
    ///
    /// Fails if `page_bytes` is zero.
    pub fn of_volume(unit: Unit, page_bytes: u64) -> Result<Summing, SpecError> {
        Summing::within(unit, page_bytes, RUNS_AT_MOST >> 5)
    }

    /// Creates the figures of no requests. Each of the sets of pages has at most about `most` runs.
    fn within(unit: Unit, page_bytes: u64, most: usize) -> Result<Summing, SpecError> {
        let tally = || Tally { requests: 0, total: 0, range: None, pages: Footprint::new(most) };
        Ok(Summing {
            paging: Paging::new(unit, page_bytes)?,
            reads: tally(),
            writes: tally(),
            trims: tally(),
            touched: Footprint::new(most),
            requests: 0,
            sequential: 0,
            known: 0,
            reused: 0,
            origin: None,
            duration: Nanos::ZERO,
            previous_end: None,
            squares: 0.0,
            second: Window::default(),
            minute: Window::default(),
            peak: 0,
            squares_of_second: 0.0,
            in_minute: Footprint::new(most),
            pages_of_minutes: 0.0,
            most,
        })
    }

    /// Adds the next record of the trace.
    pub fn add(&mut self, record: &Record) -> Added {
        let at = record.at - *self.origin.get_or_insert(record.at);
        let pages = self.paging.pages(record);
        match record.op {
            Op::Read => &mut self.reads,
            Op::Write => &mut self.writes,
            Op::Trim => &mut self.trims,
        }
        .add(record, pages.clone());
        if let Some((was_there, stands_for)) = self.touched.insert(record.volume, pages.clone()) {
            self.known += stands_for;
            self.reused += if was_there { stands_for } else { 0 };
        }
        self.requests += 1;
        let is_sequential = self.previous_end == Some((record.volume, record.start));
        self.sequential += u64::from(is_sequential);
        self.previous_end = Some((record.volume, record.start + record.length));
        // The reader ensures that times never decrease, so the difference is not negative.
        self.squares += ((at.0 - self.duration.0) as f64).powi(2);
        self.duration = at;
        self.pass_windows(at);
        self.second.requests += 1;
        self.peak = self.peak.max(self.second.requests);
        self.in_minute.insert(record.volume, pages.clone());
        Added { at, pages, is_sequential }
    }

    /// Ends the second and the minute if `at` is behind them.
    fn pass_windows(&mut self, at: Nanos) {
        if at.0 / SECOND != self.second.number {
            self.squares_of_second += (self.second.requests as f64).powi(2);
            self.second = Window { number: at.0 / SECOND, requests: 0 };
        }
        if at.0 / (60 * SECOND) != self.minute.number {
            self.pages_of_minutes += self.in_minute.pages().0 as f64;
            self.minute.number = at.0 / (60 * SECOND);
            self.in_minute = Footprint::new(self.most);
        }
    }

    /// Returns the figures. Volumes, skipped lines and clamped times are left at zero, because records do not tell
    /// them.
    pub fn finish(self) -> Summary {
        let Summing { requests, duration, squares, .. } = self;
        let share = |count: u64| count as f64 / requests as f64;
        let has_times = duration > Nanos::ZERO;
        // A single request has no gap, so the divisor is at least one.
        let gaps = requests.saturating_sub(1).max(1) as f64;
        let mean_gap = duration.0 as f64 / gaps;
        let (footprint_pages, error) = self.touched.pages();
        // The whole seconds and minutes are those before the current ones.
        let (seconds, minutes) = (self.second.number, self.minute.number);
        let dispersion = || {
            let mean = (requests - self.second.requests) as f64 / seconds as f64;
            let variance = self.squares_of_second / seconds as f64 - mean * mean;
            (mean > 0.0).then(|| variance / mean)
        };
        Summary {
            peak_requests_s: (duration >= Nanos(SECOND)).then_some(self.peak),
            burstiness: has_times.then(|| squares / gaps / (mean_gap * mean_gap) - 1.0),
            dispersion: if seconds >= 2 { dispersion() } else { None },
            working_set_pages: (minutes >= 1).then(|| self.pages_of_minutes / minutes as f64),
            volumes: 0,
            requests,
            read_share: share(self.reads.requests),
            reads: self.reads.finish(),
            writes: self.writes.finish(),
            trims: self.trims.finish(),
            footprint_pages,
            footprint_error: (!self.touched.is_exact()).then_some(error),
            duration,
            rate_requests_s: has_times.then(|| requests as f64 / duration.as_secs_f64()),
            sequential_share: share(self.sequential),
            reuse_share: self.reused as f64 / self.known as f64,
            skipped: Vec::new(),
            clamped: 0,
        }
    }
}

/// The accumulated counts for an [`OpSummary`].
struct Tally {
    requests: u64,
    total: u128,
    range: Option<(u64, u64)>,
    pages: Footprint,
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
            footprint_pages: self.pages.pages().0,
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
            footprint_error: None,
            working_set_pages: None,
            // The whole seconds have 1, 3, 0 and 0 requests: their mean is 1, and their variance 1.5.
            dispersion: Some(1.5),
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

    /// The rule: the working set counts the distinct pages of each whole minute, those without a request included,
    /// and random arrivals have a dispersion of about 1, bursts more.
    #[test]
    fn working_set_and_dispersion_follow_their_definitions() {
        let figures = |lines: String| {
            let reader =
                TraceReader::new("t.spc", Cursor::new(lines), None, TraceOptions::default()).unwrap();
            let summary = Trace::read(reader).unwrap().summary(4096).unwrap();
            (summary.working_set_pages, summary.dispersion)
        };
        // Three pages in the first minute, one in the second, none in the third; the fourth is not whole.
        let line = |page: u64, at: f64| format!("0,{},4096,R,{at}\n", page * 8);
        let text = [(0, 0.0), (1, 10.0), (0, 11.0), (2, 59.9), (2, 60.0), (2, 119.0), (5, 180.0), (6, 200.0)];
        let text: String = text.iter().map(|(page, at)| line(*page, *at)).collect();
        assert_eq!(figures(text).0, Some(4.0 / 3.0));
        let mut prng = fulgurite_base::Prng::new(3, "arrivals");
        let mut at = 0.0;
        let random: String = (0..40_000)
            .map(|_| {
                at -= libm::log(1.0 - prng.unit_f64()) / 100.0;
                line(1, at)
            })
            .collect();
        let dispersion = figures(random).1.unwrap();
        // Of 400 seconds, the standard deviation of the dispersion is 0.07.
        assert!((dispersion - 1.0).abs() < 0.28, "{dispersion}");
        // Of ten seconds, one has all requests.
        let bursts: String = (0..1_000).map(|number| line(1, (number / 10 * 10) as f64)).collect();
        assert_eq!(figures(bursts + &line(1, 1_000.0)).1, Some(9.0));
    }

    /// The rule: beyond its budget of runs, a summary estimates footprints and reuse from a sample, and tells the
    /// error.
    #[test]
    fn figures_beyond_the_budget_are_estimated() {
        let mut exact = Summing::new(Unit::Pages, 4096).unwrap();
        let mut sampled = Summing::within(Unit::Pages, 4096, 500).unwrap();
        let mut prng = fulgurite_base::Prng::new(5, "budget");
        for number in 0..60_000 {
            let op = if number % 3 == 0 { Op::Write } else { Op::Read };
            let record = Record::new(Nanos(number), op, prng.below(50_000) * 2, 1);
            exact.add(&record);
            sampled.add(&record);
        }
        let (exact, sampled) = (exact.finish(), sampled.finish());
        assert_eq!(exact.footprint_error, None);
        let error = sampled.footprint_error.unwrap();
        assert!(error > 0 && error < exact.footprint_pages / 4, "{error}");
        let within = |sampled: u64, exact: u64, error: u64| sampled.abs_diff(exact) <= 2 * error;
        assert!(within(sampled.footprint_pages, exact.footprint_pages, error), "{sampled:?} {exact:?}");
        let written = [&sampled, &exact].map(|summary| summary.writes.footprint_pages);
        assert!(within(written[0], written[1], error), "{written:?}");
        assert!((sampled.reuse_share - exact.reuse_share).abs() < 0.05, "{sampled:?} {exact:?}");
        assert_eq!((sampled.requests, sampled.reads.sizes), (exact.requests, exact.reads.sizes));
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
