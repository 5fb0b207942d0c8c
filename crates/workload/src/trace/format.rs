//! The trace formats by name.
//!
//! A [`Format`] is one of the built-in formats or a user's own, described by a [`FormatRow`]. To add a
//! built-in format, write a file beside this one with its `FORMAT`, and add a line to `formats!`.

use super::record::{Line, Unit};
use super::row::{FormatRow, Shape};
use super::state::{ReaderState, TraceOptions};
use fulgurite_base::option::with_name;
use fulgurite_base::{Declared, Opt, OptionHelp, Spec, SpecError};
use std::fmt;
use std::path::Path;

/// A format of traces. Every format can be read, and most can be written.
#[derive(Clone, Copy)]
pub struct Format(&'static FormatRow);

impl PartialEq for Format {
    fn eq(&self, other: &Format) -> bool {
        // Each format has one static row, so the address of the row identifies the format.
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Format {}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! formats {
    ($($constant:ident = $module:ident)*) => {
        #[allow(missing_docs)] // `Format::about` says what each is
        impl Format {
            $(pub const $constant: Format = Format(&super::$module::FORMAT);)*
        }

        const ALL: &[Format] = &[$(Format::$constant),*];
    };
}

// To add a format, write its file and add its line here.
formats! {
    PAGE_OPS = page_ops
    CLOUD_PHYSICS = cloudphysics
    VSCSI = vscsi
    MSR = msr
    SPC = spc
    DISK_SIM = disksim
    ALIBABA = alibaba
    TENCENT = tencent
    SYSTOR = systor
    BLKPARSE = blkparse
    FIU = fiu
    FIO2 = fio2
    FIO3 = fio3
    MQSIM = mqsim
    ORACLE_GENERAL = oracle_general
    MIDAS = midas
    COLUMNS = columns
    BLKTRACE = blktrace
    FTRACE = ftrace
    IDS = ids
    LCS = lcs
    YCSB = ycsb
    BINARY_IDS = binary_ids
}

impl Format {
    /// The formats whose volumes are devices of Linux.
    const OF_LINUX: [Format; 4] = [Format::BLKPARSE, Format::FIU, Format::BLKTRACE, Format::FTRACE];

    /// Creates a format of a user's own from its row.
    pub const fn new(row: &'static FormatRow) -> Format {
        Format(row)
    }

    /// All built-in formats.
    pub fn all() -> &'static [Format] {
        ALL
    }

    /// The name of the format, as after `--format`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// One line of text about the fields of a line of the trace and their units.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// The unit of the format's positions and lengths.
    pub fn unit(self) -> Unit {
        self.row().unit
    }

    /// Returns the built-in format of this name. The error suggests the nearest name.
    pub fn from_name(name: &str) -> Result<Format, SpecError> {
        ALL.iter().copied().find(|format| format.name() == name).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|format| format.name()).collect();
            SpecError::unknown("format", name, &names)
        })
    }

    /// Returns the format that `text` names, and the options for its reader. The name of a volume may have
    /// commas, unless an `=` follows them; then it stands in double quotes.
    pub fn parse(text: &str) -> Result<(Format, TraceOptions), SpecError> {
        const VOLUME: &str = "volume=";
        let is_option = |item: &str| item.split(',').next().is_some_and(|item| item.contains('='));
        if let Some((before, value)) = text.split_once(VOLUME)
            && before.ends_with([':', ','])
            && !value.starts_with('"')
        {
            // The name ends before the next option.
            let mut commas = value.match_indices(',').map(|(at, _)| at);
            let end = commas.find(|at| is_option(&value[at + 1..])).unwrap_or(value.len());
            let (name, rest) = value.split_at(end);
            if name.contains(',') {
                return Format::from_spec(Spec::parse(&format!("{before}{VOLUME}\"{name}\"{rest}"))?);
            }
        }
        Format::from_spec(Spec::parse(text)?)
    }

    /// Returns the format that `spec` names, and the options for its reader.
    pub fn from_spec(mut spec: Spec) -> Result<(Format, TraceOptions), SpecError> {
        let format = Format::from_name(spec.name())?;
        let mut options = TraceOptions::default();
        for option in format.accepted() {
            if let Some(text) = spec.take_text(option.key) {
                (option.set)(&mut options, &text)
                    .map_err(|error| SpecError::new(format!("{} of {}: {error}", option.key, spec.name())))?;
            }
        }
        spec.finish()?;
        if let Some(device) = options.volume.as_mut().filter(|_| Format::OF_LINUX.contains(&format)) {
            // The kernel writes a device both as 9,0 and as 9:0, and a colon needs no quotes.
            *device = device.replace(':', ",");
        }
        Ok((format, options))
    }

    fn accepted(self) -> impl Iterator<Item = &'static Opt<TraceOptions>> {
        let accepts = move |key| TraceOptions::OF_ALL.contains(&key) || self.0.options.contains(&key);
        TraceOptions::OPTIONS.iter().filter(move |option| accepts(option.key))
    }

    /// The options that the format accepts, for help texts.
    pub fn options(self) -> Vec<OptionHelp> {
        let all = TraceOptions::default().describe_options();
        let accepted = |option: &OptionHelp| self.accepted().any(|own| own.key == option.key);
        all.into_iter().filter(accepted).collect()
    }

    /// Returns the canonical text of the format with these options.
    pub fn text(self, options: &TraceOptions) -> String {
        let usual = TraceOptions::default();
        let differs = |option: &&Opt<TraceOptions>| (option.show)(options) != (option.show)(&usual);
        let shown = self
            .accepted()
            .filter(differs)
            .map(|option| format!("{}={}", option.key, (option.show)(options)));
        with_name(self.name(), &shown.collect::<Vec<_>>().join(","))
    }

    /// Returns the format that the file's name selects. If the name selects none, returns the first format
    /// whose parser accepts the first request. `first_bytes` are the first bytes of the unpacked content.
    pub(crate) fn detect(file_name: &str, first_bytes: &[u8]) -> Option<Format> {
        let name = Path::new(file_name).file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let fits = |format: &Format| format.understands(first_bytes);
        let of_part = |part| {
            let mut of_name = ALL.iter().copied().filter(|format| format.row().name_parts.contains(&part));
            let first = of_name.next()?;
            // If several formats have this name, the content decides.
            Some(of_name.find(|other| !fits(&first) && fits(other)).unwrap_or(first))
        };
        // The last part of the name decides: `msr.oracleGeneral.zst` is a trace from MSR in the format of
        // libCacheSim.
        name.rsplit('.').find_map(of_part).or_else(|| ALL.iter().copied().find(fits))
    }

    pub(super) fn row(self) -> &'static FormatRow {
        self.0
    }

    fn understands(self, first_bytes: &[u8]) -> bool {
        let parse = match self.row() {
            FormatRow { is_told_by_content: true, shape: Shape::Lines { parse, .. }, .. } => parse,
            FormatRow { is_told_by_content: true, shape: Shape::Framed { frame, .. }, .. } => {
                return frame(first_bytes).is_ok();
            }
            _ => return false,
        };
        let mut state = ReaderState::new(TraceOptions::default());
        let lines = first_bytes.split(|byte| *byte == b'\n');
        lines
            .map(|line| state.count(|state| parse(line.trim_ascii(), state)))
            // Comments and skipped lines fit many formats, so the first line with a request decides.
            .find(|line| !matches!(line, Ok(Line::Nothing | Line::Skip(_))))
            .is_some_and(|line| line.is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_rows_agree() {
        let names = "page-ops cloudphysics vscsi msr spc disksim alibaba tencent systor blkparse fiu fio2 fio3 mqsim \
            oracle-general midas columns blktrace ftrace ids lcs ycsb binary-ids";
        for (format, name) in ALL.iter().copied().zip(names.split(' ')) {
            assert_eq!(format.name(), name);
            assert_eq!(Format::from_name(name), Ok(format));
            assert!(format.row().name_parts.contains(&name) && !format.about().is_empty());
        }
        assert_eq!(
            Format::from_name("pageops").unwrap_err().to_string(),
            format!("unknown format `pageops`; did you mean `page-ops`? (known: {names})")
        );
    }

    /// The test parses, writes and parses again every option of every format.
    #[test]
    fn a_default_written_out_changes_no_text_and_another_value_does() {
        let text = |text: String| -> Result<String, SpecError> {
            let (format, options) = Format::from_spec(Spec::parse(&text)?)?;
            Ok(format.text(&options))
        };
        for format in ALL {
            let name = format.name();
            for option in format.options() {
                assert_eq!(text(format!("{name}:{}={}", option.key, option.default)).as_deref(), Ok(name));
                let others = ["yes", "ps", "30%", "hm.1", "read", "8KiB", "7", "u32be"]
                    .map(|value| format!("{name}:{}={value}", option.key));
                let taken: Vec<&String> =
                    others.iter().filter(|other| text(other.to_string()).is_ok()).collect();
                assert!(!taken.is_empty(), "{name}: {}", option.key);
                for other in taken {
                    assert_eq!(text(other.clone()).as_ref(), Ok(other));
                }
            }
        }
        // A value with a comma keeps its quotes.
        let regex = r#"columns:regex="(?<offset>\d{1,9})""#;
        assert_eq!(text(regex.to_owned()).as_deref(), Ok(regex));
    }

    #[test]
    fn the_file_name_decides_before_the_content() {
        let pages = Some(Format::PAGE_OPS);
        let cloudphysics = Some(Format::CLOUD_PHYSICS);
        assert_eq!(Format::detect("a/b.csv/postgres.pages.zst", b"1,2,28,512,4"), pages);
        assert_eq!(Format::detect("x.page-ops", b""), pages);
        assert_eq!(Format::detect("CloudPhysics.csv.gz", b""), cloudphysics);
        assert_eq!(Format::detect("pages", b""), pages);
        let oracle_general = Some(Format::ORACLE_GENERAL);
        for name in ["x.oracleGeneral.zst", "w01.oracleGeneral.sample10.zst", "msr.oracleGeneral.zst"] {
            assert_eq!(Format::detect(name, b""), oracle_general, "{name}");
        }
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
