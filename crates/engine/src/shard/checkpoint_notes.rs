//! Notes in the log about pages whose image in the log is incomplete: the page on the drive contains
//! operations that neither the image nor the log behind the redo point contains.
//!
//! A split logs an image of the new node. Operations from before the image may still be missing in the node:
//! pending records, and commits that are being applied. They are put into the node later. Once the node is
//! written with them, the redo point may move past these operations and still lie before the image. From then
//! on the image and the log behind it no longer add up to the page. If the drive lost the page, recovery
//! would make an incomplete page of the image. So before the redo point moves past the operations, a note in
//! the log says that the drive has the page ([`Delta::Stored`]). Recovery then refuses a store in which this
//! page is lost.

use crate::format::log_record::{Delta, Entry};
use crate::format::page;
use crate::shard::Shard;
use crate::{Error, Lsn};
use fulgurite_base::PageId;

/// The number of pages in one log record of notes, and the maximum number of bytes for each page.
const NOTED_TOGETHER: (usize, u64) = (4096, 12);

impl Shard {
    /// Marks a leaf as dirty since the LSN `since`, the position in the log of the operations that were put
    /// into it.
    pub(crate) fn mark_leaf(&self, number: PageId, bytes: &[u8], since: Lsn) {
        self.durable.pages().mark(number, since);
        self.note_put(number, page::structure_lsn(bytes), since);
    }

    /// Notes that operations from the LSN `since` on were put into a leaf whose structure last changed at `made`.
    pub(crate) fn note_put(&self, number: PageId, made: Lsn, since: Lsn) {
        self.state.with_backup(|watch| watch.touch(number));
        if since < made && made > self.durable.log().redo() {
            self.state.notes_mut().put(number, made, since);
        }
    }

    /// Makes a note durable of the pages on the drive that could not be made from their images once the redo
    /// point is at `redo`. If the log has no space for the note, the redo point moves all the same, because
    /// nothing else frees log space, and the next checkpoint writes the note.
    pub(crate) async fn note_stored(&self, redo: Lsn) -> Result<(), Error> {
        // Notes would mislead recovery from a backup: the backup contains pages that were allocated since it
        // began only as their images in the log.
        if self.state.is_backup_running() {
            return Ok(());
        }
        let mut last = None;
        let due = self.state.notes_mut().due(redo);
        for pages in due.chunks(NOTED_TOGETHER.0) {
            if self.room_to_carry() < pages.len() as u64 * NOTED_TOGETHER.1 + 64 {
                break;
            }
            let deltas = pages.iter().map(|page| Delta::Stored { page: *page }).collect();
            let (_, lsn) = self.durable.log().append(&Entry::of_deltas(deltas));
            self.state.notes_mut().noted(pages);
            last = Some(lsn);
        }
        match last {
            Some(last) => self.durable.log().sync(last).await,
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::repair;
    use crate::{Durability, Error, MemImage, Options, Source, Store};
    use fulgurite_base::{Lpn, Nanos, PageId, StreamId};
    use fulgurite_device::{Arena, Executor, MemDevice, Operation};
    use std::collections::BTreeSet;
    use std::slice::from_ref;

    const RECORDS: u8 = 60;

    fn drive() -> MemDevice {
        MemDevice::new(4096, 4096, 64, Nanos::from_micros(10))
    }

    fn options() -> Options {
        Options { memory_bytes: 16 << 20, log_bytes: 4 << 20, ..Options::default() }
    }

    /// Returns a drive on which pending records split a leaf, and the leaves of the tree. The redo point lies
    /// between these records and the images of the leaves. With `beside_a_backup`, the redo point moved there
    /// while a backup ran, and another checkpoint followed the backup.
    fn after_a_split(beside_a_backup: bool) -> (MemDevice, Vec<PageId>) {
        let executor = Executor::new(drive());
        let handle = executor.handle();
        let work = async move {
            let store = Store::create(handle, options()).await.unwrap();
            let table = store.create_table("t").await.unwrap();
            // Makes the leaf clean: a write to a dirty leaf would not go to the record cache.
            store.checkpoint().await.unwrap();
            let transaction = store.begin();
            for key in 0..RECORDS {
                transaction.put(table, &[key], &[key; 150]).await.unwrap();
            }
            transaction.commit_with(Durability::Flush).await.unwrap();
            let pending = store.0.state.records().least();
            let tail = store.0.durable.log().tail();
            store.0.merge_all().await;
            assert!(store.0.counters.get().splits > 0, "a leaf was divided");
            // Marks the leaves as dirty and writes them. The other pages that the split changed are not
            // written.
            if beside_a_backup {
                store.0.state.begin_backup();
                store.0.checkpoint_pages(tail).await.unwrap();
                store.0.state.end_backup();
            }
            store.0.checkpoint_pages(tail).await.unwrap();
            let redo = store.0.durable.log().redo();
            assert!(pending.is_some_and(|since| since < redo), "{pending:?} and {redo}");
            assert!(redo <= store.0.durable.last_structure(), "the split is done again: {redo}");
            let mut leaves = Vec::new();
            for key in 0..RECORDS {
                let (parent, leaf) = store.0.leaf_page(table.0, &[key]).await.unwrap();
                drop(parent);
                leaves.push(leaf);
            }
            leaves.dedup();
            // Simulates a power cut: nothing is written from here on.
            store.0.health.stop("the power is gone".to_owned());
            leaves
        };
        let leaves = executor.block_on(work).unwrap();
        (executor.with_device(|device| std::mem::replace(device, drive())), leaves)
    }

    /// Returns the same drive with the contents of page `leaf` lost.
    fn without(leaf: PageId, beside_a_backup: bool) -> MemDevice {
        let executor = Executor::new(after_a_split(beside_a_backup).0);
        let handle = executor.handle();
        let rot = async move {
            let from = Some(Arena::new(4096).buffer(0, 4096));
            let write = Operation::Write {
                lpn: Lpn(leaf.0),
                pages: 1,
                from,
                stream: StreamId::default(),
                durable: false,
            };
            handle.submit(write).await.unwrap();
        };
        executor.block_on(rot).unwrap();
        executor.with_device(|device| std::mem::replace(device, drive()))
    }

    /// Returns the keys of a store, and checks their values.
    async fn keys(store: &Store) -> Result<BTreeSet<u8>, Error> {
        let (table, snapshot) = (store.table("t").await?, store.snapshot());
        let mut found = BTreeSet::new();
        for key in 0..RECORDS {
            if let Some(value) = snapshot.get(table, &[key]).await? {
                assert_eq!(value, [key; 150]);
                found.insert(key);
            }
        }
        Ok(found)
    }

    /// Returns the number of records of the store on a drive.
    fn open_and_count(drive: MemDevice) -> Result<usize, Error> {
        let executor = Executor::new(drive);
        let handle = executor.handle();
        let opening = async move { Ok(keys(&Store::open(handle, options()).await?).await?.len()) };
        executor.block_on(opening).unwrap()
    }

    /// Returns the leaves whose loss makes opening fail. The loss of any other leaf must lose no record.
    fn refused_without_one(beside_a_backup: bool) -> Vec<PageId> {
        let (whole, mut leaves) = after_a_split(beside_a_backup);
        assert!(leaves.len() > 2, "{leaves:?}");
        assert_eq!(open_and_count(whole), Ok(usize::from(RECORDS)));
        leaves.retain(|leaf| match open_and_count(without(*leaf, beside_a_backup)) {
            // Opening succeeds without the leaf that was split last, because its image is complete.
            Ok(found) => {
                assert_eq!(found, usize::from(RECORDS), "without page {}", leaf.0);
                false
            }
            Err(Error::Corrupt { page, .. }) if page == *leaf => true,
            Err(error) => panic!("page {}: {error}", leaf.0),
        });
        leaves
    }

    /// The rule: if the drive has lost a leaf whose image is incomplete, recovery does not take the image for
    /// the leaf.
    #[test]
    fn a_lost_leaf_is_not_made_from_an_incomplete_image() {
        assert!(!refused_without_one(false).is_empty(), "no image lacked anything");
    }

    /// The rule: while a backup runs, a checkpoint writes no note about incomplete images, and the next
    /// checkpoint writes it.
    #[test]
    fn the_next_checkpoint_notes_what_a_backup_has_kept_from_it() {
        assert_eq!(refused_without_one(true), refused_without_one(false));
    }

    /// The rule: a repair reports a leaf as lost if the log has only a part of the leaf's records.
    #[test]
    fn a_repair_says_that_the_leaf_is_lost() {
        for leaf in refused_without_one(false) {
            let executor = Executor::new(without(leaf, false));
            let mut damaged = vec![0; 4096 * 4096];
            let handle = executor.handle();
            let copy = async move {
                handle.read(0, &mut damaged).await.unwrap();
                MemImage::new(damaged)
            };
            let image = executor.block_on(copy).unwrap();
            let executor = Executor::new(drive());
            let handle = executor.handle();
            let saving = async move {
                let report = repair(&image, handle.clone(), options()).await.unwrap();
                let store = Store::open(handle, options()).await.unwrap();
                (report, keys(&store).await.unwrap())
            };
            let (report, saved) = executor.block_on(saving).unwrap();
            let [table] = report.tables.as_slice() else { panic!("{report:?}") };
            let is_reported = |key: &u8| {
                table.lost.iter().any(|part| {
                    let (low, high) = &part.keys;
                    low.as_slice() <= from_ref(key)
                        && high.as_ref().is_none_or(|high| high.as_slice() > from_ref(key))
                })
            };
            let missing: Vec<u8> = (0..RECORDS).filter(|key| !saved.contains(key)).collect();
            assert!(!missing.is_empty(), "page {}", leaf.0);
            assert!(missing.iter().all(is_reported), "page {}: {missing:?} of {:?}", leaf.0, table.lost);
        }
    }
}
