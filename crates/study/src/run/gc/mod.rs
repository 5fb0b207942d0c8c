//! A workload's writes against a flash translation layer, counted without time.
//!
//! The logical space is first filled in order, then the workload writes and trims; its reads are
//! left out. `waf` is over the whole run, the fill included; `waf_steady` over the last half of
//! the user writes. Where the traffic is uniform the closed form stands beside it.
//!
//! A run gives one row, or one for every stretch of it (`series`), or one for every group of segments
//! (`census`).

mod census;
mod explain;
mod series;

use super::{Progress, run_id, set_cost};
use crate::error::StudyError;
use crate::table::Row;
use crate::workload::{BoundWorkload, Source};
use census::Census;
use explain::{explanation, valid_share_error};
use fulgurite_base::StreamId;
use fulgurite_ftl::placement::{PlacementConfig, PlacementPolicy};
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, CountingSink, FlashSink, Ftl, FtlConfig, analytic, check};
use fulgurite_workload::{Op, Request};
use series::Series;
use std::time::Instant;

/// What the rows of a run are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// One, of the whole run.
    Run,
    /// The same, with what placement did to its groups and why.
    Explained,
    /// One for every stretch of so many page writes.
    Intervals(u64),
    /// One for every group of segments.
    Groups,
}

/// A counting run, checked.
pub struct GcRun {
    /// What tables call the workload.
    pub workload_name: String,
    /// The requests.
    pub workload: BoundWorkload,
    /// Whether the closed forms apply to it.
    pub uniform: bool,
    /// What the rows are about.
    pub rows: Rows,
    /// The placement policy as typed.
    pub placement_name: String,
    /// The victim policy as typed.
    pub victim_name: String,
    /// Shape and policies of the translation layer.
    pub ftl: FtlConfig,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Page writes and trims after the fill.
    pub ops: u64,
    /// Of all randomness.
    pub seed: u64,
}

/// Requests that are performed together.
const SLICE: usize = 256;

/// How many requests ahead memory is fetched.
const AHEAD: usize = 16;

/// What has been counted up to a point of the run.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    host: u64,
    flash: CountingSink,
}

impl Counts {
    /// What came after `earlier`.
    fn since(&self, earlier: &Counts) -> Counts {
        let (now, then) = (&self.flash, &earlier.flash);
        Counts {
            host: self.host - earlier.host,
            flash: CountingSink {
                reads: now.reads - then.reads,
                programs: now.programs - then.programs,
                erases: now.erases - then.erases,
            },
        }
    }

    fn waf(&self) -> f64 {
        self.flash.programs as f64 / self.host as f64
    }
}

/// Performs writes and trims of single pages.
fn perform(ftl: &mut Ftl, requests: &[Request], sink: &mut impl FlashSink) {
    for (at, request) in requests.iter().enumerate() {
        if let Some(ahead) = requests.get(at + AHEAD) {
            ftl.prefetch(ahead.page as u32);
        }
        match request.op {
            Op::Trim => ftl.trim(request.page as u32),
            _ => ftl.write(request.page as u32, 1, StreamId(request.stream), sink),
        }
    }
}

impl GcRun {
    /// Executes the run.
    pub fn execute(&self, progress: &Progress) -> Result<Vec<Row>, StudyError> {
        let mut ftl = Ftl::new(self.ftl.clone())?;
        let mut census = None;
        if self.ftl.collect.placement.needs_future() || self.rows == Rows::Groups {
            let future = self.future()?;
            if self.rows == Rows::Groups {
                census = Some(Census::new(&self.ftl, future.clone()));
            }
            if self.ftl.collect.placement.needs_future() {
                ftl.foresee(future);
            }
        }
        let mut sink = CountingSink::default();
        let start = Instant::now();
        for lpn in 0..self.ftl.logical_pages {
            ftl.write(lpn, 1, StreamId(0), &mut sink);
        }
        let counts =
            |ftl: &Ftl, sink: &CountingSink| Counts { host: ftl.counters().host_pages, flash: *sink };
        let half = (u64::from(self.ftl.logical_pages) + self.writes()?) / 2;
        let mut at_half = counts(&ftl, &sink);
        let mut series = match self.rows {
            Rows::Intervals(length) => Some(Series::new(self.identity(), length, at_half)),
            _ => None,
        };
        let mut source = self.source()?;
        let mut slice: Vec<Request> = Vec::with_capacity(SLICE);
        let mut done = 0;
        while done < self.ops {
            slice.clear();
            source.append(&mut slice, (self.ops - done).min(SLICE as u64) as usize);
            if slice.is_empty() {
                break;
            }
            slice.retain(|request| request.op != Op::Read);
            done += slice.len() as u64;
            // The next point at which something is noted down: where it lies in this slice, that is gone
            // through step by step.
            let before = ftl.counters().host_pages;
            let marks = [(before < half).then_some(half), series.as_ref().map(Series::next)];
            let has_mark = marks.iter().flatten().any(|mark| *mark <= before + slice.len() as u64);
            match &mut census {
                None if !has_mark => perform(&mut ftl, &slice, &mut sink),
                _ => {
                    for request in &slice {
                        let step = std::slice::from_ref(request);
                        match &mut census {
                            Some(census) => census.observe(&mut ftl, request, &mut sink),
                            None => perform(&mut ftl, step, &mut sink),
                        }
                        if ftl.counters().host_pages == half && before < half {
                            at_half = counts(&ftl, &sink);
                            if let Some(census) = &mut census {
                                census.begin(&ftl);
                            }
                        }
                        if let Some(series) = &mut series {
                            series.look(&ftl, counts(&ftl, &sink));
                        }
                    }
                }
            }
            progress.add(slice.len() as u64);
        }
        self.check(&ftl, &sink, done)?;
        if let Some(series) = series {
            return Ok(series.rows(&ftl, counts(&ftl, &sink)));
        }
        if let Some(census) = census {
            return Ok(census.rows(&self.identity(), &ftl));
        }
        let mut row = self.row(&ftl, counts(&ftl, &sink), at_half);
        if self.rows == Rows::Explained {
            row.set("explanation", explanation(&ftl));
        }
        set_cost(&mut row, start, ftl.counters().host_pages);
        Ok(vec![row])
    }

    fn source(&self) -> Result<Source, StudyError> {
        self.workload.source(u64::from(self.ftl.logical_pages), self.page_bytes, self.seed)
    }

    /// The page writes and trims of the workload.
    fn changes(&self) -> Result<impl Iterator<Item = Request> + use<>, StudyError> {
        Ok(self.source()?.filter(|request| request.op != Op::Read))
    }

    /// The page writes among its operations; the others are trims.
    fn writes(&self) -> Result<u64, StudyError> {
        match &self.workload {
            BoundWorkload::Generator(_) => Ok(self.ops),
            BoundWorkload::Changes(changes) if self.ops == changes.len() => Ok(changes.writes()),
            _ => {
                let changes = self.changes()?.take(self.ops as usize);
                Ok(changes.filter(|request| request.op == Op::Write).count() as u64)
            }
        }
    }

    /// For each page write, the fill first, when its page is written again or trimmed, in page writes.
    fn future(&self) -> Result<Vec<u32>, StudyError> {
        let fill = u64::from(self.ftl.logical_pages);
        if fill + self.ops >= u64::from(u32::MAX) {
            return Err(StudyError::request(format!(
                "--placement {}: {} page writes are too many to look ahead; accepted: --ops below {}",
                self.placement_name,
                fill + self.ops,
                u64::from(u32::MAX) - fill
            )));
        }
        // At first the page of each write; trims stand between writes.
        let mut next: Vec<u32> = (0..self.ftl.logical_pages).collect();
        let mut trims: Vec<(u32, u32)> = Vec::new();
        for request in self.changes()?.take(self.ops as usize) {
            match request.op {
                Op::Trim => trims.push((next.len() as u32, request.page as u32)),
                _ => next.push(request.page as u32),
            }
        }
        let mut ends: Vec<u32> = vec![u32::MAX; self.ftl.logical_pages as usize];
        for time in (0..next.len()).rev() {
            while let Some((at, page)) = trims.pop_if(|(at, _)| *at as usize > time) {
                ends[page as usize] = at;
            }
            next[time] = std::mem::replace(&mut ends[next[time] as usize], time as u32);
        }
        Ok(next)
    }

    fn check(&self, ftl: &Ftl, sink: &CountingSink, done: u64) -> Result<(), StudyError> {
        if done != self.ops {
            return Err(StudyError::run(format!("{} of {} requests were performed", done, self.ops)));
        }
        let emitted = ftl.counters().host_pages + ftl.counters().copied_pages;
        if sink.programs != emitted || sink.reads != ftl.counters().copied_pages {
            return Err(StudyError::run(format!(
                "conservation is broken: {emitted} page programs were due, {} happened",
                sink.programs
            )));
        }
        check::check(ftl).map_err(StudyError::run)
    }

    /// What sets the run apart.
    fn identity(&self) -> Row {
        let FtlConfig { logical_pages, segments, segment_pages, .. } = self.ftl;
        let Collect { placement, victim, schedule, reserve, .. } = &self.ftl.collect;
        let mut row = Row::default();
        row.set(
            "run_id",
            run_id(&format!(
                "gc workload={} logical_pages={logical_pages} segments={segments} segment_pages={segment_pages} reserve={reserve} victim={} placement={} ops={} seed={}",
                self.workload.canonical(&self.workload_name), victim, placement, self.ops, self.seed
            )),
        );
        row.set("workload", self.workload_name.as_str());
        row.set("placement", self.placement_name.as_str());
        row.set("victim", self.victim_name.as_str());
        row.set("schedule", schedule.to_string());
        row.set("pages", logical_pages);
        row.set("page_bytes", self.page_bytes);
        row.set("segments", segments);
        row.set("segment_pages", segment_pages);
        row.set("gc_reserve", *reserve);
        row.set("seed", self.seed);
        row.set("ops", self.ops);
        row
    }

    fn row(&self, ftl: &Ftl, counts: Counts, at_half: Counts) -> Row {
        let mut row = self.identity();
        let segment_pages = self.ftl.segment_pages;
        let Collect { placement, victim, .. } = &self.ftl.collect;
        row.set("host_pages_written", counts.host);
        row.set("flash_pages_read", counts.flash.reads);
        row.set("flash_pages_programmed", counts.flash.programs);
        row.set("gc_pages_copied", ftl.counters().copied_pages);
        row.set("erases", counts.flash.erases);
        row.set("waf", counts.waf());
        let steady = counts.since(&at_half);
        if steady.host > 0 {
            row.set("waf_steady", steady.waf());
        }
        row.set("mapping_bytes", ftl.mapping().bytes() as u64);
        row.set("placement_bytes", ftl.placer().bytes() as u64);
        row.set_some("valid_share_error", valid_share_error(ftl));
        let rho = self.ftl.spare_effective();
        row.set("spare_effective", rho);
        if self.uniform && *placement == PlacementConfig::NONE {
            let closed_form = match victim {
                VictimConfig::Fifo(_) => Some(analytic::waf_fifo(rho)),
                VictimConfig::Greedy(_) => analytic::waf_greedy(rho, segment_pages),
                VictimConfig::Random(_) => Some(analytic::waf_random(rho)),
                _ => None,
            };
            row.set_some("waf_closed_form", closed_form);
        }
        row
    }
}
