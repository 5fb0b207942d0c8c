//! The state of a reader between two lines, and the options that it was given.

use super::field::quote;
use super::record::{Line, Record};
use fulgurite_base::option::{SHARE, YES_NO, name_of, parse_choice};
use fulgurite_base::{Choice, Declared, Form, Nanos, Opt, Prng, Share, opt};
use rustc_hash::FxHashMap;

/// Choices that some formats leave to their reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// Only requests to this volume (disk, device, ASU), as the trace names it.
    pub volume: Option<String>,
    /// Share of writes in a format without operations.
    pub write_share: Share,
    /// The unit of times in a format that has none of its own; its default where there is none.
    pub time_unit: Option<TimeUnit>,
    /// Take every request for one to a single page, named by where it starts. Its length does not count.
    /// Simulators of caches call this an object.
    pub objects: bool,
    /// Spread requests with times in whole seconds evenly over their second, as far as known.
    pub spread: bool,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            volume: None,
            write_share: Share::ZERO,
            time_unit: None,
            objects: false,
            spread: false,
        }
    }
}

/// The name of a volume, or `*` for all of them.
const VOLUME: Form<Option<String>> = Form {
    written: "NAME|*",
    parse: |name| Ok((name != ALL_VOLUMES).then(|| name.to_owned())),
    show: |volume| volume.clone().unwrap_or_else(|| ALL_VOLUMES.to_owned()),
};
const ALL_VOLUMES: &str = "*";

/// A unit of time, or `usual` for the format's own.
const UNIT: Form<Option<TimeUnit>> = Form {
    written: "usual|ps|ns|us|ms|s",
    parse: |name| if name == USUAL { Ok(None) } else { parse_choice(name).map(Some) },
    show: |unit| unit.map_or(USUAL, name_of).to_owned(),
};
const USUAL: &str = "usual";

/// All that any format accepts; [`FormatRow::options`](super::FormatRow) says which each does.
impl Declared for TraceOptions {
    const OPTIONS: &'static [Opt<TraceOptions>] = &[
        opt!("time_unit", time_unit, UNIT, "the unit of times"),
        opt!("spread", spread, YES_NO, "requests of a second follow each other by a microsecond"),
        opt!("write_share", write_share, SHARE, Share::ZERO => Share::ONE, "requests that are taken for writes"),
        opt!("volume", volume, VOLUME, "only requests to this volume"),
        opt!("objects", objects, YES_NO, "every request is one to a single page, named by where it starts"),
    ];
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TimeUnit {
    Picoseconds,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl Choice for TimeUnit {
    const NAMES: &'static [(&'static str, TimeUnit)] = &[
        ("ps", TimeUnit::Picoseconds),
        ("ns", TimeUnit::Nanoseconds),
        ("us", TimeUnit::Microseconds),
        ("ms", TimeUnit::Milliseconds),
        ("s", TimeUnit::Seconds),
    ];
}

impl TimeUnit {
    /// Nanoseconds in the unit, as multiplier and divisor.
    pub(super) fn scale(self) -> (u64, u64) {
        match self {
            TimeUnit::Picoseconds => (1, 1_000),
            TimeUnit::Nanoseconds => (1, 1),
            TimeUnit::Microseconds => (1_000, 1),
            TimeUnit::Milliseconds => (1_000_000, 1),
            TimeUnit::Seconds => (1_000_000_000, 1),
        }
    }
}

/// Volumes are laid out one after another, this many bytes apart: 16 TiB.
const VOLUME_BYTES: u64 = 1 << 44;
/// A bound on the memory that names take.
const VOLUME_NAME_BYTES_AT_MOST: usize = 255;
/// A bound on memory, and on addresses, which stay within 62 bits.
const VOLUMES_AT_MOST: usize = 1 << 18;

/// A reader's memory.
pub struct ReaderState {
    /// Those of the reader.
    pub options: TraceOptions,
    /// Lines or records so far, the present one included.
    pub number: u64,
    /// The clock of formats that count time from line to line.
    pub clock: Nanos,
    /// The first time, for formats whose times count from too long ago.
    pub origin: Option<u64>,
    /// A choice that the first lines made.
    pub choice: Option<u8>,
    volumes: FxHashMap<Box<[u8]>, u64>,
    prng: Prng,
}

impl ReaderState {
    /// Before the first line.
    pub fn new(options: TraceOptions) -> ReaderState {
        ReaderState {
            options,
            number: 0,
            clock: Nanos::ZERO,
            origin: None,
            choice: None,
            volumes: FxHashMap::default(),
            // A fixed seed draws the same operations each time the trace is read.
            prng: Prng::new(42, "operations of a trace without any"),
        }
    }

    /// Counts lines that needed no state to be understood.
    pub fn pass(&mut self, lines: usize) {
        self.number += lines as u64;
    }

    /// Counts a line and understands it.
    pub fn count<T>(&mut self, understand: impl FnOnce(&mut ReaderState) -> T) -> T {
        self.number += 1;
        understand(self)
    }

    /// Volumes seen.
    pub fn volumes(&self) -> usize {
        self.volumes.len()
    }

    /// Where the byte `start` of a volume lies, each volume in a region of its own in the order of first
    /// appearance; `None` where another volume was asked for.
    fn place(&mut self, volume: &[u8], start: u64) -> Result<Option<u64>, String> {
        if volume.len() > VOLUME_NAME_BYTES_AT_MOST {
            return Err(format!(
                "volume {} has more than {VOLUME_NAME_BYTES_AT_MOST} bytes, the most that a name may have",
                quote(volume)
            ));
        }
        if let Some(wanted) = &self.options.volume {
            if wanted.as_bytes() != volume {
                return Ok(None);
            }
            // The chosen volume is the only one, so it lies at the start.
            self.volumes.entry(volume.into()).or_insert(0);
            return Ok(Some(start));
        }
        let next = self.volumes.len();
        let index = match self.volumes.get(volume) {
            Some(index) => *index,
            None if next == VOLUMES_AT_MOST => {
                return Err(format!("more than {VOLUMES_AT_MOST} volumes; choose one with volume="));
            }
            None => {
                self.volumes.insert(volume.into(), next as u64);
                next as u64
            }
        };
        if index == 0 && start <= u64::MAX >> 2 || start < VOLUME_BYTES {
            Ok(Some(index * VOLUME_BYTES + start))
        } else {
            Err(format!(
                "position {start} of volume {} is beyond 16 TiB; choose it with volume=",
                quote(volume)
            ))
        }
    }

    /// A request to a volume, moved to where that volume lies.
    pub fn request(&mut self, volume: &[u8], record: Record) -> Result<Line, String> {
        Ok(match self.place(volume, record.start)? {
            Some(start) => Line::Request(Record { start, ..record }),
            None => Line::Skip("a request to another volume"),
        })
    }

    /// A write with the share that was asked for.
    #[inline]
    pub fn draw_write(&mut self) -> bool {
        self.options.write_share > Share::ZERO && self.prng.chance(self.options.write_share)
    }
}
