//! How long a store takes to open: after a crash, with 256 MiB of log to do again, and after a close.
//!
//! `cargo bench -p fulgurite-engine --bench recovery [-- FOLDER]`, on a file in FOLDER (default: the folder for temporary
//! files); `--test` makes a short run. The crash is a process that lets go of the store without closing it: everything is
//! in the file, and recovery has all of the log to read.

use fulgurite_base::Prng;
use fulgurite_engine::blocking::{Db, Table};
use fulgurite_engine::{Durability, Error, Options};
use fulgurite_uring::{DriveOptions, OpenError, UringDevice};
use std::path::{Path, PathBuf};
use std::time::Instant;

const ROWS: u64 = 2_000_000;
/// Updates of one transaction.
const TOGETHER: usize = 32;

fn options(log_bytes: u64) -> Options {
    // A checkpoint comes when half of the log's area is full, so the area is a little more than twice what is measured.
    Options {
        memory_bytes: 256 << 20,
        log_bytes: log_bytes * 9 / 4,
        durability: Durability::Relaxed,
        ..Options::default()
    }
}

fn drive(path: &Path) -> Result<UringDevice, OpenError> {
    let options = DriveOptions { pages: Some(512 << 10), many_threads: true, ..DriveOptions::default() };
    UringDevice::open(path, &options)
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:012}").into_bytes()
}

/// Updates rows all over the table until there is so much log.
fn update(db: &Db<UringDevice>, table: &Table, rows: u64, log_bytes: u64) -> Result<u64, Error> {
    let mut prng = Prng::new(1, "updates");
    loop {
        for _ in 0..500 {
            db.transact(|transaction| {
                (0..TOGETHER).try_for_each(|_| transaction.put(table, &key(prng.below(rows)), &[2; 100]))
            })?;
        }
        let used = db.statistics()?[0].log_bytes_used;
        if used >= log_bytes {
            return Ok(used);
        }
    }
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_test = words.iter().any(|word| word == "--test");
    let folder = words.iter().find(|word| !word.starts_with('-')).map_or(std::env::temp_dir(), PathBuf::from);
    let (rows, log_bytes) = if is_test { (20_000, 4 << 20) } else { (ROWS, 256 << 20) };
    let folder = tempfile::tempdir_in(folder)?;
    let path = folder.path().join("store");
    let first = match drive(&path) {
        Err(OpenError::NoUring(error)) => {
            println!("skipped: io_uring cannot be used here: {error}");
            return Ok(());
        }
        first => first?,
    };
    let db = Db::create(vec![first], options(log_bytes))?;
    let table = db.create_table("rows")?;
    db.bulk_load(&table, (0..rows).map(|number| (key(number), vec![1; 100])))?;
    db.checkpoint()?;
    let used = update(&db, &table, rows, log_bytes)?;
    drop(db);

    let start = Instant::now();
    let db = Db::open(vec![drive(&path)?], options(log_bytes))?;
    let elapsed = start.elapsed().as_secs_f64();
    let operations = db.statistics()?[0].recovered_ops;
    println!(
        "after a crash: {elapsed:.3} s for {:.1} MiB of log, {operations} operations; {:.3} s per 256 MiB",
        mib(used),
        elapsed * 256.0 / mib(used)
    );
    db.close()?;
    drop(db);
    let start = Instant::now();
    let db = Db::open(vec![drive(&path)?], options(log_bytes))?;
    println!("after a close: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    db.close()?;
    Ok(())
}
