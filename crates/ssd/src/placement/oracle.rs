//! The oracle: by the true time until a page is written again or trimmed.
//!
//! ORA of MiDAS (FAST 2024). Its six classes are bounded by 250 K, 5 M, 14 M, 28 M and 62 M page writes on 128 GiB
//! (table 1): here the same shares of the logical pages (`classes=seed`). `classes=log2` doubles the bound from class
//! to class, twelve of them, the first a thousandth of the logical pages. A copy is placed by the time
//! that is left. It needs a first pass over all writes, so it works where runs can be repeated: in `gc`. O(1),
//! 4 bytes a page and 4 a write.

use super::{PlacementPolicy, Shape, WriteContext};
use crate::ftl::SegmentTable;
use fulgurite_base::{Spec, SpecError, prefetch};
use fulgurite_device::StreamId;
use std::fmt;

/// How the time that is left is cut into classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// As in table 1 of the paper.
    Seed,
    /// Each twice as long as the one before.
    Log2,
}

/// The options of the oracle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The classes' bounds.
    pub classes: Classes,
}

impl Options {
    pub(super) fn from_spec(spec: &mut Spec) -> Result<Options, SpecError> {
        let classes = spec.take_with("classes", |classes| match classes {
            "seed" => Ok(Classes::Seed),
            "log2" => Ok(Classes::Log2),
            _ => Err(SpecError::unknown("classes", classes, &["seed", "log2"])),
        })?;
        Ok(Options { classes: classes.unwrap_or(Classes::Log2) })
    }

    /// In thousandths of the logical pages.
    fn bounds(&self) -> &'static [u64] {
        if self.classes == Classes::Seed { &SEED } else { &LOG2 }
    }

    pub(super) fn streams(&self) -> u16 {
        self.bounds().len() as u16 + 1
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "classes={}", if self.classes == Classes::Seed { "seed" } else { "log2" })
    }
}

/// Bounds in thousandths of the logical pages: 250 K, 5 M, 14 M, 28 M and 62 M of 33.5 M.
const SEED: [u64; 5] = [7, 149, 417, 834, 1848];
const LOG2: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// What is to come.
#[derive(Clone, Debug)]
pub struct Oracle {
    /// For each write of the host, when its page will be written again.
    next: Vec<u32>,
    /// When each page's copy becomes garbage.
    dies_at: Vec<u32>,
    /// The classes' bounds, in page writes.
    bounds: Vec<u64>,
}

impl Oracle {
    pub(super) fn new(options: Options, shape: &Shape) -> Oracle {
        let pages = u64::from(shape.logical_pages);
        Oracle {
            next: Vec::new(),
            dies_at: vec![u32::MAX; shape.logical_pages as usize],
            bounds: options.bounds().iter().map(|part| pages * part / 1000).collect(),
        }
    }

    pub(super) fn foresee(&mut self, next: Vec<u32>) {
        self.next = next;
    }

    #[inline]
    fn death(&self, context: &WriteContext, now: u64) -> u32 {
        if context.copied { self.dies_at[context.lpn as usize] } else { self.next[now as usize] }
    }
}

impl PlacementPolicy for Oracle {
    #[inline]
    fn stream(&self, context: &WriteContext, segments: &SegmentTable) -> StreamId {
        let left = u64::from(self.death(context, segments.now())).saturating_sub(segments.now());
        StreamId(self.bounds.iter().take_while(|bound| left >= **bound).count() as u16)
    }

    #[inline]
    fn written(&mut self, context: &WriteContext, _: StreamId, segments: &SegmentTable) {
        if !context.copied {
            self.dies_at[context.lpn as usize] = self.next[segments.now() as usize];
        }
    }

    #[inline]
    fn prefetch(&self, lpn: u32) {
        prefetch(&self.dies_at, lpn as usize);
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.next[..]) + size_of_val(&self.dies_at[..])
    }
}
