//! The options of a store in a file.

use fulgurite_engine::{Options as EngineOptions, PlaceConfig};

/// The default size of a new store's file in bytes. The file takes space on the disk as it fills.
const USUAL_BYTES: u64 = 16 << 30;

/// The access of an opening to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Opens the store for writing, and makes it if there is no file.
    #[default]
    Create,
    /// Opens the store for writing. Fails if there is no file.
    Write,
    /// Opens the store for reading. The file does not change, and any number of processes may read it at once, but not
    /// while another process writes it. Recovery after a crash writes to a temporary file.
    Read,
}

/// The options of a store in a file. [`Options::default`] opens any store, and makes one that may become 16 GiB large.
///
/// The sizes and the place of a store that exists are those that it was made with. An option that is `Some` and
/// differs is refused, except for a larger `size_bytes`, which extends a store with pages in place.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The access to the file.
    pub access: Access,
    /// The length of the file in bytes. It is a limit and no allocation: the file takes space on the disk as it fills.
    /// `None` means 16 GiB for a new store.
    pub size_bytes: Option<u64>,
    /// The size of a page in bytes; `None` means 4 KiB for a new store.
    pub page_bytes: Option<u32>,
    /// The size of the log in bytes; `None` means 64 MiB for a new store, or a quarter of a file of less than 256 MiB.
    pub log_bytes: Option<u64>,
    /// Whether pages are written in place or out of place; `None` means in place for a new store.
    pub place: Option<PlaceConfig>,
    /// The limit of memory in bytes; `None` means 64 MiB and what the map of pages out of place takes.
    pub memory_bytes: Option<u64>,
    /// The other options, such as the durability of commits. The fields of the same names as those above have no
    /// effect.
    pub engine: EngineOptions,
}

impl Options {
    /// Returns the length of the file of a new store, in bytes.
    pub(crate) fn new_size(&self) -> u64 {
        self.size_bytes.unwrap_or(USUAL_BYTES)
    }

    /// Returns the options of the engine for a new store.
    pub(crate) fn for_new(&self) -> EngineOptions {
        let usual = EngineOptions::default();
        let log_bytes = self.log_bytes.unwrap_or(usual.log_bytes.min(self.new_size() / 4));
        EngineOptions {
            page_bytes: self.page_bytes.unwrap_or(usual.page_bytes),
            log_bytes,
            place: self.place.clone().unwrap_or(usual.place),
            memory_bytes: self.memory_bytes.unwrap_or(usual.memory_bytes),
            ..self.engine.clone()
        }
    }
}
