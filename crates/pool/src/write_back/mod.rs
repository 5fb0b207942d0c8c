//! What to write when a frame is needed. One policy per file; [`WriteBack`] is the registry.

mod ace;
mod single;

use crate::{Cursor, FrameTable, Replacement, ReplacementPolicy};
use fulgurite_base::{FrameId, Spec, SpecError};

/// What the pool shall do for a miss in a full pool. The pool writes first, all at once, and
/// evicts when that has succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Dirty frames to write together. They stay in the pool, clean.
    pub write: Vec<FrameId>,
    /// The frame to evict; `None` where every frame is in use.
    pub evict: Option<FrameId>,
}

/// A replacement policy's eviction order, read lazily.
pub struct Order<'a> {
    replacement: &'a Replacement,
    frames: &'a FrameTable,
    cursor: Cursor,
}

impl<'a> Order<'a> {
    /// The order as it is now.
    pub fn new(replacement: &'a Replacement, frames: &'a FrameTable) -> Order<'a> {
        Order { replacement, frames, cursor: Cursor::default() }
    }
}

impl Iterator for Order<'_> {
    type Item = FrameId;

    #[inline]
    fn next(&mut self) -> Option<FrameId> {
        self.replacement.next(self.frames, &mut self.cursor)
    }
}

/// The write-back policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteBack {
    /// Write the one victim frame, wait, evict it.
    Single,
    /// Write `n_w` dirty frames together, evict one.
    Ace {
        /// Frames in a batch.
        n_w: u32,
    },
}

impl WriteBack {
    /// Every policy's name, with one line about it.
    pub const LIST: [(&'static str, &'static str); 2] = [
        ("single", "write the one dirty victim frame, wait, evict it"),
        ("ace", "write n_w dirty frames together in eviction order, evict one; n_w=<the drive's k_w>"),
    ];

    /// The policy that `spec` names. `k_w` measures the drive's write concurrency, for policies
    /// that were not told theirs.
    pub fn from_spec(
        mut spec: Spec,
        k_w: impl FnOnce() -> Result<u32, SpecError>,
    ) -> Result<WriteBack, SpecError> {
        let policy = match spec.name() {
            "single" => WriteBack::Single,
            "ace" => {
                let n_w = spec.take::<u32>("n_w")?;
                if n_w == Some(0) {
                    return Err(SpecError::new("n_w=0 of ace would never write; accepted: at least 1"));
                }
                WriteBack::Ace { n_w: n_w.map_or_else(k_w, Ok)? }
            }
            name => return Err(SpecError::unknown("write-back", name, &Self::LIST.map(|(name, _)| name))),
        };
        spec.finish()?;
        Ok(policy)
    }

    /// Decides, given the frames in eviction order. `plan` is cleared first.
    pub fn plan(self, order: Order, frames: &FrameTable, plan: &mut Plan) {
        plan.write.clear();
        match self {
            WriteBack::Single => single::plan(order, frames, plan),
            WriteBack::Ace { n_w } => ace::plan(n_w, order, frames, plan),
        }
    }
}

impl std::fmt::Display for WriteBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            WriteBack::Single => write!(f, "single"),
            WriteBack::Ace { n_w } => write!(f, "ace:n_w={n_w}"),
        }
    }
}
