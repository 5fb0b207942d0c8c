//! A workload's writes against a flash translation layer, counted without time.
//!
//! The logical space is first filled in order, then the workload writes and trims; its reads are
//! left out. `waf` is over the whole run, the fill included; `waf_steady` over the last half of
//! the user writes. Where the traffic is uniform the closed form stands beside it.

use super::{Progress, run_id, set_cost};
use crate::error::StudyError;
use crate::table::Row;
use crate::workload::{BoundWorkload, Source};
use fulgurite_device::StreamId;
use fulgurite_ssd::placement::midas::{Configuration, Why};
use fulgurite_ssd::placement::{Placement, PlacementPolicy};
use fulgurite_ssd::victim::VictimPolicy;
use fulgurite_ssd::{CountingSink, Ftl, FtlConfig, analytic, check};
use fulgurite_workload::{Op, Request};
use std::fmt::Write as _;
use std::time::Instant;

/// A counting run, checked.
pub struct GcRun {
    /// What tables call the workload.
    pub workload_name: String,
    /// The requests.
    pub workload: BoundWorkload,
    /// Whether the closed forms apply to it.
    pub uniform: bool,
    /// Whether the row says what placement did to its groups, and why.
    pub explain: bool,
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

/// Performs writes and trims of single pages.
fn perform(ftl: &mut Ftl, requests: &[Request], sink: &mut CountingSink) {
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
    pub fn execute(&self, progress: &Progress) -> Result<Row, StudyError> {
        let mut ftl = Ftl::new(self.ftl)?;
        if self.ftl.placement.needs_future() {
            ftl.foresee(self.future()?);
        }
        let mut sink = CountingSink::default();
        let start = Instant::now();
        let fill = u64::from(self.ftl.logical_pages);
        for lpn in 0..self.ftl.logical_pages {
            ftl.write(lpn, 1, StreamId(0), &mut sink);
        }
        let half = (fill + self.writes()?) / 2;
        let mut at_half = (sink, fill);
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
            let before = ftl.counters().host_pages;
            if before < half && before + slice.len() as u64 >= half {
                // The half lies in this slice: it is gone through step by step.
                for request in &slice {
                    perform(&mut ftl, std::slice::from_ref(request), &mut sink);
                    if ftl.counters().host_pages == half {
                        at_half = (sink, half);
                    }
                }
            } else {
                perform(&mut ftl, &slice, &mut sink);
            }
            progress.left(self.ops - done);
        }
        let mut row = self.row(&ftl, &sink, at_half);
        if self.explain {
            row.set("explanation", explanation(&ftl));
        }
        set_cost(&mut row, start, ftl.counters().host_pages);
        self.check(&ftl, &sink, done)?;
        Ok(row)
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
            BoundWorkload::Trace(_) | BoundWorkload::Stream(_) => {
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

    fn row(&self, ftl: &Ftl, sink: &CountingSink, (sink_at_half, host_at_half): (CountingSink, u64)) -> Row {
        let FtlConfig {
            logical_pages, segments, segment_pages, reserve, victim, placement, schedule, ..
        } = self.ftl;
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
        row.set("mapping_bytes", ftl.mapping().bytes() as u64);
        row.set("placement_bytes", ftl.placer().bytes() as u64);
        row.set_some("valid_share_error", valid_share_error(ftl));
        let rho = self.ftl.spare_effective();
        row.set("spare_effective", rho);
        if self.uniform && placement == Placement::NONE {
            let closed_form = match victim {
                VictimPolicy::Fifo => Some(analytic::waf_fifo(rho)),
                VictimPolicy::Greedy => analytic::waf_greedy(rho, segment_pages),
                VictimPolicy::Random => Some(analytic::waf_random(rho)),
                _ => None,
            };
            row.set_some("waf_closed_form", closed_form);
        }
        row
    }
}

/// How far the valid shares that MiDAS predicted for its groups are from the measured ones: the mean difference, over
/// all stretches in which every group had its size. The stretch in which sizes are first reached is left out.
fn valid_share_error(ftl: &Ftl) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for two in ftl.placer().events().windows(2) {
        let settled = matches!(two[0].why, Why::Unchanged(_));
        let Some(Configuration { prediction, sized, .. }) = two[0].configuration.as_ref().filter(|_| settled)
        else {
            continue;
        };
        if usize::from(two[0].unsized_from) != sized.len() + 1 {
            continue;
        }
        for (predicted, measured) in prediction.valid.iter().zip(two[1].measured.iter().skip(1)) {
            if let Some(measured) = measured {
                (sum, count) = (sum + (predicted - measured).abs(), count + 1);
            }
        }
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// What placement did to its groups, an event a line.
fn explanation(ftl: &Ftl) -> String {
    let capacity = f64::from(ftl.config().logical_pages);
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let mut text = String::new();
    for event in ftl.placer().events() {
        let why = match event.why {
            Why::Lifetimes(difference) => {
                format!("lifetimes measured, {} % from those in force: sizes chosen", percent(difference))
            }
            Why::Unchanged(difference) => {
                format!("lifetimes measured, {} % from those in force: nothing changed", percent(difference))
            }
            Why::NoGain(promised, measured) => {
                format!(
                    "lifetimes measured, the best choice promises {promised:.3}, {measured:.3} is had: nothing changed"
                )
            }
            Why::Irregular(group, predicted, measured) => format!(
                "G{group} passes on {} % and not {} %: no sizes from it on",
                percent(measured),
                percent(predicted)
            ),
            Why::Runaway => "collection made no room: no sizes any more".to_owned(),
        };
        let _ = writeln!(text, "at {:.2} capacities: {why}", event.at as f64 / capacity);
        let shares: Vec<String> =
            event.measured.iter().map(|share| share.map_or_else(|| "–".to_owned(), percent)).collect();
        let _ = writeln!(text, "    until then: WAF {:.3}, valid % HOT {}", event.waf, shares.join(" "));
        if let (Some(Configuration { hot, sized, prediction }), Why::Lifetimes(_)) =
            (&event.configuration, event.why)
        {
            let sizes: Vec<String> = sized.iter().map(u32::to_string).collect();
            let shares: Vec<String> = prediction.valid.iter().copied().map(percent).collect();
            let _ = writeln!(
                text,
                "    from now on: HOT {hot}, {} + rest segments; predicted WAF {:.3}, valid % {}, {} % of writes to HOT",
                sizes.join(" "),
                prediction.waf,
                shares.join(" "),
                percent(prediction.hot.0)
            );
        }
    }
    if text.is_empty() {
        text.push_str("placement has no groups that it changes, or had no time to\n");
    }
    text
}
