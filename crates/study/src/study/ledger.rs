//! Stores the finished runs of an incomplete study, so that the study can be resumed.
//!
//! When a run ends, its result rows are appended to a file in the folder of the study, one line per run. So
//! they survive a failure, an interrupt and a power failure. The file is removed when the study is complete.
//!
//! A run is identified by three values. The first is the exact text of its settings, because its rows repeat
//! that text. The second is its `run_id`, which covers a hash of the requests of its trace. The third is the
//! version of Fulgurite. An incomplete line is ignored.

use fulgurite_files::obstacle;
use fulgurite_stack::{Column, Row, StackError, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The name of the file of finished runs, in the folder of the study.
pub(super) const NAME: &str = "finished-runs.jsonl";

/// The identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Key {
    pub version: String,
    pub part: Option<String>,
    pub asked: String,
    pub run_id: String,
}

/// The finished runs of an incomplete study.
pub(super) struct Ledger {
    path: PathBuf,
    known: BTreeMap<Key, Vec<Row>>,
    /// The file of finished runs; `None` until the first run ends.
    file: Mutex<Option<File>>,
}

/// A finished run as a line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    rows: Vec<Vec<(String, Cell)>>,
}

/// A value in a form that is read back exactly.
#[derive(Serialize, Deserialize)]
enum Cell {
    #[serde(rename = "text")]
    Text(String),
    #[serde(rename = "integer")]
    Integer(u64),
    /// The shortest decimal number that is read back exactly. It is stored as text, because JSON has no
    /// infinity and no NaN.
    #[serde(rename = "real")]
    Real(String),
}

impl Ledger {
    /// Opens the ledger in `folder`. With `resume` the finished runs in its file are read.
    pub(super) fn open(folder: &Path, resume: bool) -> Result<Ledger, StackError> {
        let path = folder.join(NAME);
        let known =
            if resume { read(&path).map_err(|error| failed(&path, &error))? } else { BTreeMap::new() };
        Ok(Ledger { path, known, file: Mutex::new(None) })
    }

    /// Returns the number of finished runs that were read.
    pub(super) fn known(&self) -> usize {
        self.known.len()
    }

    /// Returns the rows of a finished run, or `None` if the run is not in the ledger.
    pub(super) fn rows(&self, key: &Key) -> Option<Vec<Row>> {
        self.known.get(key).cloned()
    }

    /// Appends the rows of a finished run to the file.
    pub(super) fn keep(&self, key: Key, rows: &[Row]) -> Result<(), StackError> {
        let failed = |error: &io::Error| failed(&self.path, error);
        let rows = rows.iter().map(cells).collect();
        let mut line = serde_json::to_string(&Line { key, rows }).map_err(|error| failed(&error.into()))?;
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(open(&self.path).map_err(|error| failed(&error))?),
        };
        // Writes the line in a single call, so that an interrupt leaves either the whole line or nothing.
        file.write_all(line.as_bytes()).map_err(|error| failed(&error))
    }

    /// Removes the file, because the study is complete.
    pub(super) fn finish(self) -> Result<(), StackError> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&self.path, &error)),
            _ => Ok(()),
        }
    }
}

/// Returns the identities of the finished runs in `folder`, read from complete lines only.
pub(super) fn keys(folder: &Path) -> Vec<Key> {
    read(&folder.join(NAME)).map_or(Vec::new(), |known| known.into_keys().collect())
}

fn failed(path: &Path, error: &io::Error) -> StackError {
    StackError::run(format!("{}: {}", path.display(), obstacle(path, error)))
}

fn open(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    // Starts a new line if the last line is incomplete, because a full disk has cut it off.
    if last != [b'\n'] {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

fn read(path: &Path) -> io::Result<BTreeMap<Key, Vec<Row>>> {
    let text = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        text => text?,
    };
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let Line { key, rows } = serde_json::from_slice(line).ok()?;
        Some((key, rows.into_iter().map(row).collect::<Option<Vec<Row>>>()?))
    });
    Ok(lines.collect())
}

fn cells(row: &Row) -> Vec<(String, Cell)> {
    let cell = |value: &Value| match value {
        Value::Text(text) => Cell::Text(text.clone()),
        Value::Integer(integer) => Cell::Integer(*integer),
        Value::Real(real) => Cell::Real(format!("{real:?}")),
    };
    Column::all().filter_map(|column| Some((column.name().to_owned(), cell(row.get(column)?)))).collect()
}

fn row(cells: Vec<(String, Cell)>) -> Option<Row> {
    let mut row = Row::default();
    for (column, cell) in cells {
        let value = match cell {
            Cell::Text(text) => Value::Text(text),
            Cell::Integer(integer) => Value::Integer(integer),
            Cell::Real(real) => Value::Real(real.parse().ok()?),
        };
        row.set(Column::from_name(&column).ok()?, value);
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(run_id: &str) -> Key {
        Key { version: "1".to_owned(), part: None, asked: "pool".to_owned(), run_id: run_id.to_owned() }
    }

    #[test]
    fn rows_are_read_back_exactly() {
        let folder = std::env::temp_dir().join(format!("fulgurite-ledger-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut kept = Row::default();
        kept.set(Column::Device, "a \"device\"\n");
        kept.set(Column::Ops, u64::MAX);
        // An imprecise reader would change these reals in the last bit, or read them as integers.
        kept.set(Column::HitRatio, 5e-324);
        kept.set(Column::Waf, 0.1 + 0.2);
        kept.set(Column::WafSteady, f64::INFINITY);
        kept.set(Column::Alpha, 1.0);
        let ledger = Ledger::open(&folder, false).unwrap();
        ledger.keep(key("whole"), std::slice::from_ref(&kept)).unwrap();
        // Appends an incomplete line, and below a complete line after it.
        open(&ledger.path).unwrap().write_all(b"{\"version\":\"1\",\"asked\"").unwrap();
        let again = Ledger::open(&folder, false).unwrap();
        again.keep(key("later"), &[]).unwrap();
        assert_eq!((again.known(), keys(&folder).len()), (0, 2));
        let resumed = Ledger::open(&folder, true).unwrap();
        assert_eq!(resumed.rows(&key("whole")), Some(vec![kept]));
        assert_eq!(resumed.rows(&key("later")), Some(Vec::new()));
        assert_eq!(resumed.rows(&Key { version: "2".to_owned(), ..key("whole") }), None);
        resumed.finish().unwrap();
        assert_eq!(keys(&folder), []);
        fs::remove_dir_all(&folder).unwrap();
    }
}
