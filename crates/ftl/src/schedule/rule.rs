//! A schedule rule as data, its input for each decision, and the states that it may choose.

/// The input of a schedule's decision.
#[derive(Clone, Copy, Debug)]
pub struct FtlState<'a> {
    /// The number of erased segments that are not open.
    pub free: u32,
    /// The soft threshold, in segments: with fewer free segments, garbage should be collected.
    pub soft: u32,
    /// The hard threshold, in segments: this many free segments are reserved for collection.
    pub hard: u32,
    /// Whether the next host write must open a free segment.
    pub opens: bool,
    /// The number of pages in a segment.
    pub segment_pages: u32,
    /// The number of pages that the drive's planes program together.
    pub stripe_pages: u32,
    /// The progress of the collection in progress; `None` if there is none.
    pub collection: Option<&'a Progress>,
    /// Whether the drive is idle and its background collection wants more free segments.
    pub idle: bool,
    /// Whether a write has waited for longer than it may.
    pub urgent: bool,
}

#[cfg(test)]
impl FtlState<'_> {
    /// A state with five free segments, more than are wanted, and no collection.
    pub(super) const CALM: FtlState<'static> = FtlState {
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
    /// The number of valid pages when the victim was picked.
    pub valid_at_pick: u32,
    /// The number of pages that were free for the host and for copies at the pick, without the segments
    /// reserved for collection.
    pub room_at_pick: u32,
    /// The number of pages moved since the pick.
    pub moved: u32,
    /// The number of host pages written since the pick.
    pub host_pages: u32,
}

/// Whether collection runs, and which host operations are served. These are the states of Lee et al. (ISPASS
/// 2011).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleState {
    /// State 0: no collection runs.
    Idle,
    /// State 1: collection runs, reads and writes are served.
    Collecting,
    /// State 2: collection runs, reads are served, writes wait.
    Pressed,
    /// State 3: collection runs and all host operations wait for it.
    Exclusive,
}

impl ScheduleState {
    /// Returns whether collection runs.
    #[inline]
    pub fn collects(self) -> bool {
        self != ScheduleState::Idle
    }

    /// Returns whether host reads are served.
    #[inline]
    pub fn serves_reads(self) -> bool {
        self != ScheduleState::Exclusive
    }

    /// Returns whether host writes are served.
    #[inline]
    pub fn serves_writes(self) -> bool {
        self <= ScheduleState::Collecting
    }
}

/// A schedule rule as data. A user's own rule is a `static` of this type.
#[derive(Debug)]
pub struct ScheduleRule {
    /// The name of the rule on the command line.
    pub name: &'static str,
    /// A description of the rule in one line.
    pub about: &'static str,
    /// Returns the state that the drive should be in.
    pub decide: fn(&FtlState<'_>) -> ScheduleState,
    /// Whether collection without virtual time moves pages one by one while the host writes, not all at once.
    pub keeps_step: bool,
    /// Whether the rule uses the hard threshold; otherwise only the soft threshold matters.
    pub has_hard_threshold: bool,
    /// Whether the additions `+merge` and `+pipeline` of Lee et al. are allowed.
    pub steps_aside: bool,
    /// Whether host reads suspend programs and erases.
    pub suspends: bool,
}

impl PartialEq for ScheduleRule {
    fn eq(&self, other: &ScheduleRule) -> bool {
        self.name == other.name
    }
}

impl Eq for ScheduleRule {}

/// Returns the state in which writes must wait. Reads wait too if a write has waited too long.
#[inline]
pub(super) fn pressed(state: &FtlState<'_>) -> ScheduleState {
    if state.urgent { ScheduleState::Exclusive } else { ScheduleState::Pressed }
}

/// Returns whether the next host write would use a free segment reserved for collection, or a page of a
/// segment that collection had to open.
#[inline]
pub(super) fn is_exhausted(state: &FtlState<'_>) -> bool {
    state.free < state.hard || state.opens && state.free == state.hard
}
