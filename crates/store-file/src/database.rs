//! Opens a store in a file for a program whose threads share it.

use crate::new_file::refuse_existing;
use crate::new_store::{NewStore, Sizes, plan, refused_options};
use crate::open::{StoreFile, read_size, refused};
use fulgurite_db::{Access, Db, OpenError, Options as DbOptions};
use fulgurite_engine::{Durability, Options};
use fulgurite_stack::StackError;

/// Creates a store in a new file. The file appears with the store in it, or does not appear.
pub fn create(file: &StoreFile, new: &NewStore, durability: Durability) -> Result<Db, StackError> {
    let sizes = Sizes::read(new)?;
    let (bytes, engine) = plan(file, &sizes, None)?;
    refuse_existing("FILE", &file.path)?;
    let options = DbOptions {
        size_bytes: Some(bytes),
        page_bytes: Some(engine.page_bytes),
        log_bytes: Some(engine.log_bytes),
        place: Some(engine.place.clone()),
        memory_bytes: Some(engine.memory_bytes),
        engine: Options { durability, ..engine },
        access: Access::Create,
    };
    Db::open(&file.path, options).map_err(|error| match error {
        OpenError::Store { error, .. } => refused_options(file, &sizes, error),
        error => failed(file, error),
    })
}

/// Opens the store in a file. While a process has it open for writing, no other process may open it; any number may
/// read it. A larger `size` extends a store with pages in place.
pub fn open(
    file: &StoreFile,
    access: Access,
    size: Option<&str>,
    durability: Durability,
) -> Result<Db, StackError> {
    let size_bytes = read_size("--size", size)?;
    let bytes = match size_bytes {
        Some(bytes) => bytes,
        None => file.read_only()?.bytes(),
    };
    let engine = Options { durability, ..file.options(bytes)? };
    let memory_bytes = Some(engine.memory_bytes);
    let options = DbOptions { access, size_bytes, memory_bytes, engine, ..DbOptions::default() };
    Db::open(&file.path, options).map_err(|error| failed(file, error))
}

/// Returns the error of a command for an error of the opening.
pub(crate) fn failed(file: &StoreFile, error: OpenError) -> StackError {
    let path = file.path.display();
    match error {
        OpenError::Store { error, .. } => file.failed(&error),
        OpenError::Drive(error) => refused(&file.path, error),
        OpenError::Missing(_) => StackError::request(format!(
            "FILE {path} does not exist; accepted: a file or block device that holds a store"
        )),
        OpenError::NotAStore(_) => {
            StackError::request(format!("FILE {path} holds no store and is left as it is; accepted: a store"))
        }
        OpenError::Exists(_) => StackError::request(format!("FILE {path} exists; accepted: a new file")),
        OpenError::Differs { name, asked, has, .. } => {
            let argument = name.trim_end_matches("_bytes");
            let larger = if argument == "size" { ", or a larger one with pages in place" } else { "" };
            StackError::request(format!(
                "--{argument} {asked} differs from that of the store in {path}; accepted: {has}{larger}; fulgurite \
                    backup makes a copy of other sizes"
            ))
        }
        error @ (OpenError::Io { .. } | OpenError::Size { .. }) => StackError::request(error.to_string()),
    }
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
        assert!(
            open(&file, Access::Write, None, Durability::Flush).is_err(),
            "a store is written by one program at a time"
        );
        db.close().unwrap();
        drop(db);
        assert_eq!(get(&file, "users", "ada").unwrap().bytes, b"1815");
        let again = open(&file, Access::Write, None, Durability::Flush).unwrap();
        assert_eq!(again.tables().unwrap(), ["users"]);
        drop(again);
        assert!(check(&file).unwrap().verdict.is_ok());
        let taken = create(&file, &new, Durability::Flush).map(drop).unwrap_err();
        assert!(taken.to_string().ends_with("exists; accepted: a new file"), "{taken}");
        let none = StoreFile::new(folder.path().join("none"), None).unwrap();
        assert_eq!(open(&none, Access::Write, None, Durability::Flush).map(drop).unwrap_err().exit_code(), 2);
    }
}
