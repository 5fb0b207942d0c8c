//! A workload's writes against a flash translation layer, counted without time.
//!
//! The logical space is first filled in order, then the workload writes and trims; its reads are
//! left out. `waf` is over the whole run, the fill included; `waf_steady` over the last half of
//! the user writes. Where the traffic is uniform the closed form stands beside it.

use super::{Progress, run_id, set_cost};
use crate::error::StudyError;
use crate::table::Row;
use crate::workload::BoundWorkload;
use fulgurite_device::StreamId;
use fulgurite_ssd::victim::VictimPolicy;
use fulgurite_ssd::{CountingSink, Ftl, FtlConfig, analytic, check};
use fulgurite_workload::Op;
use std::time::Instant;

/// A counting run, checked.
pub struct GcRun {
    /// What tables call the workload.
    pub workload_name: String,
    /// The requests.
    pub workload: BoundWorkload,
    /// Whether the closed forms apply to it.
    pub uniform: bool,
    /// Shape and policies of the translation layer.
    pub ftl: FtlConfig,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Page writes and trims after the fill.
    pub ops: u64,
    /// Of all randomness.
    pub seed: u64,
}

impl GcRun {
    /// Executes the run.
    pub fn execute(&self, progress: &Progress) -> Result<Row, StudyError> {
        let source = self.workload.source(u64::from(self.ftl.logical_pages), self.page_bytes, self.seed)?;
        let mut ftl = Ftl::new(self.ftl)?;
        let mut sink = CountingSink::default();
        let start = Instant::now();
        for lpn in 0..self.ftl.logical_pages {
            ftl.write(lpn, 1, StreamId(0), &mut sink);
        }
        let half = (u64::from(self.ftl.logical_pages) + self.writes()?) / 2;
        let mut at_half = (sink, ftl.counters().host_pages);
        let mut done = 0;
        for request in source.filter(|request| request.op != Op::Read) {
            if done == self.ops {
                break;
            }
            done += 1;
            progress.left(self.ops - done);
            match request.op {
                Op::Trim => ftl.trim(request.page as u32),
                _ => ftl.write(request.page as u32, 1, StreamId(request.stream), &mut sink),
            }
            if ftl.counters().host_pages == half {
                at_half = (sink, half);
            }
        }
        let mut row = self.row(&ftl, &sink, at_half);
        set_cost(&mut row, start, ftl.counters().host_pages);
        self.check(&ftl, &sink, done)?;
        Ok(row)
    }

    /// The page writes among its operations; the others are trims.
    fn writes(&self) -> Result<u64, StudyError> {
        match &self.workload {
            BoundWorkload::Generator(_) => Ok(self.ops),
            BoundWorkload::Trace(_) | BoundWorkload::Stream(_) => {
                let source =
                    self.workload.source(u64::from(self.ftl.logical_pages), self.page_bytes, self.seed)?;
                let changes = source.filter(|request| request.op != Op::Read).take(self.ops as usize);
                Ok(changes.filter(|request| request.op == Op::Write).count() as u64)
            }
        }
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

    fn row(&self, ftl: &Ftl, sink: &CountingSink, (sink_at_half, host_at_half): (CountingSink, u64)) -> Row {
        let FtlConfig {
            logical_pages, segments, segment_pages, reserve, victim, placement, schedule, ..
        } = self.ftl;
        let mut row = Row::default();
        row.set(
            "run_id",
            run_id(&format!(
                "gc workload={} logical_pages={logical_pages} segments={segments} segment_pages={segment_pages} reserve={reserve} victim={} placement={} ops={} seed={}",
                self.workload.canonical(&self.workload_name), victim.name(), placement.name(), self.ops, self.seed
            )),
        );
        row.set("workload", self.workload_name.as_str());
        row.set("placement", placement.name());
        row.set("victim", victim.name());
        row.set("schedule", schedule.to_string());
        row.set("pages", logical_pages);
        row.set("page_bytes", self.page_bytes);
        row.set("segments", segments);
        row.set("segment_pages", segment_pages);
        row.set("gc_reserve", reserve);
        row.set("seed", self.seed);
        row.set("ops", self.ops);
        row.set("host_pages_written", ftl.counters().host_pages);
        row.set("flash_pages_read", sink.reads);
        row.set("flash_pages_programmed", sink.programs);
        row.set("gc_pages_copied", ftl.counters().copied_pages);
        row.set("erases", sink.erases);
        row.set("waf", sink.programs as f64 / ftl.counters().host_pages as f64);
        let (programs, host) =
            (sink.programs - sink_at_half.programs, ftl.counters().host_pages - host_at_half);
        if host > 0 {
            row.set("waf_steady", programs as f64 / host as f64);
        }
        let rho = self.ftl.spare_effective();
        row.set("spare_effective", rho);
        if self.uniform {
            let closed_form = match victim {
                VictimPolicy::Fifo => Some(analytic::waf_fifo(rho)),
                VictimPolicy::Greedy => analytic::waf_greedy(rho, segment_pages),
            };
            row.set_some("waf_closed_form", closed_form);
        }
        row
    }
}
