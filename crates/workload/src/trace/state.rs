//! The options of a trace reader, and its state between lines.

use super::field::quote;
use super::record::{Line, Record};
use fulgurite_base::option::{SHARE, SIZE, YES_NO, name_of, parse_choice};
use fulgurite_base::{Choice, Declared, Form, Nanos, Opt, Prng, Share, opt, units};
use rustc_hash::FxHashMap;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The options of trace readers. A format accepts some of them.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceOptions {
    /// The name of the only volume (disk, device, ASU) whose requests are read, as in the trace; `None` for
    /// all volumes.
    pub volume: Option<String>,
    /// The share of requests that become writes, in a format without operations.
    pub write_share: Share,
    /// The unit of times in a format that does not fix it; `None` for the format's default.
    pub time_unit: Option<TimeUnit>,
    /// Whether every request is for a single page that its start identifies, without regard to its length.
    /// Cache simulators call such a page an object. Its start is an identity and not an address.
    pub objects: bool,
    /// The treatment of reads and writes above 1 GiB or 2^20 pages.
    pub long: Long,
    /// Whether the requests are sorted by time before the first one is passed on.
    pub sort: bool,
    /// The form of the numbers in a binary list of ids.
    pub id: IdForm,
    /// The columns of a trace in the format `columns`.
    pub columns: Columns,
    /// Whether the requests of a second are placed a microsecond apart, in a format with times in whole
    /// seconds.
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
            long: Long::Skip,
            sort: false,
            id: IdForm::U64Le,
            columns: Columns::default(),
        }
    }
}

impl fmt::Debug for TraceOptions {
    /// Shows the options. The identity of some runs contains a hash of this text, so options that a trace
    /// rarely needs are shown only if they are not the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TraceOptions");
        shown.field("volume", &self.volume).field("write_share", &self.write_share);
        shown.field("time_unit", &self.time_unit).field("objects", &self.objects);
        shown.field("spread", &self.spread);
        if self.long != Long::Skip {
            shown.field("long", &self.long);
        }
        if self.sort {
            shown.field("sort", &self.sort);
        }
        if self.id != IdForm::U64Le {
            shown.field("id", &self.id);
        }
        if self.columns != Columns::default() {
            shown.field("columns", &self.columns);
        }
        shown.finish()
    }
}

/// The columns of a trace in the format `columns`, each by its number, from one on, or by its name in the header;
/// `None` if there is no such column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The column of times.
    pub time: Option<String>,
    /// The column of operations.
    pub op: Option<String>,
    /// The column of positions.
    pub offset: Option<String>,
    /// The column of lengths.
    pub length: Option<String>,
    /// The column of volumes.
    pub volume: Option<String>,
    /// The unit of times; `None` for seconds.
    pub unit: Option<TimeUnit>,
    /// The unit of positions, in bytes.
    pub offset_unit: u64,
    /// The unit of lengths, in bytes; `None` for the unit of positions.
    pub length_unit: Option<u64>,
    /// The separator of the fields; `None` to guess it.
    pub sep: Option<String>,
    /// The number of lines at the beginning that hold no request.
    pub header: u64,
    /// The beginning of lines that hold no request.
    pub skip: Option<String>,
    /// The spelling of a write, if it is not one of the usual ones.
    pub write: Option<String>,
    /// Whether positions are in hexadecimal digits.
    pub hex: bool,
    /// Whether positions are any texts, each of which names an object.
    pub names: bool,
    /// A regular expression whose groups `time`, `op`, `offset`, `length` and `volume` are the columns.
    pub regex: Option<String>,
}

impl Default for Columns {
    fn default() -> Columns {
        Columns {
            time: None,
            op: None,
            offset: None,
            length: None,
            volume: None,
            unit: None,
            offset_unit: 1,
            length_unit: None,
            sep: None,
            header: 0,
            skip: None,
            write: None,
            hex: false,
            names: false,
            regex: None,
        }
    }
}

/// The treatment of a read or write above 1 GiB or 2^20 pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// It is left out and counted.
    Skip,
    /// It is read like any other.
    Read,
    /// It ends reading with an error.
    Refuse,
}

impl Choice for Long {
    const NAMES: &'static [(&'static str, Long)] =
        &[("skip", Long::Skip), ("read", Long::Read), ("refuse", Long::Refuse)];
}

/// The form of the numbers in a binary list of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdForm {
    /// Eight bytes, the lowest first.
    U64Le,
    /// Eight bytes, the highest first.
    U64Be,
    /// Four bytes, the lowest first.
    U32Le,
    /// Four bytes, the highest first.
    U32Be,
}

impl Choice for IdForm {
    const NAMES: &'static [(&'static str, IdForm)] = &[
        ("u64le", IdForm::U64Le),
        ("u64be", IdForm::U64Be),
        ("u32le", IdForm::U32Le),
        ("u32be", IdForm::U32Be),
    ];
}

impl IdForm {
    /// The size of a number in bytes.
    pub(super) fn bytes(self) -> usize {
        match self {
            IdForm::U64Le | IdForm::U64Be => 8,
            IdForm::U32Le | IdForm::U32Be => 4,
        }
    }
}

/// The form of a volume's name, or `*` for all volumes.
const VOLUME: Form<Option<String>> = Form {
    written: "NAME|*",
    parse: |name| Ok((name != ALL_VOLUMES).then(|| name.to_owned())),
    show: |volume| {
        volume.as_ref().map_or_else(|| ALL_VOLUMES.to_owned(), |name| volume_text(name.as_bytes()))
    },
};

/// Returns the name of a volume as it is written after `volume=`.
pub fn volume_text(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    // Without quotes, an item with `=` after a comma is another option.
    if text.contains('"') || text.split(',').skip(1).any(|item| item.contains('=')) {
        format!("\"{text}\"")
    } else {
        text.into_owned()
    }
}

const ALL_VOLUMES: &str = "*";

/// The form of a unit of time, or `usual` for the format's default unit.
const UNIT: Form<Option<TimeUnit>> = Form {
    written: "usual|ps|ns|us|ms|s",
    parse: |name| if name == USUAL { Ok(None) } else { parse_choice(name).map(Some) },
    show: |unit| unit.map_or(USUAL, name_of).to_owned(),
};
const USUAL: &str = "usual";

/// The form of the treatment of long requests.
const LONG: Form<Long> = Form::choice("skip|read|refuse");

/// The form of the form of a binary id.
const ID: Form<IdForm> = Form::choice("u64le|u64be|u32le|u32be");

impl TraceOptions {
    /// The keys of the options that every format accepts.
    pub const OF_ALL: &'static [&'static str] = &["objects", "long", "sort"];
}

/// The form of a text that may be absent.
const fn text(written: &'static str) -> Form<Option<String>> {
    Form {
        written,
        parse: |text| Ok((text != NONE).then(|| text.to_owned())),
        show: |text| match text {
            // Without quotes, a comma would end the value.
            Some(text) if text.contains(',') => format!("\"{text}\""),
            Some(text) => text.clone(),
            None => NONE.to_owned(),
        },
    }
}
const NONE: &str = "none";

/// The form of a column.
const COLUMN: Form<Option<String>> = text("N|NAME");

/// The form of a size that may be absent.
const SIZE_OR_NONE: Form<Option<u64>> = Form {
    written: "SIZE",
    parse: |text| if text == NONE { Ok(None) } else { units::parse_size(text).map(Some) },
    show: |size| size.map_or_else(|| NONE.to_owned(), units::format_size),
};

const LINES: Form<u64> = Form { written: "N", parse: units::parse_count, show: u64::to_string };

/// The options of all formats together; [`FormatRow::options`](super::FormatRow) lists those of one format.
impl Declared for TraceOptions {
    const OPTIONS: &'static [Opt<TraceOptions>] = &[
        opt!("time_unit", time_unit, UNIT, "the unit of times"),
        opt!("time", columns.time, COLUMN, "the column of times; none without times"),
        opt!("op", columns.op, COLUMN, "the column of operations; without it, write_share applies"),
        opt!("offset", columns.offset, COLUMN, "the column of positions"),
        opt!("length", columns.length, COLUMN, "the column of lengths; without it, one unit of lengths"),
        opt!("unit", columns.unit, UNIT, "the unit of times; usually seconds"),
        opt!("offset_unit", columns.offset_unit, SIZE, 1 => 1 << 30, "the unit of positions"),
        opt!(
            "length_unit",
            columns.length_unit,
            SIZE_OR_NONE,
            "the unit of lengths; that of positions if none"
        ),
        opt!("sep", columns.sep, text("comma|tab|space|C"), "the separator; guessed if none"),
        opt!("header", columns.header, LINES, "lines at the beginning that hold no request"),
        opt!("skip", columns.skip, text("TEXT"), "the beginning of lines that hold no request"),
        opt!("write", columns.write, text("TEXT"), "the spelling of a write, if it is an unusual one"),
        opt!("hex", columns.hex, YES_NO, "positions are in hexadecimal digits; after 0x they are so anyway"),
        opt!(
            "names",
            columns.names,
            YES_NO,
            "positions are any texts, each of which names an object; needs objects=yes"
        ),
        opt!(
            "regex",
            columns.regex,
            text("PATTERN"),
            "a regular expression in double quotes, whose groups (?<offset>…) and so on are the columns"
        ),
        opt!("id", id, ID, "the size of a number in bits, and its first byte: little end or big end"),
        opt!("spread", spread, YES_NO, "requests of a second follow each other by a microsecond"),
        opt!("write_share", write_share, SHARE, Share::ZERO => Share::ONE, "requests that are treated as writes"),
        opt!(
            "volume",
            volume,
            VOLUME,
            "only requests to this volume; `trace info` shows all with volume=list; in columns, the column"
        ),
        opt!("objects", objects, YES_NO, "every request is for a single page, identified by its start"),
        opt!("sort", sort, YES_NO, "the requests are sorted by time"),
        opt!("long", long, LONG, "what becomes of reads and writes above 1 GiB (2^20 pages)"),
    ];
}

/// The unit of the times in a trace.
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
    /// Returns the multiplier and the divisor that convert a time in this unit to nanoseconds.
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

/// The greatest length of a volume's name, in bytes. It bounds the memory for names.
const VOLUME_NAME_BYTES_AT_MOST: usize = 255;
/// The most volumes of a trace. It bounds the memory for names.
const VOLUMES_AT_MOST: usize = 1 << 18;
/// The most decisions of a reader that are kept in words.
const DECISIONS_AT_MOST: usize = 8;
/// The most volumes that an error message names.
const OTHERS_AT_MOST: usize = 12;

/// The state of a trace reader between lines, which the parsers of the formats share.
pub struct ReaderState {
    /// The options of the reader.
    pub options: TraceOptions,
    /// The number of lines or records so far, including the current one.
    pub number: u64,
    /// The current time, in formats with times relative to the previous line.
    pub clock: Nanos,
    /// The time of the first line in the format's own unit, for formats whose times would overflow in
    /// nanoseconds.
    pub origin: Option<u64>,
    /// The time on the format's clock, in nanoseconds, from which the times of its records are counted.
    pub base: u128,
    /// The action whose events are read, for each device.
    actions: FxHashMap<Box<[u8]>, u8>,
    /// Data that a format keeps between lines for itself.
    pub kept: Option<Box<dyn Any + Send>>,
    /// The decisions of the reader about things that the trace does not say; see [`ReaderState::decide`].
    decisions: Vec<String>,
    /// The number of decisions beyond those that are kept.
    more_decisions: u64,
    /// The number of each volume by its name, from one on.
    volumes: FxHashMap<Arc<[u8]>, u32>,
    /// The names of the volumes, in the order of first appearance.
    names: Vec<Arc<[u8]>>,
    /// The index in `names` of the volume of the last request.
    recent: usize,
    /// The names of some volumes that the options do not select, for error messages.
    others: Vec<Box<[u8]>>,
    prng: Prng,
}

impl ReaderState {
    /// Creates the state before the first line.
    pub fn new(options: TraceOptions) -> ReaderState {
        ReaderState {
            options,
            number: 0,
            clock: Nanos::ZERO,
            origin: None,
            base: 0,
            actions: FxHashMap::default(),
            kept: None,
            decisions: Vec::new(),
            more_decisions: 0,
            volumes: FxHashMap::default(),
            names: Vec::new(),
            recent: 0,
            others: Vec::new(),
            // The seed is fixed, so that the same operations are drawn each time the trace is read.
            prng: Prng::new(42, "operations of a trace without any"),
        }
    }

    /// Counts lines that were parsed without this state.
    pub fn pass(&mut self, lines: usize) {
        self.number += lines as u64;
    }

    /// Counts a line, then parses it with `understand`.
    pub fn count<T>(&mut self, understand: impl FnOnce(&mut ReaderState) -> T) -> T {
        self.number += 1;
        understand(self)
    }

    /// Records a decision of the reader about something that the trace does not say. Only the first ones are
    /// kept in words.
    pub fn decide(&mut self, decision: String) {
        if self.decisions.len() < DECISIONS_AT_MOST {
            self.decisions.push(decision);
        } else {
            self.more_decisions += 1;
        }
    }

    /// Returns the decisions so far, in words; an empty text if there are none.
    pub fn decided(&self) -> String {
        let mut all = self.decisions.join("; ");
        if self.more_decisions > 0 {
            all += &format!("; and {} more", self.more_decisions);
        }
        all
    }

    /// Whether the events of any device are read.
    pub(super) fn has_action(&self) -> bool {
        !self.actions.is_empty()
    }

    /// Returns the action whose events are read for a device, which is that of its first event: `action` if
    /// this is the first one.
    pub(super) fn action_of(&mut self, device: &[u8], action: u8) -> Result<u8, String> {
        if let Some(known) = self.actions.get(device) {
            return Ok(*known);
        }
        if self.actions.len() == VOLUMES_AT_MOST {
            return Err(format!("more than {VOLUMES_AT_MOST} devices"));
        }
        self.actions.insert(device.into(), action);
        self.decide(format!("{} events of {}", char::from(action), String::from_utf8_lossy(device)));
        Ok(action)
    }

    /// The names of the volumes that have occurred so far, in the order of first appearance.
    pub fn volumes(&self) -> &[Arc<[u8]>] {
        &self.names
    }

    /// The names of some volumes that have occurred so far and that the options do not select.
    pub(super) fn other_volumes(&self) -> &[Box<[u8]>] {
        &self.others
    }

    /// Returns the number of a volume. Returns `None` if the options select another volume.
    fn number_of(&mut self, volume: &[u8]) -> Result<Option<u32>, String> {
        // Successive requests are often to one volume, which then needs no look-up.
        if let Some(recent) = self.names.get(self.recent)
            && **recent == *volume
        {
            return Ok(Some(self.recent as u32 + 1));
        }
        if let Some(number) = self.volumes.get(volume) {
            // Numbers count from one.
            self.recent = *number as usize - 1;
            return Ok(Some(*number));
        }
        if volume.len() > VOLUME_NAME_BYTES_AT_MOST {
            return Err(format!(
                "volume {} has more than {VOLUME_NAME_BYTES_AT_MOST} bytes, the most that a name may have",
                quote(volume)
            ));
        }
        if self.options.volume.as_ref().is_some_and(|wanted| wanted.as_bytes() != volume) {
            if self.others.len() < OTHERS_AT_MOST && !self.others.iter().any(|other| **other == *volume) {
                self.others.push(volume.into());
            }
            return Ok(None);
        }
        if self.names.len() == VOLUMES_AT_MOST {
            return Err(format!("more than {VOLUMES_AT_MOST} volumes; choose one with volume="));
        }
        let name: Arc<[u8]> = volume.into();
        self.recent = self.names.len();
        self.names.push(Arc::clone(&name));
        // The check above bounds the number.
        let number = self.names.len() as u32;
        self.volumes.insert(name, number);
        Ok(Some(number))
    }

    /// Returns a request to a volume. If the options select another volume, the request is skipped.
    pub fn request(&mut self, volume: &[u8], record: Record) -> Result<Line, String> {
        Ok(match self.number_of(volume)? {
            Some(volume) => Line::Request(Record { volume, ..record }),
            None => Line::Skip("a request to another volume"),
        })
    }

    /// Returns a request to a volume whose name consists of these parts; see [`ReaderState::request`].
    pub(super) fn request_in(&mut self, parts: &[&[u8]], record: Record) -> Result<Line, String> {
        let mut name = [0; VOLUME_NAME_BYTES_AT_MOST + 1];
        let mut length = 0;
        for byte in parts.iter().copied().flatten() {
            // A name that fills the array is refused, whatever follows.
            if let Some(place) = name.get_mut(length) {
                *place = *byte;
                length += 1;
            }
        }
        self.request(&name[..length], record)
    }

    /// Draws whether a request is a write, with the probability `write_share`.
    #[inline]
    pub(crate) fn draw_write(&mut self) -> bool {
        self.options.write_share > Share::ZERO && self.prng.chance(self.options.write_share)
    }
}
