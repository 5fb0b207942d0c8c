//! Fetches pages that will soon be needed: reads several consecutive pages with one command.

use crate::error::PoolError;
use crate::miss::{Loading, Room};
use crate::pool::BufferPool;
use crate::state::Inner;
use crate::store::RunIo;
use fulgurite_base::{FrameId, PageId};
use fulgurite_device::{Arena, Buffer, Device, Operation};
use std::rc::Rc;

/// The most pages that one command reads. Longer commands are no faster, and each page arrives only at the
/// end of its whole command.
const LONGEST_RUN: u64 = 64;

/// A run: pages that are consecutive on the drive, with the frames to read them into.
type Run<D> = Vec<Loading<D>>;

impl<D: Device + ?Sized + 'static> BufferPool<D> {
    /// Begins to read those of `pages` that are neither in the pool nor being read. Consecutive pages are
    /// read with one command. Returns when all reads have been submitted. A request for one of the pages
    /// waits for this read until it ends. A page that cannot be read stays out of the pool; the next request
    /// for that page reads it again and gets the error.
    ///
    /// Fails if a write that makes room fails. If there are more pages than half of the frames, they displace
    /// each other.
    pub async fn fetch(&self, pages: &[PageId]) -> Result<(), PoolError> {
        let inner = &self.0;
        let longest = u64::from(inner.handle.caps().pages_per_command / inner.device_pages).min(LONGEST_RUN);
        let mut run: Run<D> = Vec::new();
        for page in pages {
            if self.has(*page) {
                continue;
            }
            let follows = run.last().is_some_and(|last| last.page.0 + 1 == page.0);
            if !follows || run.len() as u64 >= longest.max(1) {
                inner.read_run(std::mem::take(&mut run));
            }
            let frame = match inner.frame_at_once() {
                Some(frame) => frame,
                None => {
                    // A task that waits for a frame must hold no other frames without submitting their reads,
                    // because the held frames might be the missing ones. So the reads are submitted first.
                    inner.read_run(std::mem::take(&mut run));
                    inner.room().await?.0
                }
            };
            // Another task may have read the page during the wait, so the page is announced only if it is
            // still missing.
            run.extend(inner.announce(*page, frame));
        }
        inner.read_run(run);
        Ok(())
    }
}

impl<D: Device + ?Sized + 'static> Inner<D> {
    /// Returns a frame, if one is available without waiting and no other task waits for one.
    pub(crate) fn frame_at_once(self: &Rc<Self>) -> Option<FrameId> {
        if !self.turns.is_empty() {
            return None;
        }
        let mut state = self.state.borrow_mut();
        // A failed write must be reported, and `room` does that, so no frame is taken here.
        if state.failure.is_some() {
            return None;
        }
        match self.make_room(&mut state) {
            Room::Frame(frame) => Some(frame),
            Room::After(_) | Room::None => None,
        }
    }

    /// Records that a page is being read into `frame`. Frees the frame if another task reads or has read this
    /// page.
    fn announce(self: &Rc<Self>, page: PageId, frame: FrameId) -> Option<Loading<D>> {
        let is_known = {
            let mut state = self.state.borrow_mut();
            let is_known = state.lookup(page).is_some() || state.loading.contains_key(&page);
            if is_known {
                state.free.push(frame);
                state.resident -= 1;
            } else {
                state.counters.prefetched += 1;
                state.comes(page);
                state.loading.insert(page, Vec::new());
            }
            is_known
        };
        // The freed frame needs no wake-up here: `room` has already woken the next task that waits for a
        // frame, and that task finds this frame.
        (!is_known).then(|| Loading::new(self, page, Some(frame)))
    }

    /// Submits the read of consecutive pages, and spawns a task that makes the pages resident.
    fn read_run(self: &Rc<Self>, mut run: Run<D>) {
        if run.len() > 1 {
            let io = self.submit_run(run[0].page, &run);
            self.handle.spawn(async move {
                for (loading, outcome) in std::iter::zip(run, io.await) {
                    // If the read failed, dropping `loading` frees the frame.
                    if outcome.is_ok() {
                        loading.settle_fetched();
                    }
                }
            });
        } else if let Some(mut only) = run.pop() {
            only.submit();
            self.handle.spawn(async move {
                if only.read().await.is_ok() {
                    only.settle_fetched();
                }
            });
        }
    }

    fn submit_run(self: &Rc<Self>, first: PageId, run: &Run<D>) -> RunIo {
        {
            let counters = &mut self.state.borrow_mut().counters;
            counters.read_ios += 1;
            counters.pages_read += run.len() as u64;
        }
        let frames: Vec<Option<Buffer>> = run.iter().map(|loading| self.buffer(loading.frame())).collect();
        if let Some(store) = &self.store {
            return store.read_run(first, frames);
        }
        let bytes = frames.len() * self.page_bytes;
        let read = frames.iter().all(Option::is_some).then(|| Arena::new(bytes).buffer(0, bytes));
        let (lpn, pages) = (self.lpn(first), self.device_pages * frames.len() as u32);
        let io = self.handle.submit(Operation::Read { lpn, pages, into: read.clone() });
        let size = self.page_bytes;
        Box::pin(async move {
            let outcome = io.await;
            if let (Ok(()), Some(read)) = (outcome, read) {
                for (index, frame) in frames.iter().flatten().enumerate() {
                    // SAFETY: the read into the one buffer has ended, and no other task uses the frame of a
                    // page that is being read.
                    unsafe { frame.bytes_mut().copy_from_slice(read.part(index * size, size).bytes()) };
                }
            }
            vec![outcome; frames.len()]
        })
    }
}
