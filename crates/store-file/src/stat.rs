//! Reports the size of a store and of its tables.

use crate::open::{Opened, StoreFile};
use crate::report::Report;
use fulgurite_base::option::name_of;
use fulgurite_engine::{Direction, Error, Store, Table, TreeShape};
use fulgurite_stack::progress::step;
use fulgurite_stack::{Column, Row, StackError};
use std::ops::Bound;

/// Returns a result row about the store, a row about each table and each index, and a row about all large
/// values. Counting the records reads the whole store.
pub fn stat(file: &StoreFile) -> Result<Report, StackError> {
    let _step = step(format!("counting the records of {}", file.path.display()), 0);
    let Opened { executor, store } = file.open_to_read()?;
    let name = file.path.display().to_string();
    // The pages of this drive are those of the whole file, including the last block, which holds the mark of
    // a drive that Fulgurite created.
    let pages = executor.handle().caps().pages;
    let bytes = pages * u64::from(executor.handle().caps().page_bytes);
    let rows = executor.block_on(async move { rows(&store, &name, bytes).await });
    let rows = rows.map_err(StackError::run)?.map_err(|error| file.failed(&error))?;
    Ok(Report { rows, text: None, verdict: Ok(()) })
}

async fn rows(store: &Store, file: &str, file_bytes: u64) -> Result<Vec<Row>, Error> {
    let mut tables = store.tables().await?;
    tables.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut rows = vec![Row::default()];
    for (name, table) in &tables {
        let mut row = Row::default();
        row.set(Column::File, file);
        row.set(Column::Table, name.as_str());
        count(store, *table, &mut row).await?;
        rows.push(row);
    }
    for shape in store.shapes().await? {
        let is_table = |(name, _): &(String, Table)| shape.index_of.is_none() && *name == shape.name;
        match tables.iter().position(is_table) {
            // The first result row is about the store, so the rows of tables begin at 1.
            Some(index) => describe(&shape, &mut rows[index + 1]),
            None => rows.push(beside(file, &tables, &shape)),
        }
    }
    let statistics = store.statistics();
    let sum = |column| rows[1..].iter().filter_map(|row| row.number(column)).sum::<f64>() as u64;
    let (records, record_bytes) = (sum(Column::Records), sum(Column::RecordBytes));
    let about = &mut rows[0];
    about.set(Column::File, file);
    about.set(Column::FileBytes, file_bytes);
    about.set(Column::PageBytes, store.page_bytes());
    about.set(Column::Pages, statistics.pages);
    about.set(Column::PagesUsed, statistics.pages_used);
    about.set(Column::PagesFree, statistics.pages - statistics.pages_used);
    about.set(Column::SpaceBytes, statistics.space_bytes);
    about.set(Column::LogBytes, store.log_bytes());
    about.set(Column::LogUsedBytes, statistics.log_bytes_used);
    about.set(Column::Place, if store.is_out_of_place() { "out-of-place" } else { "in-place" });
    about.set(Column::TornPages, name_of(store.torn_pages()));
    about.set(Column::Tables, tables.len() as u64);
    about.set(Column::Records, records);
    about.set(Column::RecordBytes, record_bytes);
    Ok(rows)
}

/// Returns a result row about an index, or about all large values.
fn beside(file: &str, tables: &[(String, Table)], shape: &TreeShape) -> Row {
    let mut row = Row::default();
    row.set(Column::File, file);
    if let Some((table, _)) = tables.iter().find(|(_, table)| shape.index_of == Some(*table)) {
        row.set(Column::Table, table.as_str());
    }
    row.set(Column::Index, shape.name.as_str());
    describe(shape, &mut row);
    row
}

fn describe(shape: &TreeShape, row: &mut Row) {
    row.set(Column::Levels, shape.levels);
    row.set(Column::InnerPages, shape.inner_pages);
    row.set(Column::Leaves, shape.leaves);
    row.set(Column::LeafFill, shape.leaf_fill());
}

/// Counts the records of a table and their bytes, and sets these columns.
async fn count(store: &Store, table: Table, row: &mut Row) -> Result<(), Error> {
    let snapshot = store.snapshot();
    let mut scan = snapshot.scan(table, (Bound::Unbounded, Bound::Unbounded), Direction::Forward);
    let (mut records, mut bytes) = (0u64, 0u64);
    while let Some((key, value)) = scan.next().await? {
        records += 1;
        bytes += (key.len() + value.len()) as u64;
    }
    row.set(Column::Records, records);
    row.set(Column::RecordBytes, bytes);
    Ok(())
}
