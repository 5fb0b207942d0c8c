//! The interface through which a user of the pool decides where its pages are stored.

use fulgurite_base::PageId;
use fulgurite_device::{Buffer, IoError};
use std::future::Future;
use std::pin::Pin;

/// A read or a write of pages; it ends with the drive's answer.
pub type PageIo = Pin<Box<dyn Future<Output = Result<(), IoError>>>>;

/// A read of several pages; it ends with an answer for each of them, in order.
pub type RunIo = Pin<Box<dyn Future<Output = Vec<Result<(), IoError>>>>>;

/// Stores and loads the pool's pages. Without one, page n is stored at page n of the drive, unchanged.
///
/// The pool calls its functions when the I/O begins, and awaits the futures that they return. It polls a
/// future to its end even if no task needs the page any more. The functions themselves must not use the pool;
/// their futures may.
pub trait PageStore {
    /// Reads `page` into `into`. An error keeps the page out of the pool.
    fn read(&self, page: PageId, into: Option<Buffer>) -> PageIo;

    /// Reads the pages from `first` on, one into each of `into`. An error keeps its own page out of the pool,
    /// and no other page. A store that keeps these pages side by side can read them with one command.
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

    /// Writes pages. No task changes them before the future has ended; after an error they stay dirty. This
    /// function must wait for everything that has to be durable before the pages, such as the log of their
    /// changes.
    fn write(&self, pages: Vec<PageBytes>) -> PageIo;
}

/// A page that is to be written.
#[derive(Clone, Debug)]
pub struct PageBytes {
    /// Its number.
    pub page: PageId,
    /// Its bytes; `None` if the device stores no contents.
    pub bytes: Option<Buffer>,
}
