//! Where a study writes: nothing stands there in part, and a study that fails leaves nothing.

use fulgurite_stack::StackError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An output folder that can be written to.
pub(super) struct Folder {
    path: PathBuf,
    /// The folders that had to be made, outermost first.
    made: Vec<PathBuf>,
    is_used: bool,
}

impl Folder {
    /// Makes the folder and tries it, before hours of runs go to waste.
    pub fn prepare(path: &Path) -> Result<Folder, StackError> {
        let is_missing = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
        let mut made: Vec<PathBuf> = path.ancestors().take_while(is_missing).map(Path::to_path_buf).collect();
        made.reverse();
        let folder = Folder { path: path.to_owned(), made, is_used: false };
        folder.make_and_try().map_err(|error| {
            StackError::request(format!(
                "--out {} cannot be written: {error}; accepted: a folder that exists or can be made",
                path.display()
            ))
        })?;
        Ok(folder)
    }

    fn make_and_try(&self) -> io::Result<()> {
        fs::create_dir_all(&self.path)?;
        let probe = self.path.join(".fulgurite-probe");
        fs::write(&probe, "").and_then(|()| fs::remove_file(&probe))
    }

    /// Writes a file under another name first, so that it never stands there in part.
    pub fn write(&mut self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, StackError> {
        self.is_used = true;
        let (partial, path) = (self.path.join(format!(".{name}.partial")), self.path.join(name));
        let written = fs::write(&partial, content).and_then(|()| fs::rename(&partial, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&partial);
            StackError::run(format!("{} cannot be written: {error}", path.display()))
        })?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_used {
            // Only empty folders can be removed, so nobody's files are at risk.
            self.made.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
        }
    }
}
