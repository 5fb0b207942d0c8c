//! Builds a run of `replay`, which submits a workload's requests to a device without a pool.

use super::Asked;
use super::stack::stack;
use super::trace_length::within_trace;
use crate::StackError;
use crate::run::{Arrivals, Load, Measure, Requested, Rows, Run, Stack};
use crate::workload::{AddressMap, View, Workload, Workloads};
use fulgurite_base::units;
use std::path::PathBuf;

/// The default number of requests of a generated workload.
const DEFAULT_REPLAY_OPS: u64 = 100_000;

pub(super) fn replay(mut asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    let seed = asked.seed;
    let form = asked.trace_form();
    let workload = workloads.get(&asked.workload, form)?;
    let addresses = asked.addresses.unwrap_or(AddressMap::Scale);
    let arrivals = arrivals(&asked, &workload)?;
    let rows = asked.time_interval.map_or(Rows::Run, Rows::TimeIntervals);
    let measure = Measure {
        rows,
        timeline: asked.trace_out.as_ref().map(PathBuf::from),
        requests: asked.requests_out.as_ref().map(PathBuf::from),
        until_steady: asked.until_steady,
        force: asked.force,
    };
    let asked_ops = asked.ops;
    let stack = stack(asked)?;
    if measure.until_steady {
        refuse_steady(&measure, &stack)?;
    }
    let pages = stack.pages();
    if pages == 0 && stack.layer.is_none() {
        return Err(StackError::request(format!(
            "device {} has no room for a page of {}; accepted: a larger one",
            stack.device.label,
            units::format_size(u64::from(stack.device.page_bytes()))
        )));
    }
    let view = View::Drive { page_bytes: stack.device.page_bytes(), pages, map: addresses };
    let ops = match workload.bind(view)?.request_count() {
        Some(has) => within_trace(asked_ops, has, "requests")?,
        None => asked_ops.unwrap_or(DEFAULT_REPLAY_OPS),
    };
    let load = Requested { workload, pages, addresses, arrivals, skip: 0, ops };
    Ok(Run { stack, load: Load::Requests(load), measure, seed })
}

/// Refuses `--until-steady` where it has no effect or no end.
fn refuse_steady(measure: &Measure, stack: &Stack) -> Result<(), StackError> {
    let why = if measure.rows != Rows::Run || measure.timeline.is_some() || measure.requests.is_some() {
        "gives one row about the last round, so it does not go with --interval, --trace-out and --requests-out"
    } else if stack.collect().is_none() {
        "needs a device with garbage collection; accepted: a simulated drive or a layer"
    } else {
        return Ok(());
    };
    Err(StackError::request(format!("--until-steady {why}")))
}

/// Returns the arrival of requests: an open loop by arrival times or by a rate, or a closed loop.
fn arrivals(asked: &Asked, workload: &Workload) -> Result<Arrivals, StackError> {
    match (asked.users, asked.speed, asked.rate) {
        (Some(users), None, None) => Ok(Arrivals::Closed { users }),
        (None, None, Some(requests_s)) => Ok(Arrivals::Rate { requests_s: requests_s as f64 }),
        (None, speed, None) if workload.is_timed()? => Ok(Arrivals::Times { speed: speed.unwrap_or(1.0) }),
        (None, _, None) => Err(StackError::request(format!(
            "workload {} has no arrival times that go forward; give a --rate of requests per second, or a number of \
                --users",
            workload.label
        ))),
        _ => Err(StackError::request(
            "--users, --speed and --rate each say when requests are made; accepted: one of them",
        )),
    }
}
