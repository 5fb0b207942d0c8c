//! A record of a drive's activity over virtual time, for display: flash operations of dies, transfers on
//! channels, host requests, and states of the schedule.

use super::flash::{FlashOp, FlashOpKind};
use fulgurite_base::Nanos;
use fulgurite_ftl::schedule::ScheduleState;

/// The row of the timeline in which a span is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Track {
    /// The host's requests, whose spans may overlap.
    Host,
    /// The states of the schedule.
    Schedule,
    /// The transfers on the channel with this number.
    Channel(u32),
    /// The flash operations of the die with this number.
    Die(u32),
}

/// The kind of activity of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are field terms
pub enum SpanKind {
    HostRead,
    HostWrite,
    /// A trim, a share or a flush of the host.
    HostOther,
    /// A flash read for the host.
    Read,
    /// A program that contains host pages.
    Program,
    /// A flash read of collection.
    MoveRead,
    /// A program of copies alone.
    MoveProgram,
    Erase,
    Transfer,
    /// The time in a state of the schedule.
    State(ScheduleState),
}

/// An activity with its start and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The row of the timeline.
    pub track: Track,
    /// The kind of activity.
    pub kind: SpanKind,
    /// The virtual time at which the activity started.
    pub start: Nanos,
    /// The virtual time at which the activity ended.
    pub end: Nanos,
    /// The first logical page of a request, or the erase block of a flash operation or a transfer; 0 for a
    /// state.
    pub place: u32,
    /// The number of pages; 0 for a state.
    pub pages: u32,
}

/// A record of spans in the order of their ends.
#[derive(Clone, Debug)]
pub struct Timeline {
    spans: Vec<Span>,
    spans_at_most: usize,
    left_out: u64,
    state: ScheduleState,
    since: Nanos,
    transfer: u64,
    channels: u32,
}

impl Timeline {
    pub(super) fn new(spans_at_most: usize, transfer: Nanos, channels: u32, now: Nanos) -> Timeline {
        Timeline {
            spans: Vec::new(),
            spans_at_most,
            left_out: 0,
            state: ScheduleState::Idle,
            since: now,
            transfer: transfer.0,
            channels,
        }
    }

    /// Returns the recorded spans.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Returns the number of spans that were left out because the record was full.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    fn push(&mut self, span: Span) {
        if self.spans.len() < self.spans_at_most {
            self.spans.push(span);
        } else {
            self.left_out += 1;
        }
    }

    /// Records a flash operation that ends at the time `now`, and its transfer.
    pub(super) fn flash_operation(&mut self, op: &FlashOp, now: u64) {
        let kind = match op.kind {
            FlashOpKind::HostRead { .. } => SpanKind::Read,
            FlashOpKind::MoveRead => SpanKind::MoveRead,
            FlashOpKind::Program(_) if op.collects() => SpanKind::MoveProgram,
            FlashOpKind::Program(_) | FlashOpKind::Parity => SpanKind::Program,
            FlashOpKind::Erase => SpanKind::Erase,
        };
        let (place, pages) = (op.block, op.pages());
        let (start, end) = (Nanos(op.since), Nanos(now));
        self.push(Span { track: Track::Die(op.die), kind, start, end, place, pages });
        let time = self.transfer * u64::from(pages);
        let start = match op.kind {
            // A read ends with its transfer. A program begins with its transfer, once the channel is free.
            FlashOpKind::HostRead { .. } | FlashOpKind::MoveRead => now - time,
            FlashOpKind::Program(_) | FlashOpKind::Parity => op.since + op.waits.channel,
            FlashOpKind::Erase => return,
        };
        let track = Track::Channel(op.die % self.channels);
        let (start, end) = (Nanos(start), Nanos(start + time));
        self.push(Span { track, kind: SpanKind::Transfer, start, end, place, pages });
    }

    pub(super) fn request(&mut self, kind: SpanKind, lpn: u32, pages: u32, start: Nanos, end: Nanos) {
        self.push(Span { track: Track::Host, kind, start, end, place: lpn, pages });
    }

    /// Records that the schedule enters `state`.
    pub(super) fn enter(&mut self, state: ScheduleState, now: Nanos) {
        let kind = SpanKind::State(std::mem::replace(&mut self.state, state));
        let start = std::mem::replace(&mut self.since, now);
        self.push(Span { track: Track::Schedule, kind, start, end: now, place: 0, pages: 0 });
    }
}
