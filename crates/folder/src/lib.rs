//! A folder of files, without I/O, that loses at a power cut what was not synced.
//!
//! [`Folder`] holds inodes, names and bytes. It records each change as a value that a cut can lose, with the earlier
//! changes that it needs. [`Model`] says which those are. A cut applies the changes that are left to the durable
//! state. So the folder after a cut is one that the model allows, and every allowed one has a seed or a list of
//! [`Piece`]s.
//!
//! # Changes that a cut may lose
//!
//! - **Bytes.** A write inside a file's size is durable after a sync of that file. Before that, a cut keeps it or
//!   loses it, as a whole or in pieces at multiples of `tear_bytes`. Each piece is lost by itself.
//! - **Names** ([`Model::Journaled`]). Creations, removals, links, renames, truncations and changes of mode are kept
//!   in their order: a cut keeps a prefix. A sync of any file or folder makes all of them durable.
//! - **Names** ([`Model::Strict`]). Each is lost or kept by itself, and a sync of a folder makes those in it durable.
//!   Only what no file system can undo keeps its order: changes of one name, moves of folders, the removal of a
//!   folder after the changes in it. Changes in a new folder are lost with the creation of that folder, even if the
//!   folder itself was synced.
//! - **Sizes.** A write beyond a file's end extends it block by block. The extensions, truncations and modes of one
//!   file keep their order, and a sync of that file makes them durable. In `Journaled` an extension is kept exactly if
//!   its bytes are, and only with all changes of names before it. Changes of names after it do not need it: a file
//!   system with delayed allocation (ext4, XFS) extends a file when it stores the bytes. So a file that was written
//!   and renamed without a sync may be empty. In `Strict` a size may be kept without its bytes, which then read as
//!   zeros.
//! - Bytes that were written into an extended or truncated part of a file are lost with that extension or truncation.

#![cfg_attr(not(test), forbid(clippy::disallowed_methods, clippy::disallowed_types))]

mod error;
mod rules;
mod tree;
mod pending;
mod folder;
mod names;
mod cut;

pub use cut::{Cut, Piece};
pub use error::FolderError;
pub use folder::Folder;
pub use names::Onto;
pub use rules::{Model, Rules};
pub use tree::{Attributes, Kind, ROOT};
