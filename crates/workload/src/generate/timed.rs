//! Requests that arrive at times of their own and have sizes: the workloads of "A Semi-Preemptive Garbage
//! Collector for Solid State Drives" (ISPASS 2011), for open-loop replay.
//!
//! `synthetic` is after the synthetic generator of DiskSim, which that study used: one size, exponential
//! times between arrivals, and probabilities of a sequential access and of a read. Its defaults are what the
//! study's journal version (IEEE TCAD 2013, Table VII) fixes in the sweeps of the others.
//!
//! The others are synthetic stand-ins for four traces, after the one row that the study prints of each: mean
//! request size, read share, arrival rate, and in the journal version the share of requests that come in bursts.
//! What the rows do not say is assumed, and an option: sizes are geometric in whole pages; a request is
//! sequential with the given probability and otherwise starts anywhere; the gaps inside bursts and those
//! between are exponential, so that all gaps together are hyperexponential with
//! `1 + cv² = 2 (p a² + (1 − p) b²) / mean²` for a share p of gaps inside bursts of mean a, and b between.

use super::{Generator, Make, draw_op, take_share};
use crate::Request;
use fulgurite_base::{Nanos, Prng, Share, Spec, SpecError, units};

/// A generator with arrival times.
#[derive(Clone, Debug)]
pub struct Timed {
    write: Share,
    sequential: Share,
    sizes: Sizes,
    gaps: Gaps,
    pages: u64,
    next_page: u64,
    now_ns: f64,
    prng: Prng,
}

/// Request sizes, in pages.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    Fixed(u32),
    /// At least one page; another with probability `1 − 1/mean`.
    Geometric {
        mean: f64,
    },
}

/// Times between arrivals, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    /// Share of the gaps that are inside a burst.
    inside: f64,
    mean_inside: f64,
    mean_between: f64,
}

/// The row of a trace, and what is assumed besides.
pub(super) struct Row {
    /// Mean request size, in bytes.
    pub size: f64,
    /// Reads per million requests.
    pub reads_ppm: u32,
    /// Arrivals per second.
    pub rate: f64,
    /// Gaps inside bursts, per million.
    pub bursty_ppm: u32,
    /// Percentage of sequential requests.
    pub sequential: u32,
}

/// The mean gap inside a burst: a third of the 1.5 ms below which the study calls requests bursty.
const BURST_GAP: Nanos = Nanos::from_micros(500);

/// UMass Financial: online transactions.
pub(super) const FINANCIAL: Row =
    Row { size: 7.09 * 1024.0, reads_ppm: 189_200, rate: 47.19, bursty_ppm: 1_400, sequential: 10 };
/// HP Cello: a time-sharing and mail server.
pub(super) const CELLO: Row =
    Row { size: 7.06 * 1024.0, reads_ppm: 196_300, rate: 74.24, bursty_ppm: 313_200, sequential: 10 };
/// TPC-H: scans.
pub(super) const TPCH: Row =
    Row { size: 31.62 * 1024.0, reads_ppm: 918_000, rate: 172.73, bursty_ppm: 112_900, sequential: 60 };
/// HP OpenMail: a mail server.
pub(super) const OPENMAIL: Row =
    Row { size: 9.49 * 1024.0, reads_ppm: 633_000, rate: 846.62, bursty_ppm: 100, sequential: 10 };

impl Row {
    /// A generator after the row.
    pub(super) fn make(&self, spec: &mut Spec, make: Make) -> Result<Generator, SpecError> {
        let bursty = take_share(spec, "bursty", Share::from_ppm(self.bursty_ppm))?;
        let burst_gap = spec.take_with("burst_gap_us", units::parse_micros)?.unwrap_or(BURST_GAP);
        let sequential = take_share(spec, "sequential", Share::percent(self.sequential))?;
        let footprint = take_share(spec, "footprint", Share::ONE)?;
        let gaps = Gaps::bursts(1e9 / self.rate, bursty, burst_gap).ok_or_else(|| {
            SpecError::new(format!(
                "burst_gap_us of {}: gaps of {} inside bursts are no shorter than those of all requests at {} a second; accepted: less than {:.0}",
                spec.name(),
                burst_gap,
                self.rate,
                1e6 / self.rate
            ))
        })?;
        let sizes = Sizes::Geometric { mean: self.size / f64::from(make.page_bytes) };
        let write = Share::from_ppm(1_000_000 - self.reads_ppm);
        Ok(Timed::generator(write, sequential, sizes, gaps, make, footprint))
    }
}

impl Gaps {
    /// Gaps of `mean` in all, a share of them inside bursts; `None` where those would not be shorter.
    fn bursts(mean: f64, bursty: Share, inside: Nanos) -> Option<Gaps> {
        let (share, mean_inside) = (bursty.as_f64(), inside.0 as f64);
        let mean_between = (mean - share * mean_inside) / (1.0 - share);
        (mean_inside < mean && share < 1.0).then_some(Gaps { inside: share, mean_inside, mean_between })
    }

    fn mean(&self) -> f64 {
        self.inside * self.mean_inside + (1.0 - self.inside) * self.mean_between
    }

    /// The squared coefficient of variation.
    #[cfg(test)]
    fn cv2(&self) -> f64 {
        let (p, a, b) = (self.inside, self.mean_inside, self.mean_between);
        let mean = self.mean();
        2.0 * (p * a * a + (1.0 - p) * b * b) / (mean * mean) - 1.0
    }

    fn draw(&self, prng: &mut Prng) -> f64 {
        let mean = if prng.unit_f64() < self.inside { self.mean_inside } else { self.mean_between };
        -mean * libm::log1p(-prng.unit_f64())
    }
}

impl Timed {
    /// The generator `synthetic` with its options.
    pub(super) fn synthetic(spec: &mut Spec, make: Make) -> Result<Generator, SpecError> {
        let size = spec.take_with("size", units::parse_size)?.unwrap_or(32 << 10);
        let interval =
            spec.take_with("interval_us", units::parse_micros)?.unwrap_or(Nanos::from_micros(3_000));
        let sequential = take_share(spec, "sequential", Share::percent(40))?;
        let read = take_share(spec, "read", Share::percent(40))?;
        let footprint = take_share(spec, "footprint", Share::ONE)?;
        let pages = size.div_ceil(u64::from(make.page_bytes));
        let pages =
            u32::try_from(pages).ok().filter(|pages| (1..=1024).contains(pages)).ok_or_else(|| {
                SpecError::new(format!(
                    "size of synthetic: {size}B is out of range; accepted: 1 to 1024 pages"
                ))
            })?;
        if interval == Nanos::ZERO {
            return Err(SpecError::new("interval_us of synthetic: 0 is out of range; accepted: more than 0"));
        }
        let write = Share::from_ppm(Share::ONE.ppm() - read.ppm());
        let gaps = Gaps { inside: 0.0, mean_inside: 0.0, mean_between: interval.0 as f64 };
        Ok(Timed::generator(write, sequential, Sizes::Fixed(pages), gaps, make, footprint))
    }

    fn generator(
        write: Share,
        sequential: Share,
        sizes: Sizes,
        gaps: Gaps,
        make: Make,
        footprint: Share,
    ) -> Generator {
        let (prng, pages) = (make.prng(), make.pages);
        let pages = footprint.of(pages).max(1);
        Generator::Timed(Timed { write, sequential, sizes, gaps, pages, next_page: 0, now_ns: 0.0, prng })
    }

    pub(super) fn mean_gap_ns(&self) -> f64 {
        self.gaps.mean()
    }

    pub(super) fn request(&mut self) -> Request {
        let at = Nanos(self.now_ns as u64);
        self.now_ns += self.gaps.draw(&mut self.prng);
        let op = draw_op(&mut self.prng, self.write);
        let is_sequential = self.prng.chance(self.sequential);
        let pages = self.sizes.draw(&mut self.prng).min(u32::try_from(self.pages).unwrap_or(u32::MAX));
        let last_start = self.pages - u64::from(pages);
        let page = match is_sequential && self.next_page <= last_start {
            true => self.next_page,
            false => self.prng.below(last_start + 1),
        };
        self.next_page = page + u64::from(pages);
        Request { at, op, page, pages, stream: 0 }
    }
}

impl Sizes {
    fn draw(self, prng: &mut Prng) -> u32 {
        match self {
            Sizes::Fixed(pages) => pages,
            Sizes::Geometric { mean } if mean <= 1.0 => 1,
            Sizes::Geometric { mean } => {
                let more = libm::log1p(-prng.unit_f64()) / libm::log1p(-1.0 / mean);
                1 + (more as u32).min(1023)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    fn make(text: &str, page_bytes: u32) -> Result<Generator, SpecError> {
        Generator::from_spec(Spec::parse(text).unwrap(), 1_000_000, page_bytes, 42)
    }

    /// Means of 400,000 requests: bytes, read share, rate, squared coefficient of variation of the gaps.
    fn means(text: &str, page_bytes: u32) -> [f64; 4] {
        let n = 400_000;
        let requests: Vec<Request> = make(text, page_bytes).unwrap().take(n).collect();
        let count = n as f64;
        let pages: f64 = requests.iter().map(|request| f64::from(request.pages)).sum();
        let reads = requests.iter().filter(|request| request.op == Op::Read).count() as f64;
        let gaps: Vec<f64> = requests.windows(2).map(|pair| (pair[1].at.0 - pair[0].at.0) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        [pages * f64::from(page_bytes) / count, reads / count, 1e9 / mean, variance / (mean * mean)]
    }

    #[test]
    fn the_rows_are_matched() {
        let rows = [
            ("financial-like", FINANCIAL),
            ("cello-like", CELLO),
            ("tpch-like", TPCH),
            ("openmail-like", OPENMAIL),
        ];
        for (name, row) in rows {
            let [bytes, reads, rate, cv2] = means(name, 4096);
            let gaps = Gaps::bursts(1e9 / row.rate, Share::from_ppm(row.bursty_ppm), BURST_GAP).unwrap();
            assert!((bytes / row.size - 1.0).abs() < 0.01, "{name}: {bytes} bytes");
            assert!((reads - f64::from(row.reads_ppm) / 1e6).abs() < 0.005, "{name}: {reads} reads");
            assert!((rate / row.rate - 1.0).abs() < 0.05, "{name}: {rate} requests/s");
            assert!((cv2 / gaps.cv2() - 1.0).abs() < 0.1, "{name}: {cv2} for {}", gaps.cv2());
        }
    }

    #[test]
    fn synthetic_does_what_its_options_say() {
        let [bytes, reads, rate, cv2] = means("synthetic:size=16KiB,interval_us=1000,read=80%", 4096);
        assert_eq!(bytes, 16384.0);
        assert!(
            (reads - 0.8).abs() < 0.005 && (rate / 1_000.0 - 1.0).abs() < 0.01 && (cv2 - 1.0).abs() < 0.02
        );
        let requests: Vec<Request> = make("synthetic:sequential=70%", 4096).unwrap().take(100_000).collect();
        let follows = |pair: &&[Request]| pair[1].page == pair[0].page + u64::from(pair[0].pages);
        let sequential = requests.windows(2).filter(follows).count() as f64 / 1e5;
        assert!((sequential - 0.7).abs() < 0.01, "{sequential}");
    }

    #[test]
    fn what_cannot_be_is_named() {
        let sentence = |text| make(text, 4096).unwrap_err().to_string();
        assert!(sentence("synthetic:interval_us=0").contains("accepted: more than 0"));
        assert!(sentence("synthetic:size=1GiB").contains("1 to 1024 pages"));
        assert!(sentence("financial-like:burst_gap_us=90000").contains("accepted: less than 21191"));
        assert!(sentence("financial-like:bursty=200%").contains("more than the whole"));
    }
}
