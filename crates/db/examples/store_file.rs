//! A store in a file: makes it the first time, and opens it later.
//!
//! `cargo run --release -p fulgurite-db --example store_file [PATH]`

use fulgurite_db::{Db, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = std::env::args_os().nth(1).map_or(folder.path().join("shop.store"), Into::into);
    let db = Db::open(&path, Options::default())?;
    let users = db.create_table("users")?;
    db.put(&users, b"ada", b"1815")?;

    db.transact(|transaction| {
        let year = transaction.get_for_update(&users, b"ada")?.unwrap_or_default();
        transaction.put(&users, b"bob", &year)
    })?;
    assert_eq!(db.get(&users, b"bob")?, Some(b"1815".to_vec()));
    println!("{} takes {} KiB of the disk", path.display(), db.disk_bytes()? >> 10);
    db.close()?;
    Ok(())
}
