//! Executes the runs of an answer: those of all drives in parallel, and for the headroom a search in steps.

use super::question::{self, Drive, Question, SEARCH_AT_MOST, Values};
use super::requirement::{Meets, Requirement};
use crate::advise::Stage;
use fulgurite_ssd::preset::Bounds;
use fulgurite_stack::device::DeviceConfig;
use fulgurite_stack::settings::Workloads;
use fulgurite_stack::{Arrivals, Column, Progress, Row, Run, StackError, runner};
use std::num::NonZeroUsize;

/// The users of the closed loop that measures the rate that a drive sustains: more than any drive works on at
/// once.
const USERS: &str = "512";

/// The ratio of the two multiples between which the headroom is searched no further.
const PRECISE: f64 = 1.1;

/// The least multiple of the workload's own rate that is tried.
const LEAST: f64 = 1.0 / 64.0;

/// The share of the offered requests that a drive must serve to keep up.
const KEEPS_UP: f64 = 0.98;

/// The greatest multiple of the workload's own rate at which the requirements hold.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Headroom {
    /// They hold at this multiple. At a little more the drive misses what is named, or does not keep up.
    Holds { times: f64, then: Option<String> },
    /// They do not hold even at a small share of the rate.
    Never,
}

impl Headroom {
    /// Returns the multiple; 0 if there is none.
    pub(super) fn times(&self) -> f64 {
        match self {
            Headroom::Holds { times, .. } => *times,
            Headroom::Never => 0.0,
        }
    }
}

/// A run with the command that repeats it.
pub(super) struct Ran {
    pub(super) row: Row,
    pub(super) repeat: String,
}

/// The figures of a drive.
pub(super) struct Measured {
    /// The drive.
    pub drive: Drive,
    /// How far a measured drive is from this one; `None` if nobody has compared them.
    pub bounds: Option<Bounds>,
    /// The run at the workload's own rate.
    pub own: Ran,
    /// The requests per second that the drive sustains.
    pub sustained: f64,
    /// The same drive, changed by one means each.
    pub variants: Vec<(&'static str, Ran)>,
    /// The runs at other rates, with the multiple of the own rate.
    pub others: Vec<(f64, Ran)>,
    /// The headroom.
    pub headroom: Headroom,
    /// How surely the drive meets each requirement.
    pub judged: Vec<Meets>,
    /// How surely the drive meets all of them.
    pub meets: Meets,
}

/// A search for the headroom of one drive.
struct Search {
    /// A multiple at which the requirements hold, and one at which they do not.
    holds: Option<f64>,
    breaks: f64,
    then: Option<String>,
    others: Vec<(f64, Ran)>,
    is_over: bool,
}

/// Executes the runs of a question.
pub(super) struct Lab<'a> {
    question: &'a Question,
    workloads: Workloads,
    threads: NonZeroUsize,
    progress: &'a Progress,
    /// The number of executed runs.
    pub executed: u64,
}

impl<'a> Lab<'a> {
    pub(super) fn new(
        question: &'a Question,
        workloads: Workloads,
        threads: NonZeroUsize,
        progress: &'a Progress,
    ) -> Lab<'a> {
        Lab { question, workloads: workloads.wet(), threads, progress, executed: 0 }
    }

    /// Measures all drives.
    pub(super) fn measure(&mut self) -> Result<Vec<Measured>, StackError> {
        let question = self.question;
        let drives = &question.drives;
        let own = drives.iter().map(|drive| question.values(&drive.device, &Values::new())).collect();
        let own = self.execute(own)?;
        // The remarks of these runs are about the workload. Those of the runs below would repeat them, or say
        // what the answer says.
        let remarks = self.progress.take_remarks();
        let mut others = Vec::new();
        for drive in drives {
            others.push(question.values(&drive.device, &Values::from([("users", USERS.to_owned())])));
            others.extend(drive.variants.iter().map(|(_, device)| question.values(device, &Values::new())));
        }
        let mut others = self.execute(others)?.into_iter();
        let mut measured = Vec::new();
        for (drive, own) in drives.iter().zip(own) {
            let sustained =
                others.next().and_then(|ran| ran.row.number(Column::ThroughputOpsS)).unwrap_or(0.0);
            let variants = drive.variants.iter().map(|(name, _)| *name).zip(others.by_ref()).collect();
            measured.push(Measured {
                drive: drive.clone(),
                bounds: DeviceConfig::parse(&drive.device)?.bounds(),
                own,
                sustained,
                variants,
                others: Vec::new(),
                headroom: Headroom::Never,
                judged: Vec::new(),
                meets: Meets::No,
            });
        }
        self.search(&mut measured)?;
        measured.iter_mut().for_each(|drive| drive.judge(&question.requirements));
        self.progress.take_remarks();
        self.progress.put_remarks(remarks);
        Ok(measured)
    }

    /// Searches the headroom of all drives, one run of each drive per step.
    fn search(&mut self, measured: &mut [Measured]) -> Result<(), StackError> {
        let requirements = &self.question.requirements;
        let start = |drive: &Measured| {
            let offered = offered(&drive.own.row);
            let (holds, then) = holds(requirements, &drive.own.row);
            let most = drive.sustained / offered;
            Search {
                holds: holds.then_some(1.0),
                breaks: if holds { most.max(1.0) } else { 1.0 },
                then: if holds { None } else { then },
                others: Vec::new(),
                is_over: false,
            }
        };
        let mut searches: Vec<Search> = measured.iter().map(start).collect();
        for _ in 0..SEARCH_AT_MOST {
            let (mut open, mut values) = (Vec::new(), Vec::new());
            for (at, search) in searches.iter().enumerate() {
                if let Some(times) = search.next() {
                    open.push((at, times));
                    let changes = self.at(times, measured[at].own.row.number(Column::RateRequestsS))?;
                    values.push(self.question.values(&measured[at].drive.device, &changes));
                }
            }
            if open.is_empty() {
                break;
            }
            for ((at, times), ran) in open.into_iter().zip(self.execute(values)?) {
                let (holds, then) = holds(requirements, &ran.row);
                searches[at].record(times, holds, then, ran);
            }
        }
        for (drive, search) in measured.iter_mut().zip(searches) {
            drive.others = search.others;
            drive.headroom = match search.holds {
                Some(times) => Headroom::Holds { times, then: search.then },
                None => Headroom::Never,
            };
        }
        Ok(())
    }

    /// Returns the settings for a multiple of the workload's own rate.
    fn at(&mut self, times: f64, rate: Option<f64>) -> Result<Values, StackError> {
        if let Some(rate) = rate {
            return Ok(Values::from([("rate", format!("{:.0}", (rate * times).max(1.0)))]));
        }
        let values = self.question.values(&self.question.drives[0].device, &Values::new());
        let run = question::run(&values, &mut self.workloads)?;
        let own = match run.requested().map(|requested| requested.arrivals) {
            Some(Arrivals::Times { speed }) => speed,
            _ => 1.0,
        };
        Ok(Values::from([("speed", format!("{:.4}x", own * times))]))
    }

    fn execute(&mut self, values: Vec<Values>) -> Result<Vec<Ran>, StackError> {
        let runs = values.iter().map(|values| question::run(values, &mut self.workloads));
        let runs = runs.collect::<Result<Vec<Run>, _>>()?;
        for run in &runs {
            run.check()?;
        }
        self.executed += runs.len() as u64;
        let stage = Stage { runs, in_all: self.question.runs(), ops: 0 };
        let rows = runner::execute_all(&stage, self.threads, self.progress, &())?;
        let rows = rows.into_iter().map(|rows| rows.into_iter().next().unwrap_or_default());
        Ok(rows.zip(values).map(|(row, values)| Ran { row, repeat: question::command(&values) }).collect())
    }
}

impl Search {
    /// Returns the next multiple to try; `None` if the search is over.
    fn next(&self) -> Option<f64> {
        match self.holds {
            _ if self.is_over => None,
            None => Some(LEAST),
            Some(holds) if self.breaks / holds > PRECISE => Some((holds * self.breaks).sqrt()),
            Some(_) => None,
        }
    }

    fn record(&mut self, times: f64, holds: bool, then: Option<String>, ran: Ran) {
        if holds {
            self.holds = Some(times);
        } else {
            // If the requirements do not hold even at the least multiple, no other is tried.
            self.is_over |= self.holds.is_none();
            (self.breaks, self.then) = (times, then);
        }
        self.others.push((times, ran));
    }
}

impl Measured {
    /// Judges the drive by all requirements.
    fn judge(&mut self, requirements: &[Requirement]) {
        self.own.row.set(Column::Headroom, self.headroom.times());
        self.judged = requirements.iter().map(|one| one.judge(&self.own.row, self.bounds.as_ref())).collect();
        let worst = self.judged.iter().copied().min().unwrap_or(Meets::Yes);
        self.meets = if keeps_up(&self.own.row) { worst } else { Meets::No };
    }
}

/// Returns the requests that arrived per second.
pub(super) fn offered(row: &Row) -> f64 {
    row.number(Column::OfferedOpsS).unwrap_or(f64::NAN)
}

/// Whether the drive serves the requests as fast as they arrive.
pub(super) fn keeps_up(row: &Row) -> bool {
    row.number(Column::ThroughputOpsS).is_some_and(|served| served >= KEEPS_UP * offered(row))
}

/// Whether a run keeps up and meets the requirements but that on the headroom, as simulated. If not, also
/// returns what it misses; `None` stands for keeping up.
fn holds(requirements: &[Requirement], row: &Row) -> (bool, Option<String>) {
    if !keeps_up(row) {
        return (false, None);
    }
    let missed = requirements.iter().find(|one| !one.is_of_headroom() && !one.holds(row));
    (missed.is_none(), missed.map(Requirement::in_words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran() -> Ran {
        Ran { row: Row::default(), repeat: String::new() }
    }

    /// The search ends between a multiple at which the requirements hold and one at most a tenth above at which
    /// they do not, within its bound on runs.
    #[test]
    fn a_search_encloses_the_limit_within_its_bound() {
        for limit in [1.0, 1.05, 7.3, 950.0, 0.02, 0.5] {
            let holds = limit >= 1.0;
            let mut search = Search {
                holds: holds.then_some(1.0),
                breaks: if holds { 1_000.0 } else { 1.0 },
                then: None,
                others: Vec::new(),
                is_over: false,
            };
            let mut runs = 0;
            while let Some(times) = search.next() {
                search.record(times, times <= limit, None, ran());
                runs += 1;
            }
            let found = search.holds.unwrap();
            assert!(
                found <= limit && limit < search.breaks && search.breaks <= found * PRECISE,
                "{limit}: {found}"
            );
            assert!(runs <= SEARCH_AT_MOST, "{limit}: {runs} runs");
        }
    }

    #[test]
    fn a_requirement_that_no_rate_meets_ends_the_search_at_once() {
        let mut search = Search { holds: None, breaks: 1.0, then: None, others: Vec::new(), is_over: false };
        let least = search.next().unwrap();
        search.record(least, false, Some("p99".to_owned()), ran());
        assert_eq!((search.next(), search.holds), (None, None));
    }

    /// A drive that falls behind has no headroom, whatever its response times are.
    #[test]
    fn a_drive_that_falls_behind_does_not_hold() {
        let mut row = Row::default();
        row.set(Column::OfferedOpsS, 100.0);
        row.set(Column::ThroughputOpsS, 99.0);
        assert_eq!(holds(&[], &row), (true, None));
        row.set(Column::ThroughputOpsS, 97.0);
        assert_eq!(holds(&[], &row), (false, None));
    }
}
