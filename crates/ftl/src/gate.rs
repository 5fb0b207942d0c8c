//! The gate between the host's commands and a translation layer in virtual or wall-clock time. Simulated
//! drives and layers on the host share it. It does no I/O and has no clock.
//!
//! The schedule's state decides which commands pass. Reads pass or are barred. All other commands wait in one
//! queue, in order; the first leaves it when all its pages have physical pages. The gate holds both queues,
//! the state, and the time at which a write has waited too long.
//!
//! The device numbers its commands. It calls [`look`](Gate::look) whenever the state may have changed. It
//! then starts to collect the victim, if one was picked, and serves the reads that
//! [`next_read`](Gate::next_read) returns. It [`place`](Gate::place)s the pages of the first write in the
//! queue, and calls [`become_urgent`](Gate::become_urgent) at [`urgent_at`](Gate::urgent_at). The device
//! itself moves the pages and completes the commands.

use crate::ftl::{FlashSink, Ftl, UnitId};
use crate::schedule::ScheduleState;
use crate::segments::SegmentId;
use fulgurite_base::{Nanos, Ppn, StreamId};
use std::collections::VecDeque;

/// When a gate looks at the schedule's state again after it has picked a victim, which may change the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterPick {
    /// The gate looks again at once.
    LookAgain,
    /// The gate looks again at the device's next event. A pick takes a drive no time, and its next event is
    /// soon.
    LookNextTime,
}

/// The pages of a write that still need physical pages.
#[derive(Clone, Copy, Debug)]
pub struct Unplaced {
    /// The first of these logical pages.
    pub first: u32,
    /// The number of pages.
    pub pages: u32,
    /// The host's hint for the stream of the pages.
    pub hint: StreamId,
}

/// The gate of a unit; see the module.
#[derive(Clone, Debug)]
pub struct Gate {
    unit: UnitId,
    state: ScheduleState,
    after_pick: AfterPick,
    barred_reads: VecDeque<u32>,
    stalled: VecDeque<u32>,
    /// The time that a write may wait; `urgent_at` is the end of that time for the first write in the queue.
    patience: Nanos,
    urgent_at: Option<Nanos>,
    collects_no_more: bool,
}

impl Gate {
    /// Creates the gate of `unit`, without waiting commands. A write that has waited for `patience` blocks
    /// all other host operations.
    pub fn new(unit: UnitId, after_pick: AfterPick, patience: Nanos) -> Gate {
        Gate {
            unit,
            state: ScheduleState::Idle,
            after_pick,
            barred_reads: VecDeque::new(),
            stalled: VecDeque::new(),
            patience,
            urgent_at: None,
            collects_no_more: false,
        }
    }

    /// Returns the schedule's state at the last look.
    #[inline]
    pub fn state(&self) -> ScheduleState {
        self.state
    }

    /// Asks the schedule for its state, with the page that waits to be written. Picks a victim if collection
    /// is wanted and none is in progress. The caller then begins the collection and serves reads.
    #[inline]
    pub fn look(&mut self, ftl: &mut Ftl, waiting: Option<(u32, StreamId)>) -> Option<SegmentId> {
        if self.collects_no_more {
            // No command need wait for a collection that cannot happen.
            self.state = ScheduleState::Idle;
            return None;
        }
        let stream = waiting.map_or_else(StreamId::default, |(lpn, hint)| ftl.stream(lpn, hint));
        self.state = ftl.state(self.unit, stream);
        if !self.state.collects() || ftl.victim(self.unit).is_some() {
            return None;
        }
        let picked = ftl.pick(self.unit)?;
        // Asks again, because the state was decided without a collection in progress, and a pick may change
        // it.
        if self.after_pick == AfterPick::LookAgain {
            self.state = ftl.state(self.unit, stream);
        }
        Some(picked)
    }

    /// Returns whether the read `command` passes now. If not, the read is barred until [`Gate::next_read`]
    /// returns it.
    #[inline]
    pub fn passes(&mut self, command: u32) -> bool {
        let passes = self.state.serves_reads();
        if !passes {
            self.barred_reads.push_back(command);
        }
        passes
    }

    /// Returns the next barred read that passes now; `None` if there is none.
    #[inline]
    pub fn next_read(&mut self) -> Option<u32> {
        if self.state.serves_reads() { self.barred_reads.pop_front() } else { None }
    }

    /// Appends `command`, which is not a read, to the queue.
    pub fn stall(&mut self, command: u32) {
        self.stalled.push_back(command);
    }

    /// Returns the first command in the queue.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.stalled.front().copied()
    }

    /// Removes the first command from the queue.
    #[inline]
    pub fn pass_first(&mut self) {
        self.stalled.pop_front();
    }

    /// Gives physical pages to as many pages of the first write in the queue as the schedule allows now, and
    /// returns their number. `placed` is called for each page with its index in the run, its new physical
    /// page and its previous one. If some pages are left, the write becomes urgent once it has waited too
    /// long.
    #[inline]
    pub fn place<S: FlashSink>(
        &mut self,
        ftl: &mut Ftl,
        Unplaced { first, pages, hint }: Unplaced,
        now: Nanos,
        sink: &mut S,
        placed: impl FnMut(&mut S, u32, Ppn, Option<Ppn>),
    ) -> u32 {
        let count = ftl.append_run(first, pages, hint, sink, placed);
        // Sets the time only at the first refusal; later attempts must not postpone it.
        if count < pages && self.urgent_at.is_none() {
            self.urgent_at = Some(Nanos(now.0.saturating_add(self.patience.0)));
        }
        count
    }

    /// Returns the time at which the waiting write will have waited too long; `None` if no write waits.
    #[inline]
    pub fn urgent_at(&self) -> Option<Nanos> {
        self.urgent_at
    }

    /// Records that a write has waited too long. The caller then looks at the schedule.
    pub fn become_urgent(&mut self, ftl: &mut Ftl) {
        self.urgent_at = None;
        ftl.set_urgent(self.unit);
    }

    /// Records that the collection that the write waited for has freed a segment. If the write must still
    /// wait, its time starts again.
    pub fn end_urgency(&mut self) {
        self.urgent_at = None;
    }

    /// Records that collection has ended for good.
    pub fn end_collection(&mut self) {
        self.collects_no_more = true;
    }

    /// Removes all waiting commands, as after a power cut, except stalled commands for which `is_kept` is
    /// true.
    pub fn forget(&mut self, is_kept: impl Fn(u32) -> bool) {
        self.barred_reads.clear();
        self.stalled.retain(|command| is_kept(*command));
        self.urgent_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use crate::{Collect, CountingSink, FtlConfig};

    const PATIENCE: Nanos = Nanos(1_000);

    /// Returns a drive of 40 pages on six segments of 16, filled and overwritten until its writes must wait,
    /// with its gate.
    fn exhausted() -> (Gate, Ftl) {
        let collect = Collect { schedule: Schedule::SEMI_PREEMPTIVE, ..Collect::PLAIN };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(40, 6, 16) }).unwrap();
        let mut gate = Gate::new(UnitId(0), AfterPick::LookAgain, PATIENCE);
        let mut sink = CountingSink::default();
        for first in (0..40).cycle().take(200) {
            let write = Unplaced { first, pages: 1, hint: StreamId(0) };
            if gate.place(&mut ftl, write, Nanos(7), &mut sink, |_, _, _, _| ()) == 0 {
                gate.stall(3);
                return (gate, ftl);
            }
        }
        unreachable!("nothing is ever collected, so that writes must wait")
    }

    #[test]
    fn a_write_that_must_wait_becomes_urgent_and_bars_reads() {
        let (mut gate, mut ftl) = exhausted();
        assert_eq!((gate.first(), gate.urgent_at()), (Some(3), Some(Nanos(7) + PATIENCE)));
        let picked = gate.look(&mut ftl, Some((0, StreamId(0))));
        assert_eq!((picked, gate.state()), (ftl.victim(UnitId(0)), ScheduleState::Pressed));
        assert!(picked.is_some() && gate.passes(8), "reads pass while the write may wait");
        gate.become_urgent(&mut ftl);
        assert_eq!(gate.look(&mut ftl, Some((0, StreamId(0)))), None, "one victim at a time");
        assert_eq!((gate.state(), gate.urgent_at()), (ScheduleState::Exclusive, None));
        assert!(!gate.passes(9) && gate.next_read().is_none());
        // Collects the victim, after which all commands pass, in order.
        assert!(!gate.passes(10));
        let end = (picked.unwrap().0 + 1) * 16;
        for ppn in (end - 16..end).map(Ppn) {
            if ftl.mapping().is_valid(ppn) {
                ftl.copy(ppn, &mut CountingSink::default());
            }
        }
        ftl.release(UnitId(0), &mut CountingSink::default());
        gate.look(&mut ftl, Some((0, StreamId(0))));
        assert_eq!([gate.next_read(), gate.next_read(), gate.next_read()], [Some(9), Some(10), None]);
    }

    #[test]
    fn no_command_waits_for_an_impossible_collection() {
        let (mut gate, mut ftl) = exhausted();
        assert!(gate.look(&mut ftl, Some((0, StreamId(0)))).is_some());
        assert_eq!(gate.state(), ScheduleState::Pressed);
        gate.end_collection();
        assert_eq!(gate.look(&mut ftl, Some((0, StreamId(0)))), None);
        assert_eq!(gate.state(), ScheduleState::Idle);
        let (mut gate, mut ftl) = exhausted();
        gate.end_collection();
        gate.look(&mut ftl, Some((0, StreamId(0))));
        assert_eq!(ftl.victim(UnitId(0)), None);
    }

    /// The rule: the first refusal sets the time at which a write becomes urgent, and later refusals do not
    /// postpone it. A write that passes completely sets no time. The end of a collection clears the time.
    #[test]
    fn a_write_waits_from_its_first_refusal_on() {
        let (mut gate, mut ftl) = exhausted();
        let mut place = |gate: &mut Gate, pages, now| {
            let write = Unplaced { first: 0, pages, hint: StreamId(0) };
            gate.place(&mut ftl, write, Nanos(now), &mut CountingSink::default(), |_, _, _, _| ())
        };
        assert_eq!((place(&mut gate, 1, 9), gate.urgent_at()), (0, Some(Nanos(7) + PATIENCE)));
        gate.end_urgency();
        assert_eq!(gate.urgent_at(), None);
        assert_eq!((place(&mut gate, 1, 11), gate.urgent_at()), (0, Some(Nanos(11) + PATIENCE)));
        gate.end_urgency();
        assert_eq!((place(&mut gate, 0, 12), gate.urgent_at()), (0, None), "nothing is left to wait");
    }

    /// The rule: commands pass in the order of arrival. A power cut removes the waiting commands, except
    /// those that are kept.
    #[test]
    fn a_power_cut_removes_waiting_commands() {
        let (mut gate, mut ftl) = exhausted();
        [4, 5, 6].into_iter().for_each(|command| gate.stall(command));
        gate.pass_first();
        assert_eq!(gate.first(), Some(4));
        ftl.set_urgent(UnitId(0));
        gate.look(&mut ftl, None);
        assert!(!gate.passes(8) && gate.urgent_at().is_some());
        gate.forget(|command| command != 4);
        assert_eq!((gate.first(), gate.urgent_at()), (Some(5), None));
        gate.end_collection();
        gate.look(&mut ftl, None);
        assert_eq!(gate.next_read(), None, "the read is forgotten");
        gate.pass_first();
        assert_eq!(gate.first(), Some(6));
    }

    /// The rule: a pick may change the state. The gate looks again at once or the next time, as its device
    /// chooses.
    #[test]
    fn a_pick_changes_the_state_at_once_or_the_next_time() {
        // A paced collection is behind from its start if its victim is nearly full.
        let collect = Collect { schedule: Schedule::PACED, ..Collect::PLAIN };
        let mut ftl = Ftl::new(FtlConfig { collect, ..FtlConfig::plain(48, 6, 16) }).unwrap();
        let mut sink = CountingSink::default();
        for lpn in (0..48).chain((0..48).step_by(3)).chain([32]) {
            assert_eq!(ftl.append_run(lpn, 1, StreamId(0), &mut sink, |_, _, _, _| ()), 1);
        }
        for (after_pick, state) in [
            (AfterPick::LookAgain, ScheduleState::Pressed),
            (AfterPick::LookNextTime, ScheduleState::Collecting),
        ] {
            let (mut gate, mut ftl) = (Gate::new(UnitId(0), after_pick, PATIENCE), ftl.clone());
            assert!(gate.look(&mut ftl, None).is_some());
            assert_eq!(gate.state(), state, "{after_pick:?}");
            assert!(gate.look(&mut ftl, None).is_none());
            assert_eq!(gate.state(), ScheduleState::Pressed);
        }
    }
}
