//! Executes a run of `gc`: a workload's writes to a flash translation layer, counted without time.
//!
//! The logical space is first filled in order. Then the workload writes and trims; its reads are skipped. The
//! column `waf` covers the whole run with the fill, `waf_steady` the last half of the user writes. For
//! uniform traffic the row also has the write amplification in closed form.
//!
//! A run gives one row, one per interval ([`series`]), or one per group of segments ([`census`]). A series
//! and a census are [`Observer`]s: each chooses the page writes after which it inspects the run.

mod explain;
mod observer;
mod census;
mod series;

use super::columns::{set_cost, thread_cpu};
use crate::device::TranslationConfig;
use crate::progress::{self, step};
use crate::run::{Requested, Rows};
use crate::{Column, Progress, Row, Run, StackError, Value};
use census::Census;
use explain::{explanation, valid_share_error};
use fulgurite_base::{StreamId, units};
use fulgurite_ftl::placement::{PlacementConfig, PlacementPolicy};
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_ftl::{Collect, CountingSink, FlashSink, Ftl, FtlConfig, analytic, check};
use fulgurite_workload::{Op, Request};
use observer::{Counts, Observer};
use series::Series;
use std::time::Instant;

/// A run of `gc`, with its workload and translation layer taken from `run`.
#[derive(Clone, Copy)]
pub(super) struct GcRun<'a> {
    pub run: &'a Run,
    pub requested: &'a Requested,
    pub translation: &'a TranslationConfig,
}

/// The number of requests that are performed together.
const SLICE: usize = 256;

/// The number of filled pages per report of progress.
const FILL_STEP: u32 = 1 << 14;

/// The distance, in requests, to the request whose map entries are prefetched into the CPU cache, and to the one
/// whose valid bit is prefetched by its map entry.
const AHEAD: usize = 16;
const SOON: usize = 8;

/// Performs writes, shares and trims of single pages.
fn perform(ftl: &mut Ftl, requests: &[Request], sink: &mut impl FlashSink) {
    for (at, request) in requests.iter().enumerate() {
        if let Some(ahead) = requests.get(at + AHEAD) {
            ftl.prefetch(ahead.page as u32);
        }
        if let Some(soon) = requests.get(at + SOON) {
            ftl.prefetch_valid(soon.page as u32);
        }
        match (request.op, request.copy_of) {
            (Op::Trim, _) => ftl.trim(request.page as u32),
            (_, Some(source)) => ftl.share(request.page as u32, source.number() as u32),
            _ => ftl.write(request.page as u32, 1, StreamId(request.stream), sink),
        }
    }
}

/// Records the counts at one page write, such as half of the run.
struct Mark {
    at: u64,
    counts: Option<Counts>,
}

impl Observer for Mark {
    fn next(&self) -> Option<u64> {
        self.counts.is_none().then_some(self.at)
    }

    fn look(&mut self, _: &Ftl, now: Counts) {
        self.counts = Some(now);
    }
}

/// The observers of a run. Those that the run does not use are `None`.
struct Observers {
    half: Mark,
    census: Option<Census>,
    series: Option<Series>,
}

impl Observers {
    fn all(&mut self) -> impl Iterator<Item = &mut dyn Observer> {
        let half: &mut dyn Observer = &mut self.half;
        let census = self.census.as_mut().map(|census| census as &mut dyn Observer);
        let series = self.series.as_mut().map(|series| series as &mut dyn Observer);
        std::iter::once(half).chain(census).chain(series)
    }

    /// Returns the number of the next page write at which an observer inspects the run.
    fn next(&mut self) -> Option<u64> {
        self.all().filter_map(|observer| observer.next()).min()
    }

    /// Calls the observers whose page write has happened.
    fn look(&mut self, ftl: &Ftl, now: Counts) {
        for observer in self.all().filter(|observer| observer.next().is_some_and(|at| at <= now.host)) {
            observer.look(ftl, now);
        }
    }
}

/// The translation layer of a run, its counts, and the observers.
struct Counted<'a> {
    ftl: Ftl,
    sink: CountingSink,
    observers: Observers,
    progress: &'a Progress,
}

impl Counted<'_> {
    fn counts(&self) -> Counts {
        Counts { host: self.ftl.counters().host_pages, flash: self.sink }
    }

    /// Calls the observers whose page write has happened.
    fn look(&mut self) {
        let counts = self.counts();
        self.observers.look(&self.ftl, counts);
    }

    /// Performs writes and trims, and stops at the page writes at which observers inspect the run.
    fn perform(&mut self, mut requests: &[Request]) {
        while !requests.is_empty() {
            // Each request writes at most one page, so no observer is due before this many requests. All
            // observers that were due have been called, so the difference is positive.
            let before_next = self.observers.next().map_or(u64::MAX, |at| at - self.counts().host);
            let (now, rest) = requests.split_at(before_next.min(requests.len() as u64) as usize);
            match &mut self.observers.census {
                Some(census) => census.perform(&mut self.ftl, now, &mut self.sink),
                None => perform(&mut self.ftl, now, &mut self.sink),
            }
            requests = rest;
            self.look();
        }
    }
}

impl GcRun<'_> {
    /// Executes the run and returns its result rows.
    pub(super) fn execute(&self, progress: &Progress) -> Result<Vec<Row>, StackError> {
        let bound = self.run.bind()?;
        let config = &self.translation.ftl;
        let writes = bound.writes_within(self.requested.ops, self.run.seed)?;
        let making = step("making the map of the pages", 0);
        let (mut ftl, mut census) = (Ftl::new(config.clone())?, None);
        drop(making);
        // Half of the run includes the fill, since the fill counts as user writes.
        let half = (u64::from(config.logical_pages) + writes) / 2;
        if config.collect.placement.needs_future() || self.run.measure.rows == Rows::Groups {
            let _step = step("looking ahead", 0);
            let future = self.future(bound.changes(self.run.seed)?);
            if self.run.measure.rows == Rows::Groups {
                census = Some(Census::new(config, future.clone(), half));
            }
            if config.collect.placement.needs_future() {
                // A policy that looks ahead must know the future writes before the fill, since the list
                // begins with the writes of the fill.
                ftl.foresee(future);
            }
        }
        let (start, cpu_before) = (Instant::now(), thread_cpu());
        let filling = step("filling the logical space", u64::from(config.logical_pages));
        let mut sink = CountingSink::default();
        for lpn in 0..config.logical_pages {
            ftl.write(lpn, 1, StreamId(0), &mut sink);
            if lpn.is_multiple_of(FILL_STEP) {
                filling.add(FILL_STEP.into());
            }
        }
        drop(filling);
        let observers = Observers { half: Mark { at: half, counts: None }, census, series: None };
        let mut counted = Counted { ftl, sink, observers, progress };
        if let Rows::PageIntervals(length) = self.run.measure.rows {
            counted.observers.series = Some(Series::new(self.identity()?, length, counted.counts()));
        }
        // Call the observers here, because the fill may already be half of the run.
        counted.look();
        let requests = bound.requests(self.run.seed)?;
        let altered = requests.altered();
        self.perform_all(&mut counted, requests)?;
        let cpu = thread_cpu().zip(cpu_before).map(|(now, before)| (now.0 - before.0) as f64);
        self.check(&counted.ftl, &counted.sink)?;
        let counts = counted.counts();
        let Counted { ftl, observers: Observers { half, census, series }, .. } = counted;
        if let Some(series) = series {
            return Ok(series.rows(&ftl, counts));
        }
        if let Some(census) = census {
            return Ok(census.rows(&self.identity()?, &ftl));
        }
        if let Some(least) = bound.least_space().filter(|_| writes < config.logical_pages.into()) {
            progress::remark(self.too_short(writes, least));
        }
        let mut row = self.row(&ftl, counts, half.counts)?;
        if let Some(altered) = altered {
            altered.set(&mut row, &self.requested.workload.label, false);
        }
        if self.run.measure.rows == Rows::Explained {
            row.set(Column::Explanation, explanation(&ftl));
        }
        row.set_some(Column::CpuNsPerOp, cpu.map(|cpu| cpu / ftl.counters().host_pages as f64));
        set_cost(&mut row, start, bound.read_for, ftl.counters().host_pages);
        Ok(vec![row])
    }

    /// Returns a remark on a trace that writes less than the logical space once, so that little is collected.
    /// The remark suggests smaller sizes if the trace fits into `least` pages.
    fn too_short(&self, writes: u64, least: u64) -> String {
        let FtlConfig { logical_pages, segments, segment_pages, .. } = self.translation.ftl;
        let mut said = format!(
            "{} writes {} pages after the fill, {:.0} % of the logical space, so little is collected and waf says \
                little",
            self.requested.workload.label,
            Value::Integer(writes).readable(),
            100.0 * writes as f64 / f64::from(logical_pages)
        );
        let page_bytes = u64::from(self.translation.page_bytes);
        let logical = (least * page_bytes).next_multiple_of(1 << 20);
        if logical < u64::from(logical_pages) * page_bytes {
            // The suggested physical size keeps the over-provisioning, in whole MiB and whole segments.
            let segment = u64::from(segment_pages) * page_bytes;
            let spare = f64::from(segments) * f64::from(segment_pages) / f64::from(logical_pages);
            let physical = ((logical as f64 * spare).ceil() as u64).next_multiple_of(segment.max(1 << 20));
            let [logical, physical] = [logical, physical].map(units::format_size);
            said += &format!("; it fits into --logical {logical} --physical {physical}");
        }
        said
    }

    fn perform_all(
        &self,
        counted: &mut Counted,
        mut requests: crate::workload::Requests,
    ) -> Result<(), StackError> {
        let ops = self.requested.ops;
        let mut slice: Vec<Request> = Vec::with_capacity(SLICE);
        let mut done = 0;
        while done < ops {
            slice.clear();
            // Take at most as many requests as remain, so that `done` never exceeds `ops`.
            requests.append_pages(&mut slice, (ops - done).min(SLICE as u64) as usize);
            if slice.is_empty() {
                let why = requests.failure().map_or_else(String::new, |failure| format!(": {failure}"));
                return Err(StackError::run(format!("{done} of {ops} requests were performed{why}")));
            }
            // Reads do not change the translation layer, so they do not count as operations either.
            slice.retain(|request| request.op != Op::Read);
            done += slice.len() as u64;
            counted.perform(&slice);
            counted.progress.add(slice.len() as u64);
        }
        Ok(())
    }

    /// Returns, for each page write beginning with the fill, the number of the page write at which its page
    /// is overwritten or trimmed.
    fn future(&self, changes: impl Iterator<Item = Request>) -> Vec<u32> {
        let logical_pages = self.translation.ftl.logical_pages;
        // At first this list holds the page of each write. Trims happen between writes and are listed apart.
        let mut next: Vec<u32> = (0..logical_pages).collect();
        let mut trims: Vec<(u32, u32)> = Vec::new();
        for request in changes.take(self.requested.ops as usize) {
            match request.op {
                Op::Trim => trims.push((next.len() as u32, request.page as u32)),
                _ => next.push(request.page as u32),
            }
        }
        let mut ends: Vec<u32> = vec![u32::MAX; logical_pages as usize];
        for time in (0..next.len()).rev() {
            // A trim is listed with the number of the write after it, so it ends the lifetimes of earlier
            // writes only.
            while let Some((at, page)) = trims.pop_if(|(at, _)| *at as usize > time) {
                ends[page as usize] = at;
            }
            next[time] = std::mem::replace(&mut ends[next[time] as usize], time as u32);
        }
        next
    }

    fn check(&self, ftl: &Ftl, sink: &CountingSink) -> Result<(), StackError> {
        let emitted = ftl.counters().host_pages + ftl.counters().copied_pages;
        if sink.programs != emitted || sink.reads != ftl.counters().copied_pages {
            return Err(StackError::run(format!(
                "conservation is broken: {emitted} page programs were due, {} happened",
                sink.programs
            )));
        }
        check::check(ftl).map_err(StackError::run)
    }

    /// Returns the columns that describe the run.
    fn identity(&self) -> Result<Row, StackError> {
        let FtlConfig { logical_pages, segments, segment_pages, .. } = self.translation.ftl;
        let Collect { schedule, reserve, .. } = &self.translation.ftl.collect;
        let [placement, victim] = &self.translation.labels;
        let mut row = self.run.identity()?;
        row.set(Column::Placement, placement.as_str());
        row.set(Column::Victim, victim.as_str());
        row.set(Column::Schedule, schedule.to_string());
        row.set(Column::Pages, logical_pages);
        row.set(Column::PageBytes, self.translation.page_bytes);
        row.set(Column::Segments, segments);
        row.set(Column::SegmentPages, segment_pages);
        row.set(Column::GcReserve, *reserve);
        row.set(Column::Seed, self.run.seed);
        row.set(Column::Ops, self.requested.ops);
        Ok(row)
    }

    fn row(&self, ftl: &Ftl, counts: Counts, at_half: Option<Counts>) -> Result<Row, StackError> {
        let mut row = self.identity()?;
        let segment_pages = self.translation.ftl.segment_pages;
        let Collect { placement, victim, .. } = &self.translation.ftl.collect;
        row.set(Column::HostPagesWritten, counts.host);
        row.set(Column::FlashPagesRead, counts.flash.reads);
        row.set(Column::FlashPagesProgrammed, counts.flash.programs);
        row.set(Column::GcPagesCopied, ftl.counters().copied_pages);
        row.set(Column::Erases, counts.flash.erases);
        row.set(Column::Waf, counts.waf());
        // The cell stays empty if there are no user writes after half of the run.
        let steady = at_half.map(|half| counts.since(&half)).filter(|steady| steady.host > 0);
        row.set_some(Column::WafSteady, steady.map(|steady| steady.waf()));
        row.set(Column::MappingBytes, ftl.mapping().bytes() as u64);
        row.set(Column::PlacementBytes, ftl.placer().bytes() as u64);
        row.set_some(Column::ValidShareError, valid_share_error(ftl));
        let rho = self.translation.ftl.spare_effective();
        row.set(Column::SpareEffective, rho);
        if self.requested.workload.is_uniform_random() && *placement == PlacementConfig::ONE_STREAM {
            let closed_form = match victim {
                VictimConfig::Fifo(_) => Some(analytic::waf_fifo(rho)),
                VictimConfig::Greedy(_) => analytic::waf_greedy(rho, segment_pages),
                VictimConfig::Random(_) => Some(analytic::waf_random(rho)),
                _ => None,
            };
            row.set_some(Column::WafClosedForm, closed_form);
        }
        Ok(row)
    }
}
