//! Copies a store into a new file.

use crate::database::failed;
use crate::new_file::{NewFile, refuse_existing};
use crate::new_store::{NewStore, Sizes, plan, refused_options};
use crate::open::{Opened, StoreFile};
use crate::report::Report;
use fulgurite_db::{Access, Db, FileWriter, OpenError, Options as DbOptions};
use fulgurite_engine::{OutOfPlaceConfig, PlaceConfig};
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
    let writer = FileWriter::new(new.file()?);
    let sink = writer.sink(executor.handle().into());
    let page_bytes = u64::from(store.page_bytes());
    let outcome = executor.block_on(async move { store.backup(&sink).await }).map_err(StackError::run)?;
    let report = outcome.map_err(|error| match writer.take_error() {
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

/// Copies the records of the store into a new store whose sizes or place may differ. The file gets its name when the
/// copy is complete. Sizes that are not given are those of the store.
pub fn copy(file: &StoreFile, out: &Path, new: &NewStore) -> Result<Report, StackError> {
    let _step = step(format!("copying {}", file.path.display()), 0);
    refuse_existing("OUT", out)?;
    let bytes = file.read_only()?.bytes();
    let memory_bytes = Some(file.options(bytes)?.memory_bytes);
    let read = DbOptions { access: Access::Read, memory_bytes, ..DbOptions::default() };
    let store = Db::open(&file.path, read).map_err(|error| failed(file, error))?;
    let (records, size) = copy_of(&store, file, out, new)?;
    let mut row = Row::default();
    row.set(Column::File, file.path.display().to_string());
    row.set(Column::Out, out.display().to_string());
    row.set(Column::Records, records);
    row.set(Column::FileBytes, size);
    let text = format!(
        "{} has the {} records of {} in a store of {}\n",
        row.text(Column::Out),
        row.text(Column::Records),
        row.text(Column::File),
        Column::FileBytes.unit().humane(size as f64),
    );
    Ok(Report { rows: vec![row], text: Some(text), verdict: Ok(()) })
}

/// Copies the records of an open store into a new store whose sizes or place may differ. Returns the number of records.
pub fn copy_open(store: &Db, out: &Path, new: &NewStore) -> Result<u64, StackError> {
    refuse_existing("OUT", out)?;
    let file = StoreFile::new(store.path().to_owned(), None)?;
    copy_of(store, &file, out, new).map(|(records, _)| records)
}

/// Copies an open store into a new file, which gets its name when the copy is complete.
pub fn backup_open(store: &Db, out: &Path) -> Result<(), StackError> {
    refuse_existing("OUT", out)?;
    let file = StoreFile::new(store.path().to_owned(), None)?;
    store.backup(out).map(drop).map_err(|error| failed(&file, error))
}

/// Returns the number of records and the size of the new store in bytes.
fn copy_of(store: &Db, file: &StoreFile, out: &Path, new: &NewStore) -> Result<(u64, u64), StackError> {
    let mut sizes = Sizes::read(new)?;
    let length = std::fs::metadata(&file.path).map_or(0, |found| found.len());
    if let Some(shape) = fulgurite_db::shape(&file.path) {
        sizes.size = sizes.size.or(length.checked_sub(MARK_BYTES));
        sizes.page = sizes.page.or(Some(u64::from(shape.page_bytes)));
        sizes.log = sizes.log.or(Some(shape.log_bytes));
        if sizes.place.is_none() && shape.is_out_of_place {
            sizes.place = Some(PlaceConfig::OutOfPlace(OutOfPlaceConfig::default()));
        }
    }
    let (size, engine) = plan(file, &sizes, None)?;
    let options = DbOptions {
        size_bytes: Some(size),
        page_bytes: Some(engine.page_bytes),
        log_bytes: Some(engine.log_bytes),
        place: Some(engine.place.clone()),
        memory_bytes: Some(engine.memory_bytes),
        engine,
        access: Access::Create,
    };
    let copied = store.copy(out, options).map_err(|error| match error {
        OpenError::Store { path, error } if path == out => refused_options(file, &sizes, error),
        error => failed(file, error),
    });
    copied.map(|records| (records, size))
}
