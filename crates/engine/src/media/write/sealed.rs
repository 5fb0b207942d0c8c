//! Pages with checksums that are ready to be written.

use crate::Error;
use crate::bytes;
use crate::media::image::Source;
use crate::wait::insist;
use fulgurite_base::{Lpn, PageId};
use fulgurite_device::{Buffer, Handle};

/// Sealed pages, which have their checksums and are contiguous in memory.
pub(crate) struct Sealed {
    pub numbers: Vec<PageId>,
    /// The bytes of the pages, in the order of `numbers`.
    pub bytes: Buffer,
}

impl Sealed {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, Buffer)> {
        let size = self.page_bytes();
        let part = move |(index, page): (usize, &PageId)| (*page, self.bytes.part(index * size, size));
        self.numbers.iter().enumerate().map(part)
    }

    /// Iterates over groups of consecutive pages, at most `most` in each. Returns the number of the first
    /// page of a group, and the bytes of all its pages.
    pub(crate) fn runs(&self, most: usize) -> impl Iterator<Item = (PageId, Buffer)> {
        let (size, mut from) = (self.page_bytes(), 0);
        let ends = move |pages: &[PageId]| {
            let follows = std::iter::zip(pages, &pages[1..]).take_while(|(one, next)| one.0 + 1 == next.0);
            (follows.count() + 1).min(most.max(1))
        };
        std::iter::from_fn(move || {
            let first = *self.numbers.get(from)?;
            let len = ends(&self.numbers[from..]);
            let run = self.bytes.part(from * size, len * size);
            from += len;
            Some((first, run))
        })
    }

    pub(crate) fn page_bytes(&self) -> usize {
        self.bytes.len() / self.numbers.len().max(1)
    }
}

/// Whether the drive returns these bytes when it reads from `first` on.
pub(crate) async fn is_there(handle: &Handle, first: Lpn, bytes: &Buffer) -> Result<bool, Error> {
    let page = u64::from(handle.caps().page_bytes);
    let mut read = vec![0; bytes.len()];
    insist(async || handle.read(first.0 * page, &mut read).await).await?;
    Ok(bytes::look(bytes, |bytes| bytes == read))
}
