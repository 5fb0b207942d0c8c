//! Which stream (append point) a page is written to. One policy per file; [`Placement`] is the
//! registry. A stream has one open segment of its own.

mod none;

use fulgurite_base::SpecError;
use fulgurite_device::StreamId;

/// What is known about a page that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    /// The logical page.
    pub lpn: u32,
    /// Whether garbage collection writes it, rather than the host.
    pub copied: bool,
    /// The host's hint; the stream of the victim's page when `copied`.
    pub hint: StreamId,
}

/// The placement policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// One stream for everything.
    None,
}

impl Placement {
    /// Every policy, with one line about it.
    pub const ALL: [(Placement, &'static str); 1] =
        [(Placement::None, "one stream for host writes and copies alike")];

    /// The policy's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Placement::None => "none",
        }
    }

    /// The policy called `name`.
    pub fn from_name(name: &str) -> Result<Placement, SpecError> {
        let names = Self::ALL.map(|(policy, _)| policy.name());
        let at = names.iter().position(|known| *known == name);
        at.map(|at| Self::ALL[at].0).ok_or_else(|| SpecError::unknown("placement", name, &names))
    }

    /// How many streams the policy writes to.
    pub fn streams(self) -> u16 {
        match self {
            Placement::None => none::STREAMS,
        }
    }

    /// The stream for this page.
    #[inline]
    pub fn stream(self, context: &WriteContext) -> StreamId {
        match self {
            Placement::None => none::stream(context),
        }
    }
}
