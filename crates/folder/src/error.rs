//! The reasons why a folder refuses an operation, each with the number that Linux has for it.

use thiserror::Error;

/// The reason why an operation failed. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FolderError {
    /// There is no such name, or no such inode.
    #[error("there is no such file or folder")]
    NotFound,
    /// The name exists.
    #[error("the name exists")]
    Exists,
    /// A folder that would be removed has entries.
    #[error("the folder is not empty")]
    NotEmpty,
    /// The operation is not for folders.
    #[error("this is a folder")]
    IsFolder,
    /// The operation is for folders.
    #[error("this is not a folder")]
    NotFolder,
    /// A folder can have one name only.
    #[error("a folder cannot have a second name")]
    NotPermitted,
    /// The name has more than 255 bytes, or the target of a symbolic link more than 4,095.
    #[error("the name is too long")]
    NameTooLong,
    /// The file would have more than 1 TiB.
    #[error("the file would be too large")]
    TooLarge,
    /// The bytes of all files would be more than the rules allow, or all inode numbers are used.
    #[error("no space is left")]
    NoSpace,
    /// The name is no name, the inode is of another kind, or a folder would move into itself.
    #[error("the argument is invalid")]
    Invalid,
}

impl FolderError {
    /// Returns the `errno` of Linux.
    pub fn errno(self) -> i32 {
        match self {
            FolderError::NotPermitted => 1,
            FolderError::NotFound => 2,
            FolderError::Exists => 17,
            FolderError::NotFolder => 20,
            FolderError::IsFolder => 21,
            FolderError::Invalid => 22,
            FolderError::TooLarge => 27,
            FolderError::NoSpace => 28,
            FolderError::NameTooLong => 36,
            FolderError::NotEmpty => 39,
        }
    }
}
