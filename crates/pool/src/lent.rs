//! Lends frames of the pool as memory for other things than pages.

use crate::error::PoolError;
use crate::pool::BufferPool;
use crate::state::Inner;
use fulgurite_base::FrameId;
use fulgurite_device::{Arena, Device};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

/// Frames that a pool has lent to somebody, and that hold no pages until they go back. They go back with this.
pub struct Lent {
    arena: Arc<Arena>,
    page_bytes: usize,
    /// By frame: whether it is among them.
    is_lent: Vec<bool>,
    pool: Rc<dyn Lender>,
}

/// A frame on its way to who has asked for it; goes back where nobody takes it.
pub struct Loan {
    frame: Option<FrameId>,
    pool: Rc<dyn Lender>,
}

/// The end of the wait for a frame.
type Lending = Pin<Box<dyn Future<Output = Option<FrameId>>>>;

/// Who lends frames.
trait Lender {
    fn lend(&self) -> Option<FrameId>;
    fn lend_soon(&self) -> Lending;
    fn take_back(&self, frame: FrameId);
}

impl<D: Device + 'static> BufferPool<D> {
    /// No frames yet, to borrow some. There are none where the device keeps no contents.
    pub fn borrower(&self) -> Lent {
        let inner = &self.0;
        let arena = inner.arena().unwrap_or_else(|| Arena::new(1));
        let is_lent = vec![false; inner.state.borrow().frames.len() as usize];
        Lent { arena, page_bytes: inner.page_bytes, is_lent, pool: Rc::new(Rc::clone(inner)) }
    }
}

impl Lent {
    /// Borrows one more frame, where that needs no wait: a free one, or that of the page that leaves next. What was in it is still there.
    /// The pool never lends its last one.
    pub fn borrow_one(&mut self) -> Option<FrameId> {
        let frame = self.pool.lend()?;
        self.is_lent[frame.index()] = true;
        Some(frame)
    }

    /// Asks for one more frame and waits for it, as a miss does: the page that leaves next may have to be written first. `None` where the
    /// pool lends no more, and where a write has failed; the next miss learns that.
    pub fn borrow_soon(&self) -> impl Future<Output = Option<Loan>> + 'static {
        let pool = Rc::clone(&self.pool);
        async move {
            let frame = pool.lend_soon().await?;
            Some(Loan { frame: Some(frame), pool })
        }
    }

    /// Takes a frame that was asked for. Panics where it is of another pool.
    pub fn add(&mut self, mut loan: Loan) -> FrameId {
        assert!(Rc::ptr_eq(&loan.pool, &self.pool), "a frame of another borrower");
        let frame = loan.frame.take().expect("a loan is taken once");
        self.is_lent[frame.index()] = true;
        frame
    }

    /// Gives a frame back. Panics where it was not lent.
    pub fn give_back(&mut self, frame: FrameId) {
        assert!(std::mem::take(&mut self.is_lent[frame.index()]), "a frame of somebody else");
        self.pool.take_back(frame);
    }

    /// The bytes of a frame. Panics where it was not lent.
    #[inline]
    pub fn bytes(&self, frame: FrameId) -> &[u8] {
        // SAFETY: see `start`; to change the bytes takes this alone.
        unsafe { std::slice::from_raw_parts(self.start(frame), self.page_bytes) }
    }

    /// The bytes of a frame, to change. Panics where it was not lent.
    #[inline]
    pub fn bytes_mut(&mut self, frame: FrameId) -> &mut [u8] {
        // SAFETY: see `start`; the reference has this alone.
        unsafe { std::slice::from_raw_parts_mut(self.start(frame), self.page_bytes) }
    }

    /// Where a frame lies that is in no table, free list or policy of the pool and under no I/O, so that nobody else touches it.
    #[inline]
    fn start(&self, frame: FrameId) -> *mut u8 {
        assert!(self.is_lent[frame.index()], "a frame of somebody else");
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

impl<D: Device + 'static> Inner<D> {
    /// Whether one more frame may be lent: not the last one that holds pages.
    fn may_lend(&self) -> bool {
        let state = self.state.borrow();
        state.lent + state.spare.most() + 1 < state.frames.len() && self.arena().is_some()
    }
}

impl<D: Device + 'static> Lender for Rc<Inner<D>> {
    fn lend(&self) -> Option<FrameId> {
        if !self.may_lend() {
            return None;
        }
        let free = {
            let mut state = self.state.borrow_mut();
            // Spare frames are for pages to come.
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

    fn lend_soon(&self) -> Lending {
        let inner = Rc::clone(self);
        Box::pin(async move {
            if let Some(frame) = inner.lend() {
                return Some(frame);
            }
            if !inner.may_lend() {
                return None;
            }
            let (frame, _) = match inner.room().await {
                Ok(room) => room,
                Err(error) => {
                    // It is somebody else's to tell.
                    if let PoolError::WriteBack(error) = error {
                        inner.state.borrow_mut().failure.get_or_insert(error);
                    }
                    return None;
                }
            };
            // Others may have borrowed meanwhile.
            let may_lend = inner.may_lend();
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
    fn a_lent_frame_is_memory_and_comes_back() {
        with_pool(|pool| async move {
            for page in 0..8 {
                pool.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8);
            }
            let (mut lent, mut frames) = (pool.borrower(), Vec::new());
            while let Some(frame) = lent.borrow_one() {
                lent.bytes_mut(frame).fill(100 + frames.len() as u8);
                frames.push(frame);
                // Pages that come do not use what was lent, and go through the frames that are left.
                for page in 0..8 {
                    assert_eq!(pool.read(PageId(page)).await.unwrap().bytes(), [page as u8; 4096]);
                }
                for (index, frame) in frames.iter().enumerate() {
                    assert_eq!(lent.bytes(*frame), [100 + index as u8; 4096], "of {}", frames.len());
                }
                assert!(pool.limit() as usize <= FRAMES as usize - frames.len());
            }
            assert_eq!(frames.len(), FRAMES as usize - 3, "two may be spare, and one is the last");
            let limit = pool.limit();
            lent.give_back(frames[0]);
            assert_eq!(pool.limit(), limit + 1, "it is the pool's again");
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
    fn a_frame_whose_page_must_be_written_comes_to_who_waits() {
        with_pool(|pool| async move {
            for page in 0..8 {
                pool.write(PageId(page)).await.unwrap().bytes_mut().fill(page as u8);
            }
            let mut lent = pool.borrower();
            while lent.borrow_one().is_some() {}
            let at_once = FRAMES as usize - pool.limit() as usize;
            let loan = lent.borrow_soon().await.expect("a page can be written");
            let kept = lent.add(loan);
            assert!(FRAMES as usize - pool.limit() as usize > at_once, "one frame more is lent");
            // A loan that nobody takes goes back.
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
            // As many as there may be: none of them is spare yet.
            let mut guards = Vec::new();
            for page in 0..u64::from(pool.limit()) {
                guards.push(pool.read(PageId(page)).await.unwrap());
            }
            let mut lent = pool.borrower();
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
    #[should_panic(expected = "a frame of somebody else")]
    fn frames_that_were_not_lent_are_not_shown() {
        with_pool(|pool| async move {
            let mut lent = pool.borrower();
            let frame = lent.borrow_one().unwrap();
            pool.borrower().bytes(frame);
        });
    }
}
