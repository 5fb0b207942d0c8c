//! Loads records from CSV into a table. If there is no store, it makes one.

use crate::input::{Input, Line};
use crate::new_file::NewFile;
use crate::open::{Opened, StoreFile, open_drive, read_size};
use crate::report::Report;
use fulgurite_base::units;
use fulgurite_device::{Caps, Executor};
use fulgurite_engine::{Durability, Error, Options, PlaceConfig, SHARDS, Store, Table};
use fulgurite_stack::device::AnyDrive;
use fulgurite_stack::{Column, Progress, Row, StackError};
use fulgurite_uring::DriveOptions;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The least size of a new store where none is asked for.
const USUAL_BYTES: u64 = 16 << 30;
/// A new store is at least so many times as large as the file that is loaded: pages are not full, and more may
/// follow.
const SIZE_BY_INPUT: u64 = 4;
/// Records and bytes of one transaction.
const BATCH: (usize, u64) = (1024, 256 << 10);
/// How often what was loaded is made durable: an interrupt costs no more.
const SAVED_EVERY: Duration = Duration::from_secs(1);
/// Bytes of text that a byte of a record may take.
const ESCAPED: u64 = 4;

/// What is to be loaded; sizes as they were typed.
#[derive(Clone, Debug)]
pub struct LoadAsked {
    /// The store.
    pub file: StoreFile,
    /// The table, which is made where there is none.
    pub table: String,
    /// The file with the rows; standard input where none is given.
    pub from: Option<PathBuf>,
    /// Whether the first row names the columns and is no record.
    pub header: bool,
    /// Bytes of a new store.
    pub size: Option<String>,
    /// Bytes in a page of a new store.
    pub page: Option<String>,
    /// Bytes of the log of a new store.
    pub log: Option<String>,
    /// Where a new store writes pages.
    pub place: Option<String>,
}

/// What was asked of a new store.
pub(crate) struct Sizes {
    size: Option<u64>,
    page: Option<u64>,
    log: Option<u64>,
    place: Option<PlaceConfig>,
}

impl Sizes {
    /// What was typed.
    pub fn read(
        size: Option<&str>,
        page: Option<&str>,
        log: Option<&str>,
        place: Option<&str>,
    ) -> Result<Sizes, StackError> {
        let place = place.map(str::parse::<PlaceConfig>).transpose();
        Ok(Sizes {
            size: read_size("--size", size)?,
            page: read_size("--page", page)?,
            log: read_size("--log", log)?,
            place: place.map_err(|error| StackError::request(format!("--place: {error}")))?,
        })
    }
}

/// What was loaded.
#[derive(Clone, Copy, Default)]
struct Loaded {
    records: u64,
    bytes: u64,
    /// Records of the store that the log has and no page could take.
    waiting: u64,
}

/// Loads the records. A later row wins over an earlier one with the same key. Rows before one that is refused
/// stay.
pub fn load(asked: &LoadAsked, progress: &Progress) -> Result<Report, StackError> {
    let LoadAsked { file, table, from, header, size, page, log, place } = asked.clone();
    let sizes = Sizes::read(size.as_deref(), page.as_deref(), log.as_deref(), place.as_deref())?;
    if table.is_empty() {
        return Err(StackError::request("TABLE is empty; accepted: a name of at least one byte"));
    }
    if table == SHARDS {
        return Err(StackError::request(format!(
            "TABLE {SHARDS} is used by the store itself; accepted: another name"
        )));
    }
    // Before anything is made.
    let input = Input::open(from.as_deref(), header)?;
    let began = Instant::now();
    let metadata = fs::symlink_metadata(&file.path);
    let is_new = metadata.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let opened = if is_new { create(&file, &sizes, input.bytes)? } else { open(&file, &sizes)? };
    let Opened { executor, store } = opened;
    let (progress, saved) = (progress.clone(), Instant::now());
    let loading = Loading { file: file.clone(), store, table, input, progress, saved };
    match executor.block_on(loading.run()).map_err(StackError::run)? {
        Ok(loaded) => Ok(said(asked, loaded, began.elapsed())),
        Err(Stopped { error, records }) => {
            if is_new && records == 0 {
                // The store was made for the records, and there are none. If it cannot be removed, it is sound and empty.
                drop(executor);
                let _ = fs::remove_file(&asked.file.path);
            }
            Err(error)
        }
    }
}

fn said(asked: &LoadAsked, loaded: Loaded, elapsed: Duration) -> Report {
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
            "{} records wait in the log for pages that could not take them; fulgurite check {file} says whether the store is damaged\n",
            loaded.waiting
        );
    }
    Report { rows: vec![row], text: Some(text), verdict: Ok(()) }
}

/// How large a new store is, where `input` bytes are to be loaded into it, and its options.
pub(crate) fn plan(
    file: &StoreFile,
    sizes: &Sizes,
    input: Option<u64>,
) -> Result<(u64, Options), StackError> {
    let usual = Options::default();
    let by_input = input.unwrap_or(0).saturating_mul(SIZE_BY_INPUT).next_multiple_of(1 << 20);
    let page_bytes = sizes.page.unwrap_or(u64::from(usual.page_bytes));
    let page_bytes = u32::try_from(page_bytes).unwrap_or(u32::MAX);
    if !page_bytes.is_power_of_two() || !(4096..=65536).contains(&page_bytes) {
        return Err(StackError::request(format!(
            "--page {} is not a page size of a store; accepted: a power of two from 4KiB to 64KiB",
            units::format_size(u64::from(page_bytes))
        )));
    }
    let bytes = sizes.size.unwrap_or(USUAL_BYTES.max(by_input));
    if bytes > 1 << 60 || !bytes.is_multiple_of(u64::from(page_bytes)) {
        return Err(StackError::request(format!(
            "--size {} is not a whole number of pages of {}; accepted: a multiple of the page, up to 1 EiB",
            units::format_size(bytes),
            units::format_size(u64::from(page_bytes))
        )));
    }
    let (log_bytes, place) =
        (sizes.log.unwrap_or(usual.log_bytes), sizes.place.clone().unwrap_or(usual.place));
    let new = Options { page_bytes, log_bytes, place, durability: Durability::Relaxed, ..usual };
    // A store that cannot be made there is refused when it is.
    let file_page = DriveOptions::default().page_bytes;
    let map_memory =
        new.map_memory(&Caps::plain(file_page, bytes / u64::from(file_page), 1)).unwrap_or_default();
    Ok((bytes, Options { memory_bytes: file.memory(bytes, map_memory)?, ..new }))
}

/// What to report when a new store cannot be made. It blames what was typed.
pub(crate) fn refused_options(file: &StoreFile, sizes: &Sizes, error: Error) -> StackError {
    let Error::Options(what) = error else { return file.failed(&error) };
    let typed = [
        ("--size", sizes.size.is_some()),
        ("--page", sizes.page.is_some()),
        ("--log", sizes.log.is_some()),
        ("--memory", file.has_memory()),
        ("--place", sizes.place.is_some()),
    ];
    let typed: Vec<&str> = typed.iter().filter(|(_, is_typed)| *is_typed).map(|(name, _)| *name).collect();
    StackError::request(format!("{}: {what}", typed.join(", ")))
}

/// Makes a store in a new file. The file appears with the store in it.
fn create(file: &StoreFile, sizes: &Sizes, input: Option<u64>) -> Result<Opened, StackError> {
    let (bytes, options) = plan(file, sizes, input)?;
    let new = NewFile::begin("FILE", &file.path, bytes)?;
    let executor = Executor::new(open_drive(&new.unfinished())?);
    let making = Store::create(executor.handle(), options);
    let made = executor.block_on(making).map_err(StackError::run)?;
    let store = made.map_err(|error| refused_options(file, sizes, error))?;
    new.finish()?;
    Ok(Opened { executor, store })
}

/// Opens a store that is there, to be written.
fn open(file: &StoreFile, sizes: &Sizes) -> Result<Opened, StackError> {
    // For the sentences about what is no file, and what is in use.
    drop(file.read_only()?);
    if !file.holds_store() {
        return Err(StackError::request(format!(
            "FILE {} holds no store and is left as it is; accepted: a store, or a name that is free",
            file.path.display()
        )));
    }
    let executor = Executor::new(open_drive(&file.path)?);
    let caps = executor.handle().caps();
    let bytes = caps.pages * u64::from(caps.page_bytes);
    let opening = Store::open(executor.handle(), file.options(bytes)?);
    let store = executor.block_on(opening).map_err(StackError::run)?.map_err(|error| file.failed(&error))?;
    let opened = Opened { executor, store };
    file.refuse_shard(&opened)?;
    let Opened { executor, store } = opened;
    let has = [
        ("--size", sizes.size, bytes),
        ("--page", sizes.page, u64::from(store.page_bytes())),
        ("--log", sizes.log, store.log_bytes()),
    ];
    let is_other = |place: &PlaceConfig| place.is_out(&caps, store.page_bytes()) != store.is_out_of_place();
    if sizes.place.as_ref().is_some_and(is_other) {
        let closing = store.clone();
        let _ = executor.block_on(async move { closing.close().await });
        let has = if store.is_out_of_place() { "out-of-place" } else { "in-place" };
        return Err(StackError::request(format!(
            "--place differs from that of the store in {}; accepted: {has}, or leave it out",
            file.path.display()
        )));
    }
    let other = has.into_iter().find(|(_, asked, has)| asked.is_some_and(|asked| asked != *has));
    if let Some((argument, Some(asked), has)) = other {
        let closing = store.clone();
        // The refusal counts, whatever closing says: the store opens after a crash too.
        let _ = executor.block_on(async move { closing.close().await });
        let [asked, has] = [asked, has].map(units::format_size);
        return Err(StackError::request(format!(
            "{argument} {asked} differs from that of the store in {}; accepted: {has}, or leave it out",
            file.path.display()
        )));
    }
    Ok(Opened { executor, store })
}

/// A load under way.
struct Loading {
    file: StoreFile,
    store: Store<AnyDrive>,
    table: String,
    input: Input,
    progress: Progress,
    /// When a batch was made durable last.
    saved: Instant,
}

/// Why a load did not come to its end.
struct Stopped {
    /// How many records were loaded before.
    records: u64,
    error: StackError,
}

/// Why a batch was not loaded in full.
struct Refused {
    /// How many of its records were.
    loaded: usize,
    error: Error,
}

impl Loading {
    async fn run(mut self) -> Result<Loaded, Stopped> {
        let mut loaded = Loaded::default();
        let outcome = self.load(&mut loaded).await;
        // What was loaded is made durable, also where the rest is refused.
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
        // A small log takes small transactions.
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

    /// Puts a batch into the table and counts it. Where it is due, all batches so far are made durable with it.
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
        // One by one, to load all in front of the one that does not fit.
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
                "{file} is full; a store keeps the size that it was made with, so load into a new file with a larger --size"
            )),
            Error::IndexNotOpen { table, index } => StackError::request(format!(
                "TABLE {table} has the index `{index}`, which only the program that made it can keep; accepted: a table without indexes"
            )),
            Error::Fatal(_) | Error::Io(_) => StackError::run(format!(
                "{file}: {error}. What is durable by now is there when the store is opened again"
            )),
            error => self.file.failed(error),
        }
    }
}

/// Adds how many records were loaded before.
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
