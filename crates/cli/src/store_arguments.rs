//! Declares the arguments of the commands over a store in a file.

use clap::{Args, Subcommand};
use fulgurite_store_file::StoreFile;
use fulgurite_study::StackError;
use std::path::PathBuf;

/// The commands, beside those that run stacks.
#[derive(Subcommand)]
pub(crate) enum StoreCommand {
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
    Repair(Repair),
    /// Copy a store into a new file, of another size if you like
    #[command(after_help = BACKUP_HELP)]
    Backup(Backup),
    /// Make a store smaller: merge sparse pages, and give free ones back to the disk
    #[command(after_help = COMPACT_HELP)]
    Compact(Opened),
}

const LOAD_HELP: &str = "\
A row is key,value. A byte may be written \\xNN, a backslash is \\\\. If rows have the same key, the later one wins. \
Rows before one that is refused stay loaded. Records are durable when the command ends.

A new FILE has --size as its length at once and takes room on the disk as it fills (du shows how much). \
Its page and log stay what they are. A larger --size extends a FILE with pages in place.

Examples:
  fulgurite load my.store users --from users.csv --header
  zcat users.csv.gz | fulgurite load my.store users";

const GET_HELP: &str = "\
KEY and value are text. A byte that is no printable character is written \\xNN, a backslash \\\\. \
Write a key that begins with - after --: get my.store users -- -5. \
Exit code 1: there is no such key. FILE does not change.

Examples:
  fulgurite get my.store users alice
  fulgurite get my.store users alice --raw > value";

const SCAN_HELP: &str = "\
A byte that is no printable character is written \\xNN, a backslash \\\\, in typed keys too. FILE does not change.

Examples:
  fulgurite scan my.store users --from a --to b --limit 10
  fulgurite scan my.store users --prefix user --json";

const STAT_HELP: &str = "\
Records are counted, so all of the store is read. FILE does not change.

Example:
  fulgurite stat my.store";

const CHECK_HELP: &str = "\
Exit code 0: the store is sound. 1: it is damaged. 2: FILE is no store. FILE does not change: after a crash, \
recovery writes to a temporary file.

Example:
  fulgurite check my.store && echo sound";

const REPAIR_HELP: &str = "\
Exit code 0: everything was saved. 1: something is lost, and OUT has the rest. FILE is only read.

Example:
  fulgurite repair my.store saved.store";

const BACKUP_HELP: &str = "\
OUT is a store of its own. To restore, copy OUT to FILE, or back it up again under that name. FILE does not change, \
and no other process may write it meanwhile. With --size, --page, --log or --place the records are copied into a \
store of that shape; a program makes its indexes again when it opens them.

Examples:
  fulgurite backup my.store copy.store
  fulgurite backup my.store larger.store --size 64GiB --log 256MiB";

const COMPACT_HELP: &str = "\
FILE keeps its length and takes less of the disk (du shows how much). An interruption loses nothing.

Example:
  fulgurite compact my.store";

#[derive(Args)]
pub(crate) struct Opened {
    /// A file or block device that holds a store
    pub file: PathBuf,
    /// Memory for pages and the log [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
}

impl Opened {
    /// Returns the file of the store, with the memory for the store.
    pub(crate) fn store(self) -> Result<StoreFile, StackError> {
        StoreFile::new(self.file, self.memory.as_deref())
    }
}

#[derive(Args)]
pub(crate) struct Load {
    #[command(flatten)]
    pub opened: Opened,
    /// The table; it is created if it does not exist
    pub table: String,
    /// The rows: a file, or - for standard input [default: -]
    #[arg(long, value_name = "CSV")]
    pub from: Option<PathBuf>,
    /// The first row names the columns and is no record
    #[arg(long)]
    pub header: bool,
    /// Bytes of a new FILE [default: 16GiB, or four times the rows if that is more]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Bytes in a page of a new store [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    pub page: Option<String>,
    /// Bytes of the log of a new store [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    pub log: Option<String>,
    /// Place of a new store's pages: in-place, out-of-place[:unit=,compress=,deltas=,spare=,placement=,victim=] or
    /// auto [default: in-place]
    #[arg(long, value_name = "WHERE")]
    pub place: Option<String>,
}

#[derive(Args)]
pub(crate) struct Get {
    #[command(flatten)]
    pub opened: Opened,
    /// The table
    pub table: String,
    /// The key
    pub key: String,
    /// Write the bytes of the value as they are
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    pub raw: bool,
}

#[derive(Args)]
pub(crate) struct Scan {
    #[command(flatten)]
    pub opened: Opened,
    /// The table
    pub table: String,
    /// Begin with this key
    #[arg(long, value_name = "KEY")]
    pub from: Option<String>,
    /// End before this key
    #[arg(long, value_name = "KEY")]
    pub to: Option<String>,
    /// Print only keys that begin with this
    #[arg(long, value_name = "KEY", conflicts_with_all = ["from", "to"])]
    pub prefix: Option<String>,
    /// Begin with the greatest key and go down
    #[arg(long)]
    pub backward: bool,
    /// Print at most this many records
    #[arg(long, value_name = "N")]
    pub limit: Option<String>,
}

#[derive(Args)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub opened: Opened,
    /// The new file
    pub out: PathBuf,
    /// Bytes of OUT [default: those of FILE, or more if the records need them]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
}

#[derive(Args)]
pub(crate) struct Backup {
    #[command(flatten)]
    pub opened: Opened,
    /// The new file
    pub out: PathBuf,
    /// Bytes of OUT [default: those of FILE]
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Bytes in a page of OUT [default: those of FILE]
    #[arg(long, value_name = "SIZE")]
    pub page: Option<String>,
    /// Bytes of the log of OUT [default: those of FILE]
    #[arg(long, value_name = "SIZE")]
    pub log: Option<String>,
    /// Place of OUT's pages, as load takes it [default: in-place, or that of FILE if another shape is given]
    #[arg(long, value_name = "WHERE")]
    pub place: Option<String>,
}
