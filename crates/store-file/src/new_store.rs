//! Plans the sizes and options of a new store.

use crate::open::{StoreFile, read_size};
use fulgurite_base::units;
use fulgurite_device::Caps;
use fulgurite_engine::{Durability, Error, Options, PlaceConfig};
use fulgurite_stack::StackError;
use fulgurite_uring::DriveOptions;

/// The default size of a new store in bytes. A large input gives a larger size.
const USUAL_BYTES: u64 = 16 << 30;
/// The least ratio of a new store's size to the size of its input. It is more than 1 because pages are not
/// full, and because more records may follow.
const SIZE_BY_INPUT: u64 = 4;

/// The sizes of a new store, as the user typed them; `None` for defaults.
#[derive(Clone, Debug, Default)]
pub struct NewStore {
    /// The size of the store's file.
    pub size: Option<String>,
    /// The size of a page.
    pub page: Option<String>,
    /// The size of the log.
    pub log: Option<String>,
    /// Whether pages are written in place or out of place.
    pub place: Option<String>,
}

/// The sizes of a new store in bytes; `None` for defaults.
pub(crate) struct Sizes {
    pub(crate) size: Option<u64>,
    pub(crate) page: Option<u64>,
    pub(crate) log: Option<u64>,
    pub(crate) place: Option<PlaceConfig>,
}

impl Sizes {
    /// Reads the sizes from the text that the user typed.
    pub(crate) fn read(new: &NewStore) -> Result<Sizes, StackError> {
        let place = new.place.as_deref().map(str::parse::<PlaceConfig>).transpose();
        Ok(Sizes {
            size: read_size("--size", new.size.as_deref())?,
            page: read_size("--page", new.page.as_deref())?,
            log: read_size("--log", new.log.as_deref())?,
            place: place.map_err(|error| StackError::request(format!("--place: {error}")))?,
        })
    }
}

/// Returns the size in bytes and the options of a new store that `input` bytes are loaded into.
pub(crate) fn plan(
    file: &StoreFile,
    sizes: &Sizes,
    input: Option<u64>,
) -> Result<(u64, Options), StackError> {
    let usual = Options::default();
    let by_input = input.unwrap_or(0).saturating_mul(SIZE_BY_INPUT).next_multiple_of(1 << 20);
    let page_bytes = sizes.page.unwrap_or(u64::from(usual.page_bytes));
    let page_bytes = u32::try_from(page_bytes).unwrap_or(u32::MAX);
    if !page_bytes.is_power_of_two() || !(4096..=65536).contains(&page_bytes) {
        return Err(StackError::request(format!(
            "--page {} is not a page size of a store; accepted: a power of two from 4KiB to 64KiB",
            units::format_size(u64::from(page_bytes))
        )));
    }
    let bytes = sizes.size.unwrap_or(USUAL_BYTES.max(by_input));
    if bytes > 1 << 60 || !bytes.is_multiple_of(u64::from(page_bytes)) {
        return Err(StackError::request(format!(
            "--size {} is not a whole number of pages of {}; accepted: a multiple of the page, up to 1 EiB",
            units::format_size(bytes),
            units::format_size(u64::from(page_bytes))
        )));
    }
    let (log_bytes, place) =
        (sizes.log.unwrap_or(usual.log_bytes), sizes.place.clone().unwrap_or(usual.place));
    let new = Options { page_bytes, log_bytes, place, durability: Durability::Relaxed, ..usual };
    // Creating the store reports wrong options, so the error is dropped here.
    let file_page = DriveOptions::default().page_bytes;
    let map_memory =
        new.map_memory(&Caps::plain(file_page, bytes / u64::from(file_page), 1)).unwrap_or_default();
    Ok((bytes, Options { memory_bytes: file.memory(bytes, map_memory)?, ..new }))
}

/// Returns the error for a new store that cannot be created. The error names the options that the user typed.
pub(crate) fn refused_options(file: &StoreFile, sizes: &Sizes, error: Error) -> StackError {
    let Error::Options(what) = error else { return file.failed(&error) };
    let typed = [
        ("--size", sizes.size.is_some()),
        ("--page", sizes.page.is_some()),
        ("--log", sizes.log.is_some()),
        ("--memory", file.has_memory()),
        ("--place", sizes.place.is_some()),
    ];
    let typed: Vec<&str> = typed.iter().filter(|(_, is_typed)| *is_typed).map(|(name, _)| *name).collect();
    StackError::request(format!("{}: {what}", typed.join(", ")))
}
