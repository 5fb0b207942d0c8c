//! Makes a store smaller.

use crate::database::{failed, open};
use crate::open::StoreFile;
use crate::report::Report;
use fulgurite_db::Access;
use fulgurite_engine::Durability;
use fulgurite_stack::progress::step;
use fulgurite_stack::{Column, Row, StackError};

/// Merges sparse nodes of the store, and gives the room of free pages back to the file system.
pub fn compact(file: &StoreFile) -> Result<Report, StackError> {
    let _step = step(format!("compacting {}", file.path.display()), 0);
    let store = open(file, Access::Write, None, Durability::Group)?;
    let disk = || store.disk_bytes().map_err(|error| failed(file, error));
    let before = disk()?;
    let reports = store.compact().map_err(|error| file.failed(&error))?;
    store.close().map_err(|error| file.failed(&error))?;
    let after = disk()?;
    let report = reports.into_iter().next().unwrap_or_default();
    let mut row = Row::default();
    row.set(Column::File, file.path.display().to_string());
    row.set(Column::PagesUsed, report.pages_after);
    row.set(Column::PagesReleased, report.pages_before.saturating_sub(report.pages_after));
    row.set(Column::PiecesDeleted, report.pieces_deleted);
    row.set(Column::DiskBytes, after);
    let humane = |bytes: u64| Column::DiskBytes.unit().humane(bytes as f64);
    let mut text = format!(
        "{}: {} pages in use, {} fewer than before; {} of the disk, {} before\n",
        row.text(Column::File),
        row.text(Column::PagesUsed),
        row.text(Column::PagesReleased),
        humane(after),
        humane(before),
    );
    if report.pieces_deleted > 0 {
        text += &format!(
            "{} pieces of large values were deleted, which an interrupted load had left\n",
            row.text(Column::PiecesDeleted)
        );
    }
    Ok(Report { rows: vec![row], text: Some(text), verdict: Ok(()) })
}
