//! The failure of a command to a real drive: the operation, its pages, and the operating system's error.

use fulgurite_base::Lpn;
use std::fmt;
use std::io::{self, ErrorKind};

/// The operation that failed, as an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The command read pages.
    Read,
    /// The command wrote pages.
    Write,
    /// The command wrote pages to a temporary file, because the drive itself is opened for reading.
    WriteBeside,
    /// The command freed pages.
    Trim,
    /// The command shared pages, which no real drive supports.
    Share,
    /// The command made earlier writes durable.
    Flush,
}

/// The failure of a command to a real drive, with the system's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The operation that failed.
    pub doing: Doing,
    /// The first page of the command, in pages of the drive.
    pub lpn: Lpn,
    /// The number of pages of the command; 0 for a flush.
    pub pages: u32,
    /// The system's error number; `None` if the file ended before the pages did.
    pub code: Option<i32>,
}

impl Failure {
    /// Returns the advice to the user for this error.
    fn advice(&self) -> &'static str {
        let kind = self.code.map(|code| io::Error::from_raw_os_error(code).kind());
        match kind {
            None => "the file is shorter than when it was opened; restore it from a copy",
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                "make room on the file system that holds it, then try again"
            }
            Some(ErrorKind::FileTooLarge) => {
                "raise the limit on the length of files (ulimit -f), then try again"
            }
            Some(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
                "make it writable again; a file system turns read-only when its drive fails"
            }
            Some(_) => "the system's log says more; copy the file elsewhere if its drive is failing",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.doing {
            Doing::Read => "reading",
            Doing::Write | Doing::WriteBeside => "writing",
            Doing::Trim => "freeing",
            Doing::Share => "sharing",
            Doing::Flush => "making it durable",
        })?;
        match (self.pages, self.lpn.0) {
            (0, _) => {}
            (1, first) => write!(f, " page {first}")?,
            (pages, first) => write!(f, " pages {first} to {}", first + u64::from(pages) - 1)?,
        }
        if self.doing == Doing::WriteBeside {
            f.write_str(" to a temporary file")?;
        }
        match self.code {
            Some(code) => write!(f, ": {}", io::Error::from_raw_os_error(code))?,
            None => f.write_str(": the file ends before it")?,
        }
        write!(f, "; {}", self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Operation;

    #[test]
    fn a_failure_names_operation_pages_cause_and_advice() {
        let full = io::Error::from(ErrorKind::UnexpectedEof);
        let ends = Failure::of(&Operation::read(Lpn(7), 1), &full).to_string();
        assert_eq!(
            ends,
            "reading page 7: the file ends before it; the file is shorter than when it was opened; \
             restore it from a copy"
        );
        // The error number 28 is "no space left" on every system that Fulgurite supports.
        let full = Failure::of(&Operation::write(Lpn(10), 8), &io::Error::from_raw_os_error(28)).to_string();
        assert!(full.starts_with("writing pages 10 to 17: ") && full.contains("(os error 28)"), "{full}");
        assert!(full.ends_with("; make room on the file system that holds it, then try again"), "{full}");
        let flush = Failure::of(&Operation::Flush, &io::Error::from_raw_os_error(5)).to_string();
        assert!(flush.starts_with("making it durable: ") && flush.contains("system's log"), "{flush}");
    }
}
