//! What to write when a frame is needed, and who waits for it. One policy per file; [`WriteBack`] is the
//! registry.
//!
//! There is one mechanism. A miss in a full pool asks the replacement policy for the victim frame. If that
//! is dirty, the first `n_w` dirty frames of the eviction order are written together. Without write
//! buffers the miss waits for the batch, evicts the victim frame and reads; with them the victim frame is
//! evicted at once, its page stays findable while its write is under way, and a spare frame takes the
//! read. A cleaner, where there is one, writes dirty frames before a miss meets them. The policies are
//! points in this space.

mod ace;
mod ace_raw;
pub mod auto;
mod background;
mod raw;
mod single;

use crate::{Cursor, FrameTable, Replacement, ReplacementPolicy};
use fulgurite_base::{FrameId, Spec, SpecError};

/// What the pool shall do for a miss in a full pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Dirty frames to write together, in eviction order.
    pub write: Vec<FrameId>,
    /// The frame to evict; `None` where every frame is in use.
    pub evict: Option<FrameId>,
    /// How many more frames may be evicted for pages to prefetch.
    pub prefetch: u32,
}

/// A replacement policy's eviction order, read lazily.
pub struct Order<'a> {
    replacement: &'a Replacement,
    frames: &'a FrameTable,
    cursor: &'a mut Cursor,
}

impl<'a> Order<'a> {
    /// The order as it is now. `cursor` is reset first.
    pub fn new(replacement: &'a Replacement, frames: &'a FrameTable, cursor: &'a mut Cursor) -> Order<'a> {
        cursor.reset();
        Order { replacement, frames, cursor }
    }
}

impl Iterator for Order<'_> {
    type Item = FrameId;

    #[inline]
    fn next(&mut self) -> Option<FrameId> {
        self.replacement.next(self.frames, self.cursor)
    }
}

/// A write-back policy: a point in the mechanism's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WriteBack {
    name: &'static str,
    /// Dirty frames that a miss writes together.
    pub n_w: u32,
    /// Frames that are evicted together where there is something to prefetch.
    pub n_e: u32,
    /// Spare frames for pages whose write is under way; with none, a miss waits for its write.
    pub buffers: u32,
    /// Frames at the head of the eviction order that the cleaner keeps clean; none without a cleaner.
    pub ahead: u32,
    /// Frames that the cleaner writes together.
    pub cleaner_n_w: u32,
}

/// The name of the policy that [`auto::choose`] makes.
pub const AUTO: &str = auto::ABOUT.0;

type Constructor = fn(&mut Spec, &mut dyn FnMut() -> Result<u32, SpecError>) -> Result<WriteBack, SpecError>;

/// Name, one line about it, constructor; `auto` needs more than the write concurrency and is apart.
const REGISTRY: [(&str, &str, Constructor); 5] =
    [single::ENTRY, background::ENTRY, ace::ENTRY, raw::ENTRY, ace_raw::ENTRY];

impl WriteBack {
    /// Every policy's name, with one line about it.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        REGISTRY.iter().map(|(name, about, _)| (*name, *about)).chain([auto::ABOUT])
    }

    /// Write the one victim frame, wait, evict it.
    pub const SINGLE: WriteBack =
        WriteBack { name: "single", n_w: 1, n_e: 1, buffers: 0, ahead: 0, cleaner_n_w: 0 };

    /// ACE with batches of `n_w`, and as many evictions where there is something to prefetch.
    pub const fn ace(n_w: u32) -> WriteBack {
        WriteBack { name: "ace", n_w, n_e: n_w, ..WriteBack::SINGLE }
    }

    /// The policy that `spec` names, but for `auto`, which [`auto::choose`] makes. `k_w` measures the
    /// drive's write concurrency, for policies that were not told theirs.
    pub fn from_spec(
        mut spec: Spec,
        mut k_w: impl FnMut() -> Result<u32, SpecError>,
    ) -> Result<WriteBack, SpecError> {
        let entry = REGISTRY.iter().find(|(name, ..)| *name == spec.name());
        let (.., make) = entry.ok_or_else(|| {
            let names: Vec<&str> = Self::list().map(|(name, _)| name).collect();
            SpecError::unknown("write-back", spec.name(), &names)
        })?;
        let policy = make(&mut spec, &mut k_w)?;
        spec.finish()?;
        Ok(policy)
    }

    /// Its name on the command line.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a miss prefetches only when it has written a batch: ACE's rule.
    fn prefetches_with_batches(&self) -> bool {
        self.n_w > 1
    }

    /// Decides, given the frames in eviction order. `plan` is cleared first.
    pub fn plan(&self, mut order: impl Iterator<Item = FrameId>, frames: &FrameTable, plan: &mut Plan) {
        plan.write.clear();
        plan.prefetch = if self.prefetches_with_batches() { 0 } else { u32::MAX };
        plan.evict = order.next();
        let Some(victim) = plan.evict.filter(|victim| frames.is_dirty(*victim)) else { return };
        plan.write.push(victim);
        if self.n_w > 1 {
            plan.prefetch = self.n_e - 1;
            plan.write.extend(order.filter(|frame| frames.is_dirty(*frame)).take(self.n_w as usize - 1));
        }
    }

    /// The cleaner's next batch: `plan.write` is left empty where all frames ahead are clean.
    pub fn plan_cleaning(&self, order: impl Iterator<Item = FrameId>, frames: &FrameTable, plan: &mut Plan) {
        plan.write.clear();
        let ahead = order.take(self.ahead as usize).filter(|frame| frames.is_dirty(*frame));
        plan.write.extend(ahead.take(self.cleaner_n_w as usize));
    }
}

impl std::fmt::Display for WriteBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        let options = [
            ("n_w", self.n_w, self.n_w > 1),
            ("n_e", self.n_e, self.n_e != self.n_w),
            ("buffers", self.buffers, self.buffers > 0),
            ("ahead", self.ahead, self.ahead > 0),
            ("n_w", self.cleaner_n_w, self.ahead > 0),
        ];
        for (at, (key, value, _)) in options.into_iter().filter(|(.., shown)| *shown).enumerate() {
            write!(f, "{}{key}={value}", if at == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

/// An option that counts something, at least one.
fn take_positive(spec: &mut Spec, key: &'static str) -> Result<Option<u32>, SpecError> {
    let value = spec.take::<u32>(key)?;
    if value == Some(0) {
        return Err(SpecError::new(format!("{key}=0 of {}; accepted: at least 1", spec.name())));
    }
    Ok(value)
}

/// The options of a batch: `n_w` and `n_e`.
fn take_batch(
    spec: &mut Spec,
    k_w: &mut dyn FnMut() -> Result<u32, SpecError>,
) -> Result<(u32, u32), SpecError> {
    let n_w = take_positive(spec, "n_w")?.map_or_else(k_w, Ok)?;
    let n_e = take_positive(spec, "n_e")?.unwrap_or(n_w);
    if n_e > n_w {
        return Err(SpecError::new(format!(
            "n_e={n_e} of {} is more than n_w={n_w}: a frame that was not written cannot be evicted; accepted: 1 to {n_w}",
            spec.name()
        )));
    }
    Ok((n_w, n_e))
}
