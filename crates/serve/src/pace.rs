//! The relation of the drive's clock to the wall clock, and how late answers are.
//!
//! A request arrives at the drive's time that corresponds to the wall clock. Its answer is due when the wall clock has
//! reached the drive's time of completion, and is sent later than that by the time that this machine takes.

use fulgurite_base::{Histogram, Nanos, SpecError};
use fulgurite_stack::{Column, Row};
use std::time::{Duration, Instant};

/// How fast the drive's clock runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Speed {
    /// So many times as fast as the wall clock.
    Times(f64),
    /// As fast as this machine simulates it: every answer is sent at once.
    Max,
}

/// The slowest and the fastest speed.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

impl Speed {
    /// Parses `1x`, `0.1x`, `10x` or `max`.
    pub(crate) fn parse(text: &str) -> Result<Speed, SpecError> {
        if text == "max" {
            return Ok(Speed::Max);
        }
        let times = text.strip_suffix('x').and_then(|times| times.parse().ok());
        times.filter(|times| SPEEDS.contains(times)).map(Speed::Times).ok_or_else(|| {
            SpecError::new(format!(
                "`{text}` is no speed; accepted: 1x (as a real drive), another number from 0.001x to 1000x, or max"
            ))
        })
    }
}

/// An answer counts as late if it is sent later than it is due by more than this share of its own latency.
const LATE_SHARE: f64 = 0.1;

/// The share of late answers from which on a client's latencies say little of the drive.
const WORTHLESS_SHARE: f64 = 0.1;

/// How late the answers were so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Lateness {
    /// How many times as fast as the wall clock the drive's clock runs; `None` if it is as fast as the machine.
    pub speed: Option<f64>,
    /// The number of answers.
    pub answers: u64,
    /// The number of late answers.
    pub late: u64,
    /// The sum of the times by which answers were sent later than due, in nanoseconds of the wall clock.
    pub sum_ns: u128,
}

/// The drive's clock by the wall clock.
pub(crate) struct Pace {
    speed: Speed,
    began: Instant,
    /// The drive's time at `began`.
    offset: Nanos,
    lateness: Histogram,
    late: u64,
}

impl Pace {
    /// Starts the clock at the drive's time `now`.
    pub(crate) fn new(speed: Speed, now: Nanos) -> Pace {
        Pace { speed, began: Instant::now(), offset: now, lateness: Histogram::default(), late: 0 }
    }

    /// Starts the clock again at the drive's time `now`, which a power cut may have advanced.
    pub(crate) fn restart(&mut self, now: Nanos) {
        (self.began, self.offset) = (Instant::now(), now);
    }

    /// Returns the drive's time now; `None` if the drive is as fast as the machine.
    pub(crate) fn now(&self) -> Option<Nanos> {
        match self.speed {
            Speed::Times(times) => {
                let passed = self.began.elapsed().as_nanos() as f64 * times;
                Some(self.offset + Nanos(passed as u64))
            }
            Speed::Max => None,
        }
    }

    /// Returns how long it takes on the wall clock until the drive's time `at`.
    pub(crate) fn until(&self, at: Nanos) -> Duration {
        match (self.speed, self.now()) {
            (Speed::Times(times), Some(now)) => {
                Duration::from_nanos((at.saturating_sub(now).0 as f64 / times) as u64)
            }
            _ => Duration::ZERO,
        }
    }

    /// Records that answers with these times of completion and latencies are sent now.
    pub(crate) fn sent(&mut self, answers: impl Iterator<Item = (Nanos, Nanos)>) {
        let (Speed::Times(times), Some(now)) = (self.speed, self.now()) else { return };
        for (at, latency) in answers {
            let late = now.saturating_sub(at);
            // An answer that takes no time, as from a pool before the drive, would always be late.
            self.late += u64::from(latency > Nanos::ZERO && late.0 as f64 > LATE_SHARE * latency.0 as f64);
            self.lateness.record(Nanos((late.0 as f64 / times) as u64));
        }
    }

    /// Returns the share of late answers; `None` without answers.
    fn late_share(&self) -> Option<f64> {
        let sent = self.lateness.count();
        (sent > 0).then(|| self.late as f64 / sent as f64)
    }

    /// Returns how late the answers were so far.
    pub(crate) fn lateness(&self) -> Lateness {
        Lateness {
            speed: match self.speed {
                Speed::Times(times) => Some(times),
                Speed::Max => None,
            },
            answers: self.lateness.count(),
            late: self.late,
            sum_ns: self.lateness.sum_ns(),
        }
    }

    /// Sets the columns about the pace.
    pub(crate) fn set(&self, row: &mut Row) {
        if let (Speed::Times(times), Some(share)) = (self.speed, self.late_share()) {
            row.set(Column::Speed, times);
            row.set(Column::LateShare, share);
        }
        if let Some(summary) = self.lateness.summary() {
            row.set(Column::LatenessMeanNs, summary.mean_ns);
            row.set(Column::LatenessP99Ns, summary.p99_ns);
            row.set(Column::LatenessMaxNs, summary.max_ns);
        }
    }

    /// Returns a remark if the answers were so late that a client's latencies say little of the drive.
    pub(crate) fn remark(&self) -> Option<String> {
        let share = self.late_share().filter(|share| *share > WORTHLESS_SHARE)?;
        Some(format!(
            "{:.0} % of the answers were sent later than the drive's clock says by more than a tenth of their latency: \
                the latencies that a client measured say more of this machine than of the drive (--speed 0.1x gives it \
                ten times as long)",
            100.0 * share
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_numbers_with_an_x_or_max() {
        assert_eq!(Speed::parse("1x").unwrap(), Speed::Times(1.0));
        assert_eq!(Speed::parse("0.1x").unwrap(), Speed::Times(0.1));
        assert_eq!(Speed::parse("max").unwrap(), Speed::Max);
        for wrong in ["", "x", "1", "0x", "-1x", "1e9x", "NaNx", "infx", "maxx"] {
            assert!(Speed::parse(wrong).unwrap_err().to_string().contains("accepted: 1x"), "{wrong}");
        }
    }

    /// The rule: an answer that takes time counts as late from a tenth of its own latency on, and lateness is told
    /// in the time of the wall clock.
    #[test]
    fn lateness_is_told_in_the_time_of_the_wall_clock() {
        let second = 1_000_000_000;
        for (times, expected_s) in [(1.0, 10.0), (10.0, 1.0)] {
            // By the drive's clock, the answers are due ten seconds ago.
            let mut pace = Pace::new(Speed::Times(times), Nanos(10 * second));
            pace.sent([(Nanos(0), Nanos(1_000 * second)), (Nanos(0), Nanos(50 * second))].into_iter());
            assert_eq!(pace.late_share(), Some(0.5));
            let mean = pace.lateness.mean_ns().unwrap() / second as f64;
            assert!((mean / expected_s - 1.0).abs() < 0.05, "{mean} at {times}x");
            assert!(pace.remark().unwrap().starts_with("50 %"));
            // An answer that takes no time is never late.
            pace.sent([(Nanos(0), Nanos::ZERO)].into_iter());
            assert_eq!((pace.lateness().late, pace.lateness().answers), (1, 3));
        }
        let mut pace = Pace::new(Speed::Max, Nanos(0));
        pace.sent([(Nanos(0), Nanos(0))].into_iter());
        assert_eq!((pace.late_share(), pace.now()), (None, None));
    }
}
