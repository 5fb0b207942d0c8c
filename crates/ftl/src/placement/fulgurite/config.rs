//! The options of Fulgurite's placement policy.

use crate::placement::policy::STREAMS_AT_MOST;
use fulgurite_base::option::COUNT_16;
use fulgurite_base::{Choice, Declared, Form, Opt, opt};

/// The number of codes for an average interval, in eighths of an octave.
pub(super) const CODES: u16 = 128;
/// The most intervals that an average counts.
pub(super) const INTERVALS: u16 = 7;
/// The streams of the scheme by generations: two for the host, and one for each number of copies.
pub(super) const GENERATIONS: u16 = 6;

/// A rule that divides pages among streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// By the time that similar pages have left, host pages and copies alike.
    Lifetimes,
    /// Host pages by the last interval, as in SepBIT; copies by the number of copies since the host wrote the
    /// page, as in MiDA.
    Generations,
    /// Copies apart from host pages.
    Copies,
    /// One stream for all pages.
    One,
}

/// Which scheme a drive uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choose {
    /// The scheme that copies least on a sample of the pages.
    Measured,
    /// This scheme.
    Only(Scheme),
}

impl Choice for Choose {
    const NAMES: &'static [(&'static str, Choose)] = &[
        ("measured", Choose::Measured),
        ("lifetimes", Choose::Only(Scheme::Lifetimes)),
        ("generations", Choose::Only(Scheme::Generations)),
        ("copies", Choose::Only(Scheme::Copies)),
        ("one", Choose::Only(Scheme::One)),
    ];
}

/// The options of Fulgurite's placement policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FulguriteConfig {
    /// The rule that divides pages among streams.
    pub scheme: Choose,
    /// The most streams by lifetimes. The last stream takes all pages with longer remaining times.
    pub streams: u16,
    /// The range of remaining times in one of so many streams, in eighths of an octave.
    pub step: u16,
    /// The inverse of the least weight of a new interval in the average; at most 9, because the weight never
    /// falls below 1/9.
    pub memory: u16,
}

impl Default for FulguriteConfig {
    fn default() -> FulguriteConfig {
        FulguriteConfig { scheme: Choose::Measured, streams: 11, step: 12, memory: 8 }
    }
}

impl FulguriteConfig {
    /// Returns the number of streams that the scheme uses; if the scheme is measured, the most of any.
    pub(crate) fn streams(&self) -> u16 {
        match self.scheme {
            Choose::Measured => self.streams.max(GENERATIONS),
            Choose::Only(Scheme::Lifetimes) => self.streams,
            Choose::Only(Scheme::Generations) => GENERATIONS,
            Choose::Only(Scheme::Copies) => 2,
            Choose::Only(Scheme::One) => 1,
        }
    }

    /// Returns the scheme; the first one if it is measured.
    pub(super) fn only(&self) -> Scheme {
        match self.scheme {
            Choose::Only(scheme) => scheme,
            Choose::Measured => Scheme::Lifetimes,
        }
    }

    /// Returns the fewest streams that the policy can work with.
    pub(crate) fn streams_at_least(&self) -> u16 {
        if self.scheme == Choose::Measured { 1 } else { self.streams() }
    }
}

impl Declared for FulguriteConfig {
    const OPTIONS: &'static [Opt<FulguriteConfig>] = &[
        opt!(
            "scheme",
            scheme,
            Form::<Choose>::choice("measured|lifetimes|generations|copies|one"),
            "how pages are divided; measured: as copies least on a sample"
        ),
        opt!("streams", streams, COUNT_16, 2 => STREAMS_AT_MOST, "streams; the last one takes all longer intervals"),
        opt!("step", step, COUNT_16, 1 => CODES, "eighths of an octave in a stream"),
        opt!("memory", memory, COUNT_16, 1 => INTERVALS + 2, "the least weight of a new interval is 1 / this"),
    ];
}
