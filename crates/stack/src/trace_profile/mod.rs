//! Describes how a trace develops: its requests over time, its working set, how its pages are requested again, and its
//! bursts at every scale.

mod series;

use crate::StackError;
use fulgurite_base::{Nanos, PageId};
use fulgurite_pool::Reuse;
use fulgurite_workload::Op;
use fulgurite_workload::trace::{Added, Record, Summing, TraceReader};
use series::Series;
pub use series::{Interval, Intervals};

/// The most pages that are followed. They take 29 MB.
const PAGES_AT_MOST: usize = 1 << 18;
/// The most intervals of a length that is chosen, so that a picture can show them.
const INTERVALS_AT_MOST: usize = 600;
/// The most intervals of a length that the user chose.
const ASKED_AT_MOST: u64 = 100_000;
/// The most pages of a request whose pages are followed. Only `long=read` lets longer ones in.
const LONG_PAGES: u64 = 1 << 20;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
/// The lengths of intervals in nanoseconds: from a millisecond to a hundred days.
const TIMES: [u64; 12] = [
    SECOND / 1_000,
    SECOND / 100,
    SECOND / 10,
    SECOND,
    10 * SECOND,
    60 * SECOND,
    600 * SECOND,
    HOUR,
    6 * HOUR,
    24 * HOUR,
    240 * HOUR,
    2_400 * HOUR,
];
/// The lengths of intervals in requests.
const COUNTS: [u64; 13] = {
    let mut counts = [1; 13];
    let mut at = 1;
    while at < counts.len() {
        counts[at] = 10 * counts[at - 1];
        at += 1;
    }
    counts
};

/// The length of intervals that the user asked for, which is not zero.
#[derive(Clone, Copy, Debug)]
pub enum Length {
    /// A time.
    Time(Nanos),
    /// A number of requests.
    Requests(u64),
}

/// Reads a trace to its end. Adds its records to `whole`, and returns how the trace develops, in intervals of the
/// length `asked`; without it, of a length that a picture can show.
pub fn profile(
    reader: &mut TraceReader,
    whole: &mut Summing,
    asked: Option<Length>,
) -> Result<Profile, StackError> {
    let mut profiling = Profiling::new(asked);
    for record in reader.by_ref() {
        let record = record.map_err(|error| StackError::request(error.to_string()))?;
        let added = whole.add(&record);
        profiling.add(&record, added)?;
    }
    Ok(profiling.finish())
}

/// A request as the pages remember it.
#[derive(Clone, Copy)]
struct Request {
    at: u64,
    number: u64,
    is_write: bool,
}

/// The description of a trace so far.
struct Profiling {
    asked: Option<Length>,
    reuse: Reuse<Request>,
    over_time: Series,
    /// The intervals by the numbers of requests; `None` if the trace has times.
    over_requests: Option<Series>,
    windows: Vec<Window>,
    requests: u64,
    distances: [Distances; 2],
    /// The repeated requests by the operation before and their own, a write after a read and so on.
    pairs: [[u64; 2]; 2],
}

/// The requests in windows of one length.
struct Window {
    length: u64,
    /// The end of the current window.
    end: u64,
    /// The requests in the current window.
    requests: u64,
    /// The requests in all windows before, and the sum of their squares.
    before: u64,
    squares: f64,
}

/// The description of a whole trace.
pub struct Profile {
    /// The intervals of the trace.
    pub intervals: Intervals,
    /// Whether the length of the intervals is a time. Otherwise it is a number of requests.
    pub has_times: bool,
    /// The distances of repeated reads and writes.
    pub distances: [Distances; 2],
    /// The repeated requests by the operation before and their own: 0 for a read, 1 for a write.
    pub pairs: [[u64; 2]; 2],
    /// The index of dispersion of the requests in windows of each length in nanoseconds.
    pub dispersion: Vec<(u64, f64)>,
    /// One in this many pages was followed.
    pub divisor: u32,
}

impl Profiling {
    fn new(asked: Option<Length>) -> Profiling {
        let (times, counts) = match &asked {
            Some(Length::Time(length)) => (vec![length.0], Vec::new()),
            Some(Length::Requests(count)) => (Vec::new(), vec![*count]),
            None => (TIMES.to_vec(), COUNTS.to_vec()),
        };
        Profiling {
            asked,
            reuse: Reuse::new(PAGES_AT_MOST),
            over_time: Series::new(&times, INTERVALS_AT_MOST),
            over_requests: Some(Series::new(&counts, INTERVALS_AT_MOST)),
            windows: TIMES.map(Window::new).into(),
            requests: 0,
            distances: Default::default(),
            pairs: [[0; 2]; 2],
        }
    }

    /// Adds the next record of the trace.
    fn add(&mut self, record: &Record, added: Added) -> Result<(), StackError> {
        let Added { at: Nanos(at), pages, is_sequential } = added;
        let number = self.requests;
        self.requests += 1;
        self.check_length(at, number)?;
        if at > 0 && !matches!(self.asked, Some(Length::Requests(_))) {
            self.over_requests = None;
        }
        self.over_time.request(at, record.op, is_sequential);
        if let Some(series) = &mut self.over_requests {
            series.request(number, record.op, is_sequential);
        }
        self.windows.iter_mut().for_each(|window| window.add(at));
        if record.op == Op::Trim || pages.end - pages.start > LONG_PAGES {
            return Ok(());
        }
        let request = Request { at, number, is_write: record.op == Op::Write };
        // Equal numbers of two volumes are two pages.
        let volume = if record.volume > 1 { Some(PageId(u64::from(record.volume)).mixed()) } else { None };
        for page in pages {
            let page = volume.map_or(page, |volume| PageId(page).mixed().wrapping_add(volume));
            self.follow(PageId(page), request);
        }
        Ok(())
    }

    #[inline]
    fn follow(&mut self, page: PageId, request: Request) {
        let Some(followed) = self.reuse.add(page, request) else { return };
        let weight = u64::from(followed.weight);
        self.over_time.page(followed.before.map(|before| before.request.at), weight);
        if let Some(series) = &mut self.over_requests {
            series.page(followed.before.map(|before| before.request.number), weight);
        }
        if let Some(before) = followed.before {
            let is_write = usize::from(request.is_write);
            self.pairs[usize::from(before.request.is_write)][is_write] += weight;
            self.distances[is_write].add(before.distance, weight);
        }
    }

    /// Refuses a length of which the trace has too many.
    fn check_length(&self, at: u64, number: u64) -> Result<(), StackError> {
        let (place, length) = match self.asked {
            None => return Ok(()),
            Some(Length::Time(length)) => (at, length.0),
            Some(Length::Requests(count)) => (number, count),
        };
        if place / length < ASKED_AT_MOST {
            return Ok(());
        }
        Err(StackError::request(format!(
            "--interval divides this trace into more than {ASKED_AT_MOST} intervals; accepted: a longer one"
        )))
    }

    fn finish(self) -> Profile {
        let over_requests = self.over_requests.map(Series::finish);
        let has_times = over_requests.is_none();
        Profile {
            intervals: over_requests.unwrap_or_else(|| self.over_time.finish()),
            has_times,
            distances: self.distances,
            pairs: self.pairs,
            dispersion: self.windows.iter().filter_map(Window::dispersion).collect(),
            divisor: self.reuse.divisor(),
        }
    }
}

impl Window {
    /// The least number of windows of a figure.
    const LEAST: u64 = 10;

    fn new(length: u64) -> Window {
        Window { length, end: length, requests: 0, before: 0, squares: 0.0 }
    }

    #[inline]
    fn add(&mut self, at: u64) {
        if at >= self.end {
            self.squares += (self.requests as f64).powi(2);
            self.before += self.requests;
            self.requests = 0;
            self.end = (at / self.length + 1).saturating_mul(self.length);
        }
        self.requests += 1;
    }

    /// Returns the length of the windows, and the variance of their requests over the mean. The last window, which
    /// the trace may not fill, does not count.
    fn dispersion(&self) -> Option<(u64, f64)> {
        let windows = self.end / self.length - 1;
        let mean = self.before as f64 / windows as f64;
        let variance = self.squares / windows as f64 - mean * mean;
        (windows >= Window::LEAST && mean > 0.0).then_some((self.length, variance / mean))
    }
}

/// The distances of repeated requests, in classes that are at most a 32nd wide.
#[derive(Clone, Debug, Default)]
pub struct Distances {
    classes: Vec<u64>,
}

impl Distances {
    /// The bits of a class's number within a power of two.
    const BITS: u32 = 5;

    fn class(distance: u64) -> usize {
        let shift = (u64::BITS - distance.leading_zeros()).saturating_sub(Distances::BITS + 1);
        ((u64::from(shift) << Distances::BITS) + (distance >> shift)) as usize
    }

    /// Returns the greatest distance of a class.
    fn greatest(class: usize) -> u64 {
        let within = 1 << Distances::BITS;
        let shift = (class as u64 / within).saturating_sub(1);
        let first = class as u64 - (shift << Distances::BITS);
        (((u128::from(first) + 1) << shift) - 1) as u64
    }

    fn add(&mut self, distance: u64, weight: u64) {
        let class = Distances::class(distance);
        if class >= self.classes.len() {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += weight;
    }

    /// Returns the distances of both.
    pub fn with(&self, other: &Distances) -> Distances {
        let count = self.classes.len().max(other.classes.len());
        let of = |distances: &Distances, class: usize| distances.classes.get(class).copied().unwrap_or(0);
        Distances { classes: (0..count).map(|class| of(self, class) + of(other, class)).collect() }
    }

    /// The number of repeated requests.
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }

    /// Returns a distance that `percent` of the requests do not exceed; `None` if there are no requests.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = (self.count() as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut below = 0;
        let is_reached = |count: &u64| {
            below += count;
            below >= rank
        };
        self.classes.iter().position(is_reached).map(Distances::greatest)
    }

    /// Returns the share of the requests whose distance is below `frames`, a power of two. A pool of LRU with as many
    /// frames hits them.
    pub fn below(&self, frames: u64) -> f64 {
        let classes = Distances::class(frames).min(self.classes.len());
        self.classes[..classes].iter().sum::<u64>() as f64 / self.count() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: classes divide all distances, exactly below 64, and none is wider than a 32nd of its distances.
    #[test]
    fn classes_of_distances() {
        for distance in (0..10_000).chain([1 << 40, (1 << 40) + 1, u64::MAX - 1, u64::MAX]) {
            let class = Distances::class(distance);
            let greatest = Distances::greatest(class);
            assert!(greatest >= distance && greatest - distance <= distance / 32, "{distance}");
            assert!(distance >= 64 || greatest == distance, "{distance}");
            assert_eq!(Distances::class(greatest), class);
            assert!(greatest == u64::MAX || Distances::class(greatest + 1) == class + 1, "{distance}");
        }
        let mut distances = Distances::default();
        (0..200).for_each(|distance| distances.add(distance, 3));
        assert_eq!(
            [1.0, 25.0, 50.0].map(|percent| distances.percentile(percent)),
            [Some(1), Some(49), Some(99)]
        );
        assert_eq!((distances.below(64), distances.below(128), distances.below(256)), (0.32, 0.64, 1.0));
        assert_eq!(Distances::default().percentile(50.0), None);
    }

    /// The rule: the index of dispersion is 1 for random arrivals at every scale, and of bursts it grows with it.
    #[test]
    fn dispersion_by_scale() {
        let dispersion = |times: &mut dyn Iterator<Item = u64>| {
            let mut window = Window::new(SECOND);
            times.for_each(|at| window.add(at));
            window.dispersion().map(|(_, dispersion)| dispersion)
        };
        // 30 seconds of ten requests each, ten seconds of none, and the last one, which does not count.
        let steady = || (0..300).map(|number| number * SECOND / 10);
        assert_eq!(dispersion(&mut steady().chain([40 * SECOND])), Some(2.5));
        assert_eq!(dispersion(&mut steady()), Some(0.0));
        assert_eq!(dispersion(&mut (0..9).map(|number| number * SECOND)), None);
    }
}
