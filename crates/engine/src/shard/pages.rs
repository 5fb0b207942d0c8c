//! Reads, latches and allocates pages.

use crate::Error;
use crate::shard::Shard;
use fulgurite_base::PageId;
use fulgurite_pool::{PoolError, ReadGuard, WriteGuard};

impl Shard {
    /// Returns a function that makes errors of the pool those of the store. A page that could not be written may have
    /// stopped the store; then the reason of that is the error.
    pub(crate) fn of_pool(&self) -> impl FnOnce(PoolError) -> Error + '_ {
        |error| match (&error, self.health.check()) {
            (PoolError::WriteBack(_) | PoolError::Flush(_), Err(stopped)) => stopped,
            _ => error.into(),
        }
    }

    /// Reads a page from the pool or from the drive, and latches it for reading.
    #[inline]
    pub(crate) async fn read_page(&self, page: PageId) -> Result<ReadGuard, Error> {
        match self.durable.pool().try_read(page) {
            Some(guard) => Ok(guard),
            None => self.durable.pool().read(page).await.map_err(self.of_pool()),
        }
    }

    /// Reads a page from the pool or from the drive, and latches it for a change.
    #[inline]
    pub(crate) async fn write_page(&self, page: PageId) -> Result<WriteGuard, Error> {
        match self.durable.pool().try_write(page) {
            Some(guard) => Ok(guard),
            None => self.durable.pool().write(page).await.map_err(self.of_pool()),
        }
    }

    /// Allocates a free page. It counts as used once a log record says so;
    /// [`Space::put_back`](crate::memory::space::Space::put_back) cancels the allocation.
    pub(crate) async fn pick(&self) -> Result<PageId, Error> {
        for _ in 0..self.state.space().most_moves() {
            let cursor = self.state.space().cursor();
            if cursor.has_free {
                let map = self.durable.pool().read(cursor.map).await.map_err(self.of_pool())?;
                if let Some(page) = self.state.space().pick(&cursor, map.bytes()) {
                    return Ok(page);
                }
            }
            self.state.space().move_on(&cursor);
        }
        Err(Error::Full { free: 0, pages: self.state.space().pages(), needed: 1 })
    }
}
