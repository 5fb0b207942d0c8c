//! When garbage is collected, and what may overtake it on a die. One policy per file;
//! [`Schedule`] is the registry. A policy sees [`FtlState`] and returns a [`Budget`]; the FTL
//! performs it.

mod non_preemptive;
mod paced;

use fulgurite_base::SpecError;

/// What a schedule decides from, before every host page write.
#[derive(Clone, Copy, Debug)]
pub struct FtlState {
    /// Erased segments that nobody writes to.
    pub free: u32,
    /// The number of free segments that collection should keep up.
    pub reserve: u32,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// The collection under way, if any.
    pub collection: Option<Progress>,
}

/// How far the collection of a victim segment has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Valid pages when it was picked.
    pub valid_at_pick: u32,
    /// Pages moved since.
    pub moved: u32,
    /// Host pages written since.
    pub host_pages: u32,
}

/// How much collection to do before the host page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Move at most this many pages, picking a victim segment if none is under way.
    Moves(u32),
    /// Collect whole segments until the reserve is full.
    Refill,
}

/// The schedules by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// A victim segment is collected in one go and nothing overtakes it.
    NonPreemptive,
    /// Collection moves pages in step with host writes, and host reads go first.
    Paced,
}

impl Schedule {
    /// Every schedule, with one line about it.
    pub const ALL: [(Schedule, &'static str); 2] = [
        (Schedule::NonPreemptive, "a victim segment is collected in one go; nothing overtakes it"),
        (Schedule::Paced, "pages are moved in step with host writes; host reads go first"),
    ];

    /// The schedule's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Schedule::NonPreemptive => "non-preemptive",
            Schedule::Paced => "paced",
        }
    }

    /// The schedule called `name`.
    pub fn from_name(name: &str) -> Result<Schedule, SpecError> {
        let names = Self::ALL.map(|(schedule, _)| schedule.name());
        let at = names.iter().position(|known| *known == name);
        at.map(|at| Self::ALL[at].0).ok_or_else(|| SpecError::unknown("schedule", name, &names))
    }

    /// What to collect before a host page is written.
    #[inline]
    pub fn decide(self, state: &FtlState) -> Budget {
        match self {
            Schedule::NonPreemptive => non_preemptive::decide(state),
            Schedule::Paced => paced::decide(state),
        }
    }

    /// Whether a host read goes before queued operations of garbage collection. It always goes
    /// before queued programs of host data: those were acknowledged from the buffer.
    pub fn reads_overtake_collection(self) -> bool {
        match self {
            Schedule::NonPreemptive => false,
            Schedule::Paced => true,
        }
    }
}
