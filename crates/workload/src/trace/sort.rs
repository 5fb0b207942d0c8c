//! Sorts the records of a trace by time, in bounded memory. Records of the same time keep their order.
//!
//! Sorted runs of records that do not fit in memory are written to a scratch file and merged. This crate opens
//! no files, so the caller provides the scratch file; without one, all records are kept in memory.

use super::record::Record;
use crate::Op;
use fulgurite_base::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// A file for data that is needed only while a trace is read.
pub trait Scratch: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Scratch for T {}

/// Creates an empty scratch file.
pub type OpenScratch = fn() -> io::Result<Box<dyn Scratch>>;

/// The number of records that are sorted in memory at once, in 32 MiB.
const RUN_RECORDS: usize = 1 << 20;
/// The size of a record in the scratch file.
const BYTES: usize = 32;

/// Collects records and sorts them.
pub(super) struct Sorter {
    /// The records of the run that is being collected.
    records: Vec<Record>,
    run_records: usize,
    open: Option<OpenScratch>,
    scratch: Option<Box<dyn Scratch>>,
    /// The number of records of each run in the scratch file.
    runs: Vec<u64>,
}

impl Sorter {
    pub(super) fn new(open: Option<OpenScratch>) -> Sorter {
        Sorter { records: Vec::new(), run_records: RUN_RECORDS, open, scratch: None, runs: Vec::new() }
    }

    pub(super) fn push(&mut self, record: Record) -> io::Result<()> {
        if self.records.len() == self.run_records
            && let Some(open) = self.open
        {
            if self.scratch.is_none() {
                self.scratch = Some(open()?);
            }
            self.spill()?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Writes the collected records to the scratch file as a sorted run.
    fn spill(&mut self) -> io::Result<()> {
        let Some(scratch) = &mut self.scratch else { return Ok(()) };
        self.records.sort_by_key(|record| record.at);
        let mut bytes = Vec::new();
        for some in self.records.chunks(1 << 12) {
            bytes.clear();
            some.iter().for_each(|record| encode(record, &mut bytes));
            scratch.write_all(&bytes)?;
        }
        self.runs.push(self.records.len() as u64);
        self.records.clear();
        Ok(())
    }

    /// Ends the collection. Returns the records in the order of their times.
    pub(super) fn finish(mut self) -> io::Result<Sorted> {
        self.records.sort_by_key(|record| record.at);
        // The buffers of all runs together are about as large as a run.
        let buffered = (self.run_records / (self.runs.len() + 1)).clamp(16, 1 << 12);
        let mut next = 0;
        let mut runs: Vec<Run> = Vec::new();
        for records in self.runs {
            let first = next;
            next += records * BYTES as u64;
            runs.push(Run { at: 0, records: Vec::new(), next: first, end: next });
        }
        // The last run was not written.
        runs.push(Run { at: 0, records: self.records, next, end: next });
        let mut sorted = Sorted { scratch: self.scratch, runs, heads: BinaryHeap::new(), buffered };
        for run in 0..sorted.runs.len() {
            sorted.offer(run)?;
        }
        Ok(sorted)
    }
}

/// Sorted records.
pub(super) struct Sorted {
    scratch: Option<Box<dyn Scratch>>,
    runs: Vec<Run>,
    /// The time of the next record of each run. Runs are in the order of the trace, so for equal times the
    /// number of the run keeps this order.
    heads: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// The number of records of a run that are read at once.
    buffered: usize,
}

/// A sorted run of records.
struct Run {
    /// The records that were read. Those from index `at` on are next.
    records: Vec<Record>,
    at: usize,
    /// The position of the first record in the scratch file that was not read, and the end of the run.
    next: u64,
    end: u64,
}

impl Sorted {
    /// Returns the next record; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Record>> {
        let Some(Reverse((_, run))) = self.heads.pop() else { return Ok(None) };
        let from = &mut self.runs[run];
        let record = from.records[from.at];
        from.at += 1;
        self.offer(run)?;
        Ok(Some(record))
    }

    /// Adds the next record of a run to the heads, if there is one.
    fn offer(&mut self, number: usize) -> io::Result<()> {
        let run = &mut self.runs[number];
        if run.at == run.records.len()
            && run.next < run.end
            && let Some(scratch) = &mut self.scratch
        {
            let bytes = (run.end - run.next).min((self.buffered * BYTES) as u64);
            let mut read = vec![0; bytes as usize];
            scratch.seek(SeekFrom::Start(run.next))?;
            scratch.read_exact(&mut read)?;
            run.next += bytes;
            run.at = 0;
            run.records.clear();
            run.records.extend(read.chunks_exact(BYTES).map(decode));
        }
        if let Some(record) = run.records.get(run.at) {
            self.heads.push(Reverse((record.at, number)));
        }
        Ok(())
    }
}

fn encode(record: &Record, out: &mut Vec<u8>) {
    for word in [record.at.0, record.start, record.length, u64::from(record.volume) << 8 | record.op as u64] {
        out.extend(word.to_le_bytes());
    }
}

fn decode(bytes: &[u8]) -> Record {
    let word = |at: usize| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight bytes"));
    let op = match word(3) & 0xff {
        0 => Op::Read,
        1 => Op::Write,
        _ => Op::Trim,
    };
    // The word has a volume of 32 bits above the operation.
    Record { at: Nanos(word(0)), op, volume: (word(3) >> 8) as u32, start: word(1), length: word(2) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Cursor;

    proptest! {
        /// The rule: records come in the order of time, and in that of the trace for equal times, however many
        /// runs the scratch file has.
        #[test]
        fn merged_runs_equal_a_stable_sort(
            times in prop::collection::vec(0u64..20, 0..300), run_records in 1usize..50
        ) {
            let ops = [Op::Read, Op::Write, Op::Trim];
            let record = |(number, at): (u64, &u64)| Record {
                at: Nanos(*at), op: ops[number as usize % 3], volume: !(number as u32), start: number, length: !number,
            };
            let records: Vec<Record> = (0..).zip(&times).map(record).collect();
            let mut expected = records.clone();
            expected.sort_by_key(|record| record.at);
            for open in [None, Some((|| Ok(Box::new(Cursor::new(Vec::new())) as Box<dyn Scratch>)) as OpenScratch)] {
                let mut sorter = Sorter { run_records, ..Sorter::new(open) };
                for record in &records {
                    sorter.push(*record).unwrap();
                }
                prop_assert_eq!(sorter.runs.is_empty(), open.is_none() || records.len() <= run_records);
                let mut sorted = sorter.finish().unwrap();
                let mut found = Vec::new();
                while let Some(record) = sorted.next().unwrap() {
                    found.push(record);
                }
                prop_assert_eq!(&found, &expected);
            }
        }
    }
}
