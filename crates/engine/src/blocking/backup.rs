//! Backups through the handle for threads. The images of several shards are one state.
//!
//! The pages of the shards are copied one after the other, and the ends of all images are chosen while all shards are
//! locked. So the images are what a power cut of all drives at this moment would leave, and nothing else has to wait:
//! a transaction that some images have as prepared ends as the image of its coordinator says.

use super::db::Db;
use super::inside::BackupSlot;
use crate::tools::backup::Backup;
use crate::{BackupReport, Error, Sink};
use fulgurite_device::Handle;
use std::future::Future;
use std::rc::Rc;

/// The backups of all shards. If they are dropped before their end, the images contain no store.
struct Backups<'a> {
    db: &'a Db,
    /// The number of the backup of each shard.
    numbers: Vec<u64>,
}

impl Db {
    /// Makes an image of each shard while the store is in use (see [`Store::backup`](crate::Store::backup)). The images
    /// are one state of the store: they have the same transactions of several shards, and the writes of a commit only
    /// with those of every commit that had returned before it began. `sink` returns the target of the shard with this
    /// number. The methods of a sink run under the lock of the shard, so they should not block; they may wait with the
    /// handle.
    ///
    /// A restored shard may have to ask others how a transaction ended, so open all of them together.
    pub fn backup_into<S: Sink + 'static>(
        &self,
        mut sink: impl FnMut(usize, Handle) -> Result<S, Error> + Send,
    ) -> Result<Vec<BackupReport>, Error> {
        let mut backups = Backups { db: self, numbers: Vec::new() };
        for shard in 0..self.shards() {
            let make = &mut sink;
            let number = self.shard(shard).at_once(|inside| -> Result<u64, Error> {
                let sink: Box<dyn Sink> = Box::new(make(shard, inside.store.handle().clone())?);
                let number = inside.draw();
                inside.backups.insert(number, Rc::new((Backup::new(&inside.store), sink)));
                Ok(number)
            })??;
            backups.numbers.push(number);
        }
        backups.each(|slot| async move { slot.0.begin(&*slot.1).await })?;
        loop {
            backups.each(|slot| async move { slot.0.copy_pages(&*slot.1).await })?;
            if !backups.choose_ends(0)? {
                continue;
            }
            let copied = backups.each(|slot| async move { slot.0.copy_log(&*slot.1).await })?;
            if copied.iter().all(|is_copied| *is_copied) {
                return backups.each(|slot| async move { slot.0.finish(&*slot.1).await });
            }
        }
    }
}

impl Backups<'_> {
    /// Does a step of the backup of each shard in turn.
    fn each<T: Send + 'static, F: Future<Output = Result<T, Error>> + 'static>(
        &self,
        step: impl Fn(BackupSlot) -> F + Send + Copy,
    ) -> Result<Vec<T>, Error> {
        self.db.each(|shard| {
            let number = self.numbers[shard];
            self.db.shard(shard).run(move |inside| {
                let slot = inside.backups.get(&number).cloned().ok_or(Error::Closed)?;
                Ok(step(slot))
            })
        })
    }

    /// Chooses the ends of the images of this shard and those behind it, at one moment. Returns false if the backup of
    /// a shard has to copy pages before.
    fn choose_ends(&self, shard: usize) -> Result<bool, Error> {
        let Some(number) = self.numbers.get(shard) else { return Ok(true) };
        self.db.shard(shard).at_once(|inside| {
            let others = self.choose_ends(shard + 1)?;
            let (backup, _) = &**inside.backups.get(number).ok_or(Error::Closed)?;
            Ok(backup.choose_end()? && others)
        })?
    }
}

impl Drop for Backups<'_> {
    fn drop(&mut self) {
        for (shard, number) in self.numbers.iter().enumerate() {
            // An error is ignored, because a broken shard has no backup to end.
            let _ = self.db.shard(shard).at_once(|inside| drop(inside.backups.remove(number)));
        }
    }
}
