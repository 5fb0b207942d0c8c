//! A trace file written in another format.

use crate::error::StudyError;
use crate::table::{Row, Table};
use flate2::Compression;
use flate2::write::GzEncoder;
use fulgurite_base::{Spec, units};
use fulgurite_workload::trace::{
    Format, Options, Record, TraceError, TraceWriter, Unit, open, write_oracle_general,
};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Converts the trace at `path` to the format `to`, into `out`, which appears whole or not at all.
pub fn convert(
    path: &str,
    out: &Path,
    to: &str,
    format: Option<&str>,
    page: Option<&str>,
) -> Result<Table, StudyError> {
    let (format, options) = match format {
        Some(spec) => {
            let (format, options) = Format::from_spec(Spec::parse(spec)?)?;
            (Some(format), options)
        }
        None => (None, Options::default()),
    };
    let to = Format::from_name(to)?;
    let page_bytes = page.map(units::parse_size).transpose()?.unwrap_or(4096);
    let refused = |error: io::Error| StudyError::request(format!("{}: {error}", out.display()));
    if fs::canonicalize(path).is_ok_and(|from| fs::canonicalize(out).is_ok_and(|out| out == from)) {
        return Err(StudyError::request(format!(
            "{} is the trace that is read; give another file",
            out.display()
        )));
    }
    let wrong = |error: TraceError| StudyError::request(error.to_string());
    let mut reader = open(path, format, options).map_err(wrong)?;
    let unit = reader.unit();
    if page.is_some() && unit == to.unit() {
        return Err(StudyError::request(format!(
            "--page does not go with {} to {}, which count the same; leave it out",
            reader.format().name(),
            to.name()
        )));
    }
    if to == Format::OracleGeneral && unit == Unit::Pages {
        return Err(StudyError::request(format!(
            "{} counts pages without times, oracle-general bytes with times; convert to another format first",
            reader.format().name()
        )));
    }
    let unfinished = out.with_extension("unfinished");
    let outcome = (|| -> Result<_, StudyError> {
        let mut packed = Packed::create(&unfinished, out).map_err(refused)?;
        if to == Format::OracleGeneral {
            let records: Vec<Record> = reader.by_ref().collect::<Result<_, _>>().map_err(wrong)?;
            write_oracle_general(&records, &mut packed).map_err(refused)?;
            packed.finish().map_err(refused)?;
            fs::rename(&unfinished, out).map_err(refused)?;
            return Ok((records.len() as u64, 0, "operations and times below 1 s"));
        }
        let mut writer = TraceWriter::new(packed, to, unit, page_bytes)?;
        let mut requests = 0u64;
        for record in reader.by_ref() {
            let record = record.map_err(wrong)?;
            writer.write(&record).map_err(refused)?;
            requests += 1;
        }
        let loses = writer.loses();
        let (packed, left_out) = writer.finish().map_err(refused)?;
        packed.finish().map_err(refused)?;
        fs::rename(&unfinished, out).map_err(refused)?;
        Ok((requests, left_out, loses))
    })();
    let (requests, left_out, loses) = outcome.inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
    let mut row = Row::default();
    row.set("file", out.display().to_string());
    row.set("format", to.name());
    row.set("requests", requests - left_out);
    row.set("requests_left_out", left_out);
    row.set("loses", loses);
    row.set("skipped", reader.skipped().iter().map(|skipped| skipped.count).sum::<u64>());
    row.set("times_clamped", reader.clamped());
    Ok(Table { rows: vec![row] })
}

/// A file, packed as its name says.
enum Packed {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Packed {
    fn create(path: &Path, name: &Path) -> io::Result<Packed> {
        let file = BufWriter::new(File::create(path)?);
        match name.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Ok(Packed::Gzip(GzEncoder::new(file, Compression::default()))),
            Some("zst") => Ok(Packed::Zstd(zstd::Encoder::new(file, 10)?)),
            _ => Ok(Packed::Plain(file)),
        }
    }

    fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Packed::Plain(file) => file,
            Packed::Gzip(encoder) => encoder.finish()?,
            Packed::Zstd(encoder) => encoder.finish()?,
        };
        file.flush()?;
        file.get_ref().sync_all()
    }
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(file) => file.write(bytes),
            Packed::Gzip(encoder) => encoder.write(bytes),
            Packed::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packed::Plain(file) => file.flush(),
            Packed::Gzip(encoder) => encoder.flush(),
            Packed::Zstd(encoder) => encoder.flush(),
        }
    }
}
