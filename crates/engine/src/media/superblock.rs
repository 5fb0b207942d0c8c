//! The two places of the superblock, on a drive or in an image: written in turn, erased together, read when a store is
//! opened or repaired.

use crate::Error;
use crate::format::layout::{PLACES, SUPERBLOCK, Superblock};
use crate::media::image::{Sink, Source};
use crate::wait::insist;
use fulgurite_device::IoError;

/// Writes a superblock to the place whose turn it is. It takes as many bytes as a block of the log, since the drive writes
/// nothing smaller.
pub async fn write(sink: &impl Sink, superblock: &Superblock) -> Result<(), Error> {
    let mut bytes = vec![0; superblock.block_bytes as usize];
    bytes[..SUPERBLOCK].copy_from_slice(&superblock.encode());
    sink.write(PLACES[(superblock.generation % 2) as usize], &bytes).await
}

/// Erases both places, `block_bytes` bytes at each.
pub async fn erase(sink: &impl Sink, block_bytes: u32) -> Result<(), Error> {
    for place in PLACES {
        sink.clear(place, u64::from(block_bytes)).await?;
    }
    Ok(())
}

/// What each place says. [`Error::Io`] means that a place cannot be read.
pub async fn read_both(source: &impl Source) -> [Result<Superblock, Error>; 2] {
    [read_place(source, PLACES[0]).await, read_place(source, PLACES[1]).await]
}

async fn read_place(source: &impl Source, place: u64) -> Result<Superblock, Error> {
    let mut bytes = vec![0; 4096];
    match insist(async || source.read(place, &mut bytes).await).await {
        Ok(()) => Superblock::decode(&bytes),
        // Beyond the end of the drive there is no store.
        Err(Error::Io(IoError::OutOfRange)) => Err(Error::NotAStore),
        Err(error) => Err(error),
    }
}

/// Reads the superblock with the higher generation.
///
/// Where the other place is damaged, the newest may have been there: so the store counts as not closed, and the log tells
/// what followed. A place that cannot be read is an error, since what it says is not known.
pub async fn read(source: &impl Source) -> Result<Superblock, Error> {
    let found = read_both(source).await;
    // Another version may have begun to write the store: what the other place says is old then.
    if let Some(Err(error)) =
        found.iter().find(|found| matches!(found, Err(Error::Io(_) | Error::Version { .. })))
    {
        return Err(error.clone());
    }
    let newest = found.iter().flatten().max_by_key(|superblock| superblock.generation).cloned();
    if let Some(superblock) = newest {
        // The other one may have been the newer, and may have said that the store was opened since: then only the log tells.
        let clean = superblock.clean && found.iter().all(Result::is_ok);
        return Ok(Superblock { clean, ..superblock });
    }
    // Damage tells more than something foreign.
    let errors = found.into_iter().filter_map(Result::err);
    Err(errors.max_by_key(|error| matches!(error, Error::Corrupt { .. })).unwrap_or(Error::NotAStore))
}
