//! Decides which frame leaves the pool. Each policy has a file. [`ReplacementConfig`] describes a policy and lists all
//! of them, and [`Replacement`] is a policy at work.

mod arc;
mod ccf_lru;
mod cflru;
mod cflru_c;
mod cflru_e;
pub mod clean_first;
pub mod clock;
mod dl_cflru_e;
mod fifo;
mod lfu;
mod lru;
pub mod lru_wsr;
pub mod nru;
pub mod s3_fifo;
mod second_chance;
mod sieve;
pub mod two_q;
pub mod w_tinylfu;

use crate::FrameTable;
use crate::lists::{List, Lists};
use clean_first::CleanFirstConfig;
use clock::ClockConfig;
use fulgurite_base::{FrameId, NoOptions, PageId, Portion, SpecError, config_enum};
use lru_wsr::LruWsrConfig;
use nru::NruConfig;
use s3_fifo::S3FifoConfig;
use std::collections::VecDeque;
use std::fmt::Debug;
use two_q::TwoQConfig;
use w_tinylfu::WTinyLfuConfig;

/// A replacement policy: a virtual eviction order over the frames that hold pages.
///
/// The order law: evicting until nothing is left gives the frames in exactly the order in which
/// [`ReplacementPolicy::next`] gave them beforehand. It is a property test over every policy.
/// A pool may move between threads, so a policy must be able to.
pub trait ReplacementPolicy: Send {
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

    /// Whether the policy asks how often erase blocks were erased, which not every drive can tell.
    fn needs_erase_counts(&self) -> bool {
        false
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
    /// It was not asked for yet, so it enters where it would leave next.
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
        // The queue keeps its memory, because a cursor is reset for every miss.
        let mut queue = std::mem::take(&mut self.queue);
        queue.clear();
        *self = Cursor { queue, ..Cursor::default() };
    }
}

/// A user's own replacement policy, as a part of a description: it names the policy and makes it.
pub trait CustomReplacement: Debug + Send + Sync {
    /// The name.
    fn name(&self) -> &str;

    /// The canonical text: the name and the options that matter.
    fn text(&self) -> String {
        self.name().to_owned()
    }

    /// The policy for a pool of `frames`.
    fn start(&self, frames: u32) -> Result<Box<dyn ReplacementPolicy>, SpecError>;
}

macro_rules! policies {
    ($($name:literal $variant:ident($policy:ty, $config:ty) $about:literal)*) => {
        config_enum! {
            /// The replacement policies by name, each with its options.
            pub enum ReplacementConfig: "replacement", custom CustomReplacement;
            $($name $variant($config) $about)*
        }

        impl ReplacementConfig {
            /// The policy for a pool of `frames`.
            ///
            /// Fails where the options do not go together or do not suit this number of frames.
            pub fn start(&self, frames: u32) -> Result<Replacement, SpecError> {
                let started = match self {
                    $(ReplacementConfig::$variant(config) => {
                        <$policy>::new(config, frames).map(Replacement::$variant)
                    })*
                    ReplacementConfig::Custom(custom) => custom.start(frames).map(Replacement::Custom),
                };
                started.map_err(|error| SpecError::new(format!("{}: {error}", self.name())))
            }
        }

        /// A replacement policy at work.
        #[allow(missing_docs)] // each variant's file documents it
        pub enum Replacement {
            $($variant($policy),)*
            /// Any other policy.
            Custom(Box<dyn ReplacementPolicy>),
        }

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

// A new policy is a file and a line here.
policies! {
    "fifo" Fifo(fifo::Fifo, NoOptions) "the page that came in first"
    "second-chance" SecondChance(second_chance::SecondChance, NoOptions) "fifo, but a page used since goes to the back once"
    "clock" Clock(clock::Clock, ClockConfig) "clock sweep with usage counts, as in PostgreSQL"
    "nru" Nru(nru::Nru, NruConfig) "a random page of the lowest class of referenced and dirty"
    "lfu" Lfu(lfu::Lfu, NoOptions) "the page used least often; of several, the one used least recently"
    "lru" Lru(lru::Lru, NoOptions) "the page that was used least recently"
    "2q" TwoQ(two_q::TwoQ, TwoQConfig) "a fifo of new pages, an lru of those asked for again after it"
    "arc" Arc(arc::Arc, NoOptions) "two lru lists, seen once and more often, whose sizes adapt to what is missed"
    "cflru" Cflru(cflru::Cflru, CleanFirstConfig) "the least recent clean page of the window, else the least recent"
    "cflru-c" CflruC(cflru_c::CflruC, CleanFirstConfig) "cflru; without a clean page, the dirty one of the window used least often"
    "cflru-e" CflruE(cflru_e::CflruE, CleanFirstConfig) "cflru; without a clean page, the dirty one whose erase block was erased least"
    "dl-cflru-e" DlCflruE(dl_cflru_e::DlCflruE, CleanFirstConfig) "any clean page first; else the dirty one of the window erased least"
    "lru-wsr" LruWsr(lru_wsr::LruWsr, LruWsrConfig) "lru; a dirty page that is not cold gets a second chance"
    "ccf-lru" CcfLru(ccf_lru::CcfLru, NoOptions) "cold clean pages first, then cold dirty ones"
    "s3-fifo" S3Fifo(s3_fifo::S3Fifo, S3FifoConfig) "a small fifo that filters, a main fifo with reinsertion"
    "sieve" Sieve(sieve::Sieve, NoOptions) "a fifo with a hand that spares pages used since it came by, without moving them"
    "w-tinylfu" WTinyLfu(w_tinylfu::WTinyLfu, WTinyLfuConfig) "a window that must beat the main part in a frequency sketch"
}

pub(crate) use dispatch;

impl ReplacementPolicy for Replacement {
    fn needs_erase_counts(&self) -> bool {
        dispatch!(self, policy => policy.needs_erase_counts())
    }

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

/// How many of `frames` an option asks for; `option` names it in the error.
fn frames_of(portion: Portion, frames: u32, option: &str) -> Result<u32, SpecError> {
    at_most(portion, frames, frames, option)
}

/// How many pages an option asks to remember, beside a pool of `frames`.
fn ghosts_of(portion: Portion, frames: u32, option: &str) -> Result<u32, SpecError> {
    // A table of pages has room for 2^30.
    at_most(portion, frames, frames.saturating_mul(10).min(1 << 30), option)
}

fn at_most(portion: Portion, frames: u32, most: u32, option: &str) -> Result<u32, SpecError> {
    u32::try_from(portion.of(u64::from(frames))).ok().filter(|count| *count <= most).ok_or_else(|| {
        SpecError::new(format!(
            "{option}={portion} is too much for {frames} frames; accepted: a count up to {most}, or a share like 6%"
        ))
    })
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
        // The neighbour is read before the frame leaves its place.
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
