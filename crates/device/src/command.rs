//! The commands that a device takes, and the completions that it gives.

use crate::{Arena, Buffer, Failure};
use fulgurite_base::{Lpn, Nanos, StreamId};
use std::sync::Arc;
use thiserror::Error;

/// Names a command in flight. Chosen by the submitter, handed back by the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// What to do. Addresses and lengths are in pages of [`Caps::page_bytes`].
///
/// A buffer, where one is given, holds exactly `pages` pages and belongs to the device until the
/// command completes. Without one, time passes and no bytes move: simulated drives accept that.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // each variant describes its fields
pub enum Operation {
    /// Read `pages` pages from `lpn`. A page never written, or trimmed, reads as zeros.
    Read { lpn: Lpn, pages: u32, into: Option<Buffer> },
    /// Write `pages` pages at `lpn`. With `durable` they are on the medium once it has completed, whatever becomes of other writes; only
    /// devices with [`Caps::durable_writes`] do this.
    Write { lpn: Lpn, pages: u32, from: Option<Buffer>, stream: StreamId, durable: bool },
    /// Forget `pages` pages from `lpn`.
    Trim { lpn: Lpn, pages: u32 },
    /// Make the pages at the destinations of `runs` the same as those at their sources, without copying: all of them or
    /// none, and durable, with what was written to the sources before, once it has completed.
    ///
    /// A destination is named once in a command, and is not a source of it as well; a source may be named any number of
    /// times. So the runs have no order. A command that breaks this is [`IoError::Invalid`], as is one that has no run, a
    /// run without pages, or more pages than [`Caps::share_pages`].
    Share { runs: Box<[ShareRun]> },
    /// Complete once every write completed before is on the medium.
    Flush,
}

/// Pages that [`Operation::Share`] makes the same as others, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRun {
    /// The first page that changes.
    pub destination: Lpn,
    /// The first page that it becomes the same as.
    pub source: Lpn,
    /// How many pages.
    pub pages: u32,
}

impl ShareRun {
    /// Pages of all runs.
    pub fn total(runs: &[ShareRun]) -> u64 {
        runs.iter().map(|run| u64::from(run.pages)).sum()
    }

    /// What makes a share of `runs` wrong for a device with these capabilities. Apart from [`Operation::fault`], so that
    /// reads and writes do not pay for it.
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

    /// Whether a page is a destination twice, or a destination and a source. All runs lie on a device.
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
    /// A read without a buffer.
    pub fn read(lpn: Lpn, pages: u32) -> Operation {
        Operation::Read { lpn, pages, into: None }
    }

    /// A write without a buffer or hint.
    pub fn write(lpn: Lpn, pages: u32) -> Operation {
        Operation::Write { lpn, pages, from: None, stream: StreamId::default(), durable: false }
    }

    /// A share of one run.
    pub fn share(destination: Lpn, source: Lpn, pages: u32) -> Operation {
        Operation::Share { runs: Box::new([ShareRun { destination, source, pages }]) }
    }

    /// What makes this operation wrong for a device with these capabilities, if anything does.
    pub fn fault(&self, caps: &Caps) -> Option<IoError> {
        let (lpn, pages, buffer) = match self {
            Operation::Read { lpn, pages, into } => (*lpn, *pages, into.as_ref()),
            Operation::Write { durable: true, .. } if !caps.durable_writes => {
                return Some(IoError::Unsupported);
            }
            Operation::Write { lpn, pages, from, .. } => (*lpn, *pages, from.as_ref()),
            // A trim moves no bytes, so it has no limit of length.
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

/// An operation and its tag.
#[derive(Clone, Debug)]
pub struct Command {
    /// Handed back by the completion.
    pub tag: Tag,
    /// What to do.
    pub operation: Operation,
}

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Of the command that ended.
    pub tag: Tag,
    /// When it ended, on the device's clock.
    pub at: Nanos,
    /// How it ended.
    pub status: Result<(), IoError>,
}

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IoError {
    /// The address range does not lie on the device.
    #[error("the address is beyond the end of the device")]
    OutOfRange,
    /// The device cannot do this; its [`Caps`] said so.
    #[error("the device does not support this command")]
    Unsupported,
    /// The command makes no sense: no pages, too many, a buffer of another length, or a share whose pages overlap.
    #[error(
        "the command is malformed (length zero, over the device's limit, unlike its buffer, or overlapping)"
    )]
    Invalid,
    /// Too much of the medium is worn out; what was written can still be read.
    #[error("the device is worn out and accepts no more writes")]
    WornOut,
    /// The medium failed.
    #[error("the medium reported an error")]
    Media,
    /// What was read is not what was written there.
    #[error("what was read is not what was written there")]
    Corrupt,
    /// The system refused a command to a real drive.
    #[error("{0}")]
    System(Failure),
}

/// The queue has no room; the command is handed back untouched.
#[derive(Debug)]
pub struct QueueFull(pub Command);

/// What a device is and can do. Callers choose by this and never guess.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Bytes in a page, the unit of addresses.
    pub page_bytes: u32,
    /// Pages on the device.
    pub pages: u64,
    /// Commands that may be in flight at once.
    pub queue_depth: u32,
    /// The longest read or write, in pages.
    pub pages_per_command: u32,
    /// The largest write that a power cut never tears, in bytes, where it is aligned to its own length; 0 where the
    /// device promises none. A power of two otherwise.
    pub atomic_bytes: u32,
    /// Whether a write may ask to be durable by itself, see [`Operation::Write`].
    pub durable_writes: bool,
    /// The most pages of one [`Operation::Share`], over all of its runs; 0 where the device cannot share.
    pub share_pages: u32,
    /// Placement streams that the device keeps apart; 1 means that hints change nothing.
    pub streams: u16,
    /// Whether bytes written can be read back; false where only their timing is simulated.
    pub contents: bool,
    /// Whether [`Device::erases`] tells anything.
    pub erase_counts: bool,
    /// Pages that the device erases at once, where they were written one after the other; 0 where it does not say.
    pub erase_pages: u32,
}

impl Caps {
    /// Whether all of these pages lie on the device. An address near 2^64 does not wrap round to a valid one.
    #[inline]
    fn has(&self, lpn: Lpn, pages: u32) -> bool {
        lpn.0.checked_add(u64::from(pages)).is_some_and(|end| end <= self.pages)
    }

    /// What any drive can do that keeps what is written, one page to a command.
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
            contents: true,
            erase_counts: false,
            erase_pages: 0,
        }
    }
}

/// A drive, simulated or real. Single-threaded; never blocks except in [`Device::wait`].
pub trait Device {
    /// What the device is and can do; constant.
    fn caps(&self) -> &Caps;

    /// The device's clock.
    fn now(&self) -> Nanos;

    /// Queues a command. A malformed one completes with an error; only a full queue refuses.
    fn submit(&mut self, command: Command) -> Result<(), QueueFull>;

    /// How often the erase block that holds `lpn` was erased; `None` where the page was never written, or
    /// [`Caps::erase_counts`] is false.
    fn erases(&self, _lpn: Lpn) -> Option<u64> {
        None
    }

    /// Announces memory that most commands will use, so that a drive may map it once and for all.
    fn register(&mut self, _arena: &Arc<Arena>) {}

    /// Waits until a command completes or the clock reaches `deadline`, whichever is first, and
    /// appends what completed, in order. With neither in prospect it returns at once.
    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>);

    /// A way to wait beside the device, while other threads use it; `None` where only [`Device::wait`] can wait.
    fn parker(&self) -> Option<Arc<dyn Park>> {
        None
    }

    /// Hands out a command that was submitted and not begun, where the caller may as well carry it out itself, without the
    /// device: one with this tag, beside which others are begun; or without a tag, the only one. It stays in flight until
    /// [`Device::end_errand`].
    fn take_errand(&mut self, _tag: Option<Tag>) -> Option<Errand> {
        None
    }

    /// A command of [`Device::take_errand`] was carried out. [`Device::wait`] does not report it.
    fn end_errand(&mut self) {}

    /// Whether the device works only on the thread that opened it.
    fn is_bound_to_thread(&self) -> bool {
        false
    }
}

/// A command that the thread that asked for it carries out itself. Where nothing else is to be done meanwhile this is
/// the quickest way: no other thread has to notice that it has ended.
pub struct Errand {
    /// The command's tag.
    pub tag: Tag,
    /// What is to be done. It waits for the drive.
    pub work: Box<dyn FnOnce() -> Result<(), IoError> + Send>,
}

impl Errand {
    /// Carries it out.
    pub fn run(self) -> Done {
        Done { tag: self.tag, status: (self.work)() }
    }
}

/// What has become of an [`Errand`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The command's tag.
    pub tag: Tag,
    /// Whether it worked.
    pub status: Result<(), IoError>,
}

/// Waits for a device without borrowing it. A device that is shared by threads under a lock is waited for without that
/// lock.
pub trait Park: Send + Sync {
    /// Returns when the device has completions to reap by [`Device::wait`], when [`Park::unpark`] was called since the last
    /// return, or when `timeout` has passed. It may also return for no reason.
    fn park(&self, timeout: Option<Nanos>);

    /// Ends a [`Park::park`] under way, or the next one at once.
    fn unpark(&self);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: an address range lies on the device, a read or a write is neither empty nor too long and has a buffer of its
    /// own length, and only a device that shares is asked to.
    #[test]
    fn what_is_wrong_with_a_command_is_told() {
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
        // A trim has no limit of length.
        assert_eq!([0, 1].map(|first| fault(Operation::Trim { lpn: Lpn(first), pages: 100 })), [None, range]);
        assert_eq!(fault(Operation::Flush), None);
        // A write that is to be durable is one only where the drive can.
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

    /// The rule: all of a share lies on the device, it has at least one page in each run and no more than the device takes,
    /// and no page is a destination twice, or a destination and a source. In whatever order the runs come.
    #[test]
    fn what_is_wrong_with_a_share_is_told() {
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
            // Lengths: of each run, and of all of them.
            (&[], invalid),
            (&[(0, 50, 0)], invalid),
            (&[(0, 50, 1), (1, 51, 0)], invalid),
            (&[(0, 50, 11)], invalid),
            (&[(0, 50, 5), (5, 55, 5)], None),
            (&[(0, 50, 5), (5, 55, 6)], invalid),
            // A source may be named again; a destination may not, and may not be a source.
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

    /// The rule: what reads and writes carry through every queue is no larger for the sake of shares.
    #[test]
    fn a_share_makes_no_operation_larger() {
        assert!(
            size_of::<Operation>() <= size_of::<(Lpn, u32, StreamId, Option<Buffer>)>() + size_of::<u64>()
        );
    }
}
