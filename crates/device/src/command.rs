//! The interface of a device: its commands, completions, capabilities and errors.

use crate::failure::{Doing, Failure};
use crate::fdp::{FdpCaps, FdpLog};
use crate::zone::{Zone, ZoneCaps, ZoneError};
use crate::{Arena, Buffer};
use fulgurite_base::{Lpn, Nanos, StreamId};
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// A tag identifies a command in flight. The submitter chooses the tag, and the completion returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// An I/O operation. Addresses and lengths are in pages of [`Caps::page_bytes`].
///
/// A buffer holds exactly `pages` pages and belongs to the device until the command completes. The caller of
/// a command without a buffer neither gives nor gets bytes: a simulated drive then moves no bytes, and a real
/// drive uses a buffer of its own, with unspecified contents.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each variant describes its fields
pub enum Operation {
    /// Reads `pages` pages from `lpn` on. A page that was never written, or was trimmed, reads as zeros.
    Read { lpn: Lpn, pages: u32, into: Option<Buffer> },
    /// Writes `pages` pages from `lpn` on. With `durable`, these pages are durable when the command
    /// completes, whether or not other writes are. Only devices with [`Caps::durable_writes`] can do this.
    Write { lpn: Lpn, pages: u32, from: Option<Buffer>, stream: StreamId, durable: bool },
    /// Discards the contents of `pages` pages from `lpn` on.
    Trim { lpn: Lpn, pages: u32 },
    /// Makes the destination pages of `runs` share the contents of the source pages, without a copy. The
    /// command is atomic. When it completes, it is durable, together with all earlier writes to the sources.
    ///
    /// A page may be a destination once in a command, and it must not be a source too. A page may be a source
    /// any number of times. So the order of the runs does not matter. A command fails with
    /// [`IoError::Invalid`] if it breaks these rules, if it has no runs or a run without pages, or if it has
    /// more pages than [`Caps::share_pages`].
    Share { runs: Box<[ShareRun]> },
    /// Completes when all writes that completed before are durable.
    Flush,
}

/// A run: consecutive destination pages and consecutive source pages of an [`Operation::Share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRun {
    /// The first destination page, whose contents change.
    pub destination: Lpn,
    /// The first source page, whose contents the first destination page gets.
    pub source: Lpn,
    /// The number of pages of the run.
    pub pages: u32,
}

impl ShareRun {
    /// Returns the number of pages of all runs together.
    pub fn total(runs: &[ShareRun]) -> u64 {
        runs.iter().map(|run| u64::from(run.pages)).sum()
    }

    /// Returns the error with which a device with these capabilities refuses a share of `runs`, if any. This
    /// function is separate from [`Operation::fault`], so that reads and writes do not pay for it.
    #[inline(never)]
    fn fault(runs: &[ShareRun], caps: &Caps) -> Option<IoError> {
        if caps.share_pages == 0 {
            return Some(IoError::Unsupported);
        }
        if !runs.iter().all(|run| caps.has(run.destination, run.pages) && caps.has(run.source, run.pages)) {
            return Some(IoError::OutOfRange);
        }
        let is_sound = !runs.is_empty()
            && runs.iter().all(|run| run.pages > 0)
            && ShareRun::total(runs) <= u64::from(caps.share_pages)
            && !ShareRun::overlap(runs);
        (!is_sound).then_some(IoError::Invalid)
    }

    /// Returns whether a page is a destination twice, or both a destination and a source. All runs must be
    /// within the device.
    fn overlap(runs: &[ShareRun]) -> bool {
        let range = |first: Lpn, pages: u32| (first.0, first.0 + u64::from(pages));
        let mut destinations: Vec<(u64, u64)> =
            runs.iter().map(|run| range(run.destination, run.pages)).collect();
        destinations.sort_unstable();
        let is_destination = |run: &ShareRun| {
            let (first, end) = range(run.source, run.pages);
            let next = destinations.partition_point(|(_, before)| *before <= first);
            destinations.get(next).is_some_and(|(destination, _)| *destination < end)
        };
        destinations.windows(2).any(|pair| pair[1].0 < pair[0].1) || runs.iter().any(is_destination)
    }
}

impl Operation {
    /// Returns a read without a buffer.
    pub fn read(lpn: Lpn, pages: u32) -> Operation {
        Operation::Read { lpn, pages, into: None }
    }

    /// Returns a write without a buffer and without a placement hint.
    pub fn write(lpn: Lpn, pages: u32) -> Operation {
        Operation::Write { lpn, pages, from: None, stream: StreamId::default(), durable: false }
    }

    /// Returns a share of one run.
    pub fn share(destination: Lpn, source: Lpn, pages: u32) -> Operation {
        Operation::Share { runs: Box::new([ShareRun { destination, source, pages }]) }
    }

    /// Returns the error with which a device with these capabilities refuses this operation, if any.
    pub fn fault(&self, caps: &Caps) -> Option<IoError> {
        let (lpn, pages, buffer) = match self {
            Operation::Read { lpn, pages, into } => (*lpn, *pages, into.as_ref()),
            Operation::Write { durable: true, .. } if !caps.durable_writes => {
                return Some(IoError::Unsupported);
            }
            Operation::Write { lpn, pages, from, .. } => (*lpn, *pages, from.as_ref()),
            // A trim moves no bytes, so its length is not limited.
            Operation::Trim { lpn, pages } => {
                return (!caps.has(*lpn, *pages)).then_some(IoError::OutOfRange);
            }
            Operation::Share { runs } => return ShareRun::fault(runs, caps),
            Operation::Flush => return None,
        };
        if !caps.has(lpn, pages) {
            Some(IoError::OutOfRange)
        } else if pages == 0
            || pages > caps.pages_per_command
            || buffer.is_some_and(|buffer| buffer.len() != pages as usize * caps.page_bytes as usize)
        {
            Some(IoError::Invalid)
        } else {
            None
        }
    }
}

impl Failure {
    /// Returns the failure of `operation`, given the error of a system call.
    pub fn of(operation: &Operation, error: &io::Error) -> Failure {
        let (doing, lpn, pages) = match operation {
            Operation::Read { lpn, pages, .. } => (Doing::Read, *lpn, *pages),
            Operation::Write { lpn, pages, .. } => (Doing::Write, *lpn, *pages),
            Operation::Trim { lpn, pages } => (Doing::Trim, *lpn, *pages),
            // The failure names only the first run, because the other runs are at other addresses.
            Operation::Share { runs } => runs
                .first()
                .map_or((Doing::Share, Lpn(0), 0), |run| (Doing::Share, run.destination, run.pages)),
            Operation::Flush => (Doing::Flush, Lpn(0), 0),
        };
        Failure { doing, lpn, pages, code: error.raw_os_error() }
    }
}

/// A command: an operation with its tag.
#[derive(Clone, Debug)]
pub struct Command {
    /// The tag, which the completion returns.
    pub tag: Tag,
    /// The operation to execute.
    pub operation: Operation,
}

/// A completion: the end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the completed command.
    pub tag: Tag,
    /// The time of the completion on the device's clock.
    pub at: Nanos,
    /// The outcome of the command.
    pub status: Result<(), IoError>,
}

/// The reason why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IoError {
    /// The address range exceeds the device.
    #[error("the address is beyond the end of the device")]
    OutOfRange,
    /// The device cannot execute this command; see its [`Caps`].
    #[error("the device does not support this command")]
    Unsupported,
    /// The command is malformed: it has no pages or too many, a buffer of another length, or a share whose
    /// pages overlap.
    #[error(
        "the command is malformed (length zero, over the device's limit, unlike its buffer, or overlapping)"
    )]
    Invalid,
    /// Too much of the medium is worn out for further writes. Existing data can still be read.
    #[error("the device is worn out and accepts no more writes")]
    WornOut,
    /// The medium reported an error.
    #[error("the medium reported an error")]
    Media,
    /// The data that were read differ from the data that were written.
    #[error("what was read is not what was written there")]
    Corrupt,
    /// The command breaks a rule of the device's zones.
    #[error("{0}")]
    Zone(ZoneError),
    /// The operating system reported an error for a command to a real drive.
    #[error("{0}")]
    System(Failure),
}

/// The error of a full queue. It returns the command unchanged.
#[derive(Debug)]
pub struct QueueFull(pub Command);

/// The properties and capabilities of a device. Callers choose their commands by these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    /// The size of a page in bytes. A page is the unit of addresses.
    pub page_bytes: u32,
    /// The number of pages of the device.
    pub pages: u64,
    /// The queue depth: the most commands that can be in flight at once.
    pub queue_depth: u32,
    /// The length of the longest read or write, in pages.
    pub pages_per_command: u32,
    /// The length in bytes of the largest write that a power cut never tears, if the write is aligned to its
    /// own length. It is a power of two, or 0 if the device guarantees no such write.
    pub atomic_bytes: u32,
    /// Whether the device supports durable writes; see [`Operation::Write`].
    pub durable_writes: bool,
    /// The most pages of one [`Operation::Share`], all runs together; 0 if the device cannot share pages.
    pub share_pages: u32,
    /// The number of placement streams that the device keeps apart; 1 means that placement hints have no
    /// effect.
    pub streams: u16,
    /// Flexible data placement, if the device has it; each stream then stands for a
    /// [`PlacementId`](fulgurite_base::PlacementId).
    pub fdp: Option<FdpCaps>,
    /// The zones, if the device has zones. Their pages must be written in order, and a trim of a zone resets
    /// it.
    pub zones: Option<ZoneCaps>,
    /// Whether written bytes can be read back. It is false if the device simulates only the timing.
    pub contents: bool,
    /// Whether [`Device::erases`] returns the erase counts of erase blocks.
    pub erase_counts: bool,
    /// The number of pages that the device erases together if they were written in sequence; 0 if it is
    /// unknown.
    pub erase_pages: u32,
}

impl Caps {
    /// Returns whether all of these pages are on the device. An address near 2^64 does not wrap around to a
    /// valid one.
    #[inline]
    pub(crate) fn has(&self, lpn: Lpn, pages: u32) -> bool {
        lpn.0.checked_add(u64::from(pages)).is_some_and(|end| end <= self.pages)
    }

    /// Returns the capabilities of a part of the device: `pages` pages from `first` on. A write is aligned to the
    /// beginning of the part, so it may be torn if that is aligned to fewer bytes than the device never tears. Returns
    /// `None` if the device does not have these pages, or if there are none.
    pub fn part(&self, first: Lpn, pages: u64) -> Option<Caps> {
        let end = first.0.checked_add(pages)?;
        if pages == 0 || end > self.pages {
            return None;
        }
        let pages_before = 1u64.checked_shl(first.0.trailing_zeros()).unwrap_or(u64::MAX);
        let aligned =
            pages_before.saturating_mul(u64::from(self.page_bytes & self.page_bytes.wrapping_neg()));
        let atomic_bytes = u64::from(self.atomic_bytes).min(aligned) as u32;
        Some(Caps { pages, atomic_bytes, ..self.clone() })
    }

    /// Returns the number of pages of each of `count` equal parts of the device, which follow each other from page 0
    /// on. A part begins at an erase block, and at a multiple of what the device never tears. Returns `None` if the
    /// device is too small; see [`Caps::most_parts`].
    pub fn pages_of_parts(&self, count: u32) -> Option<u64> {
        let unit = self.part_unit();
        let pages = self.pages.checked_div(u64::from(count))? / unit * unit;
        (pages > 0).then_some(pages)
    }

    /// Returns the largest number of equal parts of the device.
    pub fn most_parts(&self) -> u64 {
        self.pages / self.part_unit()
    }

    /// Returns the number of pages of which a part has a multiple.
    fn part_unit(&self) -> u64 {
        let atomic_pages = (self.atomic_bytes / self.page_bytes.max(1)).max(1);
        let erase_pages = u64::from(self.erase_pages.max(1));
        // The least common multiple, because the pages that are never torn are a power of two.
        erase_pages * u64::from(atomic_pages >> erase_pages.trailing_zeros().min(31)).max(1)
    }

    /// Returns the capabilities of the simplest drive that stores data: each command has one page.
    pub fn plain(page_bytes: u32, pages: u64, queue_depth: u32) -> Caps {
        Caps {
            page_bytes,
            pages,
            queue_depth,
            pages_per_command: 1,
            atomic_bytes: 0,
            durable_writes: false,
            share_pages: 0,
            streams: 1,
            fdp: None,
            zones: None,
            contents: true,
            erase_counts: false,
            erase_pages: 0,
        }
    }
}

/// A drive, simulated or real. It is single-threaded, and only [`Device::wait`] blocks.
pub trait Device {
    /// Returns the properties and capabilities of the device, which never change.
    fn caps(&self) -> &Caps;

    /// Returns the time on the device's clock: virtual time of a simulated drive, wall-clock time of a real
    /// one.
    fn now(&self) -> Nanos;

    /// Queues a command. Only a full queue refuses the command; a malformed command completes with an error.
    fn submit(&mut self, command: Command) -> Result<(), QueueFull>;

    /// Returns the number of erases of the erase block that holds `lpn`. It is `None` if the page was never
    /// written or [`Caps::erase_counts`] is false.
    fn erases(&self, _lpn: Lpn) -> Option<u64> {
        None
    }

    /// Returns the statistics and events of flexible data placement; `None` if [`Caps::fdp`] is `None`.
    fn fdp_log(&self) -> Option<FdpLog> {
        None
    }

    /// Returns the zone that holds `lpn`, as the commands submitted so far will leave it; `None` for a
    /// conventional page, or if [`Caps::zones`] is `None`. Commands take effect in the order of submission, so
    /// a write at the write pointer is an append.
    fn zone(&self, _lpn: Lpn) -> Option<Zone> {
        None
    }

    /// Announces memory that most commands will use, so that a drive can map this memory once.
    fn register(&mut self, _arena: &Arc<Arena>) {}

    /// Waits until a command completes or the clock reaches `deadline`, whichever is first, and appends the
    /// completions in order. Returns at once if no command is in flight and there is no deadline. If the
    /// deadline has passed, a device with a parker may leave commands to [`Park::submit`].
    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>);

    /// Returns the time on the device's clock at which [`Device::wait`] would next have something to do. It is
    /// never before [`Device::now`]. It is `None` if nothing is in progress, or if only waiting can tell, as on
    /// a real drive. A caller that keeps the clock in step with another one waits until this time.
    fn next_event(&self) -> Option<Nanos> {
        None
    }

    /// Returns a way to wait for the device while other threads use it; `None` if only [`Device::wait`] can
    /// wait.
    fn parker(&self) -> Option<Arc<dyn Park>> {
        None
    }

    /// Hands out a command that was submitted but not started, so that the caller can execute it itself. With
    /// a tag, this function hands out the command with that tag; the others may be left to [`Park::submit`]. Without
    /// a tag, it hands out a command only if it is the only one. The command stays in flight until
    /// [`Device::end_errand`].
    fn take_errand(&mut self, _tag: Option<Tag>) -> Option<Errand> {
        None
    }

    /// Ends a command from [`Device::take_errand`] that the caller has executed. [`Device::wait`] does not
    /// report this command.
    fn end_errand(&mut self) {}

    /// Returns whether the device works only on the thread that opened it.
    fn is_bound_to_thread(&self) -> bool {
        false
    }
}

/// An errand: a command that the requesting thread executes itself. This is the fastest way if the thread
/// would only wait, because no other thread has to notice the completion.
pub struct Errand {
    /// The tag of the command.
    pub tag: Tag,
    /// Executes the command and blocks until the drive has finished it.
    pub work: Box<dyn FnOnce() -> Result<(), IoError> + Send>,
}

impl Errand {
    /// Executes the command.
    pub fn run(self) -> Done {
        Done { tag: self.tag, status: (self.work)() }
    }
}

/// The outcome of an [`Errand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The tag of the command.
    pub tag: Tag,
    /// The outcome of the command.
    pub status: Result<(), IoError>,
}

/// Waits for a device without borrowing it. So threads that share a device under a lock can wait without
/// holding that lock.
pub trait Park: Send + Sync {
    /// Returns when the device has completions for [`Device::wait`], when [`Park::unpark`] was called since
    /// the last return, or when `timeout` has passed. It may also return early.
    fn park(&self, timeout: Option<Nanos>);

    /// Ends the current [`Park::park`], or makes the next one return at once.
    fn unpark(&self);

    /// Starts the commands that calls of the device have left. The thread of such a call does this when it has
    /// released the lock, because starting commands takes longer than all else that the call does.
    fn submit(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: a command is refused if its address range is not within the device, if a read or a write has
    /// an invalid length or a buffer of another length, or if a durable write goes to a device that does not
    /// support durable writes.
    #[test]
    fn a_faulty_command_is_refused_with_its_error() {
        let fault = |operation: Operation| operation.fault(&caps(10));
        let (range, invalid) = (Some(IoError::OutOfRange), Some(IoError::Invalid));
        assert_eq!([fault(Operation::read(Lpn(92), 8)), fault(Operation::read(Lpn(93), 8))], [None, range]);
        assert_eq!(
            [fault(Operation::write(Lpn(92), 8)), fault(Operation::write(Lpn(u64::MAX), 8))],
            [None, range]
        );
        assert_eq!(
            [fault(Operation::read(Lpn(0), 0)), fault(Operation::write(Lpn(0), 9))],
            [invalid, invalid]
        );
        let into = |bytes| Some(Arena::new(4096).buffer(0, bytes));
        let read = |bytes| fault(Operation::Read { lpn: Lpn(0), pages: 2, into: into(bytes) });
        assert_eq!([read(1024), read(512), read(1536)], [None, invalid, invalid]);
        // The length of a trim is not limited, so a trim of the whole device is accepted.
        assert_eq!([0, 1].map(|first| fault(Operation::Trim { lpn: Lpn(first), pages: 100 })), [None, range]);
        assert_eq!(fault(Operation::Flush), None);
        // A durable write is valid only on a device that supports durable writes.
        let durable = |durable_writes| {
            let operation = Operation::Write {
                lpn: Lpn(0),
                pages: 1,
                from: None,
                stream: StreamId::default(),
                durable: true,
            };
            operation.fault(&Caps { durable_writes, ..caps(10) })
        };
        assert_eq!([durable(true), durable(false)], [None, Some(IoError::Unsupported)]);
    }

    fn caps(share_pages: u32) -> Caps {
        Caps { pages_per_command: 8, share_pages, ..Caps::plain(512, 100, 1) }
    }

    /// The rule: a share is refused unless all of its pages are on the device, each run has a page, and the
    /// total is at most what the device accepts. No page may be a destination twice, or both a destination
    /// and a source, in any order of the runs.
    #[test]
    fn a_faulty_share_is_refused_with_its_error() {
        type Runs<'a> = &'a [(u64, u64, u32)];
        let share = |runs: Runs<'_>| {
            let run = |&(destination, source, pages): &(u64, u64, u32)| ShareRun {
                destination: Lpn(destination),
                source: Lpn(source),
                pages,
            };
            Operation::Share { runs: runs.iter().map(run).collect() }
        };
        let (range, invalid) = (Some(IoError::OutOfRange), Some(IoError::Invalid));
        let cases: &[(Runs<'_>, Option<IoError>)] = &[
            (&[(0, 90, 10)], None),
            (&[(90, 0, 10)], None),
            (&[(91, 0, 10)], range),
            (&[(0, 91, 10)], range),
            (&[(0, 1, 1), (u64::MAX, 0, 1)], range),
            (&[(0, 1, 1), (2, u64::MAX, 1)], range),
            // These shares test the lengths of single runs and of all runs together.
            (&[], invalid),
            (&[(0, 50, 0)], invalid),
            (&[(0, 50, 1), (1, 51, 0)], invalid),
            (&[(0, 50, 11)], invalid),
            (&[(0, 50, 5), (5, 55, 5)], None),
            (&[(0, 50, 5), (5, 55, 6)], invalid),
            // A page may be a source twice. It may not be a destination twice, or a destination and a source.
            (&[(0, 50, 2), (2, 50, 2), (4, 51, 2)], None),
            (&[(0, 50, 2), (1, 60, 2)], invalid),
            (&[(1, 60, 2), (0, 50, 2)], invalid),
            (&[(0, 50, 4), (9, 70, 1), (3, 60, 2)], invalid),
            (&[(0, 50, 5), (1, 60, 1)], invalid),
            (&[(7, 7, 1)], invalid),
            (&[(0, 4, 5)], invalid),
            (&[(4, 0, 5)], invalid),
            (&[(0, 5, 5)], None),
            (&[(5, 0, 5)], None),
            (&[(0, 50, 2), (60, 1, 1)], invalid),
            (&[(60, 1, 1), (0, 50, 2)], invalid),
            (&[(60, 2, 1), (0, 50, 2)], None),
            (&[(10, 50, 1), (20, 51, 1), (30, 18, 3)], invalid),
            (&[(10, 50, 1), (20, 51, 1), (30, 17, 3)], None),
            (&[(10, 50, 1), (20, 51, 1), (30, 21, 3)], None),
        ];
        for (runs, expected) in cases {
            assert_eq!(share(runs).fault(&caps(10)), *expected, "{runs:?}");
        }
        assert_eq!(share(&[(0, 90, 10)]).fault(&caps(0)), Some(IoError::Unsupported));
    }

    /// The rule: the variant for shares does not enlarge the type of operations, because reads and writes
    /// carry this type through every queue.
    #[test]
    fn shares_do_not_enlarge_operations() {
        assert!(
            size_of::<Operation>() <= size_of::<(Lpn, u32, StreamId, Option<Buffer>)>() + size_of::<u64>()
        );
    }
}
