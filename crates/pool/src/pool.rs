//! The buffer pool's interface: functions that make a pool, find pages in it and read pages into it.

use crate::counters::PoolCounters;
use crate::departed::{Departures, Watched};
use crate::error::{PoolConfigError, PoolError};
use crate::guards::{ReadGuard, WriteGuard};
use crate::state::{Fixed, Granted, Inner, PoolState, address};
use crate::store::PageStore;
use crate::waiting::{Turns, Waiter};
use crate::write_back::Order;
use crate::{Cursor, FrameTable, Prefetch, Replacement, ReplacementPolicy, WriteBack};
use fulgurite_base::PageId;
use fulgurite_device::{Arena, Device, Handle};
use std::cell::RefCell;
use std::rc::Rc;

/// The configuration of a pool: its size, its page size, its policies and its page store.
pub struct PoolConfig {
    /// The number of frames in the pool, including those whose pages are being written.
    pub frames: u32,
    /// The size of a page in bytes, a multiple of the device's page size.
    pub page_bytes: u32,
    /// The policy that chooses the victim frame. It must be made for the same number of frames.
    pub replacement: Replacement,
    /// The policy that decides which pages are written when a frame is evicted, and whether the miss waits.
    pub write_back: WriteBack,
    /// The policy that decides which pages are read together with a missed page.
    pub prefetch: Prefetch,
    /// The page store, which decides where pages are stored. Without one, page n is page n of the drive.
    pub store: Option<Rc<dyn PageStore>>,
}

impl PoolConfig {
    /// Creates a configuration without prefetching and without a page store.
    pub fn new(frames: u32, page_bytes: u32, replacement: Replacement, write_back: WriteBack) -> PoolConfig {
        PoolConfig { frames, page_bytes, replacement, write_back, prefetch: Prefetch::default(), store: None }
    }
}

/// A buffer pool; see the crate's documentation. Clones share the same pool.
pub struct BufferPool<D: Device + ?Sized + 'static = dyn Device>(pub(crate) Rc<Inner<D>>);

impl<D: Device + ?Sized + 'static> Clone for BufferPool<D> {
    fn clone(&self) -> Self {
        BufferPool(Rc::clone(&self.0))
    }
}

impl<D: Device + ?Sized + 'static> BufferPool<D> {
    /// Creates an empty pool over the device behind `handle`.
    pub fn new(handle: Handle<D>, config: PoolConfig) -> Result<BufferPool<D>, PoolConfigError> {
        let PoolConfig { frames, page_bytes, replacement, write_back, prefetch, store } = config;
        let caps = handle.caps();
        if frames == 0 {
            return Err(PoolConfigError::NoFrames);
        }
        if write_back.buffers >= frames {
            return Err(PoolConfigError::Buffers { buffers: write_back.buffers, frames });
        }
        if page_bytes == 0 || page_bytes % caps.page_bytes != 0 {
            return Err(PoolConfigError::PageSize { page_bytes, device_bytes: caps.page_bytes });
        }
        // The check above makes this division exact.
        let device_pages = page_bytes / caps.page_bytes;
        let mut table = FrameTable::new(frames);
        if replacement.needs_future() {
            return Err(PoolConfigError::Future);
        }
        if replacement.needs_erase_counts() {
            if !caps.erase_counts {
                return Err(PoolConfigError::EraseCounts);
            }
            let drive = handle.clone();
            table.set_erase_counts(Box::new(move |page| {
                // A page that was never written is in no erase block.
                drive.erases(address(page, device_pages)).unwrap_or(0)
            }));
        }
        let state = PoolState::new(table, replacement, prefetch, &write_back);
        let arena = caps.contents.then(|| Arena::new(frames as usize * page_bytes as usize));
        if let Some(arena) = &arena {
            handle.register(arena);
        }
        Ok(BufferPool(Rc::new(Inner {
            handle,
            state: RefCell::new(state),
            write_back,
            store,
            turns: Turns::default(),
            arena,
            page_bytes: page_bytes as usize,
            device_pages,
        })))
    }

    /// Returns the number of pages that fit on the device.
    pub fn pages(&self) -> u64 {
        self.0.pages()
    }

    /// Returns the number of frames that may hold pages.
    pub fn limit(&self) -> u32 {
        self.0.state.borrow().resident_max()
    }

    /// Sets the number of frames that may hold pages. The number is at least one, and never more than all
    /// frames without the spare and lent ones. If the limit falls, pages beyond it stay in the pool until the
    /// next miss.
    pub fn set_limit(&self, frames: u32) {
        self.0.state.borrow_mut().limit = frames;
    }

    /// Begins to count, approximately, the misses that `window` more frames would avoid. This costs a table
    /// look-up for each page that enters or leaves the pool, and 32 bytes of memory for each frame of the
    /// window.
    pub fn watch_departures(&self, window: u32) {
        self.0.state.borrow_mut().watched = Some(Watched::new(window));
    }

    /// Returns the counts since the call of [`BufferPool::watch_departures`].
    pub fn departures(&self) -> Departures {
        self.0.state.borrow().watched.as_ref().map_or(Departures::default(), |watched| watched.counts)
    }

    /// Returns whether the pool is at its limit, so that each new page displaces another.
    pub fn is_full(&self) -> bool {
        let state = self.0.state.borrow();
        state.resident >= state.resident_max()
    }

    /// Returns the unpinned pages in eviction order, and whether each is dirty.
    pub fn eviction_order(&self) -> Vec<(PageId, bool)> {
        let state = self.0.state.borrow();
        let mut cursor = Cursor::default();
        let order = Order::new(&state.replacement, &state.frames, &mut cursor);
        order.map(|frame| (state.frames.page(frame), state.frames.is_dirty(frame))).collect()
    }

    /// Returns the number of dirty pages, without those that are being written.
    pub fn dirty_pages(&self) -> u64 {
        let state = self.0.state.borrow();
        let words = state.frames.len().div_ceil(64) as usize;
        (0..words).map(|word| u64::from(state.frames.dirty_word(word).count_ones())).sum()
    }

    /// Returns the number of batches whose write has failed.
    pub fn failed_writes(&self) -> u64 {
        self.0.state.borrow().failures
    }

    /// Returns the pool's counters.
    pub fn counters(&self) -> PoolCounters {
        self.0.state.borrow().counters
    }

    /// Whether a page is in the pool, being read or being written.
    pub fn has(&self, page: PageId) -> bool {
        let state = self.0.state.borrow();
        state.lookup(page).is_some() || state.loading.contains_key(&page)
    }

    /// Latches the page for reading, if it is in the pool and its latch is available.
    #[inline]
    pub fn try_read(&self, page: PageId) -> Option<ReadGuard<D>> {
        self.try_fix(page, false).map(ReadGuard)
    }

    /// Latches the page for changing, if it is in the pool and its latch is available. The page becomes
    /// dirty.
    #[inline]
    pub fn try_write(&self, page: PageId) -> Option<WriteGuard<D>> {
        self.try_fix(page, true).map(WriteGuard)
    }

    /// Latches the page for reading. Reads it from the drive first if it is not in the pool.
    pub async fn read(&self, page: PageId) -> Result<ReadGuard<D>, PoolError> {
        self.fix(page, false).await.map(ReadGuard)
    }

    /// Latches the page for changing. Reads it from the drive first if it is not in the pool. The page
    /// becomes dirty.
    pub async fn write(&self, page: PageId) -> Result<WriteGuard<D>, PoolError> {
        self.fix(page, true).await.map(WriteGuard)
    }

    /// Latches a page for changing, without reading it from the drive: the caller must overwrite all of it.
    /// If the page is in the pool, its contents there are kept. The page becomes dirty.
    pub async fn create(&self, page: PageId) -> Result<WriteGuard<D>, PoolError> {
        loop {
            if !self.has(page) {
                return self.0.load_new(page).await.map(WriteGuard);
            }
            match self.fix(page, true).await {
                // Another task's read of the page failed. The old contents are not needed here, so the loop
                // tries again.
                Err(PoolError::Read { .. }) => {}
                outcome => return outcome.map(WriteGuard),
            }
        }
    }

    #[inline]
    fn try_fix(&self, page: PageId, write: bool) -> Option<Fixed<D>> {
        let mut state = self.0.state.borrow_mut();
        let frame = state.lookup(page)?;
        state.try_hit(frame, write).then(|| Fixed { inner: Rc::clone(&self.0), frame })
    }

    async fn fix(&self, page: PageId, write: bool) -> Result<Fixed<D>, PoolError> {
        let inner = &self.0;
        loop {
            let waiter = {
                let mut state = inner.state.borrow_mut();
                match state.lookup(page) {
                    Some(frame) => {
                        if state.frames.has(frame, FrameTable::DETACHED) {
                            inner.rescue(&mut state, frame);
                        }
                        if state.try_hit(frame, write) {
                            return Ok(Fixed { inner: Rc::clone(inner), frame });
                        }
                        Some(state.enqueue(frame, write))
                    }
                    None => state.loading.get_mut(&page).map(|waiters| {
                        let waiter = Waiter::new(write);
                        waiters.push(Rc::clone(&waiter));
                        waiter
                    }),
                }
            };
            match waiter {
                // No other task runs between the look-up and the entry in `loading`, so a page is read only
                // once.
                None => return inner.load(page, write).await,
                Some(waiter) => {
                    if let Some(fixed) = (Granted { inner, waiter }).await {
                        return Ok(fixed);
                    }
                    // The read that this task joined has failed, so this task reads the page itself.
                }
            }
        }
    }
}
