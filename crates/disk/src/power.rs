//! Power cuts: which writes a drive may lose, and which of them one cut loses.
//!
//! A drive with a volatile cache may lose any subset of the writes that are not durable, and any part of a write,
//! in any order. A cut draws one of six patterns, because faults of programs differ in what uncovers them: a
//! missing flush shows if one early write is lost and the later ones are kept, a missing checksum shows if a write
//! is torn.

use fulgurite_base::option::{Choice, Form, SIZE};
use fulgurite_base::{Declared, Opt, Prng, Share, Spec, SpecError, opt};

/// The cache of a drive, as far as a power cut concerns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// A write that has completed survives every power cut.
    Protected,
    /// A write is durable after a flush, if it is durable by itself, or when the full cache has stored it.
    Volatile,
    /// As `Volatile`, but flushes and durable writes complete without any effect.
    Lying,
}

impl Choice for Cache {
    const NAMES: &'static [(&'static str, Cache)] =
        &[("protected", Cache::Protected), ("volatile", Cache::Volatile), ("lying", Cache::Lying)];
}

impl std::fmt::Display for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(fulgurite_base::option::name_of(*self))
    }
}

/// The power that a cut has over writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerModel {
    /// The cache of the drive.
    pub cache: Cache,
    /// The most bytes of completed writes that a cut can lose. The drive stores the oldest write if there are more.
    pub cache_bytes: u64,
    /// A write is torn only at addresses that are multiples of this number of bytes, a power of two.
    pub tear_bytes: u64,
}

impl PowerModel {
    /// Returns the model of a drive with this cache: 64 MiB of it, and writes that are torn at any sector.
    pub fn of(cache: Cache) -> PowerModel {
        PowerModel { cache, cache_bytes: 64 << 20, tear_bytes: 512 }
    }

    /// Parses `volatile:bytes=64MiB,tear=4KiB`.
    pub fn parse(text: &str) -> Result<PowerModel, SpecError> {
        let mut spec = Spec::parse(text)?;
        let cache = fulgurite_base::option::parse_choice(spec.name())?;
        let model = PowerModel::of(cache).with_options(&mut spec)?;
        spec.finish()?;
        if !model.tear_bytes.is_power_of_two() {
            return Err(SpecError::new(
                "tear is not a power of two; accepted: 512B, 1KiB, 2KiB, 4KiB and so on",
            ));
        }
        Ok(model)
    }
}

impl Declared for PowerModel {
    const OPTIONS: &'static [Opt<PowerModel>] = &[
        opt!("bytes", cache_bytes, SIZE, 4096 => 1 << 40, "bytes of completed writes that a cut can lose at most"),
        opt!("tear", tear_bytes, SIZE, 512 => 1 << 20, "bytes at whose multiples a power cut tears writes"),
    ];
}

/// How a power cut chooses the writes that it loses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every write is lost.
    All,
    /// Every write is lost except one.
    AllButOne,
    /// One write is lost, as a whole or in part.
    One,
    /// The writes after one of them are lost, and that one is torn.
    After,
    /// Each write is lost with a probability of one half; one lost write in four is torn.
    Half,
    /// Each write is lost with a probability of one eighth; one lost write in four is torn.
    Few,
}

impl Choice for Pattern {
    const NAMES: &'static [(&'static str, Pattern)] = &[
        ("all", Pattern::All),
        ("all-but-one", Pattern::AllButOne),
        ("one", Pattern::One),
        ("after", Pattern::After),
        ("half", Pattern::Half),
        ("few", Pattern::Few),
    ];
}

impl Pattern {
    /// The form of a pattern's name.
    pub const FORM: Form<Pattern> = Form::choice("all|all-but-one|one|after|half|few");
}

/// Chooses the pieces that a power cut with this seed loses. `write` gives the number of a piece's write; all pieces
/// of a write are adjacent in `pieces`.
pub fn choose<P: Clone>(pieces: &[P], write: impl Fn(&P) -> u64, seed: u64) -> (Pattern, Vec<P>) {
    let mut random = Prng::new(seed, "power-cut");
    let pattern = Pattern::NAMES[random.below(Pattern::NAMES.len() as u64) as usize].1;
    let writes: Vec<&[P]> = pieces.chunk_by(|a, b| write(a) == write(b)).collect();
    let one = random.below(writes.len().max(1) as u64) as usize;
    let mut lost = Vec::new();
    for (at, write) in writes.iter().enumerate() {
        let (is_lost, is_torn) = match pattern {
            Pattern::All => (true, false),
            Pattern::AllButOne => (at != one, false),
            Pattern::One => (at == one, random.chance(Share::percent(50))),
            Pattern::After => (at >= one, at == one),
            Pattern::Half => (random.chance(Share::percent(50)), random.chance(Share::percent(25))),
            Pattern::Few => (random.below(8) == 0, random.chance(Share::percent(25))),
        };
        let tear = |random: &mut Prng| !is_torn || random.chance(Share::percent(50));
        lost.extend(write.iter().filter(|_| is_lost && tear(&mut random)).cloned());
    }
    (pattern, lost)
}
