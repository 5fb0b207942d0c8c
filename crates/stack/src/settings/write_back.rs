//! Reads a write-back policy, and writes its parameters in the identity of a run.

use crate::run::{ChosenWriteBack, STORES_OWN};
use fulgurite_base::SpecError;
use fulgurite_pool::{WriteBack, WriteBackConfig};

/// Reads the write-back policy of a pool; `None` for the store's own choice.
pub(super) fn read_write_back(text: &str) -> Result<Option<WriteBackConfig>, SpecError> {
    if text == STORES_OWN {
        return Ok(None);
    }
    let names: Vec<&str> = WriteBackConfig::registry().names().chain([STORES_OWN]).collect();
    let name = text.split(':').next().unwrap_or_default();
    match names.contains(&name) {
        true => text.parse().map(Some),
        // List the names here, because the registry does not know the name of the store's own choice.
        false => Err(SpecError::unknown("write-back", name, &names)),
    }
}

/// Returns the write-back policy with its parameters on this device, whether they were given or measured.
pub(super) fn canonical_write_back(ChosenWriteBack { policy, batches }: &ChosenWriteBack) -> String {
    let WriteBack { n_w, n_e, buffers, buffers_least: least, under_way, ahead, cleaner_n_w, lock, .. } =
        batches;
    let lock = if *lock { ",lock=yes" } else { "" };
    // The number `u32::MAX` means that there is no bound.
    let under_way = if *under_way < u32::MAX { format!(",under_way={under_way}") } else { String::new() };
    let name = policy.name();
    format!(
        "{name}:n_w={n_w},n_e={n_e},buffers={buffers},least={least}{under_way},ahead={ahead},\
         cleaner_n_w={cleaner_n_w}{lock}"
    )
}
