//! A program for `fulgurite crashtest`: commits transactions to an engine in the current folder, or checks after a
//! power cut that the engine kept them.
//!
//! The promises: a transaction whose number was printed is durable, each one is there as a whole or not at all, and
//! the rows are those that some number of transactions make in their order.

use crate::engine::{Kind, Options, kind};
use crate::rows::{KEY_BYTES, Key, Record, VALUE_BYTES};
use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use std::ffi::OsString;
use std::io::{Write, stdin, stdout};
use std::path::Path;

/// The number of transactions.
const TRANSACTIONS: u64 = 30;
/// The rows that a transaction inserts.
const INSERTS: u64 = 8;
/// The rows that each transaction overwrites. They say which transaction was the last.
const UPDATES: u64 = 4;

/// Commit transactions to an engine in this folder, and print the number of each, or check what a power cut left.
#[derive(Parser, Debug)]
#[command(name = "peers crash")]
struct Args {
    /// The engine
    engine: String,
    /// The task; the input of `check` is what `write` printed
    #[arg(value_enum)]
    task: Task,
    /// Commit without a flush: a fault, because the numbers promise durable transactions
    #[arg(long)]
    relaxed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Task {
    Write,
    Check,
}

/// Runs a command line without the name of the program and `crash`.
pub fn run(words: impl Iterator<Item = OsString>) -> Result<()> {
    let args = Args::parse_from(std::iter::once(OsString::from("peers crash")).chain(words));
    let kind = kind(&args.engine).with_context(|| format!("there is no engine {}", args.engine))?;
    match args.task {
        Task::Write => write(kind, !args.relaxed),
        Task::Check => check(kind, stdin().lines().count() as u64),
    }
}

fn options(durable: bool) -> Options {
    let rows = UPDATES + TRANSACTIONS * INSERTS;
    Options { cache_bytes: 8 << 20, memory_bytes: 64 << 20, durable, direct: false, threads: 1, rows }
}

/// Returns a row with a number, as a transaction writes it.
fn record(row: u64, transaction: u64) -> Record {
    let mut key: Key = [0; KEY_BYTES];
    key[KEY_BYTES - 8..].copy_from_slice(&row.to_be_bytes());
    let mut value = [0; VALUE_BYTES];
    for part in value.chunks_mut(4) {
        part.copy_from_slice(&((transaction << 16 | row) as u32).to_be_bytes());
    }
    Record { key, value }
}

/// Returns the rows of a transaction: it overwrites the first rows and inserts others.
fn rows(transaction: u64) -> impl Iterator<Item = Record> {
    let first = UPDATES + (transaction - 1) * INSERTS;
    (0..UPDATES).chain(first..first + INSERTS).map(move |row| record(row, transaction))
}

fn write(kind: &Kind, durable: bool) -> Result<()> {
    let engine = (kind.open)(Path::new("."), &options(durable))?;
    let mut session = engine.session()?;
    for transaction in 1..=TRANSACTIONS {
        session.commit(&rows(transaction).collect::<Vec<_>>())?;
        writeln!(stdout(), "{transaction}")?;
    }
    drop(session);
    engine.close()
}

/// Opens the engine, which recovers it, and compares it with what the printed transactions made.
fn check(kind: &Kind, printed: u64) -> Result<()> {
    let engine = (kind.open)(Path::new("."), &options(true))?;
    let mut session = engine.session()?;
    let mut found = Vec::new();
    session.scan(&[0; KEY_BYTES], usize::MAX, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        Ok(())
    })?;
    let last = match found.first() {
        None => 0,
        Some((_, value)) if value.len() == VALUE_BYTES => {
            u64::from(u32::from_be_bytes([value[0], value[1], value[2], value[3]]) >> 16)
        }
        Some((key, _)) => bail!("row {key:?} has wrong bytes"),
    };
    ensure!(last >= printed, "transaction {printed} was printed, and the last one there is {last}");
    ensure!(last <= TRANSACTIONS, "there is a transaction {last}");
    let updated = (0..UPDATES).filter(|_| last > 0).map(|row| record(row, last));
    let inserted = (1..=last).flat_map(|transaction| rows(transaction).skip(UPDATES as usize));
    let expected = updated.chain(inserted).map(|Record { key, value }| (key.to_vec(), value.to_vec()));
    ensure!(found.into_iter().eq(expected), "the rows are not those of {last} transactions");
    drop(session);
    engine.close()
}
