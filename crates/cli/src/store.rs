//! Executes the commands over a store in a file.

use crate::common::Common;
use crate::interrupt;
use crate::output::{print, written};
use crate::progress::watched;
use crate::store_arguments::{Backup, Get, Load, Repair, Scan, StoreCommand};
use fulgurite_store_file::{self as store, Form, LoadAsked, NewStore, Report, ScanAsked};
use fulgurite_study::people;
use fulgurite_study::table::Table;
use fulgurite_study::{Column, Progress, StackError};
use std::io::{self, Write};

/// Executes a command over a store in a file.
pub(crate) fn run(command: StoreCommand, common: &Common) -> Result<(), StackError> {
    match command {
        StoreCommand::Load(Load { opened, table, from, header, size, page, log, place }) => {
            let new = NewStore { size, page, log, place };
            let asked = LoadAsked { file: opened.store()?, table, from, header, new };
            let file = asked.file.path.display().to_string();
            let load = |progress: &Progress| {
                let kept = progress.clone();
                interrupt::leaves(move || match kept.durable() {
                    0 => format!(
                        "{file} may have the first records and no others; fulgurite check {file} counts them; load \
                            all again: a later row wins"
                    ),
                    records => format!(
                        "{file} has the first {records} records and may have more; fulgurite check {file} counts them; \
                            load the rest again, or all: a later row wins"
                    ),
                });
                store::load(&asked, progress)
            };
            tell(&watched(common.quiet, "records", load)?, common)
        }
        StoreCommand::Get(get) => self::get(get, common),
        StoreCommand::Scan(Scan { opened, table, from, to, prefix, backward, limit }) => {
            let form = if common.json { Form::Json } else { Form::Csv };
            let file = opened.store()?;
            let asked = ScanAsked { file, table, from, to, prefix, backward, limit, form };
            store::scan(&asked, io::stdout())
        }
        StoreCommand::Stat(opened) => {
            tell(&watched(common.quiet, "records", |_| store::stat(&opened.store()?))?, common)
        }
        StoreCommand::Check(opened) => {
            tell(&watched(common.quiet, "records", |_| store::check(&opened.store()?))?, common)
        }
        StoreCommand::Repair(Repair { opened, out, size }) => {
            let repair = |_: &Progress| store::repair(&opened.store()?, &out, size.as_deref());
            tell(&watched(common.quiet, "records", repair)?, common)
        }
        StoreCommand::Backup(Backup { opened, out, size, page, log, place }) => {
            let has_shape = [&size, &page, &log, &place].iter().any(|given| given.is_some());
            let new = NewStore { size, page, log, place };
            let backup = |_: &Progress| match has_shape {
                true => store::copy(&opened.store()?, &out, &new),
                false => store::backup(&opened.store()?, &out),
            };
            tell(&watched(common.quiet, "records", backup)?, common)
        }
        StoreCommand::Compact(opened) => {
            tell(&watched(common.quiet, "records", |_| store::compact(&opened.store()?))?, common)
        }
    }
}

fn get(Get { opened, table, key, raw }: Get, common: &Common) -> Result<(), StackError> {
    let record = store::get(&opened.store()?, &table, &key)?;
    if raw {
        return written(io::stdout().write_all(&record.bytes));
    }
    let bytes = match (common.json, common.csv) {
        (true, _) => record.written(Form::Json)?,
        (_, true) => record.written(Form::Csv)?,
        _ => (record.text() + "\n").into_bytes(),
    };
    written(io::stdout().write_all(&bytes))
}

/// Prints the report of a command. Fails if the store is damaged.
fn tell(report: &Report, common: &Common) -> Result<(), StackError> {
    let table = Table { rows: report.rows.clone() };
    let text = |in_tables: String| report.text.clone().unwrap_or(in_tables);
    let plain = |table: &Table| {
        text(in_two_tables(
            table,
            |table, columns| table.to_upright_text(columns),
            |table, columns| table.to_text(columns),
        ))
    };
    // Wrap only sentences, because tables fit the width already.
    print(&table, common, plain, |table, view| match &report.text {
        Some(text) => people::wrapped(text, view.width),
        None => in_two_tables(
            table,
            |table, columns| people::upright(table, columns, view),
            |table, columns| people::list(table, columns, view),
        ),
    })?;
    report.verdict.clone()
}

/// Formats the first row as a list of names and values, and the other rows as a table below the list.
fn in_two_tables(
    table: &Table,
    upright: impl Fn(&Table, &[Column]) -> String,
    aligned: impl Fn(&Table, &[Column]) -> String,
) -> String {
    let (first, others) = table.rows.split_at(table.rows.len().min(1));
    let first = Table { rows: first.to_vec() };
    let others = Table { rows: others.to_vec() };
    let (mut names, rest): (Vec<_>, Vec<_>) =
        first.columns().into_iter().partition(|column| *column == Column::File);
    names.extend(rest);
    let mut text = upright(&first, &names);
    if !others.rows.is_empty() {
        let columns: Vec<_> = others.columns().into_iter().filter(|column| *column != Column::File).collect();
        text += &format!("\n{}", aligned(&others, &columns));
    }
    text
}
