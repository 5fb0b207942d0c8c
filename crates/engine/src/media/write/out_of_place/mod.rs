//! Reads and writes pages out of place: each write goes to a new address, which a map on the drive records.
//!
//! The old version of a page stays intact until the new version and its map entry are durable. So no valid
//! page can be torn, and no page is written twice. The price is garbage collection, which frees space a
//! segment at a time and copies the valid pages in the segment.
//!
//! *Units.* Space is allocated in units. A page of several units is compressed if that saves a unit
//! ([`pack`]). The units of a base are allocated together ([`Ftl::append_whole`]), and all units of a page are
//! freed together.
//!
//! *Blocks.* The drive is read and written in blocks, which have the size of a block of the log and contain
//! one unit or several ([`extents`]). Pages are contiguous, regardless of blocks, but each batch of writes
//! starts at a new block ([`Ftl::end_blocks`]). So no block is written twice, and a torn write damages no
//! older data.
//!
//! *Deltas.* The slots that a compressed page leaves empty in the map may have deltas: records that were put
//! into the leaf later, each a unit of its own ([`delta`]). So a page never takes more than its size, and a merge
//! of a few records into a leaf that is not in memory needs no read. A read fetches the base and all deltas at
//! once ([`mod@assemble`]). Writing the whole page again *consolidates* it: it has a new base and no deltas.
//!
//! *Three maps.* The translation layer ([`Ftl`]) records the address to which each unit was last *sent*. It
//! chooses the next address and the segment to collect. [`AddressMap`] records the address of the last
//! *completed* write of each unit. Reads use this map. The [`Journal`] records the *durable* part of
//! [`AddressMap`]. Each map lags behind the one before.
//!
//! *Three rules* prevent an address from being reused too early. A segment is collected only after the writes
//! into it have ended. A segment is freed only after its copies, and all writes that were sent before, have
//! ended and their addresses are durable. A reader whose unit was moved during the read reads the unit again.

mod block;
mod stored_map;
mod journal;
mod pack;
mod delta;
mod assemble;
mod collect;
mod deltas;
mod packed;
mod extents;
mod scattered;
mod unit_io;
mod send;
mod read;
mod append;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod delta_tests;
#[cfg(test)]
mod jitter_drive;

pub(crate) use append::Begun;
pub(crate) use scattered::find as find_scattered;
pub(crate) use stored_map::{StoredMap, UNMAPPED, read, superblock_in_head, units_of};

use super::bound::bind_bytes;
use super::in_flight::InFlight;
use super::sealed::Sealed;
use crate::bytes;
use crate::format::layout::{Layout, Segmentation, Superblock};
use crate::format::page::{self, Kind, Salt};
use crate::media::barrier::Barrier;
use crate::media::image::Source;
use crate::wait::{Health, Signal};
use crate::{Compress, Error, Options, OutOfPlaceConfig};
use assemble::assemble;
use deltas::{DeltaCounters, Deltas, Known};
use fulgurite_base::{PageId, Ppn, StreamId};
use fulgurite_device::{Arena, Buffer, Handle, IoError};
use fulgurite_ftl::{Ftl, SegmentId, UnitId};
use journal::{AddressMap, Journal};
use pack::{Packer, Unpacker};
use packed::{Packed, Part, Sent};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The largest number of uncommitted changes of the map. A commit is made if there are more.
const MOST_CHANGES: usize = 1 << 15;

/// The number of other addresses that are tried after a failed write before the store stops.
const OTHER_ADDRESSES: u32 = 4;

struct State {
    handle: Handle,
    health: Health,
    layout: Layout,
    salt: Salt,
    compress: Compress,
    ftl: RefCell<Ftl>,
    addresses: RefCell<AddressMap>,
    journal: Journal,
    in_flight: InFlight,
    deltas: RefCell<Deltas>,
    /// The most deltas of a page.
    most_deltas: u32,
    packer: RefCell<Packer>,
    unpacker: RefCell<Unpacker>,
    /// The number of writers that wait for garbage collection.
    waiting: Cell<u32>,
    collecting: Cell<bool>,
    /// Whether garbage collection must stop, because the store is being closed.
    closing: Cell<bool>,
    /// The signal that is notified when garbage collection has made progress.
    room: Signal,
    /// The number of units written, by the store and by garbage collection.
    units_written: Cell<u64>,
    options: Options,
}

/// Reads and writes pages out of place. All clones share one state.
pub(crate) struct OutOfPlace(Rc<State>);

impl Clone for OutOfPlace {
    fn clone(&self) -> OutOfPlace {
        OutOfPlace(Rc::clone(&self.0))
    }
}

/// Reads a page of an image with the map `addresses`, as the page is stored. Returns `None` if the page
/// cannot be read. Repairs use this function, because they have no drive.
pub(crate) async fn read_page(
    source: &dyn Source,
    addresses: &[u32],
    layout: &Layout,
    (page, salt): (PageId, Salt),
) -> Option<Vec<u8>> {
    let unit = layout.unit_bytes as usize;
    let units = units_of(addresses, layout, page);
    let mut bytes = vec![0; units.len() * unit];
    for (address, part) in units.iter().zip(bytes.chunks_mut(unit)) {
        source.read(layout.byte(*address), part).await.ok()?;
        bind_bytes(part, unit, *address);
    }
    let len = unit * layout.page_units as usize;
    let whole = Arena::new(len).buffer(0, len);
    let base = assemble(&bytes, (page, salt), unit, &mut Unpacker::default(), &whole);
    base.map(|_| bytes::look(&whole, <[u8]>::to_vec))
}

/// Returns the placement hint of a page. Leaves of one tree have similar lifetimes, so the hint of a leaf is
/// its tree. All other pages are written rarely and share a hint.
fn hint(page: &[u8]) -> StreamId {
    let is_leaf = page::kind(page) == Some(Kind::Leaf);
    StreamId(if is_leaf { page::tree(page) as u16 } else { 0 })
}

/// Whether a write that failed with this error may succeed at another address. It may if the address exists
/// and the drive has not returned wrong data.
fn may_go_elsewhere(error: &Error) -> bool {
    matches!(error, Error::Io(error) if !matches!(error, IoError::Corrupt | IoError::OutOfRange))
}

impl OutOfPlace {
    /// Creates an empty map on the drive, and a backend that uses it.
    pub(crate) async fn create(
        handle: &Handle,
        shared: (Health, Rc<Barrier>),
        superblock: &Superblock,
        layout: Layout,
        options: &Options,
    ) -> Result<OutOfPlace, Error> {
        let addresses = vec![UNMAPPED; layout.units as usize];
        let stored_map = StoredMap { addresses, epoch: 0, next_block: 0, number: 0 };
        let this = OutOfPlace::new(handle, shared, superblock, layout, stored_map, options)?;
        for segment in 0..layout.shape.segments {
            this.tell_free(SegmentId(segment)).await;
        }
        this.0.journal.snapshot(&this.0.addresses).await?;
        Ok(this)
    }

    /// Creates a backend that continues the map `stored_map`.
    pub(crate) fn new(
        handle: &Handle,
        (health, barrier): (Health, Rc<Barrier>),
        superblock: &Superblock,
        layout: Layout,
        stored_map: StoredMap,
        options: &Options,
    ) -> Result<OutOfPlace, Error> {
        let unusable = |error: fulgurite_base::SpecError| Error::Options(error.to_string());
        let mut ftl = Ftl::new(layout.ftl(options)?).map_err(unusable)?;
        let known = stored_map.addresses.iter().enumerate().filter(|(_, address)| **address != UNMAPPED);
        if !ftl.adopt(known.map(|(unit, address)| (unit as u32, Ppn(*address))), layout.block_units()) {
            return Err(Error::corrupt(
                superblock.data_start(),
                "the map of pages assigns one address to two pages",
            ));
        }
        let room = Signal::default();
        health.tell(&room);
        let OutOfPlaceConfig { compress, deltas: most_deltas, .. } = options.place.out_of_place();
        let deltas = if most_deltas > 0 { Deltas::new(&layout) } else { Deltas::default() };
        let salt = superblock.salt();
        Ok(OutOfPlace(Rc::new(State {
            handle: handle.clone(),
            layout,
            salt,
            compress,
            ftl: RefCell::new(ftl),
            journal: Journal::new(
                handle.clone(),
                (health.clone(), barrier),
                (layout, superblock),
                &stored_map,
                options,
            ),
            addresses: RefCell::new(AddressMap::new(stored_map.addresses)),
            in_flight: InFlight::new(&health),
            deltas: RefCell::new(deltas),
            most_deltas,
            packer: RefCell::new(Packer::new(compress, superblock.page_bytes as usize)),
            unpacker: RefCell::default(),
            waiting: Cell::new(0),
            collecting: Cell::new(false),
            closing: Cell::new(false),
            room,
            units_written: Cell::new(0),
            options: options.clone(),
            health,
        })))
    }

    /// Returns the segments for the superblock, with the number of the last durable commit of the map.
    pub(crate) fn shape(&self) -> Segmentation {
        Segmentation { commit: self.0.journal.last_commit(), ..self.0.layout.shape }
    }

    /// Returns the number of pages written, including those moved by garbage collection. A compressed page
    /// counts as the share of a page that its units take.
    pub(crate) fn pages_written(&self) -> u64 {
        self.0.units_written.get().div_ceil(u64::from(self.0.layout.page_units))
    }

    /// Returns the number of pages moved by garbage collection, with compressed pages counted as in
    /// [`OutOfPlace::pages_written`].
    pub(crate) fn pages_moved(&self) -> u64 {
        self.0.ftl.borrow().counters().copied_pages.div_ceil(u64::from(self.0.layout.page_units))
    }

    /// Returns the counts of deltas since the store was opened.
    pub(crate) fn delta_counters(&self) -> DeltaCounters {
        self.0.deltas.borrow().counters
    }

    /// Returns the number of bytes of the map's area and of segments in use, including garbage.
    pub(crate) fn bytes(&self) -> u64 {
        let Layout { unit_bytes, block_bytes, shape, map, first, .. } = self.0.layout;
        let used = shape.segments - self.0.ftl.borrow().free_segments();
        let units = first + u64::from(used) * u64::from(shape.segment_units);
        units * u64::from(unit_bytes) - map * u64::from(block_bytes)
    }

    /// Checks that the translation layer is consistent and agrees with the map. Returns the first fault, or
    /// `None`.
    pub(crate) fn fault(&self) -> Option<String> {
        let ftl = self.0.ftl.borrow();
        if let Err(error) = fulgurite_ftl::check::check(&ftl) {
            return Some(error.to_string());
        }
        let addresses = self.0.addresses.borrow();
        let differs = |unit: &u32| {
            let lies = addresses.all()[*unit as usize];
            ftl.lookup(*unit).map_or(UNMAPPED, |ppn| ppn.0) != lies
        };
        if !self.0.in_flight.is_empty() || ftl.victim(UnitId(0)).is_some() {
            return None;
        }
        let unit = (0..self.0.layout.units as u32).find(differs)?;
        Some(format!("unit {unit} is not at the address it was sent to"))
    }

    /// Returns the first unit of a page.
    fn first_unit(&self, page: PageId) -> u32 {
        self.0.layout.first_unit(page).expect("a data page") as u32
    }

    /// Writes sealed pages, which have their checksums. After the return, reads find the new versions. The
    /// versions are durable after [`OutOfPlace::commit`].
    pub(crate) async fn write(&self, pages: &Sealed) -> Result<(), Error> {
        let (bytes, packed) = self.packed(pages);
        self.write_packed(bytes, packed).await
    }

    /// Writes pages and deltas, except for deltas that are superseded before they are sent.
    async fn write_packed(&self, bytes: Buffer, mut rest: Vec<Packed>) -> Result<(), Error> {
        loop {
            rest.retain(|packed| self.is_wanted(packed));
            if rest.is_empty() {
                return Ok(());
            }
            self.0.health.check()?;
            let sent = self.send(&rest);
            if sent.is_empty() {
                self.wait_for_room().await?;
                continue;
            }
            rest.drain(..sent.len());
            self.bring(sent, &bytes).await?;
            if self.0.addresses.borrow().changes() > MOST_CHANGES {
                self.commit().await?;
            }
        }
    }

    /// Writes pages to the addresses to which they were sent. If the drive fails there, other addresses are
    /// tried. This function never waits for garbage collection, because collection waits for writes in
    /// progress.
    async fn bring(&self, mut sent: Vec<Sent>, bytes: &Buffer) -> Result<(), Error> {
        let number = self.0.in_flight.begin();
        self.collect_later();
        let parts = |sent: &[Sent]| {
            let parts = |sent: &Sent| (sent.packed.from..).zip(sent.addresses.clone());
            sent.iter().flat_map(parts).collect()
        };
        let resend = |sent: &mut Vec<Sent>| {
            sent.retain(|sent| self.is_sent(sent));
            self.send_elsewhere(sent.iter_mut().map(|sent| sent.addresses.iter_mut().collect()))
        };
        let written = self.write_sent(&mut sent, parts, resend, bytes).await;
        if written.is_ok() {
            sent.iter().for_each(|sent| self.arrived(sent));
        }
        self.0.in_flight.end(number);
        written.map_err(|error| self.0.health.stop(format!("a page could not be written: {error}")))
    }

    /// Writes units at their addresses. `parts` lists the index of each unit in the batch, and its address.
    /// If the drive fails, `resend` allocates other addresses for units that are still valid. It returns
    /// false if there is no space.
    async fn write_sent<T>(
        &self,
        sent: &mut Vec<T>,
        parts: impl Fn(&[T]) -> Vec<(usize, u32)>,
        resend: impl Fn(&mut Vec<T>) -> bool,
        bytes: &Buffer,
    ) -> Result<(), Error> {
        let mut left = OTHER_ADDRESSES;
        loop {
            match self.write_units(parts(sent).into_iter(), bytes).await {
                Err(error) if left > 0 && may_go_elsewhere(&error) && resend(sent) => left -= 1,
                written => return written,
            }
        }
    }

    /// Packs pages into units. Returns the bytes of all units, and the units of each page.
    fn packed(&self, pages: &Sealed) -> (Buffer, Vec<Packed>) {
        let Layout { unit_bytes, page_units, .. } = self.0.layout;
        let (unit, page_units) = (unit_bytes as usize, page_units as usize);
        let hint = |copy: &Buffer| bytes::look(copy, hint);
        if page_units == 1 || self.0.compress == Compress::None {
            let packed = |(index, (page, copy)): (usize, (PageId, Buffer))| Packed {
                page,
                part: Part::Base(Known::default()),
                from: index * page_units,
                units: page_units as u32,
                hint: hint(&copy),
            };
            return (pages.bytes.clone(), pages.iter().enumerate().map(packed).collect());
        }
        let bytes = Arena::new(pages.bytes.len()).buffer(0, pages.bytes.len());
        let mut packer = self.0.packer.borrow_mut();
        let (mut at, mut packed) = (0, Vec::with_capacity(pages.numbers.len()));
        let are_made = self.0.deltas.borrow().are_made();
        for (page, copy) in pages.iter() {
            // A packed page is never longer than the page, so it fits into the buffer.
            let into = bytes.part(at * unit, page_units * unit);
            let units = bytes::look(&copy, |page| bytes::change(&into, |into| packer.pack(page, into, unit)));
            let known = are_made.then(|| bytes::look(&copy, |page| Known::of(page, units)));
            let part = Part::Base(known.unwrap_or_default());
            packed.push(Packed { page, part, from: at, units, hint: hint(&copy) });
            at += units as usize;
        }
        (bytes, packed)
    }

    /// Discards the addresses of pages that the store has freed.
    pub(crate) fn trim(&self, pages: &[PageId]) {
        let (mut ftl, mut addresses) = (self.0.ftl.borrow_mut(), self.0.addresses.borrow_mut());
        let mut deltas = self.0.deltas.borrow_mut();
        for page in pages {
            let first = self.first_unit(*page);
            ftl.trim_run(first, self.0.layout.page_units);
            (first..first + self.0.layout.page_units).for_each(|unit| addresses.set(unit, UNMAPPED));
            deltas.supersede(*page);
            deltas.learn(*page, Known::default());
        }
    }

    /// Whether a page was written and not trimmed since.
    pub(crate) fn has(&self, page: PageId) -> bool {
        !units_of(self.0.addresses.borrow().all(), &self.0.layout, page).is_empty()
    }

    /// Makes the addresses of all completed writes durable.
    pub(crate) async fn commit(&self) -> Result<(), Error> {
        self.0.journal.commit(&self.0.addresses).await
    }
}
