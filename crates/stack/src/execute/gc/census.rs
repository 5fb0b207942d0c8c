//! Takes a census of the pages in each group of segments. It counts the size of the group, the pages written
//! to it, the share of valid pages at collection, and the lifetimes of the pages written to it.
//!
//! The lifetime of a page is the time from its write into the group, by the host or a copy, until the page is
//! overwritten or trimmed. The classes of lifetimes are C1 to C6 of table 1 of MiDAS (Oh et al., FAST 2024).
//! Their bounds are 250 K, 5 M, 14 M, 28 M and 62 M page writes on 128 GiB, taken as shares of the logical
//! pages. A first pass over the workload finds the lifetimes. The census covers the last half of the user
//! writes.

use super::observer::{Counts, Observer};
use crate::{Column, Row};
use fulgurite_base::Ppn;
use fulgurite_base::StreamId;
use fulgurite_ftl::placement::midas::Midas;
use fulgurite_ftl::placement::oracle;
use fulgurite_ftl::{CountingSink, FlashSink, Ftl, FtlConfig, GroupCounters, SegmentId};
use fulgurite_workload::{Op, Request};

const CLASSES: [Column; 6] =
    [Column::ShareC1, Column::ShareC2, Column::ShareC3, Column::ShareC4, Column::ShareC5, Column::ShareC6];

/// The number of samples of group sizes in as many page writes as the logical space has pages.
const LOOKS: u64 = 64;

/// The counts of one group of segments.
#[derive(Clone, Copy, Default)]
struct Group {
    by_class: [u64; CLASSES.len()],
    copied: u64,
    /// The sum of the group's segments over all samples of group sizes.
    segments: u64,
}

/// The census of one run.
pub(super) struct Census {
    /// For each page write, the number of the page write that ends the lifetime of its page.
    future: Vec<u32>,
    dies_at: Vec<u32>,
    bounds: Vec<u64>,
    segment_pages: u32,
    look_every: u64,
    looks: u64,
    groups: Vec<Group>,
    /// The number of the page write at which the census begins, which is half of the run.
    begins_at: u64,
    /// The collection counts of each group at the beginning of the census; `None` before it begins.
    before: Option<Vec<GroupCounters>>,
    programmed: Vec<(Ppn, bool)>,
}

/// A sink of flash operations that counts them, and records each programmed page and whether it is a copy.
struct Recorder<'a> {
    counting: &'a mut CountingSink,
    programmed: &'a mut Vec<(Ppn, bool)>,
}

impl FlashSink for Recorder<'_> {
    fn read(&mut self, ppn: Ppn) {
        self.counting.read(ppn);
    }

    fn program(&mut self, ppn: Ppn, source: Option<Ppn>) {
        self.counting.program(ppn, source);
        self.programmed.push((ppn, source.is_some()));
    }

    fn erase(&mut self, segment: SegmentId) {
        self.counting.erase(segment);
    }
}

impl Observer for Census {
    fn next(&self) -> Option<u64> {
        self.before.is_none().then_some(self.begins_at)
    }

    fn look(&mut self, ftl: &Ftl, _: Counts) {
        self.before = Some(ftl.segments().group_counters().to_vec());
    }
}

impl Census {
    /// Creates the census of a run. `future` has the end of each page's lifetime, beginning with the writes
    /// of the fill.
    pub(super) fn new(config: &FtlConfig, future: Vec<u32>, begins_at: u64) -> Census {
        let pages = config.logical_pages;
        Census {
            dies_at: future[..pages as usize].to_vec(),
            future,
            bounds: oracle::Classes::Seed.bounds(pages),
            segment_pages: config.segment_pages,
            look_every: (u64::from(pages) / LOOKS).max(1),
            looks: 0,
            groups: vec![Group::default(); usize::from(config.collect.placement.streams())],
            begins_at,
            before: None,
            programmed: Vec::new(),
        }
    }

    /// Performs writes and trims, and records which group each page is written to.
    pub(super) fn perform(&mut self, ftl: &mut Ftl, requests: &[Request], sink: &mut CountingSink) {
        requests.iter().for_each(|request| self.observe(ftl, request, sink));
    }

    /// Performs a write or trim, and records which group the pages are written to.
    fn observe(&mut self, ftl: &mut Ftl, request: &Request, sink: &mut CountingSink) {
        let lpn = request.page as u32;
        if request.op == Op::Trim {
            return ftl.trim(lpn);
        }
        // Before the write, this count of page writes is the index of the write in `future`.
        let now = ftl.counters().host_pages;
        self.dies_at[lpn as usize] = self.future[now as usize];
        let mut recorder = Recorder { counting: sink, programmed: &mut self.programmed };
        ftl.write(lpn, 1, StreamId(request.stream), &mut recorder);
        if self.before.is_some() {
            for (ppn, copied) in &self.programmed {
                let left = u64::from(self.dies_at[ftl.mapping().owner(*ppn) as usize]).saturating_sub(now);
                let class = self.bounds.iter().take_while(|bound| left >= **bound).count();
                let stream = ftl.segments().stream(SegmentId(ppn.0 / self.segment_pages));
                let group = &mut self.groups[usize::from(stream.0)];
                group.by_class[class] += 1;
                group.copied += u64::from(*copied);
            }
            if now.is_multiple_of(self.look_every) {
                self.looks += 1;
                for (stream, group) in self.groups.iter_mut().enumerate() {
                    group.segments += u64::from(ftl.segments().in_stream(StreamId(stream as u16)));
                }
            }
        }
        // Clear the list even before the census begins, or the list would grow until then.
        self.programmed.clear();
    }

    /// Returns a result row for each group that received writes.
    pub(super) fn rows(&self, identity: &Row, ftl: &Ftl) -> Vec<Row> {
        let mut rows = Vec::new();
        let Some(before) = &self.before else { return rows };
        let pages = f64::from(self.segment_pages);
        let collected = ftl.segments().group_counters();
        for (stream, (group, (before, now))) in
            self.groups.iter().zip(before.iter().zip(collected)).enumerate()
        {
            let written: u64 = group.by_class.iter().sum();
            if written == 0 {
                continue;
            }
            let mut row = identity.clone();
            let name = match (ftl.placer().policy::<Midas>().is_some(), stream) {
                (true, 0) => "HOT".to_owned(),
                (true, stream) => format!("G{stream}"),
                (false, stream) => (stream + 1).to_string(),
            };
            row.set(Column::Group, name);
            row.set(Column::GroupSegments, group.segments as f64 / self.looks.max(1) as f64);
            row.set(Column::HostPagesWritten, written - group.copied);
            row.set(Column::GcPagesCopied, group.copied);
            let segments = now.collected - before.collected;
            row.set(Column::SegmentsCollected, segments);
            if segments > 0 {
                row.set(Column::ValidShare, (now.valid - before.valid) as f64 / (segments as f64 * pages));
            }
            for (class, count) in CLASSES.iter().zip(group.by_class) {
                row.set(*class, count as f64 / written as f64);
            }
            rows.push(row);
        }
        rows
    }
}
