//! Lends frames of the pool as memory for other data than pages.

use crate::error::PoolError;
use crate::pool::BufferPool;
use crate::state::Inner;
use fulgurite_base::FrameId;
use fulgurite_device::{Arena, Device};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// A borrower: the frames that a pool has lent to one user, up to a fixed number. A lent frame holds no page.
/// Dropping the borrower gives all of its frames back.
pub struct Lent {
    arena: Arc<Arena>,
    page_bytes: usize,
    /// For each frame of the pool, whether it is lent to this borrower.
    is_lent: Vec<bool>,
    most: u32,
    pool: Rc<dyn Lender>,
}

/// A frame that was lent by [`Lent::borrow_soon`] and not yet added to the borrower. Dropping it gives the
/// frame back to the pool.
pub struct Loan {
    frame: Option<FrameId>,
    pool: Rc<dyn Lender>,
}

/// The wait for a frame to borrow.
type Lending = Pin<Box<dyn Future<Output = Option<FrameId>>>>;

/// A pool that lends frames, whatever its device type is.
trait Lender {
    fn lend(&self, most: u32) -> Option<FrameId>;
    fn lend_soon(&self, most: u32) -> Lending;
    fn take_back(&self, frame: FrameId);
}

impl<D: Device + ?Sized + 'static> BufferPool<D> {
    /// Creates a borrower without frames. The pool lends it a frame only as long as at most `most` frames are lent
    /// in all, and none if the device stores no contents. A task that latches several pages at once waits for
    /// ever if the pool has too few frames for them, so `most` must leave enough.
    pub fn borrower(&self, most: u32) -> Lent {
        let inner = &self.0;
        let arena = inner.arena().unwrap_or_else(|| Arena::new(1));
        let is_lent = vec![false; inner.state.borrow().frames.len() as usize];
        Lent { arena, page_bytes: inner.page_bytes, is_lent, most, pool: Rc::new(Rc::clone(inner)) }
    }
}

impl Lent {
    /// Borrows one more frame if that needs no waiting: a free frame, or the frame of the page that is
    /// evicted next. The frame keeps its old bytes. The pool never lends its last frame.
    pub fn borrow_one(&mut self) -> Option<FrameId> {
        let frame = self.pool.lend(self.most)?;
        self.is_lent[frame.index()] = true;
        Some(frame)
    }

    /// Waits for one more frame, as a miss does, because the page that is evicted next may have to be written
    /// first. Returns `None` if the pool lends no more frames, or if a write has failed; the next miss gets
    /// the error of that write.
    pub fn borrow_soon(&self) -> impl Future<Output = Option<Loan>> + 'static {
        let (pool, most) = (Rc::clone(&self.pool), self.most);
        async move {
            let frame = pool.lend_soon(most).await?;
            Some(Loan { frame: Some(frame), pool })
        }
    }

    /// Adds the frame of a loan to this borrower. Panics if the loan was made for another borrower.
    pub fn add(&mut self, mut loan: Loan) -> FrameId {
        assert!(Rc::ptr_eq(&loan.pool, &self.pool), "a frame of another borrower");
        let frame = loan.frame.take().expect("a loan is taken once");
        self.is_lent[frame.index()] = true;
        frame
    }

    /// Gives a frame back to the pool. Panics if the frame is not lent to this borrower.
    pub fn give_back(&mut self, frame: FrameId) {
        assert!(std::mem::take(&mut self.is_lent[frame.index()]), "the frame is not lent to this borrower");
        self.pool.take_back(frame);
    }

    /// Returns the bytes of a frame. Panics if the frame is not lent to this borrower.
    #[inline]
    pub fn bytes(&self, frame: FrameId) -> &[u8] {
        // SAFETY: see `start`; `bytes_mut` needs `&mut self`, so the bytes do not change.
        unsafe { std::slice::from_raw_parts(self.start(frame), self.page_bytes) }
    }

    /// Returns the bytes of a frame for changing. Panics if the frame is not lent to this borrower.
    #[inline]
    pub fn bytes_mut(&mut self, frame: FrameId) -> &mut [u8] {
        // SAFETY: see `start`; `&mut self` makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start(frame), self.page_bytes) }
    }

    /// Returns the address of a lent frame. The frame is in no table, free list or policy of the pool and
    /// under no I/O, so no other code touches its bytes.
    #[inline]
    fn start(&self, frame: FrameId) -> *mut u8 {
        assert!(self.is_lent[frame.index()], "the frame is not lent to this borrower");
        self.arena.address(frame.index() * self.page_bytes, self.page_bytes).as_ptr()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let lent = self.is_lent.iter().enumerate().filter(|(_, is_lent)| **is_lent);
        lent.for_each(|(frame, _)| self.pool.take_back(FrameId(frame as u32)));
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        if let Some(frame) = self.frame {
            self.pool.take_back(frame);
        }
    }
}

impl<D: Device + ?Sized + 'static> Inner<D> {
    /// Returns whether one more frame may be lent, if at most `most` may be. The last frame that can hold pages
    /// may not.
    fn may_lend(&self, most: u32) -> bool {
        let state = self.state.borrow();
        state.lent < most
            && state.lent + state.spare.most() + 1 < state.frames.len()
            && self.arena().is_some()
    }
}

impl<D: Device + ?Sized + 'static> Lender for Rc<Inner<D>> {
    fn lend(&self, most: u32) -> Option<FrameId> {
        if !self.may_lend(most) {
            return None;
        }
        let free = {
            let mut state = self.state.borrow_mut();
            // Spare frames are reserved for misses, so a free frame is lent only if there are more than
            // those.
            let is_more = state.free.len() as u32 > state.spare.frames;
            if is_more { state.free.pop() } else { None }
        };
        let frame = match free {
            Some(frame) => frame,
            None => {
                let frame = self.frame_at_once()?;
                self.state.borrow_mut().resident -= 1;
                frame
            }
        };
        self.state.borrow_mut().lent += 1;
        Some(frame)
    }

    fn lend_soon(&self, most: u32) -> Lending {
        let inner = Rc::clone(self);
        Box::pin(async move {
            if let Some(frame) = inner.lend(most) {
                return Some(frame);
            }
            if !inner.may_lend(most) {
                return None;
            }
            let (frame, _) = match inner.room().await {
                Ok(room) => room,
                Err(error) => {
                    // The next miss must report this error, because the borrower only learns that there is no
                    // frame.
                    if let PoolError::WriteBack(error) = error {
                        inner.state.borrow_mut().failure.get_or_insert(error);
                    }
                    return None;
                }
            };
            // Other tasks may have borrowed frames during the wait, so the bound is checked again.
            let may_lend = inner.may_lend(most);
            {
                let mut state = inner.state.borrow_mut();
                state.resident -= 1;
                state.lent += 1;
            }
            if !may_lend {
                inner.take_back(frame);
            }
            may_lend.then_some(frame)
        })
    }

    fn take_back(&self, frame: FrameId) {
        {
            let mut state = self.state.borrow_mut();
            state.lent -= 1;
            state.free.push(frame);
        }
        self.turns.next();
    }
}

#[cfg(test)]
mod tests {
    use crate::{BufferPool, PoolConfig, PrefetchConfig, ReplacementConfig, WriteBack};
    use fulgurite_base::{Nanos, NoOptions, PageId};
    use fulgurite_device::{Executor, MemDevice};
    use std::future::Future;

    const FRAMES: u32 = 8;

    fn with_pool<F: Future<Output = ()> + 'static>(work: impl FnOnce(BufferPool<MemDevice>) -> F) {
        let executor = Executor::new(MemDevice::new(64, 4096, 64, Nanos::from_micros(10)));
        let config = PoolConfig {
            frames: FRAMES,
            page_bytes: 4096,
            replacement: ReplacementConfig::Lru(NoOptions).start(FRAMES).unwrap(),
            write_back: WriteBack::ace(2).with_buffers(2),
            prefetch: PrefetchConfig::None(NoOptions).start().unwrap(),
            store: None,
        };
        let pool = BufferPool::new(executor.handle(), config).unwrap();
        executor.block_on(work(pool)).unwrap();
    }

    #[test]
    fn a_lent_frame_is_memory_until_it_is_given_back() {
        with_pool(|pool| async move {
            for page in 0..8 {
                pool.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8);
            }
            let (mut lent, mut frames) = (pool.borrower(u32::MAX), Vec::new());
            while let Some(frame) = lent.borrow_one() {
                lent.bytes_mut(frame).fill(100 + frames.len() as u8);
                frames.push(frame);
                // Pages are read into the remaining frames, not into lent ones.
                for page in 0..8 {
                    assert_eq!(pool.read(PageId(page)).await.unwrap().bytes(), [page as u8; 4096]);
                }
                for (index, frame) in frames.iter().enumerate() {
                    assert_eq!(lent.bytes(*frame), [100 + index as u8; 4096], "of {}", frames.len());
                }
                assert!(pool.limit() as usize <= FRAMES as usize - frames.len());
            }
            assert_eq!(
                frames.len(),
                FRAMES as usize - 3,
                "two frames may be spare, and the last one is never lent"
            );
            let limit = pool.limit();
            lent.give_back(frames[0]);
            assert_eq!(pool.limit(), limit + 1, "the frame belongs to the pool again");
            drop(lent);
            for round in 0..2 {
                let before = pool.counters().misses;
                for page in 0..6 {
                    pool.read(PageId(page)).await.unwrap();
                }
                assert!(round == 0 || pool.counters().misses == before, "all frames are back");
            }
        });
    }

    #[test]
    fn a_borrower_can_wait_for_a_frame_whose_page_must_be_written() {
        with_pool(|pool| async move {
            for page in 0..8 {
                pool.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8);
            }
            let mut lent = pool.borrower(u32::MAX);
            while lent.borrow_one().is_some() {}
            let at_once = FRAMES as usize - pool.limit() as usize;
            let loan = lent.borrow_soon().await.expect("a page can be written");
            let kept = lent.add(loan);
            assert!(FRAMES as usize - pool.limit() as usize > at_once, "one frame more is lent");
            // Dropping a loan gives its frame back, so the limit rises again.
            let limit = pool.limit();
            drop(lent.borrow_soon().await.expect("another page can be written"));
            assert_eq!(pool.limit(), limit);
            lent.bytes_mut(kept).fill(100);
            while let Some(loan) = lent.borrow_soon().await {
                lent.add(loan);
            }
            assert!(pool.limit() >= 1, "the last frame stays");
            for page in 0..8 {
                assert_eq!(pool.read(PageId(page)).await.unwrap().bytes(), [page as u8; 4096]);
            }
            assert_eq!(lent.bytes(kept), [100; 4096]);
        });
    }

    #[test]
    fn pages_in_use_are_not_lent() {
        with_pool(|pool| async move {
            // The pool latches as many pages as its limit allows; no frame is spare yet.
            let mut guards = Vec::new();
            for page in 0..u64::from(pool.limit()) {
                guards.push(pool.read(PageId(page)).await.unwrap());
            }
            let mut lent = pool.borrower(u32::MAX);
            while lent.borrow_one().is_some() {}
            for (page, guard) in guards.iter().enumerate() {
                assert_eq!(guard.bytes(), [0; 4096], "page {page}");
            }
            assert_eq!(pool.limit() as usize, guards.len(), "every page is in use");
            drop(guards.pop());
            assert!(lent.borrow_one().is_some());
        });
    }

    #[test]
    #[should_panic(expected = "the frame is not lent to this borrower")]
    fn the_bytes_of_a_frame_that_was_not_lent_cannot_be_read() {
        with_pool(|pool| async move {
            let mut lent = pool.borrower(u32::MAX);
            let frame = lent.borrow_one().unwrap();
            pool.borrower(u32::MAX).bytes(frame);
        });
    }
}
