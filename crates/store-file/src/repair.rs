//! Copies the readable records of a damaged store into a new store.

use crate::new_file::{NewFile, refuse_existing};
use crate::open::{StoreFile, open_drive, read_size};
use crate::report::Report;
use crate::text;
use fulgurite_base::units::format_size;
use fulgurite_db::FileSource;
use fulgurite_device::Executor;
use fulgurite_engine::{Error, KeyRange, LostPart, RepairReport, TableRepair};
use fulgurite_stack::progress::step;
use fulgurite_stack::{Column, Row, StackError};
use fulgurite_uring::DriveOptions;
use std::path::Path;

/// The largest number of retries. Each retry has a new store that is twice as large as the last one. So many make the
/// shortest piece of a store as long as its log and its pages need.
const MOST_TRIES: u32 = 13;
/// The unit of the size of a new file in bytes, which is the largest page size.
const UNIT: u64 = 64 << 10;

/// Copies the readable records into a new file of this size. The file gets its name when it is complete. Without a size
/// it is as long as the old file, or longer if the records need it.
pub fn repair(file: &StoreFile, out: &Path, size: Option<&str>) -> Result<Report, StackError> {
    let _step = step(format!("repairing {}", file.path.display()), 0);
    refuse_existing("OUT", out)?;
    // Retry with a larger file if the copy does not fit: a truncated file is shorter than its store, and the
    // copy of a full store may need a little more space.
    let asked = read_size("--size", size)?;
    if let Some(asked) = asked.filter(|asked| *asked > 1 << 60 || !asked.is_multiple_of(UNIT)) {
        return Err(StackError::request(format!(
            "--size {} cannot be used; accepted: a multiple of {}, up to 1 EiB",
            format_size(asked),
            format_size(UNIT)
        )));
    }
    let mut bytes = match asked {
        Some(asked) => asked,
        None => file.read_only()?.bytes().next_multiple_of(UNIT),
    };
    let mut left = if asked.is_some() { 0 } else { MOST_TRIES };
    let (new, report) = loop {
        match try_repair(file, out, bytes)? {
            (new, Ok(report)) => break (new, report),
            (_, Err(Error::Full { .. } | Error::Options(_))) if left > 0 => bytes *= 2,
            (_, Err(error @ (Error::NotAStore | Error::Version { .. }))) => return Err(file.failed(&error)),
            (_, Err(error)) => {
                let file = file.path.display();
                return Err(StackError::run(format!("{file} cannot be repaired: {error}")));
            }
        }
        left -= 1;
    };
    // A store without a table is of no use, so no file remains.
    let has_tables = !report.tables.is_empty() || report.is_whole();
    if has_tables {
        new.finish()?;
    }
    Ok(report_of(file, out, &report, has_tables))
}

/// Repairs the store into a new store of `bytes` bytes.
fn try_repair(
    file: &StoreFile,
    out: &Path,
    bytes: u64,
) -> Result<(NewFile, Result<RepairReport, Error>), StackError> {
    let source = FileSource(file.read_only()?);
    let new = NewFile::begin("OUT", out, bytes)?;
    let executor = Executor::new(open_drive(&new.unfinished(), &DriveOptions::default())?);
    let (handle, options) = (executor.handle(), file.options(bytes)?);
    let outcome = executor.block_on(async move { fulgurite_engine::repair(&source, handle, options).await });
    Ok((new, outcome.map_err(StackError::run)?))
}

fn report_of(file: &StoreFile, out: &Path, report: &RepairReport, is_saved: bool) -> Report {
    let [name, out] = [&file.path, out].map(|path| path.display().to_string());
    let mut rows = Vec::new();
    let mut words = String::new();
    for table in &report.tables {
        rows.push(table_row(&name, &out, table));
        words += &format!("{}: {} records saved\n", table.name, table.records);
        for part in &table.lost {
            words += &format!("{}: lost: the keys {}\n", table.name, part_words(part));
        }
        for key in &table.lost_large {
            words += &format!("{}: lost: the value of `{}`\n", table.name, text::escape(key));
        }
    }
    let whole = [
        report.log.as_ref().map(|log| format!("lost of the log: {log}")),
        report
            .guessed
            .then(|| "both superblocks were damaged, so sizes were found from the pages".to_owned()),
        (report.in_doubt > 0).then(|| {
            format!("lost: {} transactions in doubt, whose outcome another shard knows", report.in_doubt)
        }),
        (!report.indexes.is_empty())
            .then(|| format!("indexes to be made again: {}", report.indexes.join(", "))),
    ];
    let names = report.lost_names.iter().map(|range| format!("lost: tables with names {}", between(range)));
    for note in whole.into_iter().flatten().chain(names) {
        words += &format!("{note}\n");
        let mut row = Row::default();
        row.set(Column::File, name.as_str());
        if is_saved {
            row.set(Column::Out, out.as_str());
        }
        row.set(Column::Problem, note);
        rows.push(row);
    }
    let verdict = if report.is_whole() {
        words += &format!("everything was saved in {out}\n");
        Ok(())
    } else if !is_saved {
        Err(StackError::run(format!("{name} has no table that can be read, so {out} was not made")))
    } else {
        Err(StackError::run(format!("a part of {name} is lost; the rest is in {out}")))
    };
    Report { rows, text: Some(words), verdict }
}

fn table_row(file: &str, out: &str, table: &TableRepair) -> Row {
    let mut row = Row::default();
    row.set(Column::File, file);
    row.set(Column::Out, out);
    row.set(Column::Table, table.name.as_str());
    row.set(Column::Records, table.records);
    row.set(Column::LostRanges, table.lost.len() as u64);
    row.set(Column::LostValues, table.lost_large.len() as u64);
    let ranges: Vec<String> = table.lost.iter().map(part_words).collect();
    let values: Vec<String> = table.lost_large.iter().map(|key| format!("`{}`", text::escape(key))).collect();
    if !table.lost.is_empty() || !table.lost_large.is_empty() {
        row.set(Column::Lost, [ranges, values].concat().join("; "));
    }
    row
}

/// Describes a lost range of keys, and the records in it that the log has.
fn part_words(LostPart { keys, saved }: &LostPart) -> String {
    match saved {
        0 => between(keys),
        saved => format!("{}, except {saved} that the log has", between(keys)),
    }
}

/// Describes a range of keys.
fn between((low, high): &KeyRange) -> String {
    let low = text::escape(low);
    match high {
        Some(high) => format!("from `{low}` up to `{}`", text::escape(high)),
        None => format!("from `{low}` to the end"),
    }
}
