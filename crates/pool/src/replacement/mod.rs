//! Which frame leaves the pool. One policy per file; [`Replacement`] is the registry.

mod arc;
mod ccf_lru;
mod cflru;
mod cflru_c;
mod cflru_e;
mod clean_first;
mod clock;
mod dl_cflru_e;
mod fifo;
mod lfu;
mod lru;
mod lru_wsr;
mod nru;
mod s3_fifo;
mod second_chance;
mod sieve;
mod two_q;
mod w_tinylfu;

use crate::FrameTable;
use crate::lists::{List, Lists};
use fulgurite_base::units::Share;
use fulgurite_base::{FrameId, PageId, Spec, SpecError};
use std::collections::VecDeque;

/// A replacement policy: a virtual eviction order over the frames that hold pages.
///
/// The order law: evicting until nothing is left gives the frames in exactly the order in which
/// [`ReplacementPolicy::next`] gave them beforehand. It is a property test over every policy.
pub trait ReplacementPolicy {
    /// `page` was asked for and is not in the pool: room is made for it, and then it is inserted.
    /// Policies that remember pages which have left look here; what they return comes with the arrival.
    fn miss(&mut self, _page: PageId) -> Recall {
        Recall::default()
    }

    /// `frame` now holds `page`.
    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival);

    /// The page in `frame` was asked for again.
    fn access(&mut self, frame: FrameId, write: bool);

    /// The page in `frame` was written back and stays.
    fn cleaned(&mut self, _frame: FrameId) {}

    /// The dirty frames of `batch`, in eviction order, are about to be written ahead of their turn.
    fn written_ahead(&mut self, _frames: &FrameTable, _batch: &[FrameId]) {}

    /// `frame` no longer holds a page, for a reason that is not this policy's.
    fn remove(&mut self, frame: FrameId);

    /// The next unpinned frame in eviction order, from `cursor` on; changes only the cursor.
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId>;

    /// Takes the first frame of the order out of it.
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        self.remove(frame);
        Some(frame)
    }

    /// Begins to fetch what [`ReplacementPolicy::access`] will touch.
    #[inline]
    fn prefetch(&self, _frame: u32) {}

    /// A frame that may well leave next: a hint of what to fetch, and no promise.
    #[inline]
    fn likely_victim(&self) -> Option<u32> {
        None
    }
}

/// What a policy remembers of a page that is not in the pool; its own code, zero for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recall(pub u8);

/// How a page comes into the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// It was asked for to be changed.
    pub write: bool,
    /// Nobody has asked for it yet: it enters where it would leave next.
    pub prefetched: bool,
    /// What [`ReplacementPolicy::miss`] returned.
    pub recall: Recall,
}

/// How far a reader of an eviction order has come. Policies use the fields as they like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Zero before the first frame.
    pub step: u64,
    /// Places in the policy's structures.
    pub places: [Option<u32>; 3],
    /// Numbers.
    pub counts: [u32; 3],
    /// Frames that the order comes back to, each with a number.
    pub queue: VecDeque<(u32, u32)>,
}

impl Cursor {
    /// Back to before the first frame.
    pub fn reset(&mut self) {
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        *self = Cursor { queue, ..Cursor::default() };
    }
}

macro_rules! policies {
    ($($name:literal $variant:ident($policy:ty) $about:literal)*) => {
        /// The replacement policies by name, and a user's own.
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Replacement {
            $($variant($policy),)*
            /// Any other policy.
            Custom(Box<dyn ReplacementPolicy>),
        }

        type Constructor = fn(&mut Spec, u32) -> Result<Replacement, SpecError>;

        /// Name, one line about it, constructor for a number of frames.
        const REGISTRY: &[(&str, &str, Constructor)] = &[
            $(($name, $about, |spec, frames| Ok(Replacement::$variant(<$policy>::from_spec(spec, frames)?))),)*
        ];

        /// Evaluates `$call` with the policy itself, so that a loop in it is compiled for each.
        macro_rules! dispatch {
            ($self:expr, $p:ident => $call:expr) => {
                dispatch!($self, $p => $call, custom $p => $call)
            };
            ($self:expr, $p:ident => $call:expr, custom $c:ident => $custom:expr) => {
                match $self {
                    $(Replacement::$variant($p) => $call,)*
                    Replacement::Custom($c) => $custom,
                }
            };
        }
    };
}

policies! {
    "fifo" Fifo(fifo::Fifo) "the page that came in first"
    "second-chance" SecondChance(second_chance::SecondChance) "fifo, but a page used since goes to the back once"
    "clock" Clock(clock::Clock) "clock sweep with usage counts, as in PostgreSQL; max=5, initial=1"
    "nru" Nru(nru::Nru) "a random page of the lowest class of referenced and dirty; clear=<frames> requests"
    "lfu" Lfu(lfu::Lfu) "the page used least often, of those the one used least recently"
    "lru" Lru(lru::Lru) "the page that was used least recently"
    "2q" TwoQ(two_q::TwoQ) "a fifo of new pages, an lru of those asked for again after it; in=25%, out=50%"
    "arc" Arc(arc::Arc) "two lru lists, seen once and more often, whose sizes adapt to what is missed"
    "cflru" Cflru(cflru::Cflru) "the least recent clean page of the window, else the least recent; window=33.3333%"
    "cflru-c" CflruC(cflru_c::CflruC) "cflru; without a clean page, the dirty one of the window used least often"
    "cflru-e" CflruE(cflru_e::CflruE) "cflru; without a clean page, the dirty one whose erase block was erased least"
    "dl-cflru-e" DlCflruE(dl_cflru_e::DlCflruE) "any clean page first; else the dirty one of the window erased least"
    "lru-wsr" LruWsr(lru_wsr::LruWsr) "lru; a dirty page that is not cold gets a second chance; passed=stay|move"
    "ccf-lru" CcfLru(ccf_lru::CcfLru) "cold clean pages first, then cold dirty ones"
    "s3-fifo" S3Fifo(s3_fifo::S3Fifo) "a small fifo that filters, a main fifo with reinsertion; small=10%, ghosts=90%, promote=2"
    "sieve" Sieve(sieve::Sieve) "a fifo with a hand that spares pages used since it came by, without moving them"
    "w-tinylfu" WTinyLfu(w_tinylfu::WTinyLfu) "a window that must beat the main part in a frequency sketch; window=1%, protected=80%"
}

pub(crate) use dispatch;

impl Replacement {
    /// Every policy's name, with one line about it.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        REGISTRY.iter().map(|(name, about, _)| (*name, *about))
    }

    /// The policy that `spec` names, for a pool of `frames`.
    pub fn from_spec(mut spec: Spec, frames: u32) -> Result<Replacement, SpecError> {
        let names: Vec<&str> = REGISTRY.iter().map(|(name, ..)| *name).collect();
        let constructor = REGISTRY.iter().find(|(name, ..)| *name == spec.name());
        let (.., make) = constructor.ok_or_else(|| SpecError::unknown("replacement", spec.name(), &names))?;
        let policy = make(&mut spec, frames)?;
        spec.finish()?;
        Ok(policy)
    }

    /// Whether the policy asks how often erase blocks were erased, which not every drive can tell.
    pub fn needs_erase_counts(&self) -> bool {
        matches!(self, Replacement::CflruE(_) | Replacement::DlCflruE(_))
    }
}

impl ReplacementPolicy for Replacement {
    #[inline]
    fn miss(&mut self, page: PageId) -> Recall {
        dispatch!(self, policy => policy.miss(page))
    }

    #[inline]
    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival) {
        dispatch!(self, policy => policy.insert(frame, page, arrival));
    }

    #[inline]
    fn access(&mut self, frame: FrameId, write: bool) {
        dispatch!(self, policy => policy.access(frame, write));
    }

    #[inline]
    fn cleaned(&mut self, frame: FrameId) {
        dispatch!(self, policy => policy.cleaned(frame));
    }

    fn written_ahead(&mut self, frames: &FrameTable, batch: &[FrameId]) {
        dispatch!(self, policy => policy.written_ahead(frames, batch));
    }

    #[inline]
    fn remove(&mut self, frame: FrameId) {
        dispatch!(self, policy => policy.remove(frame));
    }

    #[inline]
    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        dispatch!(self, policy => policy.next(frames, cursor))
    }

    #[inline]
    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        dispatch!(self, policy => policy.evict(frames))
    }
}

/// A share of the frames, as an option.
fn take_share(spec: &mut Spec, key: &'static str, default_ppm: u32, frames: u32) -> Result<u32, SpecError> {
    let ppm = spec.take::<Share>(key)?.map_or(default_ppm, Share::ppm);
    Ok((u64::from(frames) * u64::from(ppm) / u64::from(Share::ONE.ppm())) as u32)
}

/// The next unpinned frame of a list whose pages get a second chance: first those that `leaves` lets go at
/// once, then the others. Uses `step` and the first of `places`.
#[inline]
fn next_after_second_chance(
    lists: &Lists,
    list: List,
    frames: &FrameTable,
    cursor: &mut Cursor,
    leaves: impl Fn(FrameId) -> bool,
) -> Option<FrameId> {
    while cursor.step < 2 {
        while let Some(frame) = next_unpinned(lists, list, frames, &mut cursor.places[0]) {
            if leaves(frame) == (cursor.step == 0) {
                return Some(frame);
            }
        }
        cursor.step += 1;
        cursor.places[0] = None;
    }
    None
}

/// Takes the oldest unpinned frame that `leaves` lets go out of a list. Those before it go to the newest
/// end; `leaves` sees to it that they leave when they come up again.
#[inline]
fn evict_or_requeue(
    lists: &mut Lists,
    list: List,
    frames: &FrameTable,
    mut leaves: impl FnMut(FrameId) -> bool,
) -> Option<FrameId> {
    let mut at = lists.oldest(list);
    while let Some(frame) = at {
        at = lists.newer(frame);
        if frames.is_pinned(FrameId(frame)) {
            continue;
        }
        if leaves(FrameId(frame)) {
            lists.unlink(frame);
            return Some(FrameId(frame));
        }
        lists.move_newest(list, frame);
        // With nothing behind it, it comes up again at once.
        at = at.or(Some(frame));
    }
    None
}

/// The next unpinned frame of a list after `place`.
#[inline]
fn next_unpinned(lists: &Lists, list: List, frames: &FrameTable, place: &mut Option<u32>) -> Option<FrameId> {
    while let Some(frame) = lists.walk(list, place) {
        if !frames.is_pinned(FrameId(frame)) {
            return Some(FrameId(frame));
        }
    }
    None
}

#[cfg(test)]
mod tests;
