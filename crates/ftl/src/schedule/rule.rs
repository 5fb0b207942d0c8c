//! A rule as data, its input for each decision, and the states that it may choose.

/// The input of a schedule's decision.
#[derive(Clone, Copy, Debug)]
pub struct FtlState {
    /// Erased segments that are not open.
    pub free: u32,
    /// The soft threshold: with fewer free segments, garbage should be collected.
    pub soft: u32,
    /// The hard threshold: this many free segments are reserved for collection.
    pub hard: u32,
    /// Whether the next host write must open a free segment.
    pub opens: bool,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Pages that the drive's planes program together.
    pub stripe_pages: u32,
    /// The collection in progress, if any.
    pub collection: Option<Progress>,
    /// The drive is idle, and its background collection wants more free segments.
    pub idle: bool,
    /// A write has waited for longer than it may.
    pub urgent: bool,
}

#[cfg(test)]
impl FtlState {
    /// Five free segments, more than are wanted, and no collection.
    pub(super) const CALM: FtlState = FtlState {
        free: 5,
        soft: 3,
        hard: 1,
        opens: false,
        segment_pages: 64,
        stripe_pages: 1,
        collection: None,
        idle: false,
        urgent: false,
    };
}

/// The progress of the collection of a victim.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Valid pages when it was picked.
    pub valid_at_pick: u32,
    /// Pages that were free for the host and for copies then, without the segments reserved for collection.
    pub room_at_pick: u32,
    /// Pages moved since.
    pub moved: u32,
    /// Host pages written since.
    pub host_pages: u32,
}

/// Whether collection runs, and which host operations are served: the rows of the paper's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleState {
    /// 0: no collection.
    Idle,
    /// 1: collection runs, reads and writes are served.
    Collecting,
    /// 2: collection runs, reads are served, writes wait.
    Pressed,
    /// 3: collection runs and everything waits for it.
    Exclusive,
}

impl ScheduleState {
    /// Whether collection runs.
    #[inline]
    pub fn collects(self) -> bool {
        self != ScheduleState::Idle
    }

    /// Whether host reads are served.
    #[inline]
    pub fn serves_reads(self) -> bool {
        self != ScheduleState::Exclusive
    }

    /// Whether host writes are served.
    #[inline]
    pub fn serves_writes(self) -> bool {
        self <= ScheduleState::Collecting
    }
}

/// A rule as data. A user's own rule is a `static` of this type.
#[derive(Debug)]
pub struct ScheduleRule {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The state that the drive should be in.
    pub decide: fn(&FtlState) -> ScheduleState,
    /// Without time, collection moves pages one by one while the host writes, not all at once.
    pub keeps_step: bool,
    /// It treats the hard threshold separately.
    pub has_hard_threshold: bool,
    /// The paper's additions `+merge` and `+pipeline` are allowed.
    pub steps_aside: bool,
    /// Host reads suspend programs and erases.
    pub suspends: bool,
}

impl PartialEq for ScheduleRule {
    fn eq(&self, other: &ScheduleRule) -> bool {
        self.name == other.name
    }
}

impl Eq for ScheduleRule {}

/// The state in which writes must wait. Reads wait too if a write has waited too long.
#[inline]
pub(super) fn pressed(state: &FtlState) -> ScheduleState {
    if state.urgent { ScheduleState::Exclusive } else { ScheduleState::Pressed }
}

/// Whether the next host write would use a free segment reserved for collection, or a page of a segment that
/// collection had to open.
#[inline]
pub(super) fn is_exhausted(state: &FtlState) -> bool {
    state.free < state.hard || state.opens && state.free == state.hard
}
