//! Prints the records of a range of keys, in key order.

use crate::open::{StoreFile, read_key};
use crate::text;
use fulgurite_base::units;
use fulgurite_engine::{Direction, Snapshot, Table};
use fulgurite_files::output::standard_failed;
use fulgurite_stack::StackError;
use std::io::{self, BufWriter, Write};
use std::ops::Bound;

/// The format of printed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Rows `key,value` of CSV without a header, as `load` reads them.
    Csv,
    /// One JSON array of objects with `key` and `value`, one record per line.
    Json,
}

/// The arguments of a scan. Keys are text with escapes.
#[derive(Clone, Debug)]
pub struct ScanAsked {
    /// The file of the store.
    pub file: StoreFile,
    /// The name of the table.
    pub table: String,
    /// The first key of the range; `None` for the first key of the table.
    pub from: Option<String>,
    /// The key before which the range ends; `None` for the end of the table.
    pub to: Option<String>,
    /// A prefix of all keys of the range; `None` if `from` and `to` give the range.
    pub prefix: Option<String>,
    /// Whether records are printed in descending key order.
    pub backward: bool,
    /// The largest number of printed records; `None` for no limit.
    pub limit: Option<String>,
    /// The format of the printed records.
    pub form: Form,
}

/// The arguments of a scan, with their values parsed.
struct Asked {
    low: Bound<Vec<u8>>,
    high: Bound<Vec<u8>>,
    direction: Direction,
    limit: u64,
}

impl ScanAsked {
    fn read(&self) -> Result<Asked, StackError> {
        let key = |argument, text: &Option<String>| {
            text.as_deref().map(|text| read_key(argument, text)).transpose()
        };
        let (mut from, mut to) = (key("--from", &self.from)?, key("--to", &self.to)?);
        if let Some(prefix) = key("--prefix", &self.prefix)? {
            to = behind(&prefix);
            from = Some(prefix);
        }
        let limit = self.limit.as_deref().map(units::parse_count).transpose();
        let limit = limit.map_err(|error| StackError::request(format!("--limit: {error}")))?;
        Ok(Asked {
            low: from.map_or(Bound::Unbounded, Bound::Included),
            high: to.map_or(Bound::Unbounded, Bound::Excluded),
            direction: if self.backward { Direction::Backward } else { Direction::Forward },
            limit: limit.unwrap_or(u64::MAX),
        })
    }
}

/// Returns the least key that is greater than all keys with this prefix; `None` if there is no such key.
fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

/// The reason why printing stopped early.
enum Stopped {
    Failed(StackError),
    /// The reader closed the pipe (`| head`), or the output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Output(error)
    }
}

/// Writes the records to `output`. If the reader closes its pipe, the scan ends without an error.
pub fn scan(asked: &ScanAsked, output: impl Write + 'static) -> Result<(), StackError> {
    let ScanAsked { file, table, form, .. } = asked.clone();
    let range = asked.read()?;
    let opened = file.open_to_read()?;
    let store = opened.store.clone();
    let task = async move {
        let table = file.table(&store, &table).await.map_err(Stopped::Failed)?;
        let snapshot = store.snapshot();
        let mut writer = Writer::new(form, BufWriter::with_capacity(1 << 16, output));
        write_all(&file, &snapshot, table, &range, &mut writer).await?;
        writer.finish().map_err(Stopped::Output)
    };
    match opened.executor.block_on(task).map_err(StackError::run)? {
        Ok(()) => Ok(()),
        Err(Stopped::Failed(error)) => Err(error),
        Err(Stopped::Output(error)) => Ok(standard_failed(&error)?),
    }
}

async fn write_all<W: Write>(
    file: &StoreFile,
    snapshot: &Snapshot,
    table: Table,
    range: &Asked,
    writer: &mut Writer<W>,
) -> Result<(), Stopped> {
    let bounds = (range.low.as_ref().map(|key| &key[..]), range.high.as_ref().map(|key| &key[..]));
    let mut scan = snapshot.scan(table, bounds, range.direction);
    let mut left = range.limit;
    while left > 0 {
        let record = scan.next().await;
        let Some((key, value)) = record.map_err(|error| Stopped::Failed(file.failed(&error)))? else { break };
        writer.write(&text::escape(&key), &text::escape(&value))?;
        left -= 1;
    }
    Ok(())
}

/// Writes records in CSV or JSON.
pub(crate) enum Writer<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Json { output: W, records: u64 },
}

impl<W: Write> Writer<W> {
    /// Creates a writer. Nothing is written before the first record.
    pub(crate) fn new(form: Form, output: W) -> Writer<W> {
        match form {
            Form::Csv => Writer::Csv(Box::new(csv::Writer::from_writer(output))),
            Form::Json => Writer::Json { output, records: 0 },
        }
    }

    /// Writes a record. Its key and value are text with escapes.
    pub(crate) fn write(&mut self, key: &str, value: &str) -> io::Result<()> {
        match self {
            Writer::Csv(csv) => csv.write_record([key, value]).map_err(|error| match error.into_kind() {
                // Take the I/O error out of `csv::Error`, because the conversion to `io::Error` would hide a
                // closed pipe.
                csv::ErrorKind::Io(error) => error,
                other => io::Error::other(format!("{other:?}")),
            }),
            Writer::Json { output, records } => {
                let before = if *records == 0 { "[\n" } else { ",\n" };
                *records += 1;
                write!(output, "{before}{}", serde_json::json!({ "key": key, "value": value }))
            }
        }
    }

    /// Completes the output.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Writer::Csv(mut csv) => csv.flush(),
            Writer::Json { mut output, records } => {
                output.write_all(if records == 0 { b"[]\n" } else { b"\n]\n" })?;
                output.flush()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_one() {
        assert_eq!(behind(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(behind(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!((behind(b"\xff"), behind(b"")), (None, None));
    }
}
