//! Generates requests with arrival times and sizes, for open-loop replay. They are the workloads of Lee et
//! al., "A Semi-Preemptive Garbage Collector for Solid State Drives" (ISPASS 2011), called the study below.
//!
//! `synthetic` follows the synthetic generator of DiskSim, which the study used: one request size,
//! exponential gaps (times between arrivals), and probabilities of a sequential access and of a read. Its
//! defaults are the fixed values of the sweeps in the study's journal version (IEEE TCAD 2013, Table VII).
//!
//! The other workloads are synthetic substitutes for four traces. The study gives a row of figures for each
//! trace: mean request size, read share and arrival rate. The journal version adds the share of requests in
//! bursts. Other properties are assumed, and can be set by options: sizes have a geometric distribution in
//! whole pages; a request is sequential with the given probability and otherwise starts at a random page; the
//! gaps inside bursts and between bursts are exponential. So all gaps together are hyperexponential with `1 +
//! cv² = 2 (p a² + (1 − p) b²) / mean²`, where cv is the coefficient of variation, p the share of gaps inside
//! bursts, a the mean gap inside bursts, and b the mean gap between bursts.
//!
//! The study does not give the length of bursts. Without the option `burst`, each gap is independently inside
//! a burst or not, so that a burst has 1 / (1 − p) gaps on average. With `burst`, bursts have that many gaps
//! on average, and the number of gaps between bursts keeps the share p. So the rate, the share and the
//! distribution of gaps stay the same, and only their order changes.

use super::bursts::Bursts;
use super::draw::draw_op;
use super::generator::{Generator, RequestSource};
use super::recipe::{Recipe, Space};
use crate::Request;
use fulgurite_base::option::{COUNT, MICROS, SHARE, SIZE};
use fulgurite_base::{Declared, Nanos, Opt, Prng, Share, SpecError, opt, units};

/// A generator of requests with arrival times.
#[derive(Debug)]
struct Timed {
    write: Share,
    sequential: Share,
    sizes: Sizes,
    gaps: Gaps,
    pages: u64,
    next_page: u64,
    now_ns: f64,
    prng: Prng,
}

/// The distribution of request sizes, in pages.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    Fixed(u32),
    /// A geometric distribution: a request has at least one page, and after each page another one with
    /// probability `1 − 1/mean`.
    Geometric {
        mean: f64,
    },
}

/// The distribution of gaps, the times between arrivals, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    /// The share of the gaps that are inside a burst.
    inside: f64,
    mean_inside: f64,
    mean_between: f64,
    /// Decides which gaps are inside bursts. With `None`, each gap is independently inside a burst or not.
    bursts: Option<Bursts>,
}

/// The figures that Lee et al. (2011) publish for a trace. They do not publish the share of sequential
/// requests, so that share is assumed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TraceRow {
    /// The mean request size, in bytes.
    pub size: f64,
    /// The number of reads per million requests.
    pub reads_ppm: u32,
    /// The arrival rate, in requests per second.
    pub rate: f64,
    /// The number of gaps inside bursts, per million gaps.
    pub bursty_ppm: u32,
    /// The assumed percentage of sequential requests.
    pub sequential: u32,
}

/// The default mean gap inside a burst, which is a third of 1.5 ms, the greatest gap that the study counts as
/// part of a burst.
const BURST_GAP: Nanos = Nanos::from_micros(500);

/// The figures of UMass Financial, a trace of online transactions.
pub(super) const FINANCIAL: TraceRow =
    TraceRow { size: 7.09 * 1024.0, reads_ppm: 189_200, rate: 47.19, bursty_ppm: 1_400, sequential: 10 };
/// The figures of HP Cello, a trace of a time-sharing and mail server.
pub(super) const CELLO: TraceRow =
    TraceRow { size: 7.06 * 1024.0, reads_ppm: 196_300, rate: 74.24, bursty_ppm: 313_200, sequential: 10 };
/// The figures of TPC-H, a trace of scans.
pub(super) const TPCH: TraceRow =
    TraceRow { size: 31.62 * 1024.0, reads_ppm: 918_000, rate: 172.73, bursty_ppm: 112_900, sequential: 60 };
/// The figures of HP OpenMail, a trace of a mail server.
pub(super) const OPENMAIL: TraceRow =
    TraceRow { size: 9.49 * 1024.0, reads_ppm: 633_000, rate: 846.62, bursty_ppm: 100, sequential: 10 };

/// The options of a workload that follows the study's figures for a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceLikeConfig {
    row: TraceRow,
    /// The share of gaps that are inside bursts.
    pub bursty: Share,
    /// The mean of the gaps inside bursts.
    pub burst_gap: Nanos,
    /// The average number of gaps in a burst; 0 if each gap is independently inside a burst or not.
    pub burst: u32,
    /// The coefficient of variation of the number of gaps in a burst.
    pub burst_spread: Share,
    /// The share of requests that start at the end of the previous one.
    pub sequential: Share,
    /// The share of the pages that requests go to, from the first page on.
    pub footprint: Share,
}

impl TraceLikeConfig {
    /// Returns the default options for a trace with these figures.
    pub(super) fn new(row: TraceRow) -> TraceLikeConfig {
        TraceLikeConfig {
            row,
            bursty: Share::from_ppm(row.bursty_ppm),
            burst_gap: BURST_GAP,
            burst: 0,
            burst_spread: Share::ONE,
            sequential: Share::percent(row.sequential),
            footprint: Share::ONE,
        }
    }

    fn gaps(&self) -> Option<Gaps> {
        Gaps::bursts(1e9 / self.row.rate, self.bursty, self.burst_gap)
    }

    fn write(&self) -> Share {
        Share::from_ppm(1_000_000 - self.row.reads_ppm)
    }
}

impl Declared for TraceLikeConfig {
    const OPTIONS: &'static [Opt<TraceLikeConfig>] = &[
        opt!("bursty", bursty, SHARE, Share::ZERO => Share::ONE, "gaps that are inside bursts"),
        opt!("burst_gap_us", burst_gap, MICROS, "their mean length"),
        opt!("burst", burst, COUNT, "average number of gaps in a burst; 0: each gap is independent"),
        opt!("burst_spread", burst_spread, SHARE, Share::ZERO => Share::ONE, "coefficient of variation of that number"),
        opt!(
            "sequential", sequential, SHARE, Share::ZERO => Share::ONE,
            "requests that start at the end of the previous one"
        ),
        opt!("footprint", footprint, SHARE, Share::ZERO => Share::ONE, "pages that are used"),
    ];
}

impl Recipe for TraceLikeConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let gaps = self.gaps().ok_or_else(|| too_long(&space, self.burst_gap, 1e9 / self.row.rate))?;
        let gaps = gaps.in_bursts(self.burst, self.burst_spread, self.bursty, &space)?;
        let sizes = Sizes::Geometric { mean: self.row.size / f64::from(space.page_bytes) };
        Ok(Timed::start(self.write(), self.sequential, sizes, gaps, space, self.footprint))
    }

    fn writes_anything(&self) -> bool {
        self.write() > Share::ZERO
    }

    fn mean_gap_ns(&self) -> Option<f64> {
        self.gaps().map(|gaps| gaps.mean())
    }
}

/// The options of `synthetic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyntheticConfig {
    /// The size of every request, in bytes.
    pub size: u64,
    /// The mean time between arrivals.
    pub interval: Nanos,
    /// The share of gaps that are inside bursts.
    pub bursty: Share,
    /// The mean of the gaps inside bursts.
    pub burst_gap: Nanos,
    /// The average number of gaps in a burst; 0 if each gap is independently inside a burst or not.
    pub burst: u32,
    /// The coefficient of variation of the number of gaps in a burst.
    pub burst_spread: Share,
    /// The share of requests that start at the end of the previous one.
    pub sequential: Share,
    /// The share of requests that read.
    pub read: Share,
    /// The share of the pages that requests go to, from the first page on.
    pub footprint: Share,
}

impl Default for SyntheticConfig {
    fn default() -> SyntheticConfig {
        SyntheticConfig {
            size: 32 << 10,
            interval: Nanos::from_micros(3_000),
            bursty: Share::ZERO,
            burst_gap: BURST_GAP,
            burst: 0,
            burst_spread: Share::ONE,
            sequential: Share::percent(40),
            read: Share::percent(40),
            footprint: Share::ONE,
        }
    }
}

/// The least and the greatest mean time between arrivals, which are a nanosecond and a day.
const INTERVALS: (Nanos, Nanos) = (Nanos(1), Nanos(86_400_000_000_000));

impl Declared for SyntheticConfig {
    const OPTIONS: &'static [Opt<SyntheticConfig>] = &[
        opt!("size", size, SIZE, "bytes of every request, up to 1024 pages"),
        opt!("interval_us", interval, MICROS, INTERVALS.0 => INTERVALS.1, "the mean time between arrivals"),
        opt!("bursty", bursty, SHARE, Share::ZERO => Share::ONE, "gaps that are inside bursts"),
        opt!("burst_gap_us", burst_gap, MICROS, "their mean length"),
        opt!("burst", burst, COUNT, "average number of gaps in a burst; 0: each gap is independent"),
        opt!("burst_spread", burst_spread, SHARE, Share::ZERO => Share::ONE, "coefficient of variation of that number"),
        opt!(
            "sequential", sequential, SHARE, Share::ZERO => Share::ONE,
            "requests that start at the end of the previous one"
        ),
        opt!("read", read, SHARE, Share::ZERO => Share::ONE, "requests that read"),
        opt!("footprint", footprint, SHARE, Share::ZERO => Share::ONE, "pages that are used"),
    ];
}

impl SyntheticConfig {
    fn gaps(&self) -> Option<Gaps> {
        let mean = self.interval.0 as f64;
        if self.bursty == Share::ZERO {
            return Some(Gaps { inside: 0.0, mean_inside: 0.0, mean_between: mean, bursts: None });
        }
        Gaps::bursts(mean, self.bursty, self.burst_gap)
    }
}

impl Recipe for SyntheticConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let pages = self.size.div_ceil(u64::from(space.page_bytes));
        let pages =
            u32::try_from(pages).ok().filter(|pages| (1..=1024).contains(pages)).ok_or_else(|| {
                SpecError::new(format!(
                    "size of {}: {} is out of range; accepted: 1 to 1024 pages",
                    space.name,
                    units::format_size(self.size)
                ))
            })?;
        let write = Share::from_ppm(Share::ONE.ppm() - self.read.ppm());
        let gaps = self.gaps().ok_or_else(|| too_long(&space, self.burst_gap, self.interval.0 as f64))?;
        let gaps = gaps.in_bursts(self.burst, self.burst_spread, self.bursty, &space)?;
        Ok(Timed::start(write, self.sequential, Sizes::Fixed(pages), gaps, space, self.footprint))
    }

    fn writes_anything(&self) -> bool {
        self.read < Share::ONE
    }

    fn mean_gap_ns(&self) -> Option<f64> {
        self.gaps().map(|gaps| gaps.mean())
    }
}

/// Returns the error for gaps inside bursts that are not shorter than the mean gap of `mean` nanoseconds.
fn too_long(space: &Space<'_>, gap: Nanos, mean: f64) -> SpecError {
    SpecError::new(format!(
        "burst_gap_us of {}: gaps of {gap} inside bursts are no shorter than those of all requests at {:.2} a \
         second; accepted: less than {:.0}",
        space.name,
        1e9 / mean,
        mean / 1e3
    ))
}

impl Gaps {
    /// Creates a distribution of gaps with the mean `mean` in nanoseconds, of which the share `bursty` is
    /// inside bursts. Returns `None` if the gaps inside bursts would not be shorter than the mean.
    fn bursts(mean: f64, bursty: Share, inside: Nanos) -> Option<Gaps> {
        let (share, mean_inside) = (bursty.as_f64(), inside.0 as f64);
        // A share of one divides by zero here. The condition below refuses it.
        let mean_between = (mean - share * mean_inside) / (1.0 - share);
        (mean_inside < mean && share < 1.0).then_some(Gaps {
            inside: share,
            mean_inside,
            mean_between,
            bursts: None,
        })
    }

    /// Returns the same gaps in bursts of `burst` gaps on average. If `burst` is zero, each gap stays
    /// independent.
    fn in_bursts(
        self,
        burst: u32,
        spread: Share,
        bursty: Share,
        space: &Space<'_>,
    ) -> Result<Gaps, SpecError> {
        if burst == 0 {
            return Ok(self);
        }
        let bursts = Bursts::new(burst, spread, bursty).map_err(|accepted| {
            let of = space.name;
            SpecError::new(format!(
                "burst={burst} of {of} is impossible with {} of the gaps inside bursts; accepted: {accepted}",
                bursty
            ))
        })?;
        Ok(Gaps { bursts: Some(bursts), ..self })
    }

    fn mean(&self) -> f64 {
        self.inside * self.mean_inside + (1.0 - self.inside) * self.mean_between
    }

    /// Returns the squared coefficient of variation of the gaps.
    #[cfg(test)]
    fn cv2(&self) -> f64 {
        let (p, a, b) = (self.inside, self.mean_inside, self.mean_between);
        let mean = self.mean();
        2.0 * (p * a * a + (1.0 - p) * b * b) / (mean * mean) - 1.0
    }

    fn draw(&mut self, prng: &mut Prng) -> f64 {
        let is_inside = match &mut self.bursts {
            Some(bursts) => bursts.next_is_inside(prng),
            None => prng.unit_f64() < self.inside,
        };
        let mean = if is_inside { self.mean_inside } else { self.mean_between };
        // The drawn number is below one, so the logarithm is finite.
        -mean * libm::log1p(-prng.unit_f64())
    }
}

impl Timed {
    fn start(
        write: Share,
        sequential: Share,
        sizes: Sizes,
        gaps: Gaps,
        space: Space<'_>,
        footprint: Share,
    ) -> Generator {
        let (prng, pages) = (space.prng(), space.pages);
        let pages = footprint.of(pages).max(1);
        Generator::new(Timed { write, sequential, sizes, gaps, pages, next_page: 0, now_ns: 0.0, prng })
    }
}

impl RequestSource for Timed {
    fn request(&mut self) -> Request {
        // The virtual time keeps fractions of a nanosecond, so that rounding errors do not accumulate.
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
        Request { at, op, page, pages, stream: 0, copy_of: None }
    }
}

impl Sizes {
    fn draw(self, prng: &mut Prng) -> u32 {
        match self {
            Sizes::Fixed(pages) => pages,
            Sizes::Geometric { mean } if mean <= 1.0 => 1,
            Sizes::Geometric { mean } => {
                let more = libm::log1p(-prng.unit_f64()) / libm::log1p(-1.0 / mean);
                // The geometric distribution is unbounded, but a request has at most 1,024 pages.
                1 + (more as u32).min(1023)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GeneratorConfig, Op};

    fn make(text: &str, page_bytes: u32) -> Result<Generator, SpecError> {
        text.parse::<GeneratorConfig>()?.start(1_000_000, page_bytes, 42)
    }

    /// Returns the mean size in bytes, the read share, the arrival rate and the squared coefficient of
    /// variation of the gaps over 400,000 requests.
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
    fn the_means_equal_those_of_the_rows() {
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

    /// Bursts with a given length change only the order of the gaps, so the means stay those of the study's
    /// row.
    #[test]
    fn bursts_keep_the_means_of_the_row() {
        for (options, row) in
            [("cello-like:burst=100", CELLO), ("cello-like:burst=20,burst_spread=0%", CELLO)]
        {
            let [bytes, reads, rate, cv2] = means(options, 4096);
            let gaps = Gaps::bursts(1e9 / row.rate, Share::from_ppm(row.bursty_ppm), BURST_GAP).unwrap();
            assert!((bytes / row.size - 1.0).abs() < 0.01, "{options}: {bytes} bytes");
            assert!((reads - f64::from(row.reads_ppm) / 1e6).abs() < 0.005, "{options}: {reads} reads");
            assert!((rate / row.rate - 1.0).abs() < 0.01, "{options}: {rate} requests/s");
            assert!((cv2 / gaps.cv2() - 1.0).abs() < 0.03, "{options}: {cv2} for {}", gaps.cv2());
        }
        // Returns the duration at the first percentile of all sequences of a hundred requests. In bursts of
        // 200 gaps, the whole sequence is inside one burst; with independent gaps, only about a third of it
        // is.
        let shortest = |options| {
            let requests: Vec<Request> = make(options, 4096).unwrap().take(200_000).collect();
            let mut times: Vec<u64> = requests.windows(100).map(|run| run[99].at.0 - run[0].at.0).collect();
            times.sort_unstable();
            times[times.len() / 100] as f64
        };
        let (alone, together) = (shortest("cello-like"), shortest("cello-like:burst=200,burst_spread=0%"));
        assert!(together < 0.08 * alone, "{together} {alone}");
        let [_, _, rate, cv2] = means("synthetic:interval_us=3000,bursty=50%,burst=50", 4096);
        assert!((rate * 0.003 - 1.0).abs() < 0.02 && cv2 > 2.0, "{rate} {cv2}");
    }

    #[test]
    fn synthetic_obeys_its_options() {
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
    fn impossible_options_are_refused() {
        let sentence = |text| make(text, 4096).unwrap_err().to_string();
        assert!(sentence("synthetic:interval_us=0").contains("accepted: 0.001 to 86400000000"));
        assert!(sentence("synthetic:size=1GiB").contains("1 to 1024 pages"));
        assert!(sentence("financial-like:burst_gap_us=90000").contains("accepted: less than 21191"));
        assert!(sentence("synthetic:bursty=1%,interval_us=400").contains("accepted: less than 400"));
        assert!(sentence("synthetic:burst=4").contains("accepted: 0, or bursty above zero"));
        assert!(sentence("cello-like:bursty=80%,burst=3").contains("accepted: at least 4, or 0"));
        assert!(sentence("financial-like:bursty=200%").contains("accepted: 0% to 100%"));
    }
}
