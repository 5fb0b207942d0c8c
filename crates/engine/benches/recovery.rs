//! Measures the time to open a store: after a crash, with 256 MiB of log to redo, and after a clean close.
//!
//! `cargo bench -p fulgurite-engine --bench recovery [-- FOLDER]`, on a file in FOLDER (default: the folder
//! for temporary files); `--test` makes a short run. Dropping the store without closing it stands for the
//! crash: everything is in the file, and recovery has to read the whole log.

use fulgurite_base::Prng;
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Durability, Error, Options};
use fulgurite_uring::{DriveOptions, OpenError, UringDevice};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The number of updates in a transaction.
const TOGETHER: usize = 32;

/// The size of a store, and the workload before the crash.
struct Case {
    rows: u64,
    value_bytes: usize,
    memory_bytes: u64,
    log_bytes: u64,
    drive_pages: u64,
}

impl Case {
    fn options(&self) -> Options {
        // The log area is a little more than twice the log to redo, so that no checkpoint shortens this log.
        // A checkpoint begins when half of the area is full, or when pending records take much of it.
        Options {
            memory_bytes: self.memory_bytes,
            log_bytes: self.log_bytes * 9 / 4,
            durability: Durability::Relaxed,
            ..Options::default()
        }
    }

    /// Updates random rows until the log is long enough.
    fn update(&self, db: &Db, table: &Table) -> Result<u64, Error> {
        let mut prng = Prng::new(1, "updates");
        let value = vec![2; self.value_bytes];
        loop {
            for _ in 0..500 {
                db.transact(|transaction| {
                    (0..TOGETHER)
                        .try_for_each(|_| transaction.put(table, &key(prng.below(self.rows)), &value))
                })?;
            }
            let used = db.statistics()?[0].log_bytes_used;
            if used >= self.log_bytes {
                return Ok(used);
            }
        }
    }

    fn run(&self, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let db = Db::create(vec![drive(path, self.drive_pages)?], self.options())?;
        let table = db.create_table("rows")?;
        db.bulk_load(&table, (0..self.rows).map(|number| (key(number), vec![1; self.value_bytes])))?;
        db.checkpoint()?;
        let used = self.update(&db, &table)?;
        drop(db);

        let start = Instant::now();
        let db = Db::open(vec![drive(path, self.drive_pages)?], self.options())?;
        let elapsed = start.elapsed().as_secs_f64();
        let operations = db.statistics()?[0].recovered_ops;
        println!(
            "{} rows of {} bytes, {:.0} MiB of memory",
            self.rows,
            self.value_bytes,
            mib(self.memory_bytes)
        );
        println!(
            "  after a crash: {elapsed:.3} s for {:.1} MiB of log, {operations} operations; {:.3} s per 256 MiB",
            mib(used),
            elapsed * 256.0 / mib(used)
        );
        db.close()?;
        drop(db);
        let start = Instant::now();
        let db = Db::open(vec![drive(path, self.drive_pages)?], self.options())?;
        println!("  after a close: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
        db.close()?;
        Ok(())
    }
}

fn drive(path: &Path, pages: u64) -> Result<UringDevice, OpenError> {
    let options = DriveOptions { pages: Some(pages), many_threads: true, ..DriveOptions::default() };
    UringDevice::open(path, &options)
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:012}").into_bytes()
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_test = words.iter().any(|word| word == "--test");
    let folder = words.iter().find(|word| !word.starts_with('-')).map_or(std::env::temp_dir(), PathBuf::from);
    let folder = tempfile::tempdir_in(folder)?;
    if let Err(OpenError::NoUring(error)) = drive(&folder.path().join("probe"), 1 << 10) {
        println!("skipped: io_uring cannot be used here: {error}");
        return Ok(());
    }
    // The cases are small rows with less memory than data, small rows that all fit into memory, and rows of
    // the YCSB benchmark.
    // A short run has a small drive too, because every page of the file is written when the drive is created.
    let (few, log_bytes, drive_pages) =
        if is_test { (100, 4 << 20, 16 << 10) } else { (1, 256 << 20, 512 << 10) };
    let sizes = [(2_000_000, 100, 256), (2_000_000, 100, 1024), (250_000, 1000, 256)];
    for (number, (rows, value_bytes, memory)) in (0..).zip(sizes) {
        let case = Case { rows: rows / few, value_bytes, memory_bytes: memory << 20, log_bytes, drive_pages };
        case.run(&folder.path().join(format!("store-{number}")))?;
    }
    Ok(())
}
