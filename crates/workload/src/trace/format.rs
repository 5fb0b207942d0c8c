//! The registry of trace formats. To add one: a file beside this one with its `FORMAT` row, a variant
//! of [`Format`], and the row's place in `ROWS`, in the same order.

use super::state::{State, TimeUnit};
use super::{
    Options, Record, alibaba, blkparse, cloudphysics, disksim, fio2, fio3, midas, mqsim, msr, oracle_general,
    page_ops, spc, systor, tencent, vscsi,
};
use fulgurite_base::{Nanos, Share, Spec, SpecError, units};
use std::path::Path;

/// A format that traces can be read from, and most written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // `Format::about` says what each is
pub enum Format {
    PageOps,
    CloudPhysics,
    Vscsi,
    Msr,
    Spc,
    DiskSim,
    Alibaba,
    Tencent,
    Systor,
    Blkparse,
    Fio2,
    Fio3,
    Mqsim,
    OracleGeneral,
    Midas,
}

/// What a format counts positions and lengths in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bytes: a page size divides them into pages.
    Bytes,
    /// Pages of a size that the trace does not tell.
    Pages,
}

/// What one line or binary record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A request, its time on the format's own clock.
    Request(Record),
    /// Something that is not a request to a page, for the reason given: left out and counted.
    Skip(&'static str),
    /// A comment, a header or nothing: left out.
    Nothing,
}

/// How a format is laid out, and how its pieces are understood. The error is the reason alone.
pub(super) enum Shape {
    /// Lines, given without surrounding white space. Where most lines of a format are `plain`, those at the
    /// beginning of a text are read together, as many as are plain and asked for; it returns their bytes.
    Lines { parse: fn(&[u8], &mut State) -> Result<Line, String>, plain: Option<PlainLines> },
    /// Records of a size that the first bytes of the file tell.
    Records { size: fn(&[u8]) -> Result<usize, String>, parse: fn(&[u8], &mut State) -> Result<Line, String> },
}

/// Reads plain lines; see [`Shape::Lines`].
pub(super) type PlainLines = fn(&[u8], usize, &mut Vec<Record>) -> usize;

impl Shape {
    /// Lines that are read one by one.
    pub const fn lines(parse: fn(&[u8], &mut State) -> Result<Line, String>) -> Shape {
        Shape::Lines { parse, plain: None }
    }
}

/// How a format is written.
pub(super) struct Writer {
    /// What comes before all records.
    pub header: &'static str,
    /// Appends a record, which came so much after the one before.
    pub record: fn(&Record, Nanos, &mut Vec<u8>) -> Result<(), &'static str>,
    /// What comes after them.
    pub footer: &'static str,
    /// What of a record the format cannot hold, in words.
    pub loses: &'static str,
}

/// All that the reader knows of a format.
pub(super) struct Row {
    pub name: &'static str,
    pub about: &'static str,
    pub unit: Unit,
    /// The format is told from a file name with one of these between its dots: `x.pages.zst`.
    pub name_parts: &'static [&'static str],
    /// Whether the content alone tells it from the others.
    pub is_told_by_content: bool,
    pub shape: Shape,
    pub writer: Option<Writer>,
}

static ROWS: [Row; 15] = [
    page_ops::FORMAT,
    cloudphysics::FORMAT,
    vscsi::FORMAT,
    msr::FORMAT,
    spc::FORMAT,
    disksim::FORMAT,
    alibaba::FORMAT,
    tencent::FORMAT,
    systor::FORMAT,
    blkparse::FORMAT,
    fio2::FORMAT,
    fio3::FORMAT,
    mqsim::FORMAT,
    oracle_general::FORMAT,
    midas::FORMAT,
];
const ALL: [Format; ROWS.len()] = [
    Format::PageOps,
    Format::CloudPhysics,
    Format::Vscsi,
    Format::Msr,
    Format::Spc,
    Format::DiskSim,
    Format::Alibaba,
    Format::Tencent,
    Format::Systor,
    Format::Blkparse,
    Format::Fio2,
    Format::Fio3,
    Format::Mqsim,
    Format::OracleGeneral,
    Format::Midas,
];

impl Format {
    /// Every format.
    pub fn all() -> &'static [Format] {
        &ALL
    }

    /// Its name, as after `--format`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// One line: what a line of the file holds, and in which units.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// What its positions and lengths count.
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// The format of this name, or the nearest name in the error.
    pub fn from_name(name: &str) -> Result<Format, SpecError> {
        ALL.into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| SpecError::unknown("format", name, &ALL.map(Format::name)))
    }

    /// The format that `spec` names, with options for its reader: `volume=` in formats that tell volumes
    /// apart, `time_unit=` in disksim and mqsim, `spread=` in tencent, `write_share=` in oracle-general,
    /// `objects=` in all.
    pub fn from_spec(mut spec: Spec) -> Result<(Format, Options), SpecError> {
        let format = Format::from_name(spec.name())?;
        let mut options = Options::default();
        match format {
            Format::DiskSim | Format::Mqsim => {
                options.time_unit = spec.take_with("time_unit", TimeUnit::from_name)?;
            }
            Format::Tencent => {
                options.spread = spec.take_with("spread", units::parse_yes_no)?.unwrap_or(false);
            }
            Format::OracleGeneral => {
                options.write_share =
                    spec.take_with("write_share", units::parse_share)?.unwrap_or(Share::ZERO);
            }
            _ => {}
        }
        let has_no_volumes =
            [Format::PageOps, Format::CloudPhysics, Format::Vscsi, Format::OracleGeneral, Format::Midas];
        if !has_no_volumes.contains(&format) {
            options.volume = spec.take_with("volume", |name| Ok(name.to_owned()))?;
        }
        options.objects = spec.take_with("objects", units::parse_yes_no)?.unwrap_or(false);
        spec.finish()?;
        Ok((format, options))
    }

    /// The format that a file's name tells or, failing that, the first that understands its first
    /// request. `first_bytes` are the content's, unpacked.
    pub fn detect(file_name: &str, first_bytes: &[u8]) -> Option<Format> {
        let name = Path::new(file_name).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let is_told = |format: &Format| name.split('.').any(|part| format.row().name_parts.contains(&part));
        let fits = |format: &Format| format.understands(first_bytes);
        ALL.into_iter().find(is_told).or_else(|| ALL.into_iter().find(fits))
    }

    pub(super) fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    fn understands(self, first_bytes: &[u8]) -> bool {
        let Row { is_told_by_content: true, shape: Shape::Lines { parse, .. }, .. } = self.row() else {
            return false;
        };
        let mut state = State::new(Options::default());
        let lines = first_bytes.split(|byte| *byte == b'\n');
        lines
            .map(|line| state.count(|state| parse(line.trim_ascii(), state)))
            .find(|line| !matches!(line, Ok(Line::Nothing | Line::Skip(_))))
            .is_some_and(|line| line.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_rows_agree() {
        let names = "page-ops cloudphysics vscsi msr spc disksim alibaba tencent systor blkparse fio2 fio3 mqsim oracle-general midas";
        for (format, name) in ALL.into_iter().zip(names.split(' ')) {
            assert_eq!(format.name(), name);
            assert_eq!(Format::from_name(name), Ok(format));
            assert!(format.row().name_parts.contains(&name) && !format.about().is_empty());
        }
        assert_eq!(
            Format::from_name("pageops").unwrap_err().to_string(),
            format!("unknown format `pageops`; did you mean `page-ops`? (known: {names})")
        );
    }

    #[test]
    fn the_name_tells_first_then_the_content() {
        let pages = Some(Format::PageOps);
        let cloudphysics = Some(Format::CloudPhysics);
        assert_eq!(Format::detect("a/b.csv/postgres.pages.zst", b"1,2,28,512,4"), pages);
        assert_eq!(Format::detect("x.page-ops", b""), pages);
        assert_eq!(Format::detect("CloudPhysics.csv.gz", b""), cloudphysics);
        assert_eq!(Format::detect("pages", b""), pages);
        assert_eq!(Format::detect("a.pages/x", b""), None);
        assert_eq!(Format::detect("x", b"# a comment\n\n  r 17\nnonsense"), pages);
        assert_eq!(
            Format::detect("x", b"version,time,op,size,lbn\r\n1,2,12,0,0\r\n1,2,28,512,4"),
            cloudphysics
        );
        assert_eq!(Format::detect("x", b"1,2,12,0,0\n"), None);
        assert_eq!(Format::detect("", b"# nothing else\n"), None);
    }
}
