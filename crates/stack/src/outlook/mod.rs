//! Estimates the memory and the time of runs before the first one.
//!
//! Memory is the sum of the tables that grow with the sizes of a run, rounded up. Time is a range, computed
//! from the measured costs of requests.

mod seconds;
mod needs;

use crate::execute::replay::ROUNDS_AT_MOST;
use crate::run::Run;
use crate::{Column, Row, StackError, Unit, Value, memory};
pub use needs::Needs;
use needs::ROW_BYTES;
pub use seconds::Seconds;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Bytes of memory of the program itself, without any run.
const PROGRAM_BYTES: u64 = 10 << 20;

/// The estimated memory and time of all runs of a command.
#[derive(Clone, Debug)]
pub struct Outlook {
    /// The number of runs.
    pub runs: u64,
    /// Whether `runs` is only an upper bound, because the results of some runs decide which others follow.
    pub is_bound: bool,
    /// Whether a run repeats its workload in rounds, whose number is not known before.
    pub(crate) has_rounds: bool,
    /// The number of runs that are executed at the same time.
    threads: usize,
    /// Whether a run uses a real drive, so that runs do not overlap.
    is_real: bool,
    /// Bytes of memory of the largest runs that may be executed at the same time, largest first.
    largest: Vec<u64>,
    shared: BTreeMap<String, (u64, Seconds)>,
    seconds: Seconds,
}

impl Outlook {
    /// Creates an estimate without runs, for `threads` concurrent runs.
    pub fn new(threads: NonZeroUsize) -> Outlook {
        Outlook {
            runs: 0,
            is_bound: false,
            has_rounds: false,
            threads: threads.get(),
            is_real: false,
            largest: Vec::new(),
            shared: BTreeMap::new(),
            seconds: Seconds::default(),
        }
    }

    /// Adds a run that represents `weight` similar runs. Returns the time of this run on one core, without
    /// work that it shares with other runs.
    pub fn add(&mut self, run: &Run, weight: f64) -> Seconds {
        self.is_real |= run.is_real();
        self.has_rounds |= run.measure.until_steady;
        let needs = run.needs();
        let seconds = needs.seconds;
        self.add_needs(needs, weight);
        seconds
    }

    fn add_needs(&mut self, Needs { own_bytes, seconds, shared }: Needs, weight: f64) {
        self.seconds += seconds * weight;
        for (key, bytes, seconds) in shared {
            self.shared.entry(key).or_insert((bytes, seconds));
        }
        // Add the memory of the run several times, because the similar runs that it represents may run at the
        // same time.
        for _ in 0..self.threads.min(weight.ceil() as usize) {
            let at = self.largest.partition_point(|other| *other >= own_bytes);
            if at >= self.threads {
                break;
            }
            self.largest.insert(at, own_bytes);
            self.largest.truncate(self.threads);
        }
    }

    /// Adds the runs of another outlook to this one.
    pub fn join(&mut self, other: Outlook) {
        self.runs += other.runs;
        self.is_real |= other.is_real;
        self.has_rounds |= other.has_rounds;
        self.seconds += other.seconds;
        self.shared.extend(other.shared);
        self.largest.extend(other.largest);
        self.largest.sort_unstable_by(|a, b| b.cmp(a));
        self.largest.truncate(self.threads);
    }

    fn at_once(&self) -> usize {
        if self.is_real { 1 } else { self.threads.min(self.largest.len()) }
    }

    /// Returns the estimated bytes of memory with `at_once` concurrent runs.
    fn bytes_with(&self, at_once: usize) -> u64 {
        let own = self.largest.iter().take(at_once).fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
        let shared = self.shared.values().fold(0, |sum: u64, (bytes, _)| sum.saturating_add(*bytes));
        let table = self.runs.saturating_mul(ROW_BYTES);
        [own, shared, table, PROGRAM_BYTES].into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the estimated bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes_with(self.at_once())
    }

    /// Returns the estimated time of all runs on this machine.
    pub fn seconds(&self) -> Seconds {
        let shared: Seconds = self.shared.values().map(|(_, seconds)| *seconds).sum();
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        (self.seconds + shared) * (1.0 / self.at_once().clamp(1, cores) as f64)
    }

    /// Refuses runs that need more memory than this machine has free.
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
            (_, 1) => format!("{}, one after the other, take", self.runs_in_words()),
            (_, at_once) => format!("{}, {at_once} at once, take", self.runs_in_words()),
        };
        Err(StackError::request(format!(
            "{runs} about {} of memory, and this machine has {} free; accepted: {accepted}",
            Unit::Bytes.humane(needed as f64),
            Unit::Bytes.humane(there as f64),
        )))
    }

    fn runs_in_words(&self) -> String {
        if self.runs == 1 {
            "1 run".to_owned()
        } else {
            format!("{} runs", Value::from(self.runs).readable())
        }
    }

    /// Describes the outlook in a sentence.
    pub fn sentence(&self) -> String {
        let runs = self.runs_in_words();
        let at_once = match self.at_once() {
            0 | 1 => String::new(),
            at_once => format!(", {at_once} at once"),
        };
        let bound = if self.is_bound { "at most " } else { "" };
        let rounds = match self.has_rounds {
            true => format!(
                " for each pass over the workload; --until-steady repeats it for at most {ROUNDS_AT_MOST} rounds, \
                 and a round is as many passes as overwrite the drive"
            ),
            false => String::new(),
        };
        format!(
            "{bound}{runs}{at_once}, about {} of memory, {}{rounds}",
            Unit::Bytes.humane(self.memory_bytes() as f64),
            range(self.seconds())
        )
    }

    /// Returns the outlook as a result row.
    pub fn row(&self) -> Row {
        let mut row = Row::default();
        row.set(Column::Runs, self.runs);
        row.set(Column::RunsAtOnce, self.at_once() as u64);
        row.set(Column::NeededBytes, self.memory_bytes());
        row.set_some(Column::AvailableBytes, memory::available());
        let seconds = self.seconds();
        row.set(Column::EstimateS, seconds.middle());
        row.set(Column::EstimateLeastS, seconds.least);
        row.set(Column::EstimateMostS, seconds.most);
        row
    }
}

/// Describes a range of time in words, such as "about 20 to 50 s".
fn range(seconds: Seconds) -> String {
    let [least, most] = [seconds.least, seconds.most].map(rounded);
    let (from, to) = (duration(least), duration(most));
    // If both ends of the range have the same unit, write the unit once.
    let unit = |text: &str| text.rsplit(' ').next().map(str::to_owned);
    match (from.strip_suffix(&unit(&to).unwrap_or_default()), from == to) {
        (_, true) => format!("about {to}"),
        _ if least < 1.0 => format!("up to {to}"),
        (Some(from), _) => format!("about {from}to {to}"),
        (None, _) => format!("about {from} to {to}"),
    }
}

/// Rounds an estimate to one significant digit, or to two if the first is a one. More digits would suggest
/// too much precision.
fn rounded(seconds: f64) -> f64 {
    if seconds < 1.0 {
        return seconds;
    }
    // Round in the unit that is shown, seconds or minutes.
    let unit = if seconds < 100.0 { 1.0 } else { 60.0 };
    let mut digit = unit;
    while digit * 10.0 <= seconds {
        digit *= 10.0;
    }
    let step = if seconds / digit < 2.0 { digit / 2.0 } else { digit };
    (seconds / step).round() * step
}

/// Describes a length of time in words, from seconds to days.
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
            let shared = vec![((*shared).to_owned(), 100 << 20, Seconds { least: 1.0, most: 3.0 })];
            let seconds = Seconds { least: 2.0, most: 20.0 };
            outlook.add_needs(Needs { own_bytes: *bytes, seconds, shared }, 1.0);
            outlook.runs += 1;
        }
        outlook
    }

    #[test]
    fn concurrent_runs_add_memory_and_share_once() {
        let mib = |outlook: &Outlook| outlook.memory_bytes() >> 20;
        let runs = [(50 << 20, "a"), (70 << 20, "a"), (60 << 20, "b")];
        assert_eq!(mib(&outlook(1, &runs)), 10 + 70 + 200);
        assert_eq!(mib(&outlook(2, &runs)), 10 + 70 + 60 + 200);
        assert_eq!(mib(&outlook(8, &runs)), 10 + 180 + 200);
        assert_eq!(outlook(1, &runs).seconds(), Seconds { least: 3.0 * 2.0 + 2.0, most: 3.0 * 20.0 + 6.0 });
        let mut joined = outlook(2, &runs[..1]);
        joined.join(outlook(2, &runs[1..]));
        assert_eq!((joined.memory_bytes(), joined.runs), (outlook(2, &runs).memory_bytes(), 3));
    }

    #[test]
    fn runs_that_do_not_fit_are_refused_with_a_suggestion() {
        let runs = [(1 << 30, "a"), (1 << 30, "a"), (1 << 30, "a")];
        let refused = |threads: usize, there: u64| {
            outlook(threads, &runs).check_within(there).map_err(|error| error.to_string())
        };
        assert_eq!(refused(3, 4 << 30), Ok(()));
        let sentence = refused(3, 5 << 29).unwrap_err();
        assert!(sentence.starts_with("3 runs, 3 at once, take about 3.1"), "{sentence}");
        assert!(sentence.ends_with("2.50 GiB free; accepted: --threads 2"), "{sentence}");
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

    /// An estimate is shown as a range with as few significant digits as its precision allows.
    #[test]
    fn an_estimate_is_a_range_of_round_figures() {
        for (least, most, said) in [
            (0.1, 0.3, "about 1 s or less"),
            (0.4, 2.2, "up to 2 s"),
            (11.3, 47.0, "about 10 to 50 s"),
            (43.0, 171.0, "about 40 s to 3 min"),
            (171.0, 900.0, "about 3 to 15 min"),
            (30.4, 31.0, "about 30 s"),
        ] {
            assert_eq!(range(Seconds { least, most }), said);
        }
    }
}
