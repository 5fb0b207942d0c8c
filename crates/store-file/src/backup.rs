//! Copies a store into a new file.

use crate::file::FileSink;
use crate::new_file::{NewFile, refuse_existing};
use crate::open::{Opened, StoreFile};
use crate::report::Report;
use fulgurite_stack::progress::step;
use fulgurite_stack::{Column, Row, StackError};
use std::path::Path;

/// The size in bytes of the block behind the last page of a drive in a file. The block marks the file as a
/// drive that Fulgurite created.
const MARK_BYTES: u64 = 4096;

/// Copies the store into a new file. The file gets its name when the copy is complete.
pub fn backup(file: &StoreFile, out: &Path) -> Result<Report, StackError> {
    let _step = step(format!("copying {}", file.path.display()), 0);
    refuse_existing("OUT", out)?;
    let Opened { executor, store } = file.open_to_read()?;
    let caps = executor.handle().caps();
    let bytes = (caps.pages * u64::from(caps.page_bytes)).saturating_sub(MARK_BYTES);
    let new = NewFile::begin("OUT", out, bytes)?;
    let sink = FileSink::new(new.file()?);
    let page_bytes = u64::from(store.page_bytes());
    let copying = sink.clone();
    let outcome = executor.block_on(async move { store.backup(&copying).await }).map_err(StackError::run)?;
    let report = outcome.map_err(|error| match sink.take_error() {
        Some(refused) => new.failed(&refused),
        None => file.failed(&error),
    })?;
    new.finish()?;
    let mut row = Row::default();
    row.set(Column::File, file.path.display().to_string());
    row.set(Column::Out, out.display().to_string());
    row.set(Column::PagesCopied, report.pages);
    row.set(Column::CopiedBytes, report.pages * page_bytes + report.log_bytes);
    let text = format!(
        "{} is a copy of {}: {} pages, {} with the log\n",
        row.text(Column::Out),
        row.text(Column::File),
        row.text(Column::PagesCopied),
        Column::CopiedBytes.unit().humane(row.number(Column::CopiedBytes).unwrap_or(0.0)),
    );
    Ok(Report { rows: vec![row], text: Some(text), verdict: Ok(()) })
}
