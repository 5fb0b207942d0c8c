//! I/O of units: creates the commands that read and write units, and binds units to their addresses.

use super::OutOfPlace;
use super::extents::{Extent, extents};
use crate::Error;
use crate::media::write::bound::bind;
use crate::media::write::sealed::is_there;
use crate::wait::{insist, together};
use fulgurite_base::{Lpn, Ppn, StreamId};
use fulgurite_device::{Arena, Buffer, IoError, Operation};

impl OutOfPlace {
    /// Writes units at their addresses. `parts` lists the index of each unit in `bytes`, and its address.
    pub(super) async fn write_units(
        &self,
        parts: impl Iterator<Item = (usize, u32)>,
        bytes: &Buffer,
    ) -> Result<(), Error> {
        let unit = self.0.layout.unit_bytes as usize;
        let extents = self.extents_with(parts, |extent| extent.gather(bytes, unit));
        self.bind_extents(&extents);
        let written = self.write_extents(&extents).await;
        // Unbind the units, because they may be sent to other addresses.
        self.bind_extents(&extents);
        written
    }

    /// Binds the units of extents to their addresses, or unbinds them.
    fn bind_extents(&self, extents: &[(Extent, Buffer)]) {
        let unit = self.0.layout.unit_bytes as usize;
        extents.iter().for_each(|(extent, blocks)| bind(blocks, unit, extent.address));
    }

    async fn write_extents(&self, extents: &[(Extent, Buffer)]) -> Result<(), Error> {
        let units: u64 = extents.iter().map(|(extent, _)| u64::from(extent.units)).sum();
        self.0.units_written.set(self.0.units_written.get() + units);
        let written = |write: Operation| async move {
            insist(async || self.0.handle.submit(write.clone()).await.map_err(Error::Io)).await
        };
        let writes =
            extents.iter().map(|(extent, blocks)| written(self.write_extent(extent, blocks))).collect();
        together(writes).await.into_iter().collect::<Result<(), Error>>()?;
        if self.0.options.verify_writes {
            self.verify(extents).await?;
        }
        Ok(())
    }

    /// Reads back the extents that were written. Without this check, a lost write would leave an older
    /// version of the same page at the address, which looks valid.
    async fn verify(&self, extents: &[(Extent, Buffer)]) -> Result<(), Error> {
        for (extent, blocks) in extents {
            if !is_there(&self.0.handle, self.lpn(extent.address), blocks).await? {
                return Err(Error::Io(IoError::Corrupt));
            }
        }
        Ok(())
    }

    fn write_extent(&self, extent: &Extent, blocks: &Buffer) -> Operation {
        let ftl = self.0.ftl.borrow();
        // Each stream of the translation layer becomes a stream of the drive, as far as the drive has enough.
        // The first stream of the drive is for the data before the segments, because the log is overwritten
        // long before a page is relocated.
        let stream = ftl.segments().stream(ftl.segment(Ppn(extent.address)));
        let stream = StreamId((stream.0 + 1).min(self.0.handle.caps().streams.max(1) - 1));
        let (lpn, pages) = (self.lpn(extent.address), self.device_pages(extent.units));
        Operation::Write { lpn, pages, from: Some(blocks.clone()), stream, durable: false }
    }

    /// Returns the number of device pages of so many units, which are whole blocks.
    pub(super) fn device_pages(&self, units: u32) -> u32 {
        (u64::from(units) * u64::from(self.0.layout.unit_bytes) / u64::from(self.0.handle.caps().page_bytes))
            as u32
    }

    /// Returns the device page at an address that begins a block.
    pub(super) fn lpn(&self, address: u32) -> Lpn {
        Lpn(self.0.layout.byte(address) / u64::from(self.0.handle.caps().page_bytes))
    }

    /// Returns the extents for units, which are given as indices in memory and addresses. Each extent takes
    /// one command.
    fn extents(&self, units: impl Iterator<Item = (usize, u32)>) -> Vec<Extent> {
        let (caps, layout) = (self.0.handle.caps(), &self.0.layout);
        let bytes = u64::from(caps.pages_per_command) * u64::from(caps.page_bytes);
        extents(units, layout, (bytes / u64::from(layout.unit_bytes)).min(u32::MAX.into()) as u32)
    }

    /// Returns the extents for units, each with a buffer for its blocks that `blocks` creates.
    fn extents_with(
        &self,
        units: impl Iterator<Item = (usize, u32)>,
        blocks: impl Fn(&Extent) -> Buffer,
    ) -> Vec<(Extent, Buffer)> {
        let with_blocks = |extent: Extent| {
            let blocks = blocks(&extent);
            (extent, blocks)
        };
        self.extents(units).into_iter().map(with_blocks).collect()
    }

    /// Reads units from their addresses into the parts of `into` with their indices, concurrently.
    pub(super) async fn read_units(
        &self,
        units: impl Iterator<Item = (usize, u32)>,
        into: &Buffer,
    ) -> Result<(), IoError> {
        let unit = self.0.layout.unit_bytes as usize;
        let extents = self.extents_with(units, |extent| extent.target(into, unit));
        self.read_extents(&extents).await?;
        extents.iter().for_each(|(extent, blocks)| extent.scatter(blocks, into, unit));
        Ok(())
    }

    /// Reads the blocks of extents, and unbinds their units.
    async fn read_extents(&self, extents: &[(Extent, Buffer)]) -> Result<(), IoError> {
        let read = |(extent, blocks): &(Extent, Buffer)| Operation::Read {
            lpn: self.lpn(extent.address),
            pages: self.device_pages(extent.units),
            into: Some(blocks.clone()),
        };
        let reads: Vec<Operation> = extents.iter().map(read).collect();
        self.0.handle.submit_all(reads.into_iter()).await?;
        self.bind_extents(extents);
        Ok(())
    }

    /// Reads a compressed page without decompressing it.
    pub(super) async fn read_packed(&self, addresses: &[u32]) -> Result<Buffer, IoError> {
        let unit = self.0.layout.unit_bytes as usize;
        let mut extents = self.extents(addresses.iter().copied().enumerate());
        // The units of a page are usually contiguous, and need not be copied.
        if extents.len() == 1 && extents[0].parts.len() == 1 {
            let extent = extents.remove(0);
            let len = extent.units as usize * unit;
            let blocks = Arena::new(len).buffer(0, len);
            let packed = extent.part(&blocks, &extent.parts[0], unit);
            self.read_extents(&[(extent, blocks)]).await?;
            return Ok(packed);
        }
        let len = addresses.len() * unit;
        let packed = Arena::new(len).buffer(0, len);
        self.read_units(addresses.iter().copied().enumerate(), &packed).await?;
        Ok(packed)
    }
}
