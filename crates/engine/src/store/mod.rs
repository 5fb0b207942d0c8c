//! The store: made, opened, asked, closed.

pub mod view;
pub mod rows;
pub mod scan;
pub mod transaction;
pub mod load;

use crate::bytes;
use crate::format::layout::{HEAD, Superblock};
use crate::format::log_record::{Delta, Op};
use crate::format::page::node::{NodeMut, longest_key};
use crate::format::page::{self, Kind, map};
use crate::format::tree::{CATALOGUE, LARGE, Tree};
use crate::media::barrier::Barrier;
use crate::media::image::Source;
use crate::media::log::{Log, LogReader, LogStart, Tail};
use crate::media::superblock;
use crate::media::write::out_of_place::{self, OutOfPlace};
use crate::media::write::{Area, InPlace, Pages, Place, Sealed, restore_torn};
use crate::memory::catalogue::{self, Catalogue, Extract, Index, Named, SHARDS, Table};
use crate::memory::commits::Commits;
use crate::memory::locks::Locks;
use crate::memory::record_cache::{RecordCache, RecordCounters};
use crate::memory::space::Space;
use crate::memory::versions::Versions;
use crate::options::BATCH;
use crate::shard::recovery::{Redone, Stretch, redo_structure};
use crate::shard::tree::Applied;
use crate::shard::{Counters, Shard};
use crate::store::scan::{Direction, Record};
use crate::store::transaction::{Snapshot, Transaction};
use crate::wait::{Health, Signal, Turns, insist, to_its_end};
use crate::{Durability, Error, Lsn, Options, TornPages};
use fulgurite_base::{Lpn, PageId};
use fulgurite_device::{Arena, Caps, Device, Handle};
use fulgurite_pool::{BufferPool, PoolConfig, PoolCounters};
use std::cell::{Cell, RefCell};
use std::ops::Bound;
use std::rc::Rc;

/// Refuses the name of a table that the engine keeps for itself.
fn refuse_own(name: &str) -> Result<(), Error> {
    if name == SHARDS {
        return Err(Error::Options(format!("`{name}` is the engine's own; accepted: another name")));
    }
    Ok(())
}

/// Records that are indexed in one transaction when an index is made.
const INDEXED_TOGETHER: usize = 64;

/// What a store has done since it was opened, and how large it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Transactions committed.
    pub commits: u64,
    /// Transactions that wrote and were not committed.
    pub aborts: u64,
    /// Transactions given up to end a deadlock.
    pub deadlocks: u64,
    /// Bytes of keys and values that commits have written.
    pub user_bytes_written: u64,
    /// Bytes written to the log.
    pub log_bytes_written: u64,
    /// Flushes of the log.
    pub log_flushes: u64,
    /// Bytes of log that recovery would read now.
    pub log_bytes_used: u64,
    /// Flushes of the drive.
    pub flushes: u64,
    /// Pages written, those written twice counted twice.
    pub pages_written: u64,
    /// Out of place: pages that collection has moved, a compressed one counted as what it takes.
    pub pages_moved: u64,
    /// Pages that differ from the drive.
    pub pages_changed: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Nodes split.
    pub splits: u64,
    /// Nodes merged.
    pub merges: u64,
    /// Pages in use.
    pub pages_used: u64,
    /// Pages of the store's data part.
    pub pages: u64,
    /// Bytes of the drive that the store uses: its pages, its log and the areas beside.
    pub space_bytes: u64,
    /// Bytes of old versions in memory.
    pub version_bytes: u64,
    /// Bytes of records in memory by themselves.
    pub record_bytes: u64,
    /// Bytes that they may have now; what would spare the drive more as pages is taken from that.
    pub record_limit_bytes: u64,
    /// Those records.
    pub records_kept: u64,
    /// Those among them that the pages lack.
    pub records_pending: u64,
    /// What was done with them.
    pub records: RecordCounters,
    /// Locks held.
    pub locks: u64,
    /// Operations that recovery has done again.
    pub recovered_ops: u64,
    /// Torn pages that recovery has restored.
    pub restored_pages: u64,
    /// Frames of the pool.
    pub frames: u32,
    /// What the pool has done.
    pub pool: PoolCounters,
}

/// A store on one drive, driven by one core. Clones share it.
///
/// A store is used by the tasks of one executor. It stops with [`Error::Fatal`] when it no longer knows what is durable;
/// opening it again recovers everything that was acknowledged.
pub struct Store<D: Device + 'static>(pub(crate) Rc<Shard<D>>);

impl<D: Device + 'static> Clone for Store<D> {
    fn clone(&self) -> Store<D> {
        Store(Rc::clone(&self.0))
    }
}

impl<D: Device + 'static> Store<D> {
    /// Makes an empty store that takes the whole drive. What was on it is lost.
    pub async fn create(handle: Handle<D>, options: Options) -> Result<Store<D>, Error> {
        let caps = handle.caps();
        options.check(&caps)?;
        let superblock = Superblock::of_new(&caps, &options, new_identity(&handle, &caps).await)?;
        let own = options.with_map(&superblock)?;
        let health = Health::default();
        let barrier = Rc::new(Barrier::new(handle.clone(), health.clone()));
        // An older store must not be found again if this is interrupted.
        superblock::erase(&handle, superblock.block_bytes).await?;
        barrier.flush().await?;
        let shared = (health, Rc::clone(&barrier));
        let place = match superblock.layout() {
            None => Place::In(Box::new(in_place(&handle, shared, &superblock, &own)?)),
            Some(layout) => Place::Out(OutOfPlace::create(&handle, shared, &superblock, layout, &own).await?),
        };
        write_first_pages(&place, &superblock).await?;
        place.make_durable(&barrier).await?;
        let superblock = Superblock { out_of_place: place.shape(), ..superblock };
        superblock::write(&handle, &superblock).await?;
        barrier.flush().await?;
        Store::open(handle, options).await
    }

    /// Opens the store on a drive. After a crash it recovers what was committed. Size of pages and log are the store's,
    /// whatever `options` say.
    pub async fn open(handle: Handle<D>, options: Options) -> Result<Store<D>, Error> {
        let superblock = superblock::read(&handle).await?;
        let caps = handle.caps();
        let log_bytes = superblock.log_pages * u64::from(superblock.page_bytes);
        let options = Options { page_bytes: superblock.page_bytes, log_bytes, ..options };
        options.check(&caps)?;
        let options = options.with_map(&superblock)?;
        if superblock.block_bytes % caps.page_bytes != 0 {
            return Err(Error::Options(format!(
                "the log's blocks of {} bytes are not made of the drive's pages of {} bytes",
                superblock.block_bytes, caps.page_bytes
            )));
        }
        let (bytes, drive_bytes) = (superblock.bytes(), caps.pages * u64::from(caps.page_bytes));
        if bytes > drive_bytes {
            return Err(Error::Options(format!(
                "the store has {bytes} bytes and the drive only {drive_bytes}: it was cut off"
            )));
        }
        // A superblock that was read is not always the newest that was written. The log knows whether more followed.
        let start = log_start(&handle, &superblock);
        let was_clean =
            superblock.clean && !LogReader::new(handle.clone(), start, None, &options).continues().await?;
        // From here on a crash finds an unclean store. Nothing else is changed before that is durable.
        let superblock = superblock.opened();
        superblock::write(&handle, &superblock).await?;
        let health = Health::default();
        let barrier = Rc::new(Barrier::new(handle.clone(), health.clone()));
        barrier.flush().await?;
        Store::recover(handle, options, superblock, (health, barrier), was_clean).await
    }

    async fn recover(
        handle: Handle<D>,
        options: Options,
        superblock: Superblock,
        (health, barrier): (Health, Rc<Barrier<D>>),
        was_clean: bool,
    ) -> Result<Store<D>, Error> {
        let shared = || (health.clone(), Rc::clone(&barrier));
        let mut restored = 0;
        let place = match superblock.layout() {
            None => {
                if !was_clean {
                    restored = restore_torn(&handle, &barrier, &superblock, &options).await?;
                }
                Place::In(Box::new(in_place(&handle, shared(), &superblock, &options)?))
            }
            Some(layout) => {
                let kept = out_of_place::read(&handle, layout, &superblock).await?;
                Place::Out(OutOfPlace::new(&handle, shared(), &superblock, layout, kept, &options)?)
            }
        };
        let room = Signal::default();
        let pages = Pages::new(place, (shared(), room.clone()), &superblock, &options);
        let pool = new_pool(&handle, &options, &superblock, &pages)?;
        let mut start = log_start(&handle, &superblock);
        let (frames, stretch_bytes) = options.recovery_memory(superblock.page_bytes)?;
        let mut stretch = Stretch::new(stretch_bytes, options.log_bytes);
        let redone = if was_clean {
            let tail = Tail { at: superblock.log_end, crc: superblock.log_crc };
            Redone { tail, left_over: Vec::new(), next_large: superblock.next_large, rest: None }
        } else {
            pool.set_limit(frames);
            // Nobody reads but recovery itself.
            pages.set_hurry(true);
            let data = superblock.data_start().0..superblock.pages;
            let from = (start, superblock.next_large, data);
            redo_structure(&handle, &pool, &pages, from, &mut stretch, &options).await?
        };
        let redo = start;
        start.tail = redone.tail.at;
        start.crc = redone.tail.crc;
        let log = Log::new(handle.clone(), Rc::clone(&barrier), health.clone(), start, &options);
        pages.set_log(log.clone());
        let shard = Rc::new(assemble(
            handle,
            options,
            superblock,
            (health, barrier),
            (log, pages, pool),
            room,
            &redone,
        ));
        shard.counters.restored_pages.set(restored);
        shard.count_free().await?;
        shard.load_catalogue().await?;
        if !was_clean {
            if !planted!(shard.options, ChainIgnored) {
                shard.log.clear(&redone.left_over).await?;
            }
            shard.redo_records(redo, &redone, &mut stretch).await?;
            shard.pool.set_limit(u32::MAX);
            shard.pages.set_hurry(false);
        }
        shard.find_freed().await?;
        shard.begin_to_divide();
        Ok(Store(shard))
    }

    /// What the store runs on.
    pub fn handle(&self) -> &Handle<D> {
        &self.0.handle
    }

    /// What protects pages on this drive.
    pub fn torn_pages(&self) -> TornPages {
        self.0.pages.torn_pages()
    }

    /// Whether pages lie out of place.
    pub fn is_out_of_place(&self) -> bool {
        self.0.pages.place().out_of_place().is_some()
    }

    /// What a commit promises that says nothing else.
    pub fn durability(&self) -> Durability {
        self.0.options.durability
    }

    /// Bytes in a page.
    pub fn page_bytes(&self) -> u32 {
        self.0.page_bytes()
    }

    /// Bytes of the log's area on the drive.
    pub fn log_bytes(&self) -> u64 {
        self.0.options.log_bytes
    }

    /// The table of this name, made if there is none.
    pub async fn create_table(&self, name: &str) -> Result<Table, Error> {
        refuse_own(name)?;
        self.create_own_table(name).await
    }

    /// The same for a table of the engine itself.
    pub(crate) async fn create_own_table(&self, name: &str) -> Result<Table, Error> {
        match self.named(name) {
            Some(Named::Table(table)) => Ok(table),
            Some(Named::Index(_)) => Err(Error::Options(format!("`{name}` is an index, not a table"))),
            None => {
                let make = |tree| Named::Table(Table(tree));
                match self.create_tree(name, make).await? {
                    Named::Table(table) => Ok(table),
                    Named::Index(_) => Err(Error::Options(format!("`{name}` is an index, not a table"))),
                }
            }
        }
    }

    /// The table of this name.
    pub async fn table(&self, name: &str) -> Result<Table, Error> {
        match self.named(name) {
            Some(Named::Table(table)) => Ok(table),
            _ => Err(Error::NoTable(name.to_owned())),
        }
    }

    /// Every table with its name.
    pub async fn tables(&self) -> Result<Vec<(String, Table)>, Error> {
        Ok(self.0.catalogue.borrow().tables())
    }

    fn named(&self, name: &str) -> Option<Named> {
        self.0.catalogue.borrow().get(name)
    }

    /// The index of this name over a table, made if there is none, with the records that the table has. `extract` names the
    /// index keys of a record; it is not stored, so this is called after each opening, before the table is written. It
    /// must give the same keys for the same record every time.
    pub async fn create_index(&self, table: Table, name: &str, extract: Extract) -> Result<Index, Error> {
        refuse_own(name)?;
        let known = self.named(name);
        let named = match known {
            Some(named) => named,
            None => {
                self.create_tree(name, move |tree| Named::Index(Index { tree, table, complete: false }))
                    .await?
            }
        };
        let Named::Index(mut index) = named else {
            return Err(Error::Options(format!("`{name}` is a table, not an index")));
        };
        if index.table != table {
            return Err(Error::Options(format!("the index `{name}` belongs to another table")));
        }
        self.0.catalogue.borrow_mut().set_extract(index, extract);
        if !index.complete {
            // An interrupted filling is repeated: entries that are there already are put again.
            self.fill_index(table).await?;
            index.complete = true;
            self.note_complete(name, index).await?;
        }
        Ok(index)
    }

    /// Notes in the catalogue that an index has the entries of all records.
    async fn note_complete(&self, name: &str, index: Index) -> Result<(), Error> {
        let value = catalogue::encode(Named::Index(index));
        let transaction = self.begin();
        let catalogue = self.0.tree(CATALOGUE)?;
        transaction.note(catalogue, name.as_bytes().into(), Some(value.clone().into()));
        transaction.commit_with(Durability::Flush).await?;
        self.0.catalogue.borrow_mut().add(name.as_bytes(), &value)
    }

    /// Puts every record of a table once more, with its index entries.
    async fn fill_index(&self, table: Table) -> Result<(), Error> {
        let mut low: Bound<Vec<u8>> = Bound::Unbounded;
        let mut together = INDEXED_TOGETHER;
        loop {
            let transaction = self.begin();
            let range = (low.as_ref().map(|key| &key[..]), Bound::Unbounded);
            let scan = transaction.scan(table, range, Direction::Forward);
            let records: Vec<Record> = scan.limit(together).all().await?;
            let Some((last, _)) = records.last().cloned() else { return Ok(()) };
            for (key, value) in &records {
                transaction.index_record(table, key, value).await?;
            }
            match transaction.commit().await {
                Ok(()) => low = Bound::Excluded(last),
                // A small log does not take so many long entries at once.
                Err(Error::TransactionTooLarge { .. }) if records.len() > 1 => together = records.len() / 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes a tree, if its name is one.
    async fn create_tree(
        &self,
        name: &str,
        named: impl FnOnce(Tree) -> Named + 'static,
    ) -> Result<Named, Error> {
        self.0.check_open()?;
        let longest = longest_key(self.0.page_bytes());
        if name.is_empty() || name.len() > longest {
            return Err(Error::Options(format!("a name has 1 to {longest} bytes, not {}", name.len())));
        }
        let (store, name) = (self.clone(), name.to_owned());
        // What is in the log must be applied.
        to_its_end(self.handle(), async move { store.add_tree(&name, named).await }).await
    }

    /// Makes a tree: its root and the catalogue's record are one record of the log.
    async fn add_tree(&self, name: &str, named: impl FnOnce(Tree) -> Named) -> Result<Named, Error> {
        let shard = &self.0;
        let root = shard.pick().await?;
        let turn = shard.structure.take().await;
        if let Some(named) = self.named(name) {
            // Somebody else was faster.
            shard.space.put_back(root);
            return Ok(named);
        }
        let tree = Tree { id: shard.catalogue.borrow().next(), root };
        let named = named(tree);
        let (map, index) = shard.space.place(root);
        let held = shard.hold(&[map], &[root]).await.inspect_err(|_| shard.space.put_back(root))?;
        let mut bytes = vec![0; shard.page_bytes() as usize];
        NodeMut::init(&mut bytes, root, tree.id, 0, (b"", None));
        let value = catalogue::encode(named);
        let deltas = vec![Delta::image(&bytes), Delta::Map { page: map, from: index, count: 1, used: true }];
        let op = Op {
            tree: CATALOGUE,
            key: name.as_bytes().into(),
            value: Some(value.clone().into()),
            large: false,
        };
        let (since, lsn) = shard.restructure(held, deltas, vec![op.clone()])?;
        shard.commits.borrow_mut().append(since, lsn, true);
        shard.catalogue.borrow_mut().add(name.as_bytes(), &value)?;
        drop(turn);
        let at = Applied { since, lsn, keep_old: false };
        let applied = insist(async || shard.apply(shard.tree(CATALOGUE)?, &op, at).await);
        if let Err(error) = applied.await {
            return Err(shard.stop_unapplied(&error));
        }
        shard.commits.borrow_mut().applied(lsn);
        shard.log.sync(lsn).await?;
        shard.advance();
        shard.until_visible(lsn).await?;
        Ok(named)
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Transaction<D> {
        Transaction::new(&self.0)
    }

    /// Takes a snapshot of what is committed now.
    pub fn snapshot(&self) -> Snapshot<D> {
        Snapshot::new(&self.0)
    }

    /// Writes everything that differs from the drive, so that recovery would have nothing to do.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        self.0.check_open()?;
        self.0.checkpoint(Lsn(u64::MAX)).await
    }

    /// A checkpoint as the store makes them of itself, as if half of the log in use were too much.
    #[cfg(feature = "planted")]
    pub async fn checkpoint_older_half(&self) -> Result<(), Error> {
        self.0.check_open()?;
        let (redo, tail) = (self.0.log.redo().0, self.0.log.tail().0);
        self.0.checkpoint(Lsn(redo + (tail - redo) / 2)).await
    }

    /// Waits for the commits under way, writes everything and marks the store as closed: it opens without recovery.
    /// Everything that is asked of it afterwards fails with [`Error::Closed`].
    pub async fn close(&self) -> Result<(), Error> {
        self.0.close().await
    }

    /// What the store has done and how large it is.
    pub fn statistics(&self) -> Statistics {
        let shard = &self.0;
        let Counters { commits, aborts, deadlocks, user_bytes, checkpoints, recovered_ops, restored_pages } =
            &shard.counters;
        let (log_flushes, log_bytes_written) = shard.log.counters();
        let (superblock, records) = (shard.superblock.borrow(), shard.records.borrow());
        let beside = superblock.data_start().0;
        Statistics {
            commits: commits.get(),
            aborts: aborts.get(),
            deadlocks: deadlocks.get(),
            user_bytes_written: user_bytes.get(),
            log_bytes_written,
            log_flushes,
            log_bytes_used: shard.log.used(),
            flushes: shard.barrier.flushes(),
            pages_written: shard.pages.pages_written(),
            pages_changed: shard.pages.changed(|changed| changed.len() as u64),
            checkpoints: checkpoints.get(),
            splits: shard.splits.get(),
            merges: shard.merges.get(),
            pages_used: shard.space.used(),
            pages: shard.space.pages(),
            space_bytes: match shard.pages.place().out_of_place() {
                Some(place) => beside * u64::from(superblock.page_bytes) + place.bytes(),
                None => (beside + shard.space.used()) * u64::from(superblock.page_bytes),
            },
            pages_moved: shard.pages.place().out_of_place().map_or(0, OutOfPlace::pages_moved),
            version_bytes: shard.versions.borrow().bytes(),
            record_bytes: records.bytes(),
            record_limit_bytes: records.limit(),
            records_kept: records.len() as u64,
            records_pending: records.pending(),
            records: records.counters(),
            locks: shard.locks.borrow().held() as u64,
            recovered_ops: recovered_ops.get(),
            restored_pages: restored_pages.get(),
            frames: shard.frames,
            pool: shard.pool.counters(),
        }
    }
}

impl<D: Device + 'static> Transaction<D> {
    /// Adds the index entries of a record that is there already.
    pub(crate) async fn index_record(&self, table: Table, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write_indexes(table, key, None, Some(value)).await
    }
}

/// Tells a new store from the one that was on the drive before, and from others: pages and log blocks of theirs must not
/// pass for its own.
async fn new_identity<D: Device + 'static>(handle: &Handle<D>, caps: &Caps) -> u128 {
    let before =
        superblock::read(handle).await.map_or(0, |old| old.identity.wrapping_add(u128::from(old.generation)));
    // Where the superblocks are gone, the beginning of the log is not: a store that has written a log has written that.
    // What cannot be read tells nothing.
    let mut log = [0; 4096];
    let _ = handle.read(HEAD, &mut log).await;
    let seed = [
        &before.to_le_bytes()[..],
        &handle.now().0.to_le_bytes(),
        &caps.pages.to_le_bytes(),
        &caps.page_bytes.to_le_bytes(),
        &crc32c::crc32c(&log).to_le_bytes(),
    ];
    let seed = seed.concat();
    // The low 32 bits are the salt.
    u128::from(fulgurite_base::fnv1a(&seed)) << 64 | u128::from(crc32c::crc32c(&seed))
}

/// Writes the maps and the empty roots of the two trees that every store has.
async fn write_first_pages<D: Device + 'static>(
    place: &Place<D>,
    superblock: &Superblock,
) -> Result<(), Error> {
    let size = superblock.page_bytes as usize;
    let space = Space::new(superblock.data_start(), superblock.pages, superblock.page_bytes);
    let roots = [(superblock.catalogue_root(), Some(CATALOGUE)), (superblock.large_root(), Some(LARGE))];
    let all: Vec<(PageId, Option<u32>)> = space.maps().map(|(page, _)| (page, None)).chain(roots).collect();
    // Together: a drive of many groups has many maps, and double writes flush for each batch.
    for batch in all.chunks(BATCH) {
        let bytes = Arena::new(size * batch.len()).buffer(0, size * batch.len());
        for (index, (page, root_of)) in batch.iter().enumerate() {
            bytes::change(&bytes.part(index * size, size), |bytes| {
                match root_of {
                    Some(tree) => drop(NodeMut::init(bytes, *page, *tree, 0, (b"", None))),
                    None => {
                        page::init(bytes, Kind::Map, 0, *page, 0);
                        // The first group has the roots.
                        let used = if *page == superblock.data_start() { 3 } else { 1 };
                        (0..used).for_each(|index| map::set_used(bytes, index, true));
                    }
                }
                page::seal(bytes, superblock.salt());
            });
        }
        let numbers = batch.iter().map(|(page, _)| *page).collect();
        place.write(&Sealed { numbers, bytes }).await?;
    }
    Ok(())
}

/// Pages at their own numbers, protected as the options say.
fn in_place<D: Device + 'static>(
    handle: &Handle<D>,
    shared: (Health, Rc<Barrier<D>>),
    superblock: &Superblock,
    options: &Options,
) -> Result<InPlace<D>, Error> {
    let torn_pages = options.torn_pages.resolve(&handle.caps(), superblock.page_bytes)?;
    let device_pages = superblock.page_bytes / handle.caps().page_bytes;
    let area = (superblock.double_write_start(), superblock.double_write_pages);
    let area = Area::new(handle.clone(), shared, torn_pages, device_pages, area, options);
    Ok(InPlace::new(handle.clone(), torn_pages, device_pages, area))
}

fn log_start<D: Device + 'static>(handle: &Handle<D>, superblock: &Superblock) -> LogStart {
    let device_pages = superblock.page_bytes / handle.caps().page_bytes;
    LogStart {
        first: Lpn(superblock.log_start().0 * u64::from(device_pages)),
        block_bytes: superblock.block_bytes,
        blocks: superblock.log_pages * u64::from(superblock.page_bytes) / u64::from(superblock.block_bytes),
        tail: superblock.log_end,
        crc: superblock.log_crc,
        redo: superblock.redo,
        salt: superblock.salt(),
    }
}

fn new_pool<D: Device + 'static>(
    handle: &Handle<D>,
    options: &Options,
    superblock: &Superblock,
    pages: &Pages<D>,
) -> Result<BufferPool<D>, Error> {
    let frames = options.all_frames(superblock.page_bytes)?;
    let place = pages.place();
    // Its frames are there also when records have borrowed all that they may.
    let write_back =
        options.write_back(options.frames(superblock.page_bytes)?, place.is_batched(), place.batches());
    let refuse = |what: String| Error::Options(what);
    let replacement = options.replacement.start(frames).map_err(|error| refuse(error.to_string()))?;
    let config = PoolConfig {
        frames,
        page_bytes: superblock.page_bytes,
        replacement,
        write_back,
        prefetch: options.prefetch.start().map_err(|error| refuse(error.to_string()))?,
        store: Some(Rc::new(pages.clone())),
    };
    BufferPool::new(handle.clone(), config).map_err(|error| refuse(error.to_string()))
}

fn assemble<D: Device + 'static>(
    handle: Handle<D>,
    options: Options,
    superblock: Superblock,
    (health, barrier): (Health, Rc<Barrier<D>>),
    (log, pages, pool): (Log<D>, Pages<D>, BufferPool<D>),
    room: Signal,
    redone: &Redone,
) -> Shard<D> {
    let space = Space::new(superblock.data_start(), superblock.pages, superblock.page_bytes);
    let (visible, page_bytes) = (Signal::default(), superblock.page_bytes);
    let record_bytes = options.record_bytes(page_bytes);
    let records = RecordCache::new(record_bytes, page_bytes, log.capacity(), pool.borrower());
    health.tell(&visible);
    health.tell(&room);
    Shard {
        handle,
        scanned: RefCell::default(),
        space,
        catalogue: RefCell::new(Catalogue::new(superblock.catalogue_root(), superblock.large_root())),
        superblock: RefCell::new(superblock),
        health,
        barrier,
        frames: options.all_frames(page_bytes).unwrap_or_default(),
        log,
        pages,
        pool,
        structure: Turns::default(),
        stored: RefCell::default(),
        // Recovery has done again what was before this.
        last_structure: Cell::new(redone.tail.at),
        splits: Cell::new(0),
        merges: Cell::new(0),
        records: RefCell::new(records),
        evicting: Cell::new(false),
        borrowing: Cell::new(false),
        versions: RefCell::new(Versions::new(options.version_bytes())),
        commits: RefCell::new(Commits::new(redone.tail.at)),
        visible,
        locks: RefCell::new(Locks::new()),
        lock_waits: RefCell::default(),
        next_txn: Cell::new(1),
        next_large: Cell::new(redone.next_large),
        promised_log: Cell::new(0),
        room,
        checkpointing: Cell::new(false),
        ended: Cell::new(0),
        vain_checkpoint: Cell::new(None),
        checkpoint_turn: Turns::default(),
        unread: Cell::new(None),
        watch: RefCell::default(),
        backup_turn: Turns::default(),
        closed: Cell::new(false),
        counters: Counters::default(),
        options,
    }
}
