//! A store under power cuts: writes durable transactions and prints their numbers, or checks what is left of them.
//!
//! `cargo build --release -p fulgurite-db --example crash_writer`, and then with the path of the program:
//! `fulgurite crashtest --check "$PROGRAM check" -- $PROGRAM write`
//!
//! A transaction whose number was printed is durable, and the store has what some number of transactions in their
//! order make.

use fulgurite_db::{Db, Options};
use std::error::Error;
use std::io::{Write, stdin, stdout};
use std::path::Path;

/// The number of transactions.
const TRANSACTIONS: u32 = 40;
/// The file of the store, in the current folder.
const FILE: &str = "crash.store";

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("write") => write(TRANSACTIONS),
        Some("check") => check(stdin().lines().count() as u32),
        Some(_) => {
            Err("accepted: write, check with the numbers as input, or nothing for both in a new folder"
                .into())
        }
        None => {
            let folder = tempfile::tempdir()?;
            std::env::set_current_dir(folder.path())?;
            write(TRANSACTIONS)?;
            check(TRANSACTIONS)
        }
    }
}

fn options() -> Options {
    Options { size_bytes: Some(16 << 20), ..Options::default() }
}

/// Returns the value of a transaction. Its length varies, so that some are longer than a page.
fn value(number: u32) -> Vec<u8> {
    number.to_be_bytes().repeat(1 + (number as usize * 397) % 1_500)
}

/// Makes transactions of two tables that must agree. Each adds a row to both and removes an earlier one.
fn write(transactions: u32) -> Result<(), Box<dyn Error>> {
    let db = Db::open(FILE, options())?;
    let (values, lengths) = (db.create_table("values")?, db.create_table("lengths")?);
    for number in 1..=transactions {
        let (key, value) = (number.to_be_bytes(), value(number));
        db.transact(|transaction| {
            transaction.put(&values, &key, &value)?;
            transaction.put(&lengths, &key, &(value.len() as u32).to_be_bytes())?;
            let Some(earlier) = number.checked_sub(10) else { return Ok(()) };
            transaction.delete(&values, &earlier.to_be_bytes())?;
            transaction.delete(&lengths, &earlier.to_be_bytes())
        })?;
        writeln!(stdout(), "{number}")?;
    }
    db.close()?;
    Ok(())
}

/// Opens the store, which recovers it, and compares it with what the printed transactions made.
fn check(printed: u32) -> Result<(), Box<dyn Error>> {
    if printed == 0 && !Path::new(FILE).exists() {
        return Ok(());
    }
    let db = Db::open(FILE, options())?;
    // They are made again if no transaction was durable.
    let (values, lengths) = (db.create_table("values")?, db.create_table("lengths")?);
    let mut last = 0;
    for number in 1..=TRANSACTIONS {
        if db.get(&values, &number.to_be_bytes())?.is_some() {
            last = number;
        }
    }
    if last < printed {
        return Err(format!("transaction {printed} was printed, and the last one there is {last}").into());
    }
    for number in 1..=TRANSACTIONS {
        let key = number.to_be_bytes();
        let expected = (number <= last && number + 10 > last).then(|| value(number));
        let length = expected.as_ref().map(|value| (value.len() as u32).to_be_bytes().to_vec());
        if db.get(&values, &key)? != expected || db.get(&lengths, &key)? != length {
            return Err(format!("row {number} is not that of {last} transactions").into());
        }
    }
    db.close()?;
    Ok(())
}
