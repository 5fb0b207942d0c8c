//! A store in a file: the first run of the program creates it, later runs open it.
//!
//! `cargo run --release -p fulgurite-engine --example store_file [PATH]`

use fulgurite_engine::Options;
use fulgurite_engine::blocking::Db;
use fulgurite_uring::{DriveOptions, PsyncDevice};
use std::error::Error;
use std::path::{Path, PathBuf};

fn open(path: &Path) -> Result<Db, Box<dyn Error>> {
    let options = Options { memory_bytes: 64 << 20, log_bytes: 4 << 20, ..Options::default() };
    if path.exists() {
        let drive = PsyncDevice::open(path, &DriveOptions::default())?;
        return Ok(Db::open(vec![drive], options)?);
    }
    // The file is renamed when the store is complete. Otherwise an interrupted first run would leave a file
    // without a store.
    let unfinished = path.with_extension("unfinished");
    let size = DriveOptions { pages: Some(16_384), ..DriveOptions::default() };
    let db = Db::create(vec![PsyncDevice::open(&unfinished, &size)?], options)?;
    std::fs::rename(&unfinished, path)?;
    Ok(db)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = std::env::args().nth(1).map_or_else(|| folder.path().join("shop.store"), PathBuf::from);
    {
        let db = open(&path)?;
        let users = db.create_table("users")?;
        db.put(&users, b"ada", b"1815")?;
        db.close()?;
    }
    let db = open(&path)?;
    let users = db.table("users")?;
    let found = db.get(&users, b"ada")?;
    assert_eq!(found.as_deref(), Some(&b"1815"[..]), "the record is there when the store is opened again");
    println!("{} has ada, born in {}", path.display(), String::from_utf8_lossy(&found.unwrap_or_default()));
    db.close()?;
    Ok(())
}
