//! What runs will need, known before the first of them: memory and time.
//!
//! Memory is counted from the tables that grow with a run's sizes, and rounded up. Time is a guess from the cost of a
//! request on an ordinary machine. It says seconds, minutes or hours, not more.

use crate::device::{DeviceConfig, DriveConfig};
use crate::run::{Benchmarked, EngineStage, Load, PoolStage, Requested, Rows, Run};
use crate::{Column, Row, Stack, StackError, Unit, memory};
use fulgurite_bench::Extent;
use fulgurite_ftl::placement::PlacementConfig;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Bytes for each frame of a pool, beside its page.
const FRAME_BYTES: u64 = 64;
/// Bytes for each physical page of a translation layer: two maps and a bit.
const MAPPED_BYTES: u64 = 9;
/// Bytes that a placement policy keeps for each logical page.
const PLACED_BYTES: u64 = 5;
/// Bytes of a page write that is known beforehand, for policies that look ahead.
const FORESEEN_BYTES: u64 = 8;
/// Bytes of a row in a table.
const ROW_BYTES: u64 = 3 << 10;
/// Bytes of the program itself.
const PROGRAM_BYTES: u64 = 10 << 20;

/// Seconds of a page write that preconditions a simulated drive, for each of its physical pages.
const PRECONDITION_S: f64 = 0.8e-6;
/// Seconds of a request: counted, to a translation layer, to a simulated drive, to a pool above one, to a real drive.
const COUNTED_S: f64 = 20e-9;
const WRITTEN_S: f64 = 60e-9;
const TIMED_S: f64 = 1e-6;
const POOLED_S: f64 = 0.6e-6;
const REAL_S: f64 = 60e-6;
/// Seconds of a byte of a benchmark's data: loaded, and checked at the end.
const LOADED_S: f64 = 5e-9;
/// Seconds of a transaction.
const TRANSACTION_S: f64 = 100e-6;
/// Seconds of a byte of a new file.
const MADE_S: f64 = 2e-9;
/// Seconds of a characterisation: of a simulated drive, and of a real one, which is watched for as long.
const PROFILE_S: f64 = 0.6;
const REAL_PROFILE_S: f64 = 52.0;

/// What one run needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// Bytes while it runs.
    pub own_bytes: u64,
    /// Seconds.
    pub seconds: f64,
    /// What it has in common with other runs: what that is, bytes and seconds.
    pub shared: Vec<(String, u64, f64)>,
}

impl Run {
    /// What it needs, about.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs { seconds: 1e-3, ..self.stack.needs(self.seed) };
        match (&self.load, &self.stack) {
            (Load::Characterisation { .. }, stack) => {
                needs.seconds += if stack.device.is_real() { REAL_PROFILE_S } else { PROFILE_S };
            }
            (Load::Benchmark(asked), Stack { engine: Some(stage), .. }) => {
                needs.add_bench(self, asked, stage)
            }
            (Load::Benchmark(_), _) => {}
            (Load::Requests(requested), Stack { pool: Some(pool), device, .. }) => {
                needs.add_pool(requested, pool, device);
            }
            (Load::Requests(requested), _) if self.translation().is_some() => needs.add_gc(self, requested),
            (Load::Requests(requested), stack) => {
                let each = if stack.device.is_real() { REAL_S } else { TIMED_S };
                needs.seconds += known(requested) as f64 * each;
            }
        }
        needs
    }
}

/// The number of requests, as far as is known.
fn known(requested: &Requested) -> u64 {
    if requested.ops == u64::MAX { 0 } else { requested.ops }
}

impl Stack {
    /// What the device and the layer need, and nothing above them.
    fn needs(&self, seed: u64) -> Needs {
        let mut needs = Needs::default();
        if let DriveConfig::Simulated { config, .. } = &self.device.drive {
            let pages = config.physical_pages();
            if config.in_place {
                needs.own_bytes += pages / 4;
            } else {
                // The drive as it is preconditioned is kept, and each run has a copy.
                needs.own_bytes += pages * MAPPED_BYTES;
                let key = format!("{} {seed}", self.canonical_storage());
                needs.shared.push((key, pages * MAPPED_BYTES, pages as f64 * PRECONDITION_S));
            }
        }
        if let DriveConfig::File(file) = &self.device.drive {
            let missing = file.missing_bytes();
            needs.shared.push((file.path.display().to_string(), 0, missing as f64 * MADE_S));
        }
        if self.layer.is_some() {
            needs.own_bytes = needs.own_bytes.saturating_add(self.pages().saturating_mul(2 * MAPPED_BYTES));
        }
        needs
    }
}

impl Needs {
    fn add_bytes(&mut self, bytes: u64) {
        self.own_bytes = self.own_bytes.saturating_add(bytes);
    }

    fn add_pool(&mut self, requested: &Requested, pool: &PoolStage, device: &DeviceConfig) {
        let (frames, page, ops) = (u64::from(pool.frames), u64::from(pool.page_bytes), known(requested));
        self.add_bytes(frames.saturating_mul(FRAME_BYTES));
        // Building the tables of frames takes its time too.
        self.seconds += frames as f64 * COUNTED_S;
        match &device.drive {
            DriveConfig::None => self.seconds += ops as f64 * COUNTED_S,
            DriveConfig::File(_) => {
                self.add_bytes(frames.saturating_mul(page).saturating_add(requested.pages.saturating_mul(8)));
                self.seconds += ops as f64 * REAL_S;
            }
            DriveConfig::Mem(_) => {
                // Frames that are used, and pages that are written, hold bytes.
                let written = requested.pages.min(ops).saturating_mul(page);
                self.add_bytes(frames.min(ops).saturating_mul(page).saturating_add(written));
                self.seconds += ops as f64 * 10.0 * POOLED_S;
            }
            _ => self.seconds += ops as f64 * POOLED_S,
        }
    }

    fn add_gc(&mut self, run: &Run, requested: &Requested) {
        let Some(translation) = run.translation() else { return };
        let ftl = &translation.ftl;
        let (logical, ops) = (u64::from(ftl.logical_pages), known(requested));
        self.add_bytes(u64::from(ftl.segments) * u64::from(ftl.segment_pages) * MAPPED_BYTES);
        if ftl.collect.placement != PlacementConfig::ONE_STREAM {
            self.add_bytes(logical * PLACED_BYTES);
        }
        if ftl.collect.placement.needs_future() || run.measure.rows == Rows::Groups {
            self.add_bytes(ops.saturating_add(logical).saturating_mul(FORESEEN_BYTES));
        }
        self.seconds += ops.saturating_add(logical) as f64 * WRITTEN_S;
    }

    fn add_bench(&mut self, run: &Run, asked: &Benchmarked, stage: &EngineStage) {
        let data = asked.benchmark.data_bytes();
        let load = data as f64 * LOADED_S;
        let half = data / 2;
        match &run.stack.device.drive {
            // What the drive holds after the load is kept, and each run changes a part of it.
            DriveConfig::Simulated { .. } => {
                let key = format!("{} {} {}", asked.benchmark, run.stack.canonical_storage(), run.seed);
                self.shared.push((key, data + half, load));
                self.add_bytes(data);
            }
            DriveConfig::Mem(_) => {
                self.add_bytes(2 * data);
                self.seconds += load;
            }
            _ => self.seconds += load,
        }
        self.add_bytes(stage.memory_bytes.min(2 * data));
        self.seconds += load / 2.0;
        self.seconds += match asked.stop {
            Extent::Ops(ops) => ops as f64 * TRANSACTION_S,
            // On a simulated drive a second of its time takes about as long.
            Extent::Time(time) => time.as_secs_f64(),
        };
    }
}

/// What all runs of a command need.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// Runs.
    pub runs: u64,
    /// Whether there may be fewer runs, because what they give decides which follow.
    pub is_bound: bool,
    /// Runs at once.
    threads: usize,
    /// Whether a run has a drive for itself, so that one runs at a time.
    is_real: bool,
    /// The most that runs at once take, largest first.
    largest: Vec<u64>,
    shared: BTreeMap<String, (u64, f64)>,
    seconds: f64,
}

impl Outlook {
    /// Of no runs yet, of which `threads` will run at once.
    pub fn new(threads: NonZeroUsize) -> Outlook {
        Outlook {
            runs: 0,
            is_bound: false,
            threads: threads.get(),
            is_real: false,
            largest: Vec::new(),
            shared: BTreeMap::new(),
            seconds: 0.0,
        }
    }

    /// Adds a run that stands for `weight` runs like it.
    pub fn add(&mut self, run: &Run, weight: f64) {
        self.is_real |= run.is_real();
        self.add_needs(run.needs(), weight);
    }

    fn add_needs(&mut self, Needs { own_bytes, seconds, shared }: Needs, weight: f64) {
        self.seconds += seconds * weight;
        for (key, bytes, seconds) in shared {
            self.shared.entry(key).or_insert((bytes, seconds));
        }
        // A run that stands for several may stand beside itself.
        for _ in 0..self.threads.min(weight.ceil() as usize) {
            let at = self.largest.partition_point(|other| *other >= own_bytes);
            if at >= self.threads {
                break;
            }
            self.largest.insert(at, own_bytes);
            self.largest.truncate(self.threads);
        }
    }

    /// Adds the runs of another outlook, which run with these.
    pub fn join(&mut self, other: Outlook) {
        self.runs += other.runs;
        self.is_real |= other.is_real;
        self.seconds += other.seconds;
        self.shared.extend(other.shared);
        self.largest.extend(other.largest);
        self.largest.sort_unstable_by(|a, b| b.cmp(a));
        self.largest.truncate(self.threads);
    }

    fn at_once(&self) -> usize {
        if self.is_real { 1 } else { self.threads.min(self.largest.len()) }
    }

    /// Bytes of memory, about, with so many runs at once.
    fn bytes_with(&self, at_once: usize) -> u64 {
        let own = self.largest.iter().take(at_once).fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let shared = self.shared.values().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        let table = self.runs.saturating_mul(ROW_BYTES);
        [own, shared, table, PROGRAM_BYTES].into_iter().fold(0, u64::saturating_add)
    }

    /// Bytes of memory, about.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes_with(self.at_once())
    }

    /// Seconds, about.
    pub fn seconds(&self) -> f64 {
        let shared: f64 = self.shared.values().map(|(_, seconds)| seconds).sum();
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        (self.seconds + shared) / self.at_once().clamp(1, cores) as f64
    }

    /// Refuses runs that need more memory than this machine has to give.
    pub fn check(&self) -> Result<(), StackError> {
        memory::available().map_or(Ok(()), |there| self.check_within(there))
    }

    fn check_within(&self, there: u64) -> Result<(), StackError> {
        let needed = self.memory_bytes();
        if needed <= there {
            return Ok(());
        }
        let fits = (1..self.at_once()).rev().find(|at_once| self.bytes_with(*at_once) <= there);
        let accepted = match fits {
            Some(threads) => format!("--threads {threads}"),
            None => "smaller runs, or fewer".to_owned(),
        };
        let runs = match (self.runs, self.at_once()) {
            (1, _) => "the run takes".to_owned(),
            (runs, 1) => format!("{runs} runs, one after the other, take"),
            (runs, at_once) => format!("{runs} runs, {at_once} at once, take"),
        };
        Err(StackError::request(format!(
            "{runs} about {} of memory, and this machine has {} to give; accepted: {accepted}",
            Unit::Bytes.humane(needed as f64),
            Unit::Bytes.humane(there as f64),
        )))
    }

    /// The outlook in a sentence.
    pub fn sentence(&self) -> String {
        let runs = if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) };
        let at_once = match self.at_once() {
            0 | 1 => String::new(),
            at_once => format!(", {at_once} at once"),
        };
        let bound = if self.is_bound { "at most " } else { "" };
        format!(
            "{bound}{runs}{at_once}, about {} of memory, about {}",
            Unit::Bytes.humane(self.memory_bytes() as f64),
            duration(self.seconds())
        )
    }

    /// The outlook as a row.
    pub fn row(&self) -> Row {
        let mut row = Row::default();
        row.set(Column::Runs, self.runs);
        row.set(Column::RunsAtOnce, self.at_once() as u64);
        row.set(Column::NeededBytes, self.memory_bytes());
        row.set_some(Column::AvailableBytes, memory::available());
        row.set(Column::EstimateS, self.seconds());
        row
    }
}

/// A length of time as people say it, from seconds to days.
pub fn duration(seconds: f64) -> String {
    match seconds {
        ..1.0 => "1 s or less".to_owned(),
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(threads: usize, runs: &[(u64, &str)]) -> Outlook {
        let mut outlook = Outlook::new(NonZeroUsize::new(threads).unwrap());
        for (bytes, shared) in runs {
            let shared = vec![((*shared).to_owned(), 100 << 20, 1.0)];
            outlook.add_needs(Needs { own_bytes: *bytes, seconds: 2.0, shared }, 1.0);
            outlook.runs += 1;
        }
        outlook
    }

    #[test]
    fn runs_at_once_need_memory_together_and_what_they_share_once() {
        let mib = |outlook: &Outlook| outlook.memory_bytes() >> 20;
        let runs = [(50 << 20, "a"), (70 << 20, "a"), (60 << 20, "b")];
        assert_eq!(mib(&outlook(1, &runs)), 10 + 70 + 200);
        assert_eq!(mib(&outlook(2, &runs)), 10 + 70 + 60 + 200);
        assert_eq!(mib(&outlook(8, &runs)), 10 + 180 + 200);
        assert_eq!(outlook(1, &runs).seconds(), 3.0 * 2.0 + 2.0);
        let mut joined = outlook(2, &runs[..1]);
        joined.join(outlook(2, &runs[1..]));
        assert_eq!((joined.memory_bytes(), joined.runs), (outlook(2, &runs).memory_bytes(), 3));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_what_would() {
        let runs = [(1 << 30, "a"), (1 << 30, "a"), (1 << 30, "a")];
        let refused = |threads: usize, there: u64| {
            outlook(threads, &runs).check_within(there).map_err(|error| error.to_string())
        };
        assert_eq!(refused(3, 4 << 30), Ok(()));
        let sentence = refused(3, 5 << 29).unwrap_err();
        assert!(sentence.starts_with("3 runs, 3 at once, take about 3.1"), "{sentence}");
        assert!(sentence.ends_with("2.500 GiB to give; accepted: --threads 2"), "{sentence}");
        assert!(refused(3, 1 << 20).unwrap_err().ends_with("accepted: smaller runs, or fewer"));
    }

    #[test]
    fn lengths_of_time_are_said_in_words() {
        for (seconds, said) in
            [(0.2, "1 s or less"), (12.4, "12 s"), (130.0, "2 min"), (7300.0, "2 h"), (1e6, "12 days")]
        {
            assert_eq!(duration(seconds), said);
        }
    }
}
