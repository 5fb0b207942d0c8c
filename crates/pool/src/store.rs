//! The interface through which a user of the pool decides where its pages are stored.

use fulgurite_base::PageId;
use fulgurite_device::{Buffer, IoError};
use std::future::Future;
use std::pin::Pin;

/// The end of a page's way to or from the drive.
pub type PageIo = Pin<Box<dyn Future<Output = Result<(), IoError>>>>;

/// The end of the way from the drive of several pages: for each of them, in order.
pub type RunIo = Pin<Box<dyn Future<Output = Vec<Result<(), IoError>>>>>;

/// Where pages are, and how they get there and back. Without one, a page lies at its own number on the drive
/// and is written as it is.
///
/// The pool calls its functions when the I/O begins, and awaits what they return. It polls a future to its end even if
/// nobody wants the page any more. The functions themselves must not use the pool; their futures may.
pub trait PageStore {
    /// Reads `page` into `into`. An error keeps the page out of the pool.
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo;

    /// Reads the pages from `first` on, one into each of `into`. An error keeps its page out of the pool, and no other. A store
    /// where they lie side by side asks the drive once.
    fn read_run(&self, first: PageId, into: Vec<Option<Buffer>>) -> RunIo {
        let reads: Vec<PageIo> =
            (first.0..).zip(into).map(|(page, into)| self.read(PageId(page), into)).collect();
        Box::pin(async move {
            let mut outcomes = Vec::with_capacity(reads.len());
            for read in reads {
                outcomes.push(read.await);
            }
            outcomes
        })
    }

    /// Writes pages. Nobody changes them before the future has ended; an error keeps them dirty. What must be durable
    /// first, such as the log of their changes, is this function's to wait for.
    fn write(&self, pages: Vec<PageBytes>) -> PageIo;
}

/// A page that is to be written.
#[derive(Clone, Debug)]
pub struct PageBytes {
    /// Which.
    pub page: PageId,
    /// Its bytes; none where the device keeps no contents.
    pub bytes: Option<Buffer>,
}
