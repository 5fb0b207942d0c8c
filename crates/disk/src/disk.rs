//! The disk: a simulated device that decides when requests complete, the bytes, and what a power cut does to them.
//!
//! The device has no contents. A write changes the bytes when it is submitted, and a read copies them when it has
//! completed; in between, either order of two requests would be right. A write of a part of a page first reads the
//! page, as a drive must that maps whole pages.

use crate::fault::{CutPoint, Fate, Faults, Watch};
use crate::pages::{Backing, Pages};
use crate::power::{Cache, Pattern, PowerModel, choose};
use crate::request::{Completed, DiskError, Kind, Request};
use crate::unflushed::{Loss, Piece, WriteId};
use crate::versions::Versions;
use fulgurite_base::{Lpn, Nanos, StreamId};
use fulgurite_device::{Command, Completion, Device, IoError, Operation, Tag};
use rustc_hash::FxHashSet;
use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A request that has not completed.
struct InFlight<T> {
    token: T,
    kind: Kind,
    pages: u32,
    submitted: Nanos,
    status: Result<(), DiskError>,
    /// The commands that are in the device or wait for its queue.
    commands: u32,
    /// The commands that follow when these have completed: the writes of pages that had to be read first.
    then: Vec<Operation>,
    /// Whether a flush of the device follows at the end.
    then_flush: bool,
    /// The write in the history, and whether it is durable when the request completes.
    write: Option<(WriteId, bool)>,
    /// The completions that a flush covers.
    flush: Option<u64>,
}

/// A power cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut<T> {
    /// The pattern by which the lost pieces were chosen; `None` if the caller chose them.
    pub pattern: Option<Pattern>,
    /// The pieces that could be lost.
    pub pieces: Vec<Piece>,
    /// The pieces that were lost.
    pub lost: Vec<Piece>,
    /// The effect on the contents.
    pub loss: Loss,
    /// The tokens of the requests that will never complete.
    pub dropped: Vec<T>,
}

/// The contents of a disk at some time. Clones share the bytes.
#[derive(Clone)]
pub struct Snapshot(Pages);

/// A disk on the device `D`. Its caller knows each request by a token `T`.
pub struct Disk<D, T> {
    device: D,
    page_bytes: u64,
    bytes: u64,
    pages_per_command: u32,
    has_durable_writes: bool,
    model: PowerModel,
    versions: Versions,
    faults: Faults,
    watch: Watch,
    requests: Slab<InFlight<T>>,
    /// The commands that wait because the queue of the device is full.
    backlog: VecDeque<Command>,
    /// The requests that have completed in the device and are answered later, by time and slab key.
    delayed: BinaryHeap<Reverse<(Nanos, usize)>>,
    completions: Vec<Completion>,
}

impl<D: Device, T> Disk<D, T> {
    /// Creates a disk without contents. A write is torn only at multiples of what the device never tears, if that is
    /// more than the model says.
    pub fn new(device: D, model: PowerModel) -> Disk<D, T> {
        let caps = device.caps();
        let model = PowerModel { tear_bytes: model.tear_bytes.max(u64::from(caps.atomic_bytes)), ..model };
        let cache_bytes = if model.cache == Cache::Protected { 0 } else { model.cache_bytes };
        Disk {
            page_bytes: u64::from(caps.page_bytes),
            bytes: caps.pages * u64::from(caps.page_bytes),
            pages_per_command: caps.pages_per_command,
            has_durable_writes: caps.durable_writes,
            versions: Versions::new(caps.pages, caps.page_bytes, model.tear_bytes, cache_bytes),
            device,
            model,
            faults: Faults::default(),
            watch: Watch::default(),
            requests: Slab::new(),
            backlog: VecDeque::new(),
            delayed: Default::default(),
            completions: Vec::new(),
        }
    }

    /// Keeps the contents in `store` in place of memory; `written` are the pages whose contents it has already. The
    /// disk is new.
    #[must_use]
    pub fn backed_by(
        mut self,
        store: Arc<dyn Backing>,
        written: impl Iterator<Item = Range<u64>>,
    ) -> Disk<D, T> {
        self.versions.back(store, written);
        self
    }

    /// Returns the first failure of the backing store. From then on the contents are wrong, so the caller answers
    /// nothing more.
    pub fn failure(&self) -> Option<&io::Error> {
        self.versions.failure()
    }

    /// Returns the size of the disk in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the size of a page in bytes. Requests of whole pages are fastest.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    /// Returns the model of power cuts.
    pub fn model(&self) -> &PowerModel {
        &self.model
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the device, to take statistics from it. The caller must not submit commands or wait.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Returns the faults, to change them.
    pub fn faults_mut(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// Returns the number of pages that hold bytes.
    pub fn pages_written(&self) -> u64 {
        self.versions.pages_written()
    }

    /// Returns the number of pages with changes that a power cut may lose.
    pub fn pages_unflushed(&self) -> u64 {
        self.versions.pages_unflushed()
    }

    /// Returns the number of requests that have not completed.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Returns the time on the disk's clock.
    pub fn now(&self) -> Nanos {
        self.device.now()
    }

    /// Appends the `length` bytes from `offset` on to `out`. The range must lie in the disk.
    pub fn copy(&self, offset: u64, length: usize, out: &mut Vec<u8>) {
        self.versions.read(offset, length, out);
    }

    /// Returns the number of bytes from `offset` on, at most `length`, that are like the first in one respect: pages
    /// with contents if the second value is true, otherwise pages that read as zeros.
    pub fn extent(&self, offset: u64, length: u64) -> (u64, bool) {
        self.versions.extent(offset, length)
    }

    /// Requests that the power be cut at `point`; see [`Disk::is_cut_due`].
    pub fn cut_at(&mut self, point: CutPoint) {
        self.watch.arm(point);
    }

    /// Whether the point of [`Disk::cut_at`] was reached. From then on the caller submits nothing and cuts the power.
    pub fn is_cut_due(&self) -> bool {
        self.watch.is_reached()
    }

    /// Submits a request at the present time of the disk's clock; see [`Disk::advance`].
    pub fn submit(&mut self, request: Request<'_>, token: T) {
        let (kind, offset, length) = match request {
            Request::Read { offset, length } => (Kind::Read, offset, length),
            Request::Write { offset, data, .. } => (Kind::Write, offset, data.len() as u64),
            Request::Zero { offset, length, .. } => (Kind::Write, offset, length),
            Request::Trim { offset, length, .. } => (Kind::Trim, offset, length),
            Request::Flush => (Kind::Flush, 0, 0),
        };
        let mut operations = Vec::new();
        let mut in_flight = InFlight {
            token,
            kind,
            pages: 0,
            submitted: self.now(),
            status: Ok(()),
            commands: 0,
            then: Vec::new(),
            then_flush: false,
            write: None,
            flush: None,
        };
        if offset.checked_add(length).is_none_or(|end| end > self.bytes) {
            in_flight.status = Err(DiskError::OutOfRange);
        } else {
            let touched = if length == 0 {
                0
            } else {
                (offset + length).div_ceil(self.page_bytes) - offset / self.page_bytes
            };
            in_flight.pages = u32::try_from(touched).unwrap_or(u32::MAX);
            self.plan(request, &mut in_flight, &mut operations);
        }
        let key = self.requests.insert(in_flight);
        if operations.is_empty() {
            self.delayed.push(Reverse((self.now() + self.faults.delay, key)));
        }
        self.hand_down(key, operations);
    }

    /// Performs a request on the contents, and determines the commands for the device.
    fn plan(&mut self, request: Request<'_>, in_flight: &mut InFlight<T>, operations: &mut Vec<Operation>) {
        match request {
            Request::Read { offset, length } => {
                if self.faults.fails_read(offset, length) {
                    in_flight.status = Err(DiskError::Device(IoError::Media));
                }
                self.cover(offset, length, operations, Operation::read);
            }
            Request::Flush => {
                self.watch.flush(self.versions.pages_unflushed());
                in_flight.flush = (self.model.cache != Cache::Lying).then(|| self.versions.mark());
                operations.push(Operation::Flush);
            }
            Request::Write { offset, data, durable } => {
                let end = offset + data.len() as u64;
                self.change(offset..end, Some(data), durable, in_flight);
                self.write_commands(offset, data.len() as u64, durable, false, in_flight, operations);
            }
            Request::Zero { offset, length, durable, trim } => {
                self.change(offset..offset + length, None, durable, in_flight);
                self.write_commands(offset, length, durable, trim, in_flight, operations);
            }
            Request::Trim { offset, length, durable } => {
                let first = offset.div_ceil(self.page_bytes);
                let end = (offset + length) / self.page_bytes;
                if first < end {
                    let bytes = first * self.page_bytes..end * self.page_bytes;
                    self.change(bytes, None, durable, in_flight);
                    trim(first, end, operations);
                    in_flight.then_flush = durable;
                }
            }
        }
    }

    /// Adds the commands that write a range. Pages of which only a part is written are read before.
    fn write_commands(
        &self,
        offset: u64,
        length: u64,
        durable: bool,
        by_trim: bool,
        in_flight: &mut InFlight<T>,
        operations: &mut Vec<Operation>,
    ) {
        let (first, last) = (offset / self.page_bytes, (offset + length) / self.page_bytes);
        let mut edges: Vec<u64> = Vec::new();
        edges.extend((!offset.is_multiple_of(self.page_bytes)).then_some(first));
        edges.extend((!(offset + length).is_multiple_of(self.page_bytes)).then_some(last));
        edges.dedup();
        in_flight.then_flush = durable && (by_trim || !self.has_durable_writes);
        let write = |lpn, pages| Operation::Write {
            lpn,
            pages,
            from: None,
            stream: StreamId::default(),
            durable: durable && self.has_durable_writes,
        };
        let mut writes = Vec::new();
        if by_trim {
            let (whole, end) = (offset.div_ceil(self.page_bytes), last);
            if whole < end {
                trim(whole, end, &mut writes);
            }
            writes.extend(edges.iter().map(|lpn| write(Lpn(*lpn), 1)));
        } else {
            self.cover(offset, length, &mut writes, write);
        }
        if edges.is_empty() {
            *operations = writes;
        } else {
            operations.extend(edges.into_iter().map(|lpn| Operation::read(Lpn(lpn), 1)));
            in_flight.then = writes;
        }
    }

    /// Adds commands for the pages of a range, each as long as the device accepts.
    fn cover(
        &self,
        offset: u64,
        length: u64,
        operations: &mut Vec<Operation>,
        operation: impl Fn(Lpn, u32) -> Operation,
    ) {
        if length == 0 {
            return;
        }
        let (mut lpn, end) = (offset / self.page_bytes, (offset + length).div_ceil(self.page_bytes));
        while lpn < end {
            let pages = u64::from(self.pages_per_command).min(end - lpn);
            operations.push(operation(Lpn(lpn), pages as u32));
            lpn += pages;
        }
    }

    /// Changes the bytes of a range to `data`, or to zeros, unless a fault prevents that.
    fn change(&mut self, range: Range<u64>, data: Option<&[u8]>, durable: bool, in_flight: &mut InFlight<T>) {
        let (offset, length) = (range.start, range.end - range.start);
        self.watch.write(offset, length);
        let offset = match self.faults.of_write(offset, length) {
            Fate::Written => offset,
            Fate::Fails => return in_flight.status = Err(DiskError::Device(IoError::Media)),
            Fate::Full => return in_flight.status = Err(DiskError::NoSpace),
            Fate::Lost => return,
            // The last pages have no next page but one, so the write goes to the beginning of the disk.
            Fate::Misdirected if range.end + 2 * self.page_bytes > self.bytes => 0,
            Fate::Misdirected => offset + 2 * self.page_bytes,
        };
        if length == 0 {
            return;
        }
        let write = self.versions.write(offset..offset + length, data);
        in_flight.write = Some((write, durable && self.model.cache != Cache::Lying));
    }

    /// Submits commands of the request `key`.
    fn hand_down(&mut self, key: usize, operations: Vec<Operation>) {
        self.requests[key].commands += operations.len() as u32;
        for operation in operations {
            let command = Command { tag: Tag(key as u64), operation };
            // A command must not overtake those that wait.
            if !self.backlog.is_empty() {
                self.backlog.push_back(command);
            } else if let Err(full) = self.device.submit(command) {
                self.backlog.push_back(full.0);
            }
        }
    }

    /// Returns the time of the next event; `None` if no request is in flight. A caller in real time waits until
    /// then, and calls [`Disk::advance`].
    pub fn next_event(&self) -> Option<Nanos> {
        let delayed = self.delayed.peek().map(|Reverse((at, _))| *at);
        delayed.into_iter().chain(self.device.next_event()).min()
    }

    /// Advances the disk's clock to `now`, and appends the requests that have completed until then, in order.
    pub fn advance(&mut self, now: Nanos, completed: &mut Vec<Completed<T>>) {
        loop {
            let until = self.delayed.peek().map_or(now, |Reverse((at, _))| (*at).min(now));
            self.wait(Some(until));
            if !self.answer(completed) && self.completions.is_empty() && self.now() >= now {
                return;
            }
            self.process();
        }
    }

    /// Advances the disk's clock until all requests have completed, and appends them in order. Returns false if the
    /// device stalls, so that requests remain.
    pub fn finish(&mut self, completed: &mut Vec<Completed<T>>) -> bool {
        while !self.requests.is_empty() {
            let until = self.delayed.peek().map(|Reverse((at, _))| *at);
            self.wait(until);
            if !self.answer(completed) && self.completions.is_empty() && until.is_none() {
                return false;
            }
            self.process();
        }
        true
    }

    /// Waits for the device, which then may have room for the commands that wait.
    fn wait(&mut self, until: Option<Nanos>) {
        self.device.wait(until, &mut self.completions);
        while let Some(command) = self.backlog.pop_front() {
            if let Err(full) = self.device.submit(command) {
                self.backlog.push_front(full.0);
                break;
            }
        }
    }

    /// Processes the completions of the device.
    fn process(&mut self) {
        let mut completions = std::mem::take(&mut self.completions);
        for Completion { tag, at, status } in completions.drain(..) {
            let key = tag.0 as usize;
            let request = &mut self.requests[key];
            request.commands -= 1;
            request.status = request.status.and(status.map_err(DiskError::Device));
            if request.commands > 0 {
                continue;
            }
            let mut then = std::mem::take(&mut request.then);
            if then.is_empty() && std::mem::take(&mut request.then_flush) {
                then.push(Operation::Flush);
            }
            match then.is_empty() {
                true => self.delayed.push(Reverse((at + self.faults.delay, key))),
                false => self.hand_down(key, then),
            }
        }
        self.completions = completions;
    }

    /// Answers the requests that are due. Returns whether there was one.
    fn answer(&mut self, completed: &mut Vec<Completed<T>>) -> bool {
        let before = completed.len();
        while let Some(Reverse((at, key))) =
            self.delayed.peek().copied().filter(|Reverse((at, _))| *at <= self.now())
        {
            self.delayed.pop();
            let request = self.requests.remove(key);
            if let Some((write, is_durable)) = request.write {
                self.versions.complete(write, is_durable);
                while let Some(oldest) = self.versions.overflow() {
                    self.versions.store(oldest);
                }
            }
            if let (Some(mark), Ok(())) = (request.flush, request.status) {
                self.versions.flush(mark);
            }
            let InFlight { token, kind, pages, submitted, status, .. } = request;
            completed.push(Completed { token, kind, pages, submitted, at, status });
        }
        completed.len() > before
    }

    /// Cuts the power and turns the disk on again. The seed determines what is lost. Requests in flight never
    /// complete.
    pub fn power_cut(&mut self, seed: u64) -> Cut<T> {
        let pieces = self.versions.pieces();
        let (pattern, lost) = choose(&pieces, |piece| piece.write, seed);
        Cut { pattern: Some(pattern), ..self.cut(pieces, lost) }
    }

    /// Cuts the power and loses exactly the pieces `lost`, which must be of [`Disk::pieces`].
    pub fn power_cut_with(&mut self, lost: Vec<Piece>) -> Cut<T> {
        let pieces = self.versions.pieces();
        self.cut(pieces, lost)
    }

    /// Returns the pieces of writes that a power cut could lose now, in the order of submission.
    pub fn pieces(&self) -> Vec<Piece> {
        self.versions.pieces()
    }

    fn cut(&mut self, pieces: Vec<Piece>, lost: Vec<Piece>) -> Cut<T> {
        let tear_bytes = self.model.tear_bytes;
        let units: FxHashSet<(WriteId, u64)> =
            lost.iter().map(|piece| (piece.write, piece.offset / tear_bytes)).collect();
        let loss = self.versions.lose(|write, unit| units.contains(&(write, unit)));
        self.backlog.clear();
        self.delayed.clear();
        let requests = std::mem::take(&mut self.requests);
        // The device has no contents, so it may as well complete its commands; nobody hears of it.
        let mut ignored = Vec::new();
        loop {
            self.device.wait(None, &mut ignored);
            if ignored.is_empty() {
                break;
            }
            ignored.clear();
        }
        self.completions.clear();
        self.watch = Watch::default();
        let dropped = requests.into_iter().map(|(_, request)| request.token).collect();
        Cut { pattern: None, pieces, lost, loss, dropped }
    }

    /// Returns the contents, with all writes that were submitted; `None` if they are in a backing store.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.versions.contents().map(Snapshot)
    }

    /// Replaces the contents by those of a disk of the same size. Nothing that was written before can be lost or come
    /// back. Returns false, and changes nothing, while a request is in flight or if the sizes differ.
    pub fn restore(&mut self, snapshot: &Snapshot) -> bool {
        self.requests.is_empty() && self.versions.restore(&snapshot.0)
    }

    /// Inverts one bit of the byte at `offset`, as if it had decayed on the medium. Returns false if the byte was never
    /// written, or lies beyond the end.
    pub fn rot(&mut self, offset: u64, bit: u8) -> bool {
        offset < self.bytes && self.versions.rot(offset, bit)
    }
}

/// Adds commands that trim the pages `first..end`.
fn trim(first: u64, end: u64, operations: &mut Vec<Operation>) {
    let mut lpn = first;
    while lpn < end {
        let pages = u32::try_from(end - lpn).unwrap_or(1 << 31);
        operations.push(Operation::Trim { lpn: Lpn(lpn), pages });
        lpn += u64::from(pages);
    }
}
