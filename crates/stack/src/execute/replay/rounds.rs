//! Repeats the workload of a replay in rounds until its figures are steady. A round consists of as many
//! passes over the workload as write the logical space of the drive once, because fewer writes leave the
//! write amplification to what the drive held before.

use crate::execute::device_counts::DeviceCounts;
use crate::progress::Step;
use crate::{Column, Row, StackError, Value, progress};
use fulgurite_base::Nanos;

/// The most rounds. A run that is not steady by then ends with a remark.
pub(crate) const ROUNDS_AT_MOST: u32 = 20;
/// The most outstanding requests, which bounds the memory of a run whose drive falls behind.
const OUTSTANDING_AT_MOST: usize = 1 << 20;
/// The most requests of a round. A workload that hardly writes would need years to overwrite a drive.
const ROUND_REQUESTS_AT_MOST: f64 = 1e9;
/// The largest change between two rounds that counts as steady, as a share.
const STEADY: f64 = 0.01;

/// The rounds of a run.
pub(super) struct Rounds {
    /// The number of requests in a pass over the workload.
    pub ops: u64,
    /// The number of passes of the current round that have ended.
    passes: u64,
    /// The number of rounds that have ended.
    ended: u32,
    /// Whether the last round has ended.
    is_over: bool,
    /// Whether the drive falls behind its load, so that no round becomes steady.
    pub is_behind: bool,
    /// The beginning of the current round, on the device's clock.
    pub began: Nanos,
    /// The counts of the device at the beginning of the current round, and after its last pass.
    pub before: DeviceCounts,
    after: DeviceCounts,
    /// The figures of the last round.
    last: Option<Figures>,
    /// The changes of these figures from the round before, as shares.
    changes: Option<Figures>,
    /// Shows the current round in the progress.
    shown: Step,
}

/// Begins the step that shows a round in the progress.
fn shown(round: u32) -> Step {
    progress::step(format!("round {round} of at most {ROUNDS_AT_MOST}"), 0)
}

/// The figures that must not change, or their changes.
#[derive(Clone, Copy)]
struct Figures {
    waf: f64,
    p99: f64,
}

/// The next step after a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another pass of the same round.
    Pass,
    /// Another round.
    Round,
    /// The end of the run.
    End,
}

impl Rounds {
    /// Begins the first round of passes of `ops` requests.
    pub(super) fn new(ops: u64, began: Nanos, before: DeviceCounts) -> Rounds {
        let after = before.clone();
        Rounds {
            ops,
            passes: 0,
            ended: 0,
            is_over: false,
            is_behind: false,
            began,
            before,
            after,
            last: None,
            changes: None,
            shown: shown(1),
        }
    }

    /// Returns the counts of the current round up to its last pass. Later counts include the collection for
    /// pages that were in the write buffer before the round too.
    pub(super) fn counts(&self) -> DeviceCounts {
        self.after.since(&self.before)
    }

    /// Ends a pass. `now` has the counts of the device, and `p99_ns` is the percentile of the current round.
    pub(super) fn end_pass(&mut self, now: &DeviceCounts, p99_ns: u64) -> Result<Next, StackError> {
        if self.is_over {
            return Ok(Next::End);
        }
        self.after = now.clone();
        let round = self.counts();
        let writes = round.drive_writes().unwrap_or(0.0);
        if writes == 0.0 {
            return Err(StackError::request(
                "--until-steady repeats a workload until it has overwritten the drive, and this one writes \
                 nothing; accepted: a workload that writes",
            ));
        }
        self.passes += 1;
        let requests = self.ops as f64 * self.passes as f64 / writes;
        if requests > ROUND_REQUESTS_AT_MOST {
            return Err(StackError::request(format!(
                "--until-steady: {} requests of this workload overwrite the drive once, and at most {} are repeated; \
                 accepted: a workload that writes more, or a smaller drive (blocks=)",
                Value::Real(requests).readable(),
                Value::Real(ROUND_REQUESTS_AT_MOST).readable()
            )));
        }
        if writes < 1.0 {
            return Ok(Next::Pass);
        }
        self.passes = 0;
        self.ended += 1;
        if self.ended < ROUNDS_AT_MOST {
            self.shown = shown(self.ended + 1);
        }
        let figures = Figures { waf: round.waf_or_layers().unwrap_or(1.0), p99: p99_ns as f64 };
        let before = self.last.replace(figures);
        self.changes = before.map(|before| Figures {
            waf: figures.waf / before.waf - 1.0,
            p99: figures.p99 / before.p99.max(1.0) - 1.0,
        });
        let is_steady =
            self.changes.is_some_and(|changes| changes.waf.abs() < STEADY && changes.p99.abs() < STEADY);
        self.is_over = is_steady || self.ended == ROUNDS_AT_MOST;
        Ok(if self.is_over { Next::End } else { Next::Round })
    }

    /// Ends the run if the drive falls behind its load, and returns whether it does. `has_grown` says that the
    /// current round leaves a longer queue than the one before; the first round begins without a queue, so
    /// it may.
    pub(super) fn give_up(&mut self, next: Next, has_grown: bool, outstanding: usize) -> bool {
        let grows = next == Next::Round && has_grown && self.ended > 1;
        self.is_behind = grows || outstanding > OUTSTANDING_AT_MOST;
        self.is_over |= self.is_behind;
        self.is_behind
    }

    /// Sets the columns about the rounds. Leaves a remark if the run did not become steady.
    pub(super) fn set(&self, row: &mut Row, run: &str) {
        row.set(Column::Rounds, self.ended);
        let Some(changes) = self.changes else { return };
        row.set(Column::RoundWafChange, changes.waf);
        row.set(Column::RoundP99Change, changes.p99);
        if changes.waf.abs().max(changes.p99.abs()) >= STEADY {
            progress::remark(format!(
                "{run} was not steady after {} rounds: in the last one waf changed by {:+.1} % and p99 by {:+.1} %",
                self.ended,
                100.0 * changes.waf,
                100.0 * changes.p99
            ));
        }
    }
}
