//! Which stream (append point) a page is written to. One policy per file; [`Placement`] is the
//! registry. A stream has one open segment of its own.

mod hints;
mod none;

use fulgurite_base::{Spec, SpecError};
use fulgurite_device::StreamId;

/// What is known about a page that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext {
    /// The logical page.
    pub lpn: u32,
    /// Whether garbage collection writes it, rather than the host.
    pub copied: bool,
    /// The host's hint; the stream of the victim segment when `copied`.
    pub hint: StreamId,
}

/// The placement policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// One stream for everything.
    None,
    /// A stream for every hint of the host.
    Hints {
        /// How many streams are kept apart.
        streams: u16,
    },
}

/// Streams of `hints` where nothing is said.
const STREAMS: u16 = 8;

/// Each stream has an open segment of its own, so there are not too many.
const STREAMS_AT_MOST: u16 = 256;

impl Placement {
    /// Every policy, with one line about it.
    pub const ALL: [(Placement, &'static str); 2] = [
        (Placement::None, "one stream for host writes and copies alike"),
        (Placement::Hints { streams: STREAMS }, "a stream for every hint that writes carry; streams=8"),
    ];

    /// The policy's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Placement::None => "none",
            Placement::Hints { .. } => "hints",
        }
    }

    /// The policy that `spec` names.
    pub fn from_spec(mut spec: Spec) -> Result<Placement, SpecError> {
        let placement = match spec.name() {
            "none" => Placement::None,
            "hints" => {
                let streams = spec.take::<u32>("streams")?.unwrap_or(u32::from(STREAMS));
                Placement::with_streams(streams)?
            }
            name => {
                return Err(SpecError::unknown(
                    "placement",
                    name,
                    &Self::ALL.map(|(policy, _)| policy.name()),
                ));
            }
        };
        spec.finish()?;
        Ok(placement)
    }

    /// Placement on a drive that keeps `streams` apart.
    pub fn with_streams(streams: u32) -> Result<Placement, SpecError> {
        match u16::try_from(streams) {
            Ok(1) => Ok(Placement::None),
            Ok(streams @ 2..=STREAMS_AT_MOST) => Ok(Placement::Hints { streams }),
            _ => Err(SpecError::new(format!(
                "streams={streams} is out of range; accepted: 1 to {STREAMS_AT_MOST}"
            ))),
        }
    }

    /// How many streams the policy writes to.
    pub fn streams(self) -> u16 {
        match self {
            Placement::None => none::STREAMS,
            Placement::Hints { streams } => streams,
        }
    }

    /// The stream for this page.
    #[inline]
    pub fn stream(self, context: &WriteContext) -> StreamId {
        match self {
            Placement::None => none::stream(context),
            Placement::Hints { streams } => hints::stream(context, streams),
        }
    }
}
