//! Loads records from CSV into a table, and creates the store if there is none.

use crate::input::{Input, Line};
use crate::new_file::NewFile;
use crate::new_store::{NewStore, Sizes, plan, refused_options};
use crate::open::{Opened, StoreFile, open_drive, refused};
use crate::report::Report;
use fulgurite_base::units;
use fulgurite_db::shape;
use fulgurite_device::Executor;
use fulgurite_engine::{Durability, Error, Options, PlaceConfig, SHARDS, Store, Table};
use fulgurite_files::free_bytes;
use fulgurite_stack::{Column, Progress, Row, StackError};
use fulgurite_uring::DriveOptions;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The largest number of records and bytes of one transaction.
const BATCH: (usize, u64) = (1024, 256 << 10);
/// The interval at which loaded records become durable. An interrupt loses at most the records of one
/// interval.
const SAVED_EVERY: Duration = Duration::from_secs(1);
/// The largest number of text bytes that encode one byte of a record.
const ESCAPED: u64 = 4;

/// The arguments of a load.
#[derive(Clone, Debug)]
pub struct LoadAsked {
    /// The file of the store.
    pub file: StoreFile,
    /// The name of the table. The table is created if it does not exist.
    pub table: String,
    /// The file with the CSV rows; `None` for standard input.
    pub from: Option<PathBuf>,
    /// Whether the first CSV row holds the names of the columns.
    pub header: bool,
    /// The sizes of the store, if the store is new. A larger size extends an existing one with pages in place.
    pub new: NewStore,
}

/// The counts of a load.
#[derive(Clone, Copy, Default)]
struct Loaded {
    records: u64,
    bytes: u64,
    /// The number of records of the store that are in the log but in no page.
    waiting: u64,
}

/// Loads the records. A later CSV row replaces an earlier row with the same key. The rows before a refused
/// row stay loaded.
pub fn load(asked: &LoadAsked, progress: &Progress) -> Result<Report, StackError> {
    let LoadAsked { file, table, from, header, new } = asked.clone();
    let sizes = Sizes::read(&new)?;
    if table.is_empty() {
        return Err(StackError::request("TABLE is empty; accepted: a name of at least one byte"));
    }
    if table == SHARDS {
        return Err(StackError::request(format!(
            "TABLE {SHARDS} is used by the store itself; accepted: another name"
        )));
    }
    // Open the input before the store is created, so that a wrong path leaves no store.
    let input = Input::open(from.as_deref(), header)?;
    let began = Instant::now();
    let metadata = fs::symlink_metadata(&file.path);
    let is_new = metadata.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let (opened, inode) = if is_new {
        ask_for_room(&file.path, &sizes, input.bytes)?;
        create(&file, &sizes, input.bytes)?
    } else {
        (open(&file, &sizes)?, inode_of(&file.path))
    };
    let Opened { executor, store } = opened;
    let (progress, saved) = (progress.clone(), Instant::now());
    let loading = Loading { file: file.clone(), store, table, input, progress, saved };
    match executor.block_on(loading.run()).map_err(StackError::run)? {
        Ok(loaded) => {
            refuse_other_file(&asked.file.path, inode)?;
            Ok(report_of(asked, loaded, began.elapsed()))
        }
        Err(Stopped { error, records }) => {
            if is_new && records == 0 {
                // Remove the new store, since it would stay empty. If removing it fails, an empty and sound
                // store remains.
                drop(executor);
                let _ = fs::remove_file(&asked.file.path);
            }
            Err(error)
        }
    }
}

/// Refuses a new store that would run out of room on its file system. Pages in place need at least as much room as the
/// rows. Compressed pages may need less, so for them nothing is asked.
fn ask_for_room(path: &Path, sizes: &Sizes, rows: Option<u64>) -> Result<(), StackError> {
    let is_in_place = matches!(sizes.place, None | Some(PlaceConfig::InPlace(_)));
    let Some(rows) = rows.filter(|_| is_in_place) else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(free) = free_bytes(folder).filter(|free| *free < rows) else { return Ok(()) };
    let humane = |bytes: u64| Column::RecordBytes.unit().humane(bytes as f64);
    Err(StackError::request(format!(
        "FILE {} needs room for rows of {}, and its file system has {}; accepted: a file on another file system, or \
            fewer rows",
        path.display(),
        humane(rows),
        humane(free)
    )))
}

/// The device and the inode of a file; `None` if there is no file.
type Inode = Option<(u64, u64)>;

fn inode_of(path: &Path) -> Inode {
    fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Fails if the file at `path` is not the one that was opened, or lost its end. The system reports no error for
/// writes to a file that another process removes or cuts.
fn refuse_other_file(path: &Path, opened: Inode) -> Result<(), StackError> {
    let what = match inode_of(path) {
        None => "removed",
        found if found != opened => "replaced",
        _ if !fulgurite_uring::is_drive(path) => "cut",
        _ => return Ok(()),
    };
    Err(StackError::run(format!(
        "{} was {what} by another process during the load, so records are lost; load them again into a new file",
        path.display()
    )))
}

fn report_of(asked: &LoadAsked, loaded: Loaded, elapsed: Duration) -> Report {
    let file = asked.file.path.display();
    let rate = loaded.records as f64 / elapsed.as_secs_f64().max(1e-9);
    let mut row = Row::default();
    row.set(Column::File, file.to_string());
    row.set(Column::Table, asked.table.as_str());
    row.set(Column::Records, loaded.records);
    row.set(Column::RecordBytes, loaded.bytes);
    row.set(Column::ElapsedNs, elapsed.as_nanos() as u64);
    row.set(Column::RecordsS, rate);
    row.set(Column::RecordsWaiting, loaded.waiting);
    let mut text = format!(
        "loaded {} {} of {} into table {} of {file} in {} ({}/s)\n",
        row.text(Column::Records),
        if loaded.records == 1 { "record" } else { "records" },
        Column::RecordBytes.unit().humane(loaded.bytes as f64),
        asked.table,
        Column::ElapsedNs.unit().humane(elapsed.as_nanos() as f64),
        units::humane(rate, &[(1e6, " M"), (1e3, " K"), (1.0, " ")]),
    );
    if loaded.waiting > 0 {
        text += &format!(
            "{} records wait in the log for pages that could not take them; fulgurite check {file} says whether the \
                store is damaged\n",
            loaded.waiting
        );
    }
    Report { rows: vec![row], text: Some(text), verdict: Ok(()) }
}

/// Creates a store in a new file. The file appears with the store in it, or does not appear.
fn create(file: &StoreFile, sizes: &Sizes, input: Option<u64>) -> Result<(Opened, Inode), StackError> {
    let (bytes, options) = plan(file, sizes, input)?;
    let new = NewFile::begin("FILE", &file.path, bytes)?;
    let executor = Executor::new(open_drive(&new.unfinished(), &DriveOptions::default())?);
    let making = Store::create(executor.handle(), options);
    let made = executor.block_on(making).map_err(StackError::run)?;
    let store = made.map_err(|error| refused_options(file, sizes, error))?;
    // The inode is read before the file has its name, so that no other process can have replaced it.
    let inode = inode_of(&new.unfinished());
    new.finish()?;
    Ok((Opened { executor, store }, inode))
}

/// Opens an existing store for writing.
fn open(file: &StoreFile, sizes: &Sizes) -> Result<Opened, StackError> {
    // Open the file for reading first, to report a path that is not a file, and a store that is in use.
    drop(file.read_only()?);
    if !file.holds_store() {
        return Err(StackError::request(format!(
            "FILE {} holds no store and is left as it is; accepted: a store, or a name that is free",
            file.path.display()
        )));
    }
    // A larger size extends a store with pages in place. Another difference is refused when the store is open.
    let has = fulgurite_uring::check(&file.path, &DriveOptions::default())
        .map_err(|error| refused(&file.path, error))?;
    let is_in_place = shape(&file.path).is_some_and(|shape| !shape.is_out_of_place);
    let asked = sizes.size.filter(|size| is_in_place && size.is_multiple_of(65_536)).unwrap_or(0) / 4096;
    let drive = DriveOptions { pages: Some(asked.max(has)), sparse: true, ..DriveOptions::default() };
    let executor = Executor::new(open_drive(&file.path, &drive)?);
    let caps = executor.handle().caps();
    let bytes = caps.pages * u64::from(caps.page_bytes);
    let options = Options { grow: is_in_place && sizes.size.is_some(), ..file.options(bytes)? };
    let opening = Store::open(executor.handle(), options);
    let store = executor.block_on(opening).map_err(StackError::run)?.map_err(|error| file.failed(&error))?;
    let opened = Opened { executor, store };
    file.refuse_shard(&opened)?;
    let Opened { executor, store } = opened;
    let sizes_of = [
        ("--size", sizes.size, bytes),
        ("--page", sizes.page, u64::from(store.page_bytes())),
        ("--log", sizes.log, store.log_bytes()),
    ];
    let other_size = sizes_of.into_iter().find_map(|(argument, asked, has)| {
        let asked = asked.filter(|asked| *asked != has)?;
        Some((format!("{argument} {}", units::format_size(asked)), units::format_size(has)))
    });
    let is_out = store.is_out_of_place();
    let other_place = sizes.place.as_ref().filter(|place| place.is_out(&caps, store.page_bytes()) != is_out);
    let has_place = if is_out { "out-of-place" } else { "in-place" };
    let other = other_place.map(|_| ("--place".to_owned(), has_place.to_owned())).or(other_size);
    let Some((argument, has)) = other else { return Ok(Opened { executor, store }) };
    // Ignore an error of closing, because a store that was not closed can be opened after recovery.
    let _ = executor.block_on(async move { store.close().await });
    Err(StackError::request(format!(
        "{argument} differs from that of the store in {}; accepted: {has}, or leave it out",
        file.path.display()
    )))
}

/// The state of a load while it runs.
struct Loading {
    file: StoreFile,
    store: Store,
    table: String,
    input: Input,
    progress: Progress,
    /// The wall-clock time at which a batch was last made durable.
    saved: Instant,
}

/// The reason why a load stopped early.
struct Stopped {
    /// The number of records that were loaded before the load stopped.
    records: u64,
    error: StackError,
}

/// The reason why a batch was not loaded completely.
struct Refused {
    /// The number of records of the batch that were loaded.
    loaded: usize,
    error: Error,
}

impl Loading {
    async fn run(mut self) -> Result<Loaded, Stopped> {
        let mut loaded = Loaded::default();
        let outcome = self.load(&mut loaded).await;
        // Close the store even if a CSV row was refused, because closing makes the loaded records durable.
        let closed = self.store.close().await;
        loaded.waiting = self.store.statistics().records_pending;
        match (outcome, closed) {
            (Ok(()), closed) => closed.map(|()| loaded).map_err(|error| self.failed(&error)),
            (Err(error), Ok(())) => Err(with_count(error, loaded.records)),
            (Err(error), Err(_)) => Err(error),
        }
        .map_err(|error| Stopped { records: loaded.records, error })
    }

    async fn load(&mut self, loaded: &mut Loaded) -> Result<(), StackError> {
        let table = self.store.create_table(&self.table).await.map_err(|error| match error {
            Error::Options(what) => StackError::request(format!("TABLE {}: {what}", self.table)),
            error => self.failed(&error),
        })?;
        // A transaction must fit into the log, so a small log requires small transactions.
        let most_bytes = BATCH.1.min(self.store.log_bytes() / 64);
        let longest_row = self.store.log_bytes().saturating_mul(ESCAPED);
        let mut batch: Vec<Line> = Vec::new();
        let mut bytes = 0;
        loop {
            let next = self.input.next(longest_row);
            let is_last = !matches!(next, Ok(Some(_)));
            let is_due = self.saved.elapsed() >= SAVED_EVERY;
            if is_last || batch.len() == BATCH.0 || bytes >= most_bytes || is_due {
                self.commit(table, &mut batch, loaded, is_due).await?;
                bytes = 0;
            }
            let Some(line) = next? else { return Ok(()) };
            bytes += (line.key.len() + line.value.len()) as u64;
            batch.push(line);
        }
    }

    /// Writes a batch to the table and counts its records. If `is_due`, makes all batches so far durable.
    async fn commit(
        &mut self,
        table: Table,
        batch: &mut Vec<Line>,
        loaded: &mut Loaded,
        is_due: bool,
    ) -> Result<(), StackError> {
        let durability = if is_due { Durability::Flush } else { Durability::Relaxed };
        let outcome = self.put_batch(table, batch, durability).await;
        let done = outcome.as_ref().map_or_else(|refused| refused.loaded, |()| batch.len());
        let bytes = batch[..done].iter().map(|line| (line.key.len() + line.value.len()) as u64);
        loaded.bytes += bytes.sum::<u64>();
        loaded.records += done as u64;
        self.progress.add(done as u64);
        if is_due && outcome.is_ok() {
            self.progress.keep(loaded.records);
            self.saved = Instant::now();
        }
        let refused = outcome.map_err(|Refused { error, .. }| match error {
            Error::KeyTooLong { .. } | Error::TransactionTooLarge { .. } => {
                self.input.refused(batch[done].number, &error.to_string())
            }
            error => self.failed(&error),
        });
        batch.clear();
        refused
    }

    async fn put_batch(&self, table: Table, batch: &[Line], durability: Durability) -> Result<(), Refused> {
        let error = match self.put_all(table, batch, durability).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let is_one_of_them = matches!(
            error,
            Error::KeyTooLong { .. } | Error::TransactionTooLarge { .. } | Error::Full { .. }
        );
        if !is_one_of_them || batch.len() == 1 {
            return Err(Refused { loaded: 0, error });
        }
        // Commit the records one by one, so that all records before the refused one are loaded.
        for (loaded, line) in batch.iter().enumerate() {
            let put = self.put_all(table, std::slice::from_ref(line), durability).await;
            put.map_err(|error| Refused { loaded, error })?;
        }
        Ok(())
    }

    async fn put_all(&self, table: Table, lines: &[Line], durability: Durability) -> Result<(), Error> {
        let transaction = self.store.begin();
        for line in lines {
            transaction.put(table, &line.key, &line.value).await?;
        }
        transaction.commit_with(durability).await
    }

    fn failed(&self, error: &Error) -> StackError {
        let file = self.file.path.display();
        match error {
            Error::Full { .. } => StackError::run(format!(
                "{file} is full; a larger --size extends a store with pages in place, and fulgurite backup copies any \
                    store into a larger one"
            )),
            Error::IndexNotOpen { table, index } => StackError::request(format!(
                "TABLE {table} has the index `{index}`, which only the program that made it can keep; accepted: a \
                    table without indexes"
            )),
            Error::Fatal(_) | Error::Io(_) => StackError::run(format!(
                "{file}: {error}. All durable records are in the store when it is opened again"
            )),
            error => self.file.failed(error),
        }
    }
}

/// Adds to the error the number of records that were loaded before.
fn with_count(error: StackError, records: u64) -> StackError {
    let loaded = match records {
        0 => "nothing was loaded".to_owned(),
        1 => "1 record before that was loaded".to_owned(),
        records => format!("{records} records before that were loaded"),
    };
    let text = |said: String| format!("{said} ({loaded})");
    match error {
        StackError::Request(said) => StackError::Request(text(said)),
        StackError::Run(said) => StackError::Run(text(said)),
    }
}
