//! Coordinates the units of a drive: decides which unit's schedule applies, and for which unit a read, or
//! each page of a write, waits.
//!
//! With round-robin striping, a write that no unit admits waits as a whole, in order of arrival. With
//! striping by address, a write with room in the buffer is split, and each page waits for its own unit, in
//! order. So a collecting unit only delays the pages that need that unit. Trims, shares and flushes wait
//! until no earlier page waits.

use super::command::{CommandKind, InFlight};
use super::{HostSlot, NEVER, SimDrive, Translation};
use fulgurite_base::{Nanos, StreamId};
use fulgurite_device::IoError;
use fulgurite_ftl::UnitId;

impl SimDrive {
    /// Ends the collection whose victim in `unit` is erased. With `before`, this is the collection before the
    /// current one.
    pub(super) fn release(&mut self, unit: usize, before: bool) {
        let is_by_address = self.waiting.is_by_address();
        if let Translation::PageMapped(ftl) = &mut self.translation {
            let of = UnitId(unit as u32);
            match before {
                true => ftl.release_erased(of, &mut self.flash),
                false => ftl.release(of, &mut self.flash),
            }
            if !is_by_address {
                // Ends the urgency of all units, since waiting writes can go to any unit and one unit has a
                // free segment now.
                ftl.end_urgency();
            }
        }
        self.gates[if is_by_address { unit } else { 0 }].end_urgency();
        self.watch_urgency();
        if is_by_address {
            self.look_at(unit)
        } else {
            self.look_at_all()
        }
        if self.is_worn_out() {
            // Refuses the pages that wait for other units at once, because a worn-out drive accepts no
            // writes.
            (0..self.waiting.queues.len()).for_each(|unit| self.place_waiting(unit));
        }
        self.admit_to(unit);
    }

    /// Looks at the schedule in every unit.
    pub(super) fn look_at_all(&mut self) {
        (0..self.gates.len()).for_each(|unit| self.look_at(unit));
    }

    /// Returns the logical page that waits to be written to `unit`, and its hint.
    #[inline]
    fn first_waiting(&self, unit: usize) -> Option<(u32, StreamId)> {
        if let Some(queue) = self.waiting.queues.get(unit) {
            let (command, lpn) = *queue.front()?;
            let CommandKind::Write(hint) = self.commands[command as usize].kind else { return None };
            return Some((lpn, hint));
        }
        match self.commands[self.gates[0].first()? as usize] {
            // Takes the next page of the write, because its pages may go to different streams, and the state
            // depends on the stream.
            InFlight { kind: CommandKind::Write(hint), lpn, pages, placed, .. } => {
                Some((lpn + placed.min(pages - 1), hint))
            }
            _ => None,
        }
    }

    /// Asks the schedule for the state of `unit`, and begins a collection or admits commands as the state
    /// says.
    pub(super) fn look_at(&mut self, unit: usize) {
        let waiting = self.first_waiting(unit);
        let of_drive = self.timeline.is_some().then(|| self.state());
        let Translation::PageMapped(ftl) = &mut self.translation else { return };
        let gate = &mut self.gates[unit];
        let before = gate.state();
        let picked = gate.look(ftl, waiting);
        let state = gate.state();
        let mut ahead = None;
        if self.config.gc_overlap && state.collects() && self.collectors[unit].is_only_erasing() {
            let stream = waiting.map_or_else(StreamId::default, |(lpn, hint)| ftl.stream(lpn, hint));
            ahead = ftl.pick_ahead(UnitId(unit as u32), stream);
            if let Some(victim) = ahead {
                self.collectors[unit].begin_ahead(victim, self.flash.now);
                self.collectors[unit].touch_dies(&mut self.flash);
            }
        }
        if picked.is_some() || state.collects() && !before.collects() {
            let collector = &mut self.collectors[unit];
            if let Some(victim) = picked {
                collector.begin(victim, self.flash.now);
            }
            if collector.is_active() {
                // Touches every die of the unit: each holds a part of a new victim, and dies that had no
                // collection work may have some again.
                collector.touch_dies(&mut self.flash);
            }
        }
        if let Some(events) = &mut self.fdp {
            for victim in picked.into_iter().chain(ahead) {
                let pages = ftl.segments().valid(victim);
                if pages > 0 {
                    events.reallocated(Nanos(self.flash.now), unit as u32, pages);
                }
            }
        }
        if of_drive.is_some_and(|before| before != self.state()) {
            let (state, now) = (self.state(), Nanos(self.flash.now));
            if let Some(timeline) = &mut self.timeline {
                timeline.enter(state, now);
            }
        }
        self.let_reads_in(unit);
    }

    /// Admits barred reads that pass now.
    #[inline]
    fn let_reads_in(&mut self, unit: usize) {
        while let Some(command) = self.gates[unit].next_read() {
            let waiting = &mut self.commands[command as usize];
            waiting.waits.gc += self.flash.now - waiting.since;
            waiting.since = self.flash.now;
            // Checks again, since other pages of the read may be in a unit that bars it.
            if self.passes(command) {
                self.read_flash(command);
            }
        }
    }

    /// Returns whether the read `command` may go to the flash. If not, the read waits for a unit that bars
    /// it.
    #[inline]
    pub(super) fn passes(&mut self, command: u32) -> bool {
        let Translation::PageMapped(ftl) = &self.translation else { return true };
        if let [gate] = &mut self.gates[..] {
            return gate.passes(command);
        }
        let InFlight { lpn, pages, .. } = self.commands[command as usize];
        let mut units =
            (lpn..lpn + pages).filter_map(|lpn| Some(ftl.unit_of(ftl.segment(ftl.lookup(lpn)?)).0 as usize));
        let barred = units.find(|unit| !self.gates[*unit].state().serves_reads());
        barred.is_none_or(|unit| self.gates[unit].passes(command))
    }

    /// Handles a write that has waited for collection for as long as it may.
    pub(super) fn become_urgent(&mut self) {
        let Translation::PageMapped(ftl) = &mut self.translation else { return };
        let now = self.flash.now;
        for gate in &mut self.gates {
            // Makes every unit urgent if the write could go to any unit, because it waits for all of them.
            if !self.waiting.is_by_address() || gate.urgent_at().is_some_and(|at| at.0 <= now) {
                gate.become_urgent(ftl);
            }
        }
        self.watch_urgency();
    }

    /// Sets the event for the time at which a waiting write becomes urgent.
    pub(super) fn watch_urgency(&mut self) {
        let slot = self.slot(HostSlot::Urgent);
        let at = self.gates.iter().filter_map(|gate| gate.urgent_at()).min().map_or(NEVER, |at| at.0);
        // Reads the time first: it is nearly always unchanged, and reading is cheaper than setting.
        if self.flash.events.time(slot) != at {
            self.flash.events.set(slot, at);
        }
    }

    /// Admits the pages that waited for `unit`, and the commands behind them.
    #[inline]
    pub(super) fn admit_to(&mut self, unit: usize) {
        if !self.waiting.is_empty() {
            self.place_waiting(unit);
        }
        self.admit();
    }

    /// Splits a write that has its room in the buffer, and places as many of its pages as possible.
    pub(super) fn scatter(&mut self, command: u32) {
        let Translation::PageMapped(ftl) = &self.translation else { return };
        let InFlight { lpn, pages, .. } = self.commands[command as usize];
        for lpn in lpn..lpn + pages {
            self.waiting.queues[ftl.home(lpn).0 as usize].push_back((command, lpn));
        }
        self.waiting.pages += pages;
        // Asks each unit once, since pages of a row share a unit.
        let mut asked = usize::MAX;
        for lpn in lpn..lpn + pages.min((self.gates.len() as u32 + 1) * self.flash.row_pages) {
            let Translation::PageMapped(ftl) = &self.translation else { return };
            let unit = ftl.home(lpn).0 as usize;
            if unit != asked {
                self.place_waiting(unit);
                asked = unit;
            }
        }
    }

    /// Gives physical pages to as many pages waiting for `unit` as may be written now, in order.
    fn place_waiting(&mut self, unit: usize) {
        while let Some((command, lpn)) =
            self.waiting.queues.get(unit).and_then(|queue| queue.front().copied())
        {
            let mut end = lpn;
            // Pages of one write that are next to each other in the queue are placed together.
            while self.waiting.queues[unit].get((end - lpn) as usize) == Some(&(command, end)) {
                end += 1;
            }
            let gone = match self.is_worn_out() {
                true => self.decline_pages(command, end - lpn),
                false => self.place_pages(unit, command, lpn, end - lpn),
            };
            self.waiting.queues[unit].drain(..gone as usize);
            self.waiting.pages -= gone;
            if gone > 0 {
                self.end_placing(command);
            }
            if gone < end - lpn {
                return;
            }
        }
    }

    /// Places pages of a write in their unit by address. Returns the number of placed pages.
    fn place_pages(&mut self, unit: usize, command: u32, lpn: u32, pages: u32) -> u32 {
        let CommandKind::Write(hint) = self.commands[command as usize].kind else { return 0 };
        let (placed, programs) = self.place_through(unit, command, lpn, pages, hint);
        if placed < pages {
            self.watch_urgency();
        }
        self.look_at(unit);
        if programs > 0 {
            // Queues incomplete rows, because they must not wait for pages that may never come.
            self.flash.close_partial();
        }
        placed
    }

    /// Refuses waiting pages, since the drive is worn out. Pages of an accepted write stay in the buffer.
    fn decline_pages(&mut self, command: u32, pages: u32) -> u32 {
        if !self.is_cached() {
            let declined = &mut self.commands[command as usize];
            declined.fault = Some(Box::new(IoError::WornOut));
            declined.placed += pages;
            self.buffer_free += pages;
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::super::command::CommandKind;
    use super::super::{HostSlot, NEVER, SimDrive, Translation};
    use crate::{SsdConfig, preset};
    use fulgurite_base::{Lpn, Nanos, Prng, Share, Spec, StreamId};
    use fulgurite_device::{Command, Device, Operation, Tag};
    use fulgurite_ftl::UnitId;
    use fulgurite_ftl::precondition::Precondition;
    use fulgurite_ftl::schedule::ScheduleState;

    /// The time after which a write is urgent, in nanoseconds: about the duration of a collection.
    const PATIENCE: u64 = 3_000_000;

    /// Returns a drive of four channels that collect separately, so small that collection is always near.
    fn small(options: &str) -> SsdConfig {
        let small = SsdConfig {
            channels: 4,
            chips: 2,
            blocks: 20,
            pages: 8,
            op: Share::percent(60),
            precondition: Precondition::Fill,
            ..preset::reference_e()
        };
        let options = format!("small:gc_unit=channel,urgent_us={},{options}", PATIENCE / 1_000);
        small.changed_by(Spec::parse(&options).unwrap()).unwrap()
    }

    /// The state of a unit before or after an event.
    #[derive(Clone, Copy)]
    struct Seen {
        /// The virtual time at which its victim was picked; `None` without a victim.
        begun: Option<u64>,
        state: ScheduleState,
        urgent_at: Option<Nanos>,
    }

    fn seen(drive: &SimDrive) -> Vec<Seen> {
        let units = drive.gates.iter().zip(&drive.collectors);
        let seen = units.map(|(gate, collector)| Seen {
            begun: collector.begun(),
            state: gate.state(),
            urgent_at: gate.urgent_at(),
        });
        seen.collect()
    }

    /// Performs `events` events of a drive with reads and writes of 24 users, and calls `check` with the
    /// state of every unit before and after each event.
    fn each_event(drive: &mut SimDrive, events: u32, mut check: impl FnMut(&SimDrive, &[Seen], &[Seen])) {
        let pages = drive.caps().pages;
        let mut prng = Prng::new(3, "events");
        for tag in 0..u64::from(events) {
            while drive.unanswered < 24 {
                let (lpn, pages) = (Lpn(prng.below(pages - 4)), 1 + prng.below(4) as u32);
                let operation = match prng.below(4) {
                    0 => Operation::read(lpn, pages),
                    _ => {
                        // Neighbouring pages differ in their hints; a drive of one stream ignores hints.
                        let stream = StreamId((lpn.0 % 2) as u16);
                        Operation::Write { lpn, pages, from: None, stream, durable: false }
                    }
                };
                drive.submit(Command { tag: Tag(tag), operation }).unwrap();
            }
            let before = seen(drive);
            assert!(drive.perform_next_event(), "it stalled after {tag} events");
            check(drive, &before, &seen(drive));
        }
    }

    /// The rules: a unit becomes urgent when a write has waited too long for it; if the write could go to any
    /// unit, all units become urgent. A unit stops being urgent when its victim is erased; if waiting writes
    /// can go to any unit, all units stop being urgent. The next urgency event is that of the write that has
    /// waited longest.
    #[test]
    fn urgency_begins_and_ends_in_the_right_units() {
        for (stripe, cache) in ["round-robin", "least-loaded", "address"]
            .iter()
            .flat_map(|stripe| ["protected", "off"].map(|cache| (*stripe, cache)))
        {
            let is_by_address = stripe == "address";
            let options = format!("schedule=semi-preemptive,stripe={stripe},write_cache={cache}");
            let mut drive = SimDrive::new(small(&options), 7, false).unwrap();
            let (mut hurried, mut calmed, mut waited_anew) = (0, 0, 0);
            each_event(&mut drive, 60_000, |drive, before, after| {
                let now = drive.flash.now;
                let exclusive = |seen: &Seen| seen.state == ScheduleState::Exclusive;
                let released =
                    |unit: usize| before[unit].begun.is_some() && after[unit].begun != before[unit].begun;
                let any_released = (0..after.len()).any(released);
                for unit in 0..after.len() {
                    let (was, is) = (before[unit], after[unit]);
                    let victim = drive.ftl().and_then(|ftl| ftl.victim(UnitId(unit as u32)));
                    assert_eq!(
                        is.begun.is_some(),
                        victim.is_some(),
                        "{options}: unit {unit} and its collector disagree"
                    );
                    let due = |seen: Seen| seen.urgent_at.is_some_and(|at| at.0 <= now);
                    if !exclusive(&was) && exclusive(&is) {
                        hurried += 1;
                        let waits = if is_by_address { unit } else { 0 };
                        assert!(due(before[waits]), "{options}: nobody has waited too long for unit {unit}");
                    }
                    if if is_by_address { released(unit) } else { any_released } {
                        calmed += u32::from(exclusive(&was));
                        assert!(
                            !exclusive(&is),
                            "{options}: unit {unit} hurries though its victim is erased"
                        );
                        let anew = is.urgent_at.is_none_or(|at| at.0 == now + PATIENCE);
                        assert!(
                            anew,
                            "{options}: a write waits for unit {unit} since before its victim was erased"
                        );
                        waited_anew += u32::from(is.urgent_at.is_some());
                    } else {
                        assert!(
                            !exclusive(&was) || exclusive(&is),
                            "{options}: unit {unit} does not hurry to the end"
                        );
                        let kept = was.urgent_at.is_none_or(|at| at.0 <= now || is.urgent_at == Some(at));
                        assert!(
                            kept,
                            "{options}: a write that waits for unit {unit} has not waited since it came"
                        );
                    }
                }
                let pressed = after.iter().any(|seen| seen.state == ScheduleState::Pressed);
                assert!(
                    is_by_address || !(pressed && after.iter().any(exclusive)),
                    "{options}: one unit hurries alone"
                );
                let first = after.iter().filter_map(|seen| seen.urgent_at).min().map_or(NEVER, |at| at.0);
                assert_eq!(drive.flash.events.time(drive.slot(HostSlot::Urgent)), first, "{options}");
            });
            assert!(
                hurried > 3 && calmed > 3 && waited_anew > 3,
                "{options}: {hurried}, {calmed}, {waited_anew}"
            );
        }
    }

    /// The rule: the state of a unit is the state for the page that waits for it, and depends on the stream
    /// of that page.
    #[test]
    fn the_state_of_a_unit_is_that_for_its_waiting_page() {
        for cache in ["protected", "off"] {
            let options = format!("schedule=semi-preemptive,stripe=address,write_cache={cache},streams=2");
            let mut drive = SimDrive::new(small(&options), 7, false).unwrap();
            let mut differs = 0;
            each_event(&mut drive, 60_000, |drive, _, after| {
                let Translation::PageMapped(ftl) = &drive.translation else { unreachable!() };
                for (unit, queue) in drive.waiting.queues.iter().enumerate() {
                    let Some((command, lpn)) = queue.front().copied() else { continue };
                    let CommandKind::Write(hint) = drive.commands[command as usize].kind else {
                        unreachable!()
                    };
                    let state = |stream| ftl.state(UnitId(unit as u32), stream);
                    let sees = state(ftl.stream(lpn, hint));
                    assert_eq!(after[unit].state, sees, "{options}: unit {unit}, page {lpn}");
                    differs += u32::from(sees != state(StreamId(0)));
                }
            });
            assert!(differs > 100, "{options}: the streams' states differed {differs} times");
        }
    }

    /// The rule: a power cut resets the load of every unit (its number of queued and running flash
    /// operations), so later loads only count operations begun since.
    #[test]
    fn a_power_cut_clears_the_load_of_units() {
        for options in ["write_cache=off", "stripe=address,write_cache=volatile"] {
            let mut drive = SimDrive::new(small(options), 42, false).unwrap();
            let load = |drive: &SimDrive| drive.flash.loads.iter().sum::<u32>() as usize;
            each_event(&mut drive, 200, |_, _, _| {});
            assert!(load(&drive) > 0 && load(&drive) == drive.flash.ops.len());
            drive.power_cut();
            assert_eq!(load(&drive), drive.flash.ops.len(), "{options}");
        }
    }

    /// The rule: after a power cut, accepted writes that can be placed are placed at once, in every unit.
    #[test]
    fn a_power_cut_admits_writes_that_need_not_wait() {
        for (stripe, schedule) in ["round-robin", "address"]
            .iter()
            .flat_map(|stripe| ["semi-preemptive", "paced"].map(|schedule| (stripe, schedule)))
        {
            let options = format!("stripe={stripe},schedule={schedule},write_cache=protected");
            let mut drive = SimDrive::new(small(&options), 7, false).unwrap();
            let mut let_in = 0;
            for _ in 0..300 {
                each_event(&mut drive, 150, |_, _, _| ());
                let placed = |drive: &SimDrive| drive.ftl().map(|ftl| ftl.counters().host_pages);
                let before = placed(&drive);
                drive.power_cut();
                let after = placed(&drive);
                let_in += u32::from(after > before);
                (0..drive.gates.len()).for_each(|unit| drive.admit_to(unit));
                assert_eq!(placed(&drive), after, "{options}");
            }
            // A paced collection has a new pace when it begins again, so it admits writes that had to wait
            // before.
            assert_eq!(let_in > 0, options.starts_with("stripe=address,schedule=paced"), "{options}");
        }
    }

    /// The rule: on a worn-out drive no page waits for a unit.
    #[test]
    fn no_page_waits_in_a_worn_out_drive() {
        for cache in ["protected", "off"] {
            let options =
                format!("schedule=semi-preemptive,stripe=address,write_cache={cache},endurance=10,op=100%");
            let mut drive = SimDrive::new(small(&options), 7, false).unwrap();
            let mut waited = 0;
            for event in 0..200_000 {
                if drive.is_worn_out() {
                    break;
                }
                waited = drive.waiting.pages;
                each_event(&mut drive, 1, |drive, _, _| {
                    assert!(!drive.is_worn_out() || drive.waiting.is_empty(), "{options}, {event}")
                });
            }
            assert!(drive.is_worn_out() && waited > 0, "{options}: {waited} pages waited until it was");
        }
    }
}
