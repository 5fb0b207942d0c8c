//! The gate between a host's commands and a translation layer in time: what a simulated drive and a layer on the
//! host have in common, without any I/O and without a clock.
//!
//! A device numbers its commands. The schedule's state decides who passes: reads pass or are barred, all other
//! commands wait in one queue, in order, and the first of them passes when all of it has its place. The gate
//! holds both queues, the state, and the time at which a write has waited too long. The device asks it to
//! [`look`](Gate::look) whenever the state may have changed, and performs what follows: the collection of a
//! victim, if one was picked, and the reads that [`next_read`](Gate::next_read) lets in. It
//! [`place`](Gate::place)s the pages of the first write in the queue, and calls
//! [`become_urgent`](Gate::become_urgent) when [`urgent_at`](Gate::urgent_at) has come. How pages are moved and
//! when commands complete is the device's own.

use crate::ftl::{FlashSink, Ftl, UnitId};
use crate::schedule::ScheduleState;
use crate::segments::SegmentId;
use fulgurite_base::{Nanos, Ppn, StreamId};
use std::collections::VecDeque;

/// When to look at the state again after a victim was picked, since that may change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterPick {
    /// At once.
    LookAgain,
    /// With the device's next event: picking itself takes a drive no time, and the event is never far.
    LookNextTime,
}

/// The pages of a write that still need places.
#[derive(Clone, Copy, Debug)]
pub struct Unplaced {
    /// The first of them.
    pub first: u32,
    /// How many.
    pub pages: u32,
    /// The host's hint.
    pub hint: StreamId,
}

/// The gate; see the module.
#[derive(Clone, Debug)]
pub struct Gate {
    unit: UnitId,
    state: ScheduleState,
    after_pick: AfterPick,
    barred_reads: VecDeque<u32>,
    stalled: VecDeque<u32>,
    /// How long a write may wait, and until when the first one does.
    patience: Nanos,
    urgent_at: Option<Nanos>,
    collects_no_more: bool,
}

impl Gate {
    /// The gate of `unit`, which nobody waits at. A write may wait for `patience` before everything else does too.
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

    /// The schedule's state, as it was when last looked at.
    #[inline]
    pub fn state(&self) -> ScheduleState {
        self.state
    }

    /// Sees what the schedule wants now, as the page that waits to be written sees it, and picks a victim where
    /// collection is wanted and none is under way. The caller then begins to collect that, and lets reads in.
    #[inline]
    pub fn look(&mut self, ftl: &mut Ftl, waiting: Option<(u32, StreamId)>) -> Option<SegmentId> {
        if self.collects_no_more {
            // Nobody need wait for a collection that never comes.
            self.state = ScheduleState::Idle;
            return None;
        }
        let stream = waiting.map_or_else(StreamId::default, |(lpn, hint)| ftl.stream(lpn, hint));
        self.state = ftl.state(self.unit, stream);
        if !self.state.collects() || ftl.victim(self.unit).is_some() {
            return None;
        }
        let picked = ftl.pick(self.unit)?;
        // The state was taken without a victim under way, and a pick may change it.
        if self.after_pick == AfterPick::LookAgain {
            self.state = ftl.state(self.unit, stream);
        }
        Some(picked)
    }

    /// Whether the read `command` passes now; if not, it is barred until [`Gate::next_read`] gives it back.
    #[inline]
    pub fn passes(&mut self, command: u32) -> bool {
        let passes = self.state.serves_reads();
        if !passes {
            self.barred_reads.push_back(command);
        }
        passes
    }

    /// The next read that was barred and passes now.
    #[inline]
    pub fn next_read(&mut self) -> Option<u32> {
        if self.state.serves_reads() { self.barred_reads.pop_front() } else { None }
    }

    /// `command`, which is no read, takes its place in the queue.
    pub fn stall(&mut self, command: u32) {
        self.stalled.push_back(command);
    }

    /// The first command in the queue.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.stalled.front().copied()
    }

    /// The first command in the queue passes.
    #[inline]
    pub fn pass_first(&mut self) {
        self.stalled.pop_front();
    }

    /// Gives pages of the first write in the queue their places, as many as the schedule lets pass now, and
    /// returns how many. `placed` is told of each: which one, its place and its place before. Where some are
    /// left, they become urgent once they have waited too long.
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
        // The first refusal sets the time: a later attempt must not put it off.
        if count < pages && self.urgent_at.is_none() {
            self.urgent_at = Some(Nanos(now.0.saturating_add(self.patience.0)));
        }
        count
    }

    /// When a write has waited too long, if one waits.
    #[inline]
    pub fn urgent_at(&self) -> Option<Nanos> {
        self.urgent_at
    }

    /// A write has waited too long: look at the schedule now.
    pub fn become_urgent(&mut self, ftl: &mut Ftl) {
        self.urgent_at = None;
        ftl.set_urgent(self.unit);
    }

    /// What the write waited for has happened; it waits anew if it still must.
    pub fn end_urgency(&mut self) {
        self.urgent_at = None;
    }

    /// Nothing can be collected any more.
    pub fn end_collection(&mut self) {
        self.collects_no_more = true;
    }

    /// Everybody who waits is gone, as after a power cut, except for stalled commands that `is_kept` names.
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

    /// A drive of 40 pages on six segments of 16, filled and overwritten until its writes must wait.
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
        // The victim is collected: everybody passes, in order.
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
    fn nobody_waits_for_a_collection_that_never_comes() {
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

    /// The rule: the first refusal sets the time at which a write has waited too long, and later ones do not put it off. A write that
    /// passes whole sets none. It ends when what the write waited for has happened.
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

    /// The rule: commands pass in the order in which they came. A power cut forgets who waits, except for the commands that are kept.
    #[test]
    fn a_power_cut_forgets_who_waits() {
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

    /// The rule: a pick may change the state. A gate sees that at once or when it looks the next time, as its device wants it.
    #[test]
    fn a_pick_changes_the_state_at_once_or_the_next_time() {
        // A collection in step with the host is behind from its start on where its victim is nearly full.
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
