//! The commands over a store in a file.

use crate::arguments::Common;
use crate::interrupt;
use crate::output::{print, written};
use crate::progress::watched;
use clap::{Args, Subcommand};
use fulgurite_study::people;
use fulgurite_study::store::{self, Form, LoadAsked, Said, ScanAsked, StoreFile};
use fulgurite_study::table::Table;
use fulgurite_study::{Column, Progress, StackError};
use std::io::{self, Write};
use std::path::PathBuf;

/// The commands, beside those that run stacks.
#[derive(Subcommand)]
pub enum Stored {
    /// Load records from CSV into a table of a store; a store that does not exist is created
    #[command(after_help = LOAD_HELP)]
    Load(Load),
    /// Print the value of a key
    #[command(after_help = GET_HELP)]
    Get(Get),
    /// Print the records of a table in key order, as CSV that `load` can read
    #[command(after_help = SCAN_HELP)]
    Scan(Scan),
    /// Show how large and how full a store is, and which tables it has
    #[command(after_help = STAT_HELP)]
    Stat(Opened),
    /// Check every page of a store; report damage and what is lost by it
    #[command(after_help = CHECK_HELP)]
    Check(Opened),
    /// Copy what can be saved of a damaged store into a new store
    #[command(after_help = REPAIR_HELP)]
    Repair(Copied),
    /// Copy a store into a new file
    #[command(after_help = BACKUP_HELP)]
    Backup(Copied),
}

const LOAD_HELP: &str = "\
A row is key,value. A byte may be written \\xNN, a backslash is \\\\. Of rows with the same key the later one wins. \
Rows before one that is refused stay loaded. Records are durable when the command ends.

A new FILE has --size as its length at once and takes room on the disk as it fills (du shows how much). \
Its size, page and log stay what they are.

Examples:
  fulgurite load my.store users --from users.csv --header
  zcat users.csv.gz | fulgurite load my.store users";

const GET_HELP: &str = "\
KEY and value are text. A byte that is no printable character is written \\xNN, a backslash \\\\. \
A key that begins with - stands behind --: get my.store users -- -5. \
Exit code 1: there is no such key. FILE stays as it is.

Examples:
  fulgurite get my.store users alice
  fulgurite get my.store users alice --raw > value";

const SCAN_HELP: &str = "\
A byte that is no printable character is written \\xNN, a backslash \\\\, in keys that are typed too. FILE stays as it is.

Examples:
  fulgurite scan my.store users --from a --to b --limit 10
  fulgurite scan my.store users --prefix user --json";

const STAT_HELP: &str = "\
Records are counted, so all of the store is read. FILE stays as it is.

Example:
  fulgurite stat my.store";

const CHECK_HELP: &str = "\
Exit code 0: the store is sound. 1: it is damaged. 2: FILE is no store. FILE stays as it is: what recovery would write \
after a crash is kept beside it while the command runs.

Example:
  fulgurite check my.store && echo sound";

const REPAIR_HELP: &str = "\
Exit code 0: everything was saved. 1: something is lost, and OUT has the rest. FILE is only read.

Example:
  fulgurite repair my.store saved.store";

const BACKUP_HELP: &str = "\
OUT is a store of its own. To restore, copy OUT to FILE, or back it up again under that name. FILE stays as it is, and \
nobody writes it meanwhile.

Example:
  fulgurite backup my.store copy.store";

#[derive(Args)]
pub struct Opened {
    /// A file or block device that holds a store
    file: PathBuf,
    /// Memory for pages and the log [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
}

impl Opened {
    fn store(self) -> Result<StoreFile, StackError> {
        StoreFile::new(self.file, self.memory.as_deref())
    }
}

#[derive(Args)]
pub struct Load {
    #[command(flatten)]
    opened: Opened,
    /// The table; it is created if it does not exist
    table: String,
    /// The rows: a file, or - for standard input [default: -]
    #[arg(long, value_name = "CSV")]
    from: Option<PathBuf>,
    /// The first row names the columns and is no record
    #[arg(long)]
    header: bool,
    /// Bytes of a new FILE [default: 16GiB, or four times the rows where that is more]
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// Bytes in a page of a new store [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    page: Option<String>,
    /// Bytes of the log of a new store [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    log: Option<String>,
    /// Where a new store writes pages: in-place, out-of-place[:unit=,compress=,spare=,placement=,victim=] or auto [default: in-place]
    #[arg(long, value_name = "WHERE")]
    place: Option<String>,
}

#[derive(Args)]
pub struct Get {
    #[command(flatten)]
    opened: Opened,
    /// The table
    table: String,
    /// The key
    key: String,
    /// Write the bytes of the value as they are
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    raw: bool,
}

#[derive(Args)]
pub struct Scan {
    #[command(flatten)]
    opened: Opened,
    /// The table
    table: String,
    /// Begin with this key
    #[arg(long, value_name = "KEY")]
    from: Option<String>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    to: Option<String>,
    /// Print only keys that begin with this
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    prefix: Option<String>,
    /// Begin with the greatest key and go down
    #[arg(long)]
    backward: bool,
    /// Print at most this many records
    #[arg(long, value_name = "N")]
    limit: Option<String>,
}

#[derive(Args)]
pub struct Copied {
    #[command(flatten)]
    opened: Opened,
    /// The new file
    out: PathBuf,
}

/// Does what the command says.
pub fn run(command: Stored, common: &Common) -> Result<(), StackError> {
    match command {
        Stored::Load(Load { opened, table, from, header, size, page, log, place }) => {
            let asked = LoadAsked { file: opened.store()?, table, from, header, size, page, log, place };
            let file = asked.file.path.display().to_string();
            let load = |progress: &Progress| {
                let kept = progress.clone();
                interrupt::leaves(move || match kept.durable() {
                    0 => format!("no record is in {file} for sure; load them again"),
                    records => format!(
                        "the first {records} records are in {file} for sure; load the rest again, or all: a later row wins"
                    ),
                });
                store::load(&asked, progress)
            };
            tell(&watched(common.quiet, "records", load)?, common)
        }
        Stored::Get(get) => self::get(get, common),
        Stored::Scan(Scan { opened, table, from, to, prefix, backward, limit }) => {
            let form = if common.json { Form::Json } else { Form::Csv };
            let file = opened.store()?;
            let asked = ScanAsked { file, table, from, to, prefix, backward, limit, form };
            store::scan(&asked, io::stdout())
        }
        Stored::Stat(opened) => {
            tell(&watched(common.quiet, "records", |_| store::stat(&opened.store()?))?, common)
        }
        Stored::Check(opened) => {
            tell(&watched(common.quiet, "records", |_| store::check(&opened.store()?))?, common)
        }
        Stored::Repair(Copied { opened, out }) => {
            tell(&watched(common.quiet, "records", |_| store::repair(&opened.store()?, &out))?, common)
        }
        Stored::Backup(Copied { opened, out }) => {
            tell(&watched(common.quiet, "records", |_| store::backup(&opened.store()?, &out))?, common)
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

/// Prints what a command has to say, and then whether all is well.
fn tell(said: &Said, common: &Common) -> Result<(), StackError> {
    let table = Table { rows: said.rows.clone() };
    let text = |in_tables: String| said.text.clone().unwrap_or(in_tables);
    let plain = |table: &Table| {
        text(in_two_tables(
            table,
            |table, columns| table.to_upright_text(columns),
            |table, columns| table.to_text(columns),
        ))
    };
    // Tables fit by themselves; only sentences are wrapped.
    print(&table, common, plain, |table, view| match &said.text {
        Some(text) => people::wrapped(text, view.width),
        None => in_two_tables(
            table,
            |table, columns| people::upright(table, columns, view),
            |table, columns| people::list(table, columns, view),
        ),
    })?;
    said.verdict.clone()
}

/// The first row turned round, and the others beneath it.
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
