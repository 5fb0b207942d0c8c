//! Measurements of the groups, and the events that change the groups.

use super::config::GROUPS;
use super::configure::Configuration;

/// The least number of collected segments for which a group's share of valid pages counts as measured.
pub(super) const MEASURED: u32 = 16;

/// The collections of a group in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Collected {
    /// The number of segments collected.
    pub(crate) segments: u32,
    /// The number of valid pages in the collected segments.
    pub(crate) valid: u64,
    /// The number of pages written to the group.
    pub(crate) written: u64,
}

/// The reason for an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// The measured lifetimes differ from those in force by this much.
    Lifetimes(f64),
    /// A group's share of valid pages deviates from the prediction: (group, predicted, measured).
    Irregular(u16, f64, f64),
    /// Collection gained no space.
    Runaway,
    /// The measured lifetimes differ by only this much, so no group was changed.
    Unchanged(f64),
    /// The model predicts more write amplification than was measured: (predicted, measured).
    NoGain(f64, f64),
    /// Lifetimes have not changed, but the model has learned its errors and now predicts less write
    /// amplification than was measured: (predicted, measured).
    Learned(f64, f64),
    /// The groups have more write amplification than the previous groups, which replace them: (previous,
    /// measured).
    Worse(f64, f64),
}

/// A change of the groups, or a decision for no change, for users and studies.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The time in host page writes.
    pub at: u64,
    /// The reason for the event.
    pub why: Why,
    /// The measured write amplification since the previous event.
    pub waf: f64,
    /// The measured valid shares at collection since the previous event, that of HOT (the group of hot pages)
    /// first; `None` if too few segments of the group were collected.
    pub measured: Vec<Option<f64>>,
    /// The configuration from now on; `None` before the first choice. Groups from [`Event::unsized_from`] on
    /// have no sizes.
    pub configuration: Option<Configuration>,
    /// The first group without a size of its own.
    pub unsized_from: u16,
}

/// Measurements of a stretch of time, such as a part of an epoch.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// The start of the stretch, in host page writes.
    pub(crate) since: u64,
    /// The number of pages copied; `collected` has the collections of each group.
    pub(crate) copied: u64,
    pub(crate) collected: Vec<Collected>,
}

impl Stretch {
    pub(crate) fn new(since: u64) -> Stretch {
        Stretch { since, copied: 0, collected: vec![Collected::default(); usize::from(GROUPS) + 1] }
    }

    /// Returns the measurements since `earlier`, a copy of this stretch that was made at the time
    /// `earlier.since`.
    pub(crate) fn after(&self, earlier: &Stretch) -> Stretch {
        let collected = self.collected.iter().zip(&earlier.collected).map(|(all, early)| Collected {
            segments: all.segments - early.segments,
            valid: all.valid - early.valid,
            written: all.written - early.written,
        });
        Stretch { since: earlier.since, copied: self.copied - earlier.copied, collected: collected.collect() }
    }

    pub(crate) fn waf(&self, now: u64) -> f64 {
        1.0 + self.copied as f64 / (now - self.since).max(1) as f64
    }
}

/// The best groups under the current lifetimes, and their write amplification.
#[derive(Clone, Debug)]
pub(super) struct Best {
    pub(crate) waf: f64,
    pub(crate) configuration: Option<Configuration>,
    pub(crate) unsized_from: u16,
}
