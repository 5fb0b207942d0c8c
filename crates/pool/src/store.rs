//! The page store: the interface through which the owner of a pool decides where its pages are stored.

use fulgurite_base::PageId;
use fulgurite_device::{Buffer, IoError};
use std::future::Future;
use std::pin::Pin;

/// A read or a write of pages. The future ends with the drive's outcome.
pub type PageIo = Pin<Box<dyn Future<Output = Result<(), IoError>>>>;

/// A read of several pages. The future ends with an outcome for each page, in order.
pub type RunIo = Pin<Box<dyn Future<Output = Vec<Result<(), IoError>>>>>;

/// Stores and loads the pages of a pool. Without a page store, page n is stored at page n of the drive,
/// unchanged.
///
/// The pool calls the methods when the I/O begins, and awaits the futures that they return. It polls a future
/// to its end even if no task needs the page any more. The methods themselves must not use the pool; their
/// futures may.
pub trait PageStore {
    /// Reads `page` into the buffer `into`. After an error, the page stays out of the pool.
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo;

    /// Reads the pages from `first` on, one into each buffer of `into`. The error of a page keeps only that
    /// page out of the pool. A page store that keeps these pages side by side can read them with one command.
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

    /// Writes pages. No task changes them before the future has ended; after an error they stay dirty. The
    /// future must first wait for everything that has to be durable before the pages, such as the log records
    /// of their changes (write-ahead logging).
    fn write(&self, pages: Vec<PageBytes>) -> PageIo;
}

/// A page that is to be written.
#[derive(Clone, Debug)]
pub struct PageBytes {
    /// The number of the page.
    pub page: PageId,
    /// The bytes of the page; `None` if the device stores no contents.
    pub bytes: Option<Buffer>,
}
