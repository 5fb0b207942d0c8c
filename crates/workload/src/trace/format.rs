//! The registry of trace formats. To add one: a file beside this one with its `FORMAT` row, a variant
//! of [`Format`], and the row's place in `ROWS`, in the same order.

use super::{Record, cloudphysics, page_ops};
use fulgurite_base::SpecError;
use std::path::Path;

/// A format that traces can be read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// `R page` or `W page`, one per line.
    PageOps,
    /// `version,time,op,size,lbn`.
    CloudPhysics,
}

/// What a format counts positions and lengths in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Bytes: a page size divides them into pages.
    Bytes,
    /// Pages of a size that the trace does not tell.
    Pages,
}

/// What one line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A request, its time on the format's own clock.
    Request(Record),
    /// Something that is not a request to a page, for the reason given: left out and counted.
    Skip(&'static str),
    /// A comment, a header or nothing: left out.
    Nothing,
}

/// All that the reader knows of a format.
pub(super) struct Row {
    pub name: &'static str,
    pub about: &'static str,
    pub unit: Unit,
    /// The format is told from a file name with one of these between its dots: `x.pages.zst`.
    pub name_parts: &'static [&'static str],
    /// Parses a line, given without surrounding white space and with its number from one on; the
    /// error is the reason alone.
    pub parse: fn(&[u8], u64) -> Result<Line, String>,
}

static ROWS: [Row; 2] = [page_ops::FORMAT, cloudphysics::FORMAT];
const ALL: [Format; ROWS.len()] = [Format::PageOps, Format::CloudPhysics];

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
        let lines = first_bytes.split(|byte| *byte == b'\n').zip(1..);
        lines
            .map(|(line, number)| (self.row().parse)(line.trim_ascii(), number))
            .find(|line| !matches!(line, Ok(Line::Nothing | Line::Skip(_))))
            .is_some_and(|line| line.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_rows_agree() {
        for (format, name) in ALL.into_iter().zip(["page-ops", "cloudphysics"]) {
            assert_eq!(format.name(), name);
            assert_eq!(Format::from_name(name), Ok(format));
            assert!(format.row().name_parts.contains(&name) && !format.about().is_empty());
        }
        assert_eq!(
            Format::from_name("pageops").unwrap_err().to_string(),
            "unknown format `pageops`; did you mean `page-ops`? (known: page-ops cloudphysics)"
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
