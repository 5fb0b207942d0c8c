//! Pages out of place: each write goes to a new place, and a map that is on the drive too says where.
//!
//! The place of the old copy stays as it is until the new one and its entry in the map are durable. So no write can tear a
//! page that counts, and none is done twice. What it costs instead is collection: space comes back a segment at a time, and
//! what is still valid there is copied.
//!
//! *Units.* Pages lie in units. A page of several units is compressed where that saves one
//! ([`pack`]). Its units get their places together ([`Ftl::append_whole`]) and come back together.
//!
//! *Blocks.* The drive reads and writes blocks of the log's size, of one unit or several ([`runs`]). Pages lie one behind the
//! other without regard to blocks, but what is sent at one time has blocks to itself ([`Ftl::end_blocks`]). So no block is
//! written twice, and a write that is torn takes nothing with it that was there before.
//!
//! *Three maps.* The translation layer ([`Ftl`]) knows where each unit was *sent* last, and decides by that where the next
//! page goes and which segment is collected. [`Places`] knows where it *lies*: where a write that has ended has brought it;
//! reads go there. The [`Journal`] has what is *durable* of that. Each follows the one before.
//!
//! *Three rules* keep a place from being written again too early. A segment is collected when the writes into it have ended.
//! It is given back when its copies, and all writes that were sent before, have ended and their places are durable. And who reads
//! a unit that moved meanwhile reads it again.

mod block;
mod kept;
mod collect;
mod journal;
mod pack;
mod runs;
mod scattered;
mod under_way;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod uneven;

pub use kept::{Kept, NOWHERE, kept_in_head, read, units_of};
pub use scattered::find as find_scattered;

use super::bound::{bind, bind_bytes};
use super::sealed::{Sealed, is_there};
use crate::bytes;
use crate::format::layout::{Layout, Segmentation, Superblock};
use crate::format::page::{self, Kind, Salt};
use crate::media::barrier::Barrier;
use crate::media::image::Source;
use crate::wait::{Health, Signal, insist, together};
use crate::{Compress, Error, Options};
use fulgurite_base::{Lpn, PageId, Ppn, StreamId};
use fulgurite_device::{Arena, Buffer, Device, Handle, IoError, Operation};
use fulgurite_ftl::{CountingSink, Ftl, SegmentId, UnitId};
use journal::{Journal, Places};
use pack::{Packer, Unpacker};
use runs::{Run, runs};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use under_way::UnderWay;

/// Changes of the map that are left for the next commit at most; then one is made.
const MOST_CHANGES: usize = 1 << 15;

/// Other places that a write is sent to where the drive fails at the first, before the store stops.
const OTHER_PLACES: u32 = 4;

/// A page as it goes to the drive.
#[derive(Clone, Copy)]
struct Packed {
    page: PageId,
    /// The first of its units among the batch's, and how many it takes.
    from: usize,
    units: u32,
    /// For placement by hints.
    hint: StreamId,
}

/// A page on its way.
struct Sent {
    packed: Packed,
    places: Vec<u32>,
}

struct State<D> {
    handle: Handle<D>,
    health: Health,
    layout: Layout,
    salt: Salt,
    compress: Compress,
    ftl: RefCell<Ftl>,
    places: RefCell<Places>,
    journal: Journal<D>,
    under_way: UnderWay,
    packer: RefCell<Packer>,
    unpacker: RefCell<Unpacker>,
    /// Writers that wait for collection.
    waiting: Cell<u32>,
    collecting: Cell<bool>,
    /// Collection shall end, since the store closes.
    closing: Cell<bool>,
    /// Collection has gone on.
    room: Signal,
    /// Units written for the store and moved.
    units_written: Cell<u64>,
    options: Options,
}

/// Writes pages out of place. Clones share it.
pub struct OutOfPlace<D>(Rc<State<D>>);

impl<D> Clone for OutOfPlace<D> {
    fn clone(&self) -> OutOfPlace<D> {
        OutOfPlace(Rc::clone(&self.0))
    }
}

/// Reads a page of an image whose map this is, as it lies there; `None` where it cannot be read. For who has no drive.
pub async fn read_page(
    source: &impl Source,
    places: &[u32],
    layout: &Layout,
    page: PageId,
) -> Option<Vec<u8>> {
    let unit = layout.unit_bytes as usize;
    let units = units_of(places, layout, page);
    let mut bytes = vec![0; units.len() * unit];
    for (place, part) in units.iter().zip(bytes.chunks_mut(unit)) {
        source.read(layout.byte(*place), part).await.ok()?;
        bind_bytes(part, unit, *place);
    }
    let len = unit * layout.page_units as usize;
    if bytes.is_empty() || bytes.len() == len {
        return Some(bytes).filter(|bytes| !bytes.is_empty());
    }
    let whole = Arena::new(len).buffer(0, len);
    Unpacker::default().unpack(&bytes, &whole).then(|| bytes::look(&whole, <[u8]>::to_vec))
}

/// The hint of a page: leaves of a tree live about as long as each other, and all that is no leaf is written rarely.
fn hint(page: &[u8]) -> StreamId {
    let is_leaf = page::kind(page) == Some(Kind::Leaf);
    StreamId(if is_leaf { page::tree(page) as u16 } else { 0 })
}

/// Whether another place may do where a write has failed so: the drive has not lied, and is there.
fn may_go_elsewhere(error: &Error) -> bool {
    matches!(error, Error::Io(error) if !matches!(error, IoError::Corrupt | IoError::OutOfRange))
}

impl<D: Device + 'static> OutOfPlace<D> {
    /// Makes an empty map on the drive.
    pub async fn create(
        handle: &Handle<D>,
        shared: (Health, Rc<Barrier<D>>),
        superblock: &Superblock,
        layout: Layout,
        options: &Options,
    ) -> Result<OutOfPlace<D>, Error> {
        let places = vec![NOWHERE; layout.units as usize];
        let kept = Kept { places, epoch: 0, next_block: 0, number: 0 };
        let this = OutOfPlace::new(handle, shared, superblock, layout, kept, options)?;
        for segment in 0..layout.shape.segments {
            this.tell_free(SegmentId(segment)).await;
        }
        this.0.journal.snapshot(&this.0.places).await?;
        Ok(this)
    }

    /// The pages of a store whose map is `kept`.
    pub fn new(
        handle: &Handle<D>,
        (health, barrier): (Health, Rc<Barrier<D>>),
        superblock: &Superblock,
        layout: Layout,
        kept: Kept,
        options: &Options,
    ) -> Result<OutOfPlace<D>, Error> {
        let unusable = |error: fulgurite_base::SpecError| Error::Options(error.to_string());
        let mut ftl = Ftl::new(layout.ftl(options)?).map_err(unusable)?;
        let known = kept.places.iter().enumerate().filter(|(_, place)| **place != NOWHERE);
        if !ftl.adopt(known.map(|(unit, place)| (unit as u32, Ppn(*place))), layout.block_units()) {
            return Err(Error::corrupt(
                superblock.data_start(),
                "the map of pages gives two pages one place",
            ));
        }
        let room = Signal::default();
        health.tell(&room);
        let compress = options.place.out_of_place().compress;
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
                &kept,
                options,
            ),
            places: RefCell::new(Places::new(kept.places)),
            under_way: UnderWay::new(&health),
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

    /// What the superblock says of it now.
    pub fn shape(&self) -> Segmentation {
        Segmentation { commit: self.0.journal.last_commit(), ..self.0.layout.shape }
    }

    /// Pages written, those moved by collection among them; a compressed page counts as what it takes.
    pub fn pages_written(&self) -> u64 {
        self.0.units_written.get().div_ceil(u64::from(self.0.layout.page_units))
    }

    /// Pages that collection has moved, counted in the same way.
    pub fn pages_moved(&self) -> u64 {
        self.0.ftl.borrow().counters().copied_pages.div_ceil(u64::from(self.0.layout.page_units))
    }

    /// Bytes of the map's area and of the segments that are in use, garbage in them among it.
    pub fn bytes(&self) -> u64 {
        let Layout { unit_bytes, block_bytes, shape, map, first, .. } = self.0.layout;
        let used = shape.segments - self.0.ftl.borrow().free_segments();
        let units = first + u64::from(used) * u64::from(shape.segment_units);
        units * u64::from(unit_bytes) - map * u64::from(block_bytes)
    }

    /// Whether the translation layer agrees with itself and with the places.
    pub fn fault(&self) -> Option<String> {
        let ftl = self.0.ftl.borrow();
        if let Err(error) = fulgurite_ftl::check::check(&ftl) {
            return Some(error.to_string());
        }
        let places = self.0.places.borrow();
        let differs = |unit: &u32| {
            let lies = places.all()[*unit as usize];
            ftl.lookup(*unit).map_or(NOWHERE, |ppn| ppn.0) != lies
        };
        if !self.0.under_way.is_empty() || ftl.victim(UnitId(0)).is_some() {
            return None;
        }
        let unit = (0..self.0.layout.units as u32).find(differs)?;
        Some(format!("unit {unit} does not lie where it was sent"))
    }

    /// The first unit of a page.
    fn first_unit(&self, page: PageId) -> u32 {
        self.0.layout.first_unit(page).expect("a data page") as u32
    }

    /// Writes sealed pages. When this returns they are read from their new places, and durable after [`OutOfPlace::commit`].
    pub async fn write(&self, pages: &Sealed) -> Result<(), Error> {
        let (bytes, mut rest) = self.packed(pages);
        while !rest.is_empty() {
            self.0.health.check()?;
            let sent = self.send(&rest);
            if sent.is_empty() {
                self.wait_for_room().await?;
                continue;
            }
            rest.drain(..sent.len());
            self.bring(sent, &bytes).await?;
            if self.0.places.borrow().changes() > MOST_CHANGES {
                self.commit().await?;
            }
        }
        Ok(())
    }

    /// Brings pages to where they were sent. Where the drive fails there, they are sent elsewhere. Nothing here waits for collection,
    /// which waits for this.
    async fn bring(&self, mut sent: Vec<Sent>, bytes: &Buffer) -> Result<(), Error> {
        let number = self.0.under_way.begin();
        self.collect_later();
        let parts = |sent: &[Sent]| {
            let parts = |sent: &Sent| (sent.packed.from..).zip(sent.places.clone());
            sent.iter().flat_map(parts).collect()
        };
        let resend = |sent: &mut Vec<Sent>| {
            sent.retain(|sent| self.is_sent(sent));
            self.send_elsewhere(sent.iter_mut().map(|sent| sent.places.iter_mut().collect()))
        };
        let written = self.write_sent(&mut sent, parts, resend, bytes).await;
        if written.is_ok() {
            sent.iter().for_each(|sent| self.arrived(sent));
        }
        self.0.under_way.end(number);
        written.map_err(|error| self.0.health.stop(format!("a page could not be written: {error}")))
    }

    /// Writes what was sent: `parts` says which of the batch's units go where. Where the drive fails there, `resend` sends what is still
    /// wanted elsewhere, a few times; it is false where there is no room.
    async fn write_sent<T>(
        &self,
        sent: &mut Vec<T>,
        parts: impl Fn(&[T]) -> Vec<(usize, u32)>,
        resend: impl Fn(&mut Vec<T>) -> bool,
        bytes: &Buffer,
    ) -> Result<(), Error> {
        let mut left = OTHER_PLACES;
        loop {
            match self.write_units(parts(sent).into_iter(), bytes).await {
                Err(error) if left > 0 && may_go_elsewhere(&error) && resend(sent) => left -= 1,
                written => return written,
            }
        }
    }

    /// Pages as they will lie in their units.
    fn packed(&self, pages: &Sealed) -> (Buffer, Vec<Packed>) {
        let Layout { unit_bytes, page_units, .. } = self.0.layout;
        let (unit, page_units) = (unit_bytes as usize, page_units as usize);
        let hint = |copy: &Buffer| bytes::look(copy, hint);
        if page_units == 1 || self.0.compress == Compress::None {
            let packed = |(index, (page, copy)): (usize, (PageId, Buffer))| Packed {
                page,
                from: index * page_units,
                units: page_units as u32,
                hint: hint(&copy),
            };
            return (pages.bytes.clone(), pages.iter().enumerate().map(packed).collect());
        }
        let bytes = Arena::new(pages.bytes.len()).buffer(0, pages.bytes.len());
        let mut packer = self.0.packer.borrow_mut();
        let (mut at, mut packed) = (0, Vec::with_capacity(pages.numbers.len()));
        for (page, copy) in pages.iter() {
            // What is packed is never longer than the page, so there is room for it.
            let into = bytes.part(at * unit, page_units * unit);
            let units = bytes::look(&copy, |page| bytes::change(&into, |into| packer.pack(page, into, unit)));
            packed.push(Packed { page, from: at, units, hint: hint(&copy) });
            at += units as usize;
        }
        (bytes, packed)
    }

    /// Gives pages their new places, as many from the first on as collection lets in now.
    fn send(&self, pages: &[Packed]) -> Vec<Sent> {
        let mut ftl = self.0.ftl.borrow_mut();
        let mut sent = Vec::new();
        for packed in pages {
            let Packed { page, units, hint, .. } = *packed;
            let (first, mut places) = (self.first_unit(page), Vec::with_capacity(units as usize));
            if !ftl.append_whole(first, units, hint, &mut CountingSink::default(), |ppn| places.push(ppn.0)) {
                break;
            }
            ftl.trim_run(first + units, self.0.layout.page_units - units);
            sent.push(Sent { packed: *packed, places });
        }
        ftl.end_blocks(self.0.layout.block_units());
        sent
    }

    /// Sends pages to other places, from the ones where their units were sent to, as copies that may use what is kept for
    /// collection. False where there is no room.
    fn send_elsewhere<'a>(&self, pages: impl Iterator<Item = Vec<&'a mut u32>>) -> bool {
        let mut ftl = self.0.ftl.borrow_mut();
        let mut has_room = true;
        for mut places in pages {
            has_room = ftl.room_for_copies() >= places.len() as u64;
            if !has_room {
                break;
            }
            let from: Vec<Ppn> = places.iter().map(|place| Ppn(**place)).collect();
            let mut places = places.iter_mut();
            ftl.copy_whole(&from, &mut CountingSink::default(), |to| {
                places.next().into_iter().for_each(|place| **place = to.0);
            });
        }
        ftl.end_blocks(self.0.layout.block_units());
        has_room
    }

    /// Whether a page was not given up since it was sent there.
    fn is_sent(&self, sent: &Sent) -> bool {
        self.lookup(self.first_unit(sent.packed.page)) == Some(Ppn(sent.places[0]))
    }

    /// A page lies in its new place, unless it was given up meanwhile.
    fn arrived(&self, sent: &Sent) {
        if !self.is_sent(sent) {
            return;
        }
        let (first, mut places) = (self.first_unit(sent.packed.page), self.0.places.borrow_mut());
        for unit in 0..self.0.layout.page_units {
            let place = sent.places.get(unit as usize).copied().unwrap_or(NOWHERE);
            places.set(first + unit, place);
        }
    }

    /// Forgets pages that the store has given back.
    pub fn trim(&self, pages: &[PageId]) {
        let (mut ftl, mut places) = (self.0.ftl.borrow_mut(), self.0.places.borrow_mut());
        for page in pages {
            let first = self.first_unit(*page);
            ftl.trim_run(first, self.0.layout.page_units);
            (first..first + self.0.layout.page_units).for_each(|unit| places.set(unit, NOWHERE));
        }
    }

    /// Whether a page was ever written and not given up since.
    pub fn has(&self, page: PageId) -> bool {
        !units_of(self.0.places.borrow().all(), &self.0.layout, page).is_empty()
    }

    /// Makes durable where everything lies whose write has ended.
    pub async fn commit(&self) -> Result<(), Error> {
        self.0.journal.commit(&self.0.places).await
    }

    /// Writes units to their places: which of the batch's units, and where it goes.
    async fn write_units(
        &self,
        parts: impl Iterator<Item = (usize, u32)>,
        bytes: &Buffer,
    ) -> Result<(), Error> {
        let unit = self.0.layout.unit_bytes as usize;
        let runs = self.runs_with(parts, |run| run.gather(bytes, unit));
        self.bind_runs(&runs);
        let written = self.write_runs(&runs).await;
        // They may be sent elsewhere.
        self.bind_runs(&runs);
        written
    }

    /// Binds the units of runs to their places, or frees them again.
    fn bind_runs(&self, runs: &[(Run, Buffer)]) {
        let unit = self.0.layout.unit_bytes as usize;
        runs.iter().for_each(|(run, blocks)| bind(blocks, unit, run.place));
    }

    async fn write_runs(&self, runs: &[(Run, Buffer)]) -> Result<(), Error> {
        let units: u64 = runs.iter().map(|(run, _)| u64::from(run.units)).sum();
        self.0.units_written.set(self.0.units_written.get() + units);
        let written = |write: Operation| async move {
            insist(async || self.0.handle.submit(write.clone()).await.map_err(Error::Io)).await
        };
        let writes = runs.iter().map(|(run, blocks)| written(self.write_run(run, blocks))).collect();
        together(writes).await.into_iter().collect::<Result<(), Error>>()?;
        if self.0.options.verify_writes {
            self.verify(runs).await?;
        }
        Ok(())
    }

    /// Reads back what was written, before it counts: what its place had before may be an older version of the same page, which
    /// looks whole.
    async fn verify(&self, runs: &[(Run, Buffer)]) -> Result<(), Error> {
        for (run, blocks) in runs {
            if !is_there(&self.0.handle, self.lpn(run.place), blocks).await? {
                return Err(Error::Io(IoError::Corrupt));
            }
        }
        Ok(())
    }

    fn write_run(&self, run: &Run, blocks: &Buffer) -> Operation {
        let ftl = self.0.ftl.borrow();
        // The drive keeps apart what the translation layer keeps apart, as far as it can. Its first stream has what lies
        // before the segments: the log is overwritten long before a page moves.
        let stream = ftl.segments().stream(ftl.segment(Ppn(run.place)));
        let stream = StreamId((stream.0 + 1).min(self.0.handle.caps().streams.max(1) - 1));
        let (lpn, pages) = (self.lpn(run.place), self.device_pages(run.units));
        Operation::Write { lpn, pages, from: Some(blocks.clone()), stream, durable: false }
    }

    /// The drive's pages that so many units take, which are whole blocks.
    fn device_pages(&self, units: u32) -> u32 {
        (u64::from(units) * u64::from(self.0.layout.unit_bytes) / u64::from(self.0.handle.caps().page_bytes))
            as u32
    }

    /// The drive's page that begins at a place, where a block begins.
    fn lpn(&self, place: u32) -> Lpn {
        Lpn(self.0.layout.byte(place) / u64::from(self.0.handle.caps().page_bytes))
    }

    /// The commands for units of memory and their places.
    fn runs(&self, units: impl Iterator<Item = (usize, u32)>) -> Vec<Run> {
        let (caps, layout) = (self.0.handle.caps(), &self.0.layout);
        let bytes = u64::from(caps.pages_per_command) * u64::from(caps.page_bytes);
        runs(units, layout, (bytes / u64::from(layout.unit_bytes)).min(u32::MAX.into()) as u32)
    }

    /// The same, each with memory for its blocks.
    fn runs_with(
        &self,
        units: impl Iterator<Item = (usize, u32)>,
        blocks: impl Fn(&Run) -> Buffer,
    ) -> Vec<(Run, Buffer)> {
        let with_blocks = |run: Run| {
            let blocks = blocks(&run);
            (run, blocks)
        };
        self.runs(units).into_iter().map(with_blocks).collect()
    }

    /// Reads units from their places into the parts of `into` with these numbers, all at once.
    async fn read_units(
        &self,
        units: impl Iterator<Item = (usize, u32)>,
        into: &Buffer,
    ) -> Result<(), IoError> {
        let unit = self.0.layout.unit_bytes as usize;
        let runs = self.runs_with(units, |run| run.target(into, unit));
        self.read_runs(&runs).await?;
        runs.iter().for_each(|(run, blocks)| run.scatter(blocks, into, unit));
        Ok(())
    }

    /// Reads blocks, and frees the units in them from their places.
    async fn read_runs(&self, runs: &[(Run, Buffer)]) -> Result<(), IoError> {
        let read = |(run, blocks): &(Run, Buffer)| Operation::Read {
            lpn: self.lpn(run.place),
            pages: self.device_pages(run.units),
            into: Some(blocks.clone()),
        };
        let reads: Vec<Operation> = runs.iter().map(read).collect();
        self.0.handle.submit_all(reads.into_iter()).await?;
        self.bind_runs(runs);
        Ok(())
    }

    /// Reads a compressed page as it lies on the drive.
    async fn read_packed(&self, places: &[u32]) -> Result<Buffer, IoError> {
        let unit = self.0.layout.unit_bytes as usize;
        let mut runs = self.runs(places.iter().copied().enumerate());
        // Mostly its units lie together, and need not be copied out of their blocks.
        if runs.len() == 1 && runs[0].parts.len() == 1 {
            let run = runs.remove(0);
            let len = run.units as usize * unit;
            let blocks = Arena::new(len).buffer(0, len);
            let packed = run.part(&blocks, &run.parts[0], unit);
            self.read_runs(&[(run, blocks)]).await?;
            return Ok(packed);
        }
        let len = places.len() * unit;
        let packed = Arena::new(len).buffer(0, len);
        self.read_units(places.iter().copied().enumerate(), &packed).await?;
        Ok(packed)
    }

    /// Reads a page. What comes may be wrong: the caller looks at its checksum.
    pub async fn read(&self, page: PageId, into: &Buffer) -> Result<(), IoError> {
        let units = || units_of(self.0.places.borrow().all(), &self.0.layout, page).to_vec();
        loop {
            let places = units();
            if places.is_empty() {
                return Err(IoError::Corrupt);
            }
            let is_packed = places.len() < self.0.layout.page_units as usize;
            let read = match is_packed {
                true => self.read_packed(&places).await.map(Some),
                false => self.read_units(places.iter().copied().enumerate(), into).await.map(|()| None),
            };
            if units() != places {
                // It has moved, and its old place may be somebody else's.
                continue;
            }
            let is_whole = read?.is_none_or(|packed| self.unpack(&packed, into));
            return if is_whole { Ok(()) } else { Err(IoError::Corrupt) };
        }
    }

    /// Brings a compressed page back; false where the bytes are none.
    fn unpack(&self, packed: &Buffer, page: &Buffer) -> bool {
        bytes::look(packed, |packed| self.0.unpacker.borrow_mut().unpack(packed, page))
    }

    /// Reads pages that follow each other in number into parts of `into`, all at once; those that lie one after the other with one
    /// command. Tells which came. What comes may be wrong, as in [`OutOfPlace::read`].
    pub async fn read_run(&self, first: PageId, pages: usize, into: &Buffer) -> Vec<bool> {
        let (size, page_units) = (into.len() / pages.max(1), self.0.layout.page_units as usize);
        let page = |index: usize| PageId(first.0 + index as u64);
        let units =
            |index: usize| units_of(self.0.places.borrow().all(), &self.0.layout, page(index)).to_vec();
        let before: Vec<Vec<u32>> = (0..pages).map(units).collect();
        let is_plain = |index: &usize| before[*index].len() == page_units;
        let plain = (0..pages).filter(is_plain);
        let parts = plain.flat_map(|index| (index * page_units..).zip(before[index].iter().copied()));
        let mut reads: Vec<Pin<Box<dyn Future<Output = bool> + '_>>> =
            vec![Box::pin(async { self.read_units(parts, into).await.is_ok() })];
        // Packed pages, and those that are nowhere.
        for index in (0..pages).filter(|index| !is_plain(index)) {
            let part = into.part(index * size, size);
            reads.push(Box::pin(async move { self.read(page(index), &part).await.is_ok() }));
        }
        let mut came = together(reads).await.into_iter();
        let plain_came = came.next() == Some(true);
        (0..pages)
            .map(|index| match is_plain(&index) {
                // Of one that has moved, the old place may be somebody else's.
                true => plain_came && units(index) == before[index],
                false => came.next() == Some(true),
            })
            .collect()
    }
}
