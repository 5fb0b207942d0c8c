//! Where a study writes: nothing stands there in part.

use crate::error::StudyError;
use std::fs;
use std::path::{Path, PathBuf};

/// An output folder that can be written to.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes the folder and tries it, before hours of runs go to waste.
    pub fn prepare(path: &Path) -> Result<Folder, StudyError> {
        let refused = |error: std::io::Error| {
            StudyError::request(format!(
                "--out {} cannot be written: {error}; accepted: a folder that exists or can be made",
                path.display()
            ))
        };
        fs::create_dir_all(path).map_err(refused)?;
        let probe = path.join(".fulgurite-probe");
        fs::write(&probe, "").and_then(|()| fs::remove_file(&probe)).map_err(refused)?;
        Ok(Folder(path.to_owned()))
    }

    /// Writes a file under another name first, so that it never stands there in part.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, StudyError> {
        let (partial, path) = (self.0.join(format!(".{name}.partial")), self.0.join(name));
        let written = fs::write(&partial, text).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|error| StudyError::run(format!("{} cannot be written: {error}", path.display())))?;
        Ok(path)
    }
}
