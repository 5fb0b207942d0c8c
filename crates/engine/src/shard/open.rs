//! Creates a store on a drive, and opens one, with recovery after a crash.

use super::Shard;
use super::counters::Counters;
use super::durable::Durable;
use super::jobs::Jobs;
use super::log_room::LogRoom;
use super::recovery::{RedoBatch, Redone, redo_structure};
use super::state::State;
use super::transactions::Transactions;
use crate::bytes;
use crate::format::layout::{HEAD, Superblock};
use crate::format::page::node::NodeMut;
use crate::format::page::{self, Kind, map};
use crate::format::tree::{CATALOGUE, LARGE};
use crate::media::barrier::Barrier;
use crate::media::image::{Sink, Source};
use crate::media::log::{Log, LogReader, LogStart, Tail};
use crate::media::superblock;
use crate::media::write::out_of_place::{self, OutOfPlace};
use crate::media::write::{Area, Backend, InPlace, Pages, Sealed, restore_torn};
use crate::memory::decisions::Decisions;
use crate::memory::record_cache::RecordCache;
use crate::memory::space::Space;
use crate::options::BATCH;
use crate::wait::{Health, Signal};
use crate::{Error, Options};
use fulgurite_base::{Lpn, PageId};
use fulgurite_device::{Arena, Caps, Handle};
use fulgurite_pool::{BufferPool, PoolConfig};
use std::rc::Rc;

impl Shard {
    /// Creates an empty store that takes the whole drive. The former contents of the drive are lost.
    pub(crate) async fn create(handle: &Handle, options: &Options) -> Result<(), Error> {
        let caps = handle.caps();
        options.check(&caps)?;
        let superblock = Superblock::of_new(&caps, options, new_identity(handle, &caps).await)?;
        let own = options.with_map(&superblock)?;
        let health = Health::default();
        let barrier = Rc::new(Barrier::new(handle.clone(), health.clone()));
        // The superblocks of an older store are erased first: if creating the new store is interrupted, the
        // older store must not be found again.
        superblock::erase(handle, superblock.block_bytes).await?;
        barrier.flush().await?;
        let shared = (health, Rc::clone(&barrier));
        let place = match superblock.layout() {
            None => Backend::In(Box::new(in_place(handle, shared, &superblock, &own)?)),
            Some(layout) => {
                Backend::Out(OutOfPlace::create(handle, shared, &superblock, layout, &own).await?)
            }
        };
        write_first_pages(&place, &superblock).await?;
        place.make_durable(&barrier).await?;
        let superblock = Superblock { out_of_place: place.shape(), ..superblock };
        superblock::write(handle, &superblock).await?;
        barrier.flush().await?;
        Ok(())
    }

    /// Opens the store on a drive. After a crash it recovers the committed data. The page size and the log
    /// size of the store replace those in `options`.
    pub(crate) async fn open(handle: Handle, options: Options) -> Result<Rc<Shard>, Error> {
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
        // The clean mark alone proves nothing, because this superblock may not be the newest that was
        // written. If the log continues behind it, the store was written to later.
        let start = log_start(&handle, &superblock);
        let was_clean =
            superblock.clean && !LogReader::new(handle.clone(), start, None, &options).continues().await?;
        let health = Health::default();
        let barrier = Rc::new(Barrier::new(handle.clone(), health.clone()));
        // From here on a crash leaves a store that is marked as not clean. Nothing that belongs to the store is
        // written before this mark is durable.
        let mut superblock = superblock.opened();
        if options.grow && bytes < drive_bytes {
            superblock = extend(&handle, &barrier, superblock, drive_bytes).await?;
        }
        superblock::write(&handle, &superblock).await?;
        barrier.flush().await?;
        let recovered =
            Shard::recover(handle, options, superblock, (health.clone(), barrier), was_clean).await;
        match recovered {
            // The pool has told only that a page was not written.
            Err(Error::Io(error)) => Err(health.check().err().unwrap_or(Error::Io(error))),
            recovered => recovered,
        }
    }

    /// Begins to delete what a crash has left behind. No transaction may be in doubt: it may need some of that.
    pub(crate) fn clean_up_later(self: &Rc<Self>) {
        self.delete_marked_later();
        self.free_dropped_later();
    }

    async fn recover(
        handle: Handle,
        options: Options,
        superblock: Superblock,
        (health, barrier): (Health, Rc<Barrier>),
        was_clean: bool,
    ) -> Result<Rc<Shard>, Error> {
        let shared = || (health.clone(), Rc::clone(&barrier));
        let restored = match superblock.layout() {
            None if !was_clean => restore_torn(&handle, &barrier, &superblock, &options).await?,
            _ => 0,
        };
        let place = open_place(&handle, shared(), &superblock, &options).await?;
        let room = Signal::default();
        let pages = Pages::new(place, (shared(), room.clone()), &superblock, &options);
        let pool = new_pool(&handle, &options, &superblock, &pages)?;
        let mut start = log_start(&handle, &superblock);
        let (frames, batch_bytes) = options.recovery_memory(superblock.page_bytes)?;
        let mut batch = RedoBatch::new(batch_bytes, options.log_bytes);
        let redone = if was_clean {
            let tail = Tail { at: superblock.log_end, crc: superblock.log_crc };
            Redone::nothing(tail, superblock.next_large)
        } else {
            pool.set_limit(frames);
            // Recovery is the only user of the pool, so writes need not spare other requests.
            pages.set_hurry(true);
            let data = superblock.data_start().0..superblock.pages;
            let from = (start, superblock.next_large, data);
            redo_structure(&handle, &pool, &pages, from, &mut batch, &options).await?
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
        shard.counters.count(|counts| counts.restored_pages = restored);
        shard.count_free().await?;
        shard.load_catalogue().await?;
        if !was_clean {
            if !planted!(shard.options, ChainIgnored) {
                shard.durable.log().clear(&redone.left_over).await?;
            }
            shard.redo_records(redo, &redone, &mut batch).await?;
            shard.durable.pool().set_limit(u32::MAX);
            shard.durable.pages().set_hurry(false);
        }
        shard.find_freed().await?;
        shard.begin_to_divide();
        if shard.transactions.decisions().in_doubt().is_empty() {
            shard.clean_up_later();
        }
        Ok(shard)
    }
}

/// Returns an identity for a new store. It differs from the identity of the previous store on the drive, so
/// that old pages and log blocks are not mistaken for new ones.
async fn new_identity(handle: &Handle, caps: &Caps) -> u128 {
    let before =
        superblock::read(handle).await.map_or(0, |old| old.identity.wrapping_add(u128::from(old.generation)));
    // The old superblocks may be lost, but any store that has written its log has written the first log
    // block, so that block goes into the seed. An error of this read is ignored.
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
    // The low 32 bits of the identity are the salt of the checksums.
    u128::from(fulgurite_base::fnv1a(&seed)) << 64 | u128::from(crc32c::crc32c(&seed))
}

/// Extends a store with pages in place to the end of its drive, which has `drive_bytes` bytes. Returns the superblock
/// of the extended store, which the caller writes into the older of the two copies.
///
/// The allocation maps of the new groups are durable before a superblock names these groups. Both copies must name
/// them before a page there is used, because recovery may start from either copy. So the other copy is written here.
async fn extend(
    handle: &Handle,
    barrier: &Barrier,
    superblock: Superblock,
    drive_bytes: u64,
) -> Result<Superblock, Error> {
    if superblock.out_of_place.is_some() {
        return Err(Error::Options(
            "a store with pages out of place cannot be extended; accepted: a copy of another size (Store::copy)"
                .to_owned(),
        ));
    }
    let extended = Superblock { pages: drive_bytes / u64::from(superblock.page_bytes), ..superblock.clone() };
    let maps = |superblock: &Superblock| {
        Space::new(superblock.data_start(), superblock.pages, superblock.page_bytes).maps()
    };
    let mut bytes = vec![0; superblock.page_bytes as usize];
    for (map, _) in maps(&extended).skip(maps(&superblock).count()) {
        init_map(&mut bytes, map, &superblock);
        Sink::write(handle, map.0 * u64::from(superblock.page_bytes), &bytes).await?;
    }
    barrier.flush().await?;
    superblock::write(handle, &extended).await?;
    barrier.flush().await?;
    Ok(Superblock { generation: extended.generation + 1, ..extended })
}

/// Makes the map of a group without used pages, beside the map itself and the two roots of the first group.
fn init_map(bytes: &mut [u8], map: PageId, superblock: &Superblock) {
    page::init(bytes, Kind::Map, 0, map, 0);
    let used = if map == superblock.data_start() { 3 } else { 1 };
    (0..used).for_each(|index| map::set_used(bytes, index, true));
    page::seal(bytes, superblock.salt());
}

/// Writes the allocation maps, and the empty roots of the two trees that every store has.
async fn write_first_pages(place: &Backend, superblock: &Superblock) -> Result<(), Error> {
    let size = superblock.page_bytes as usize;
    let space = Space::new(superblock.data_start(), superblock.pages, superblock.page_bytes);
    let roots = [(superblock.catalogue_root(), Some(CATALOGUE)), (superblock.large_root(), Some(LARGE))];
    let all: Vec<(PageId, Option<u32>)> = space.maps().map(|(page, _)| (page, None)).chain(roots).collect();
    // Writes in batches: a large drive has many maps, and the double write flushes once for each batch.
    for batch in all.chunks(BATCH) {
        let bytes = Arena::new(size * batch.len()).buffer(0, size * batch.len());
        for (index, (page, root_of)) in batch.iter().enumerate() {
            bytes::change(&bytes.part(index * size, size), |bytes| match root_of {
                Some(tree) => {
                    NodeMut::init(bytes, *page, *tree, 0, (b"", None));
                    page::seal(bytes, superblock.salt());
                }
                None => init_map(bytes, *page, superblock),
            });
        }
        let numbers = batch.iter().map(|(page, _)| *page).collect();
        place.write(&Sealed { numbers, bytes }).await?;
    }
    Ok(())
}

/// Opens the page storage of an existing store, in place or out of place.
async fn open_place(
    handle: &Handle,
    shared: (Health, Rc<Barrier>),
    superblock: &Superblock,
    options: &Options,
) -> Result<Backend, Error> {
    match superblock.layout() {
        None => Ok(Backend::In(Box::new(in_place(handle, shared, superblock, options)?))),
        Some(layout) => {
            let kept = out_of_place::read(handle, layout, superblock).await?;
            Ok(Backend::Out(OutOfPlace::new(handle, shared, superblock, layout, kept, options)?))
        }
    }
}

/// Creates page storage that writes in place, protected against torn writes as the options ask.
fn in_place(
    handle: &Handle,
    shared: (Health, Rc<Barrier>),
    superblock: &Superblock,
    options: &Options,
) -> Result<InPlace, Error> {
    let torn_pages = options.torn_pages.resolve(&handle.caps(), superblock.page_bytes)?;
    let device_pages = superblock.page_bytes / handle.caps().page_bytes;
    let area = (superblock.double_write_start(), superblock.double_write_pages);
    let area = Area::new(handle.clone(), shared, torn_pages, device_pages, area, options);
    Ok(InPlace::new(handle.clone(), torn_pages, device_pages, area))
}

fn log_start(handle: &Handle, superblock: &Superblock) -> LogStart {
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

fn new_pool(
    handle: &Handle,
    options: &Options,
    superblock: &Superblock,
    pages: &Pages,
) -> Result<BufferPool, Error> {
    let frames = options.all_frames(superblock.page_bytes)?;
    let place = pages.backend();
    // The pool always has this many frames, even when the record cache has borrowed as many as it may.
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

fn assemble(
    handle: Handle,
    options: Options,
    superblock: Superblock,
    (health, barrier): (Health, Rc<Barrier>),
    (log, pages, pool): (Log, Pages, BufferPool),
    room: Signal,
    redone: &Redone,
) -> Shard {
    let (visible, page_bytes) = (Signal::default(), superblock.page_bytes);
    let record_bytes = options.record_bytes(page_bytes);
    let frames = options.all_frames(page_bytes).unwrap_or_default();
    // The other frames are for pages: a change of the structure latches several at once.
    let lent = frames - options.frames(page_bytes).unwrap_or_default();
    let records = RecordCache::new(record_bytes, page_bytes, log.capacity(), pool.borrower(lent));
    health.tell(&visible);
    health.tell(&room);
    let state = State::new(&superblock, frames, records, options.version_bytes());
    let (next_large, tail, opening) = (redone.next_large, redone.tail.at, superblock.generation);
    let decided = redone.decided.iter().map(|(id, since)| (*id, *since));
    let decisions = Decisions::new(opening, redone.undecided.iter(), decided);
    Shard {
        handle,
        options,
        health,
        durable: Durable::new(superblock, barrier, (log, pages, pool), next_large, tail),
        state,
        transactions: Transactions::new(visible, tail, decisions),
        jobs: Jobs::default(),
        log_room: LogRoom::new(room),
        counters: Counters::default(),
    }
}
