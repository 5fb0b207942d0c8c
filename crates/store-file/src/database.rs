//! Opens a store in a file for a program whose threads share it.

use crate::file_drive::FileDrive;
use crate::new_file::NewFile;
use crate::new_store::{NewStore, Sizes, plan, refused_options};
use crate::open::{StoreFile, open_with};
use fulgurite_engine::blocking::Db;
use fulgurite_engine::{Durability, Options};
use fulgurite_stack::StackError;
use fulgurite_uring::DriveOptions;
use std::path::Path;

/// Creates a store in a new file. The file appears with the store in it, or does not appear.
pub fn create(file: &StoreFile, new: &NewStore, durability: Durability) -> Result<Db, StackError> {
    let sizes = Sizes::read(new)?;
    let (bytes, options) = plan(file, &sizes, None)?;
    let new = NewFile::begin("FILE", &file.path, bytes)?;
    let drive = open_shared(&new.unfinished())?;
    let made = drive.create(Options { durability, ..options });
    let made = made.map_err(|error| refused_options(file, &sizes, error))?;
    new.finish()?;
    Ok(made)
}

/// Opens the store in a file for reading and writing. Meanwhile no other process may have the store open.
pub fn open(file: &StoreFile, durability: Durability) -> Result<Db, StackError> {
    // Open the file for reading first, to report a path that is not a file, and a store that is in use.
    drop(file.read_only()?);
    if !file.holds_store() {
        return Err(StackError::request(format!(
            "FILE {} holds no store and is left as it is; accepted: a store",
            file.path.display()
        )));
    }
    let drive = open_shared(&file.path)?;
    let options = Options { durability, ..file.options(drive.bytes())? };
    drive.open(options).map_err(|error| file.failed(&error))
}

/// Opens the drive in a file for writing by several threads.
fn open_shared(path: &Path) -> Result<FileDrive, StackError> {
    open_with(path, &DriveOptions { many_threads: true, ..DriveOptions::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check, get};

    #[test]
    fn a_program_and_the_commands_share_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let file = StoreFile::new(folder.path().join("shop.store"), None).unwrap();
        let new =
            NewStore { size: Some("8MiB".to_owned()), log: Some("1MiB".to_owned()), ..NewStore::default() };
        let db = create(&file, &new, Durability::Flush).unwrap();
        let users = db.create_table("users").unwrap();
        db.put(&users, b"ada", b"1815").unwrap();
        assert!(open(&file, Durability::Flush).is_err(), "a store is written by one program at a time");
        db.close().unwrap();
        drop(db);
        assert_eq!(get(&file, "users", "ada").unwrap().bytes, b"1815");
        let again = open(&file, Durability::Flush).unwrap();
        assert_eq!(again.tables().unwrap(), ["users"]);
        drop(again);
        assert!(check(&file).unwrap().verdict.is_ok());
        let taken = create(&file, &new, Durability::Flush).map(drop).unwrap_err();
        assert!(taken.to_string().ends_with("exists; accepted: a new file"), "{taken}");
        let none = StoreFile::new(folder.path().join("none"), None).unwrap();
        assert_eq!(open(&none, Durability::Flush).map(drop).unwrap_err().exit_code(), 2);
    }
}
