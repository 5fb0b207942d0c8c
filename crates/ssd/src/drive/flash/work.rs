//! Starts the flash operations of a die, lets them overlap, suspends them and resumes them.

use super::Flash;
use super::die::{Die, Next};
use super::op::{FlashOp, FlashOpKind, NO_ROW, OpId};
use crate::layout::Place;
use fulgurite_ftl::SegmentId;
use fulgurite_ftl::schedule::Suspend;

/// The most host reads in a row before other work that waits for the same die. This bounds the delay of
/// writes.
const READ_BURST: u8 = 16;

impl Flash {
    /// Returns whether `die` is idle, and neither a program nor a suspended operation waits for it; host
    /// reads may.
    #[inline]
    pub(in crate::drive) fn is_free(&self, die: u32) -> bool {
        let state = &self.dies[die as usize];
        state.current.is_none() && state.suspended.is_none() && state.work.is_empty()
    }

    /// Returns whether a host read waits for `die`.
    #[inline]
    pub(in crate::drive) fn read_waits(&self, die: u32) -> bool {
        !self.dies[die as usize].reads.is_empty()
    }

    /// Starts the next operation in the queues of `die`, if it can start now.
    #[inline]
    pub(in crate::drive) fn next_host(&mut self, die: u32) -> Next {
        let state = &mut self.dies[die as usize];
        if state.current.is_some() {
            return self.beside_current(die);
        }
        let work_waits = !state.work.is_empty() || state.suspended.is_some();
        let work_starves = work_waits && state.reads_in_a_row >= READ_BURST;
        // Serves reads before programs of host data, because cached writes were acknowledged from the buffer.
        if !state.reads.is_empty() && !work_starves {
            state.reads_in_a_row = state.reads_in_a_row.saturating_add(1);
            let id = state.reads.pop_front().expect("not empty");
            self.start(die, id);
            return Next::Started(id);
        }
        // Resumes a suspended operation before a new program starts.
        state.reads_in_a_row = 0;
        if state.suspended.is_some() {
            self.resume(die);
            return Next::Busy;
        }
        match state.work.pop_front() {
            Some(id) => {
                self.start(die, id);
                Next::Started(id)
            }
            None => Next::Nothing,
        }
    }

    /// Starts a host operation on a busy die, by overlapping or by suspension.
    #[inline]
    fn beside_current(&mut self, die: u32) -> Next {
        let state = &self.dies[die as usize];
        let read_waits = !state.reads.is_empty();
        if !read_waits && (!self.schedule.pipeline || state.work.is_empty()) {
            return Next::Busy;
        }
        let Some(current) = state.current.map(|current| &self.ops[current.key()]) else { return Next::Busy };
        if self.schedule.pipeline && current.collects() && current.second_phase && state.follower.is_none() {
            // The follower uses the idle resource: the array during a transfer, the channel during array
            // time.
            match current.kind {
                FlashOpKind::MoveRead if read_waits => return Next::Started(self.follow(die, true)),
                FlashOpKind::Program(_) if !read_waits => return Next::Started(self.follow(die, false)),
                _ => {}
            }
        }
        let is_in_array = current.is_erase() || current.is_program() && current.second_phase;
        let can_stop = is_in_array && state.suspended.is_none() && state.follower.is_none();
        // Leaves an operation alone that ends before it could be suspended. The limit on suspensions keeps
        // the operation from starving.
        let worth_it = current.until > self.safe_point(current) + self.suspend
            && u32::from(current.suspensions) < self.suspensions;
        let suspends =
            self.schedule.suspends() >= if current.is_erase() { Suspend::Erases } else { Suspend::All };
        if suspends && read_waits && can_stop && worth_it {
            return Next::Started(self.suspend(die));
        }
        Next::Busy
    }

    /// Starts the first host read (`is_read`), or the first program, of `die` while the current operation
    /// continues.
    fn follow(&mut self, die: u32, is_read: bool) -> OpId {
        let state = &mut self.dies[die as usize];
        let queue = if is_read { &mut state.reads } else { &mut state.work };
        let id = queue.pop_front().expect("it was looked at");
        state.follower = Some(id);
        self.performed.overlaps += 1;
        self.set_out(die, id);
        let until = if is_read { self.now + self.read_time(id) } else { self.reserve_channel(die, id) };
        self.ops[id.key()].until = until;
        id
    }

    /// Suspends the program or erase of `die` and starts the first host read instead.
    fn suspend(&mut self, die: u32) -> OpId {
        let state = &mut self.dies[die as usize];
        state.suspended = state.current.take();
        let stopped = state.suspended.expect("the die is at work");
        let stop = self.safe_point(&self.ops[stopped.key()]);
        let (state, stopped) = (&mut self.dies[die as usize], &mut self.ops[stopped.key()]);
        stopped.suspensions += 1;
        state.left = stopped.until - stop;
        state.booked.add(stopped, self.now);
        if !stopped.collects() {
            // Counts the time up to here now, since resuming sets `since` again.
            state.host_busy += self.now - stopped.since;
        }
        self.performed.suspensions += 1;
        let id = state.reads.pop_front().expect("it was looked at");
        self.start(die, id);
        // `start` has set a time without the cost of suspending, so the time is set again.
        self.events.set(die as usize, stop + self.suspend + self.read_time(id));
        id
    }

    /// Returns the next time at which the program or erase `op` can be suspended. An erase can be suspended at
    /// any time, and a program at its safe points, which divide its array time evenly; without safe points, at
    /// any time once its transfer has ended.
    fn safe_point(&self, op: &FlashOp) -> u64 {
        let array_time = if op.is_erase() { self.erase } else { self.word_line.program(op.page) };
        let begun = op.until.saturating_sub(array_time);
        let since = self.now.saturating_sub(begun);
        match self.suspend_points {
            points @ 1.. if op.is_program() => {
                let step = (array_time / u64::from(points)).max(1);
                begun + since.next_multiple_of(step)
            }
            _ => begun + since,
        }
    }

    fn resume(&mut self, die: u32) {
        let state = &mut self.dies[die as usize];
        let id = state.suspended.take().expect("it was looked at");
        state.current = Some(id);
        let op = &mut self.ops[id.key()];
        op.since = self.now;
        op.until = self.now + self.resume + state.left;
        self.events.set(die as usize, op.until);
    }

    /// Records that an operation leaves its queue, and the causes of its wait there.
    #[inline]
    fn set_out(&mut self, die: u32, id: OpId) {
        let host_busy = self.host_busy(die);
        let op = &mut self.ops[id.key()];
        op.waits.die = host_busy - op.host_busy;
        op.waits.gc = (self.now - op.since).saturating_sub(op.waits.die);
        op.since = self.now;
    }

    /// Returns the array time of a read.
    #[inline]
    fn read_time(&self, id: OpId) -> u64 {
        let op = &self.ops[id.key()];
        self.word_line.read(op.page, op.in_row)
    }

    /// Starts an operation on an idle die.
    #[inline]
    pub(in crate::drive) fn start(&mut self, die: u32, id: OpId) {
        self.set_out(die, id);
        self.dies[die as usize].current = Some(id);
        let end = match &self.ops[id.key()].kind {
            FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead => self.now + self.read_time(id),
            FlashOpKind::Program(_) | FlashOpKind::Parity => self.reserve_channel(die, id),
            FlashOpKind::Erase => self.now + self.erase,
        };
        let op = &mut self.ops[id.key()];
        // Without pipelining, the end of a program's transfer does not matter, so the program has one event.
        let one_event = op.is_program() && !self.schedule.pipeline;
        op.second_phase = one_event;
        op.until = if one_event { end + self.word_line.program(op.page) } else { end };
        self.events.set(die as usize, op.until);
    }

    /// Starts a collection read of the pages `in_row`, by position, of the row of `place`.
    #[inline]
    pub(in crate::drive) fn start_move_read(&mut self, place: Place, in_row: u64) -> OpId {
        let op = self.insert(FlashOpKind::MoveRead, place);
        self.ops[op.key()].in_row = in_row;
        self.start(place.die, op);
        op
    }

    /// Starts the erase of the blocks of `segment` on `die`.
    pub(in crate::drive) fn start_erase(&mut self, segment: SegmentId, die: u32) {
        let block = self.layout.blocks_of_segment(segment.0).start + self.layout.part(die) * self.row_pages;
        let op = self.insert(FlashOpKind::Erase, Place { die, block, page: 0, row: NO_ROW });
        self.ops[op.key()].in_row = u64::MAX >> (64 - self.row_pages);
        self.start(die, op);
    }

    /// Returns the time that `die` has worked for the host so far.
    #[inline]
    pub(super) fn host_busy(&self, die: u32) -> u64 {
        let &Die { host_busy, current, .. } = &self.dies[die as usize];
        let under_way = current.map(|op| &self.ops[op.key()]).filter(|op| !op.collects());
        host_busy + under_way.map_or(0, |op| self.now - op.since)
    }

    /// Continues with the operation that overlapped the previous one, if there was one.
    #[inline]
    pub(super) fn go_on_with_follower(&mut self, die: usize) {
        // Returns without a follower: the caller touches the die, which then gets new work, or
        // `quiet_if_idle` is called.
        let Some(id) = self.dies[die].current else { return };
        let op = &mut self.ops[id.key()];
        let is_read = op.is_read();
        let end = op.until.max(self.now);
        // A program's array time begins when both its transfer and the previous program have ended.
        op.until = if is_read { end } else { end + self.word_line.program(op.page) };
        op.second_phase = !is_read;
        self.events.set(die, op.until);
    }
}
