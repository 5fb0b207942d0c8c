//! Joins several readers to one trace: merges their records by time, or passes them on one file after the other.
//!
//! Only one record of each reader is in memory besides the reader's own buffers. The files have one clock, so a
//! record's time is compared with those of the other files as it is in the file. In a format without times all are
//! zero, so that the files follow each other.

use super::error::TraceError;
use super::record::Record;
use super::skipped::Skipped;
use fulgurite_base::{Choice, Nanos};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// How several files are one trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Join {
    /// They are merged by time. Equal names of volumes are one volume.
    #[default]
    Time,
    /// They are merged by time, and each file has volumes of its own.
    Volumes,
    /// They follow each other: each begins at the time at which the one before it ended. Equal names of volumes
    /// are one volume.
    Sequence,
}

impl Choice for Join {
    const NAMES: &'static [(&'static str, Join)] =
        &[("time", Join::Time), ("volumes", Join::Volumes), ("sequence", Join::Sequence)];
}

/// The most files of a trace. Each is open while it is read, with buffers of its own.
pub const FILES_AT_MOST: usize = 512;

/// The reader of one file of a trace.
pub(super) trait PartReader: Iterator<Item = Result<Record, TraceError>> {
    /// The time of the first record on the format's clock, in nanoseconds; any time before the first record.
    fn clock_start(&self) -> u128;
    /// The names of the volumes so far.
    fn volumes(&self) -> &[Arc<[u8]>];
    /// The lines that were skipped so far, by reason.
    fn skipped(&self) -> &[Skipped];
    /// The number of times so far that went back.
    fn clamped(&self) -> u64;
    /// What the reader decided so far.
    fn decided(&self) -> String;
}

/// The readers of the files of one trace.
pub(super) struct Joined<R> {
    join: Join,
    parts: Vec<Part<R>>,
    /// The next record of each reader by its time, and by the order of the files.
    heads: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The first part that has not ended, if parts follow each other, and the time of the last record.
    current: usize,
    now: Nanos,
    /// The names of all volumes, and the number of each by its name.
    names: Vec<Arc<[u8]>>,
    numbers: FxHashMap<Arc<[u8]>, u32>,
}

/// One file of a trace.
struct Part<R> {
    name: String,
    reader: R,
    /// The time of the file's first record on the common clock, from which the times of others are counted.
    shift: Nanos,
    next: Option<Record>,
    /// The number in the whole trace of each volume of the file; `None` before its first request. The first one
    /// stands for requests without a volume.
    volumes: Vec<Option<u32>>,
}

impl<R: PartReader> Part<R> {
    /// Reads the next record.
    fn read(&mut self) -> Result<(), TraceError> {
        self.next = self.reader.next().transpose()?;
        Ok(())
    }
}

impl<R: PartReader> Joined<R> {
    /// Reads the first record of each file. Each has a name, which tells its volumes apart from those of others.
    pub(super) fn new(join: Join, readers: Vec<(String, R)>) -> Result<Joined<R>, TraceError> {
        let mut parts = Vec::new();
        for (name, reader) in readers {
            let mut part = Part { name, reader, shift: Nanos::ZERO, next: None, volumes: Vec::new() };
            part.read()?;
            parts.push(part);
        }
        let first =
            parts.iter().filter(|part| part.next.is_some()).map(|part| part.reader.clock_start()).min();
        let mut heads = BinaryHeap::new();
        for (at, part) in parts.iter_mut().enumerate() {
            let since = part.reader.clock_start().saturating_sub(first.unwrap_or(0));
            // Files that follow each other need no common clock.
            if join != Join::Sequence {
                part.shift = Nanos(u64::try_from(since).unwrap_or(u64::MAX / 2));
            }
            if let Some(record) = part.next {
                heads.push(Reverse((part.shift + record.at, at)));
            }
        }
        Ok(Joined {
            join,
            parts,
            heads,
            current: 0,
            now: Nanos::ZERO,
            names: Vec::new(),
            numbers: FxHashMap::default(),
        })
    }

    /// Returns the next record; `None` at the end of all files.
    pub(super) fn next(&mut self) -> Result<Option<Record>, TraceError> {
        let at = match self.join {
            Join::Sequence => {
                while self.parts.get(self.current).is_some_and(|part| part.next.is_none()) {
                    self.current += 1;
                    if let Some(part) = self.parts.get_mut(self.current) {
                        part.shift = self.now;
                    }
                }
                self.current
            }
            Join::Time | Join::Volumes => match self.heads.pop() {
                Some(Reverse((_, at))) => at,
                None => return Ok(None),
            },
        };
        let Some(part) = self.parts.get_mut(at) else { return Ok(None) };
        let Some(record) = part.next else { return Ok(None) };
        let time = Nanos(part.shift.0.saturating_add(record.at.0));
        part.read()?;
        if let (Some(next), Join::Time | Join::Volumes) = (part.next, self.join) {
            self.heads.push(Reverse((Nanos(part.shift.0.saturating_add(next.at.0)), at)));
        }
        self.now = time;
        let volume = self.volume(at, record.volume)?;
        Ok(Some(Record { at: time, volume, ..record }))
    }

    /// Returns the number in the whole trace of a volume of a part.
    #[inline]
    fn volume(&mut self, at: usize, volume: u32) -> Result<u32, TraceError> {
        if volume == 0 && self.join != Join::Volumes {
            return Ok(0);
        }
        match self.parts[at].volumes.get(volume as usize) {
            Some(Some(number)) => Ok(*number),
            _ => self.new_volume(at, volume),
        }
    }

    #[cold]
    fn new_volume(&mut self, at: usize, volume: u32) -> Result<u32, TraceError> {
        let part = &mut self.parts[at];
        let own = (volume as usize).checked_sub(1).map(|before| Arc::clone(&part.reader.volumes()[before]));
        let name: Arc<[u8]> = match (self.join, own) {
            (Join::Volumes, None) => part.name.as_bytes().into(),
            (Join::Volumes, Some(own)) => [part.name.as_bytes(), b"/", &own].concat().into(),
            (Join::Time | Join::Sequence, own) => own.unwrap_or_else(|| Arc::from(&b""[..])),
        };
        let known = self.numbers.len() as u32;
        let number = *self.numbers.entry(Arc::clone(&name)).or_insert(known + 1);
        if number > known {
            self.names.push(name);
        }
        let index = volume as usize;
        if part.volumes.len() <= index {
            part.volumes.resize(index + 1, None);
        }
        part.volumes[index] = Some(number);
        Ok(number)
    }

    /// The names of the volumes so far.
    pub(super) fn names(&self) -> &[Arc<[u8]>] {
        &self.names
    }

    /// Returns the lines of all files that were skipped so far, by reason.
    pub(super) fn skipped(&self) -> Vec<Skipped> {
        let mut all = Vec::new();
        for skipped in self.parts.iter().flat_map(|part| part.reader.skipped()) {
            Skipped::count(&mut all, skipped.reason, skipped.count);
        }
        all
    }

    /// Returns the number of times so far that went back within their file.
    pub(super) fn clamped(&self) -> u64 {
        self.parts.iter().map(|part| part.reader.clamped()).sum()
    }

    /// Returns what the readers decided so far.
    pub(super) fn decided(&self) -> String {
        let mut all: Vec<String> = Vec::new();
        for decided in self.parts.iter().map(|part| part.reader.decided()) {
            if !decided.is_empty() && !all.contains(&decided) {
                all.push(decided);
            }
        }
        all.join("; ")
    }
}
