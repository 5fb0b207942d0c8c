//! Reads and writes the two copies of the superblock, on a drive or in an image.

use crate::Error;
use crate::format::layout::{PLACES, SUPERBLOCK, Superblock};
use crate::media::image::{Sink, Source};
use crate::wait::insist;
use fulgurite_device::IoError;

/// Writes a superblock, in alternation to one of the two copies. Its bytes are padded to a block of the log,
/// the smallest write of the drive.
pub(crate) async fn write(sink: &dyn Sink, superblock: &Superblock) -> Result<(), Error> {
    let mut bytes = vec![0; superblock.block_bytes as usize];
    bytes[..SUPERBLOCK].copy_from_slice(&superblock.encode());
    sink.write(PLACES[(superblock.generation % 2) as usize], &bytes).await
}

/// Clears both copies, which have `block_bytes` bytes each.
pub(crate) async fn erase(sink: &dyn Sink, block_bytes: u32) -> Result<(), Error> {
    for copy in PLACES {
        sink.clear(copy, u64::from(block_bytes)).await?;
    }
    Ok(())
}

/// Reads both copies. [`Error::Io`] means that the copy cannot be read.
pub(crate) async fn read_both(source: &dyn Source) -> [Result<Superblock, Error>; 2] {
    [read_copy(source, PLACES[0]).await, read_copy(source, PLACES[1]).await]
}

async fn read_copy(source: &dyn Source, copy: u64) -> Result<Superblock, Error> {
    let mut bytes = vec![0; 4096];
    match insist(async || source.read(copy, &mut bytes).await).await {
        Ok(()) => Superblock::decode(&bytes),
        // Nothing is stored beyond the end of the drive.
        Err(Error::Io(IoError::OutOfRange)) => Err(Error::NotAStore),
        Err(error) => Err(error),
    }
}

/// Reads the copy of the superblock with the higher generation.
///
/// If the other copy is damaged, it may have been the newer one. The store then counts as not closed, and
/// recovery reads the log. If a copy cannot be read, its contents are unknown, and the function fails.
pub(crate) async fn read(source: &dyn Source) -> Result<Superblock, Error> {
    let found = read_both(source).await;
    // If one copy has an unknown format, a newer version has written the store, so the other copy is
    // outdated.
    if let Some(Err(error)) =
        found.iter().find(|found| matches!(found, Err(Error::Io(_) | Error::Version { .. })))
    {
        return Err(error.clone());
    }
    let newest = found.iter().flatten().max_by_key(|superblock| superblock.generation).cloned();
    if let Some(superblock) = newest {
        // The damaged copy may have been newer and marked as not clean, so recovery must read the log.
        let clean = superblock.clean && found.iter().all(Result::is_ok);
        return Ok(Superblock { clean, ..superblock });
    }
    // Report damage of one copy rather than foreign data in the other.
    let errors = found.into_iter().filter_map(Result::err);
    Err(errors.max_by_key(|error| matches!(error, Error::Corrupt { .. })).unwrap_or(Error::NotAStore))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemImage;
    use crate::hostile::sound_superblock;
    use fulgurite_base::Nanos;
    use fulgurite_device::{Executor, MemDevice};

    /// The rule: a superblock never overwrites the one before it, so a write that destroys its place leaves a
    /// superblock.
    #[test]
    fn the_superblock_before_the_last_one_stays_intact() {
        let executor = Executor::new(MemDevice::new(1, 4096, 1, Nanos::ZERO));
        let done = executor.block_on(async {
            let image = MemImage::new(vec![0; 1 << 17]);
            for generation in 3..9 {
                write(&image, &Superblock { generation, ..sound_superblock() }).await.unwrap();
                let both = read_both(&image).await;
                let mut generations: Vec<u64> = both.iter().flatten().map(|found| found.generation).collect();
                generations.sort_unstable();
                let before = (generation - 1).max(3);
                assert!(generations.into_iter().eq(before..=generation));
                assert_eq!(read(&image).await.unwrap().generation, generation);
            }
        });
        done.unwrap();
    }
}
