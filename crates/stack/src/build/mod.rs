//! Builds a run from the values of its settings, and fills in the defaults that depend on other settings.

mod asked;
mod measured;
mod stack;
mod bench;
mod trace_length;
mod gc;
mod pool;
mod replay;
mod serve;

use asked::SuiteName;
pub(crate) use asked::{Asked, Memory};

use crate::device::DeviceConfig;
use crate::pattern::Pattern;
use crate::run::{LatencySuite, Load, Measure, Rows, Run, Suite};
use crate::workload::Workloads;
use crate::{Command, StackError};
use fulgurite_base::Nanos;
use fulgurite_base::option::name_of;

/// Builds the run of `command` from the values of its settings.
pub(crate) fn build(command: Command, asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    match command {
        Command::Pool => pool::pool(asked, workloads),
        Command::Gc => gc::gc(asked, workloads),
        Command::Replay => replay::replay(asked, workloads),
        Command::Bench => bench::bench(asked, workloads.is_dry()),
        Command::Profile => {
            let (page_bytes, seed) = (asked.page_bytes, asked.seed);
            let suite = suite(&asked)?;
            let rows = if asked.curve { Rows::Curve } else { Rows::Run };
            let (stack, load) = (stack::stack(asked)?, Load::Characterisation { page_bytes, suite });
            Ok(Run { stack, load, measure: Measure { rows, ..Measure::default() }, seed })
        }
        Command::Serve => serve::serve(asked, workloads.is_dry()),
    }
}

/// The measured time of a rate if none is given, on a simulated drive and on a real one.
const MEASURED: Nanos = Nanos(4_000_000_000);
const MEASURED_REAL: Nanos = Nanos(30_000_000_000);

/// Returns the suite of measurements that was asked for.
fn suite(asked: &Asked) -> Result<Suite, StackError> {
    let is_real = asked.device.as_ref().is_some_and(DeviceConfig::is_real);
    let only = |given: bool, flag: &str, accepted: &str| match given {
        true => Err(StackError::request(format!(
            "{flag} does not go with --suite {}; accepted: {accepted}, or leave it out",
            name_of(asked.suite)
        ))),
        false => Ok(()),
    };
    let concerns = |suite: SuiteName| asked.suite == suite;
    only(asked.rates.is_some() && !concerns(SuiteName::Latency), "--rates", "--suite latency")?;
    only(asked.time.is_some() && !concerns(SuiteName::Latency), "--time", "--suite latency")?;
    only(asked.curve && !concerns(SuiteName::Concurrency), "--curve", "--suite concurrency")?;
    let series: &[Pattern] = match asked.suite {
        SuiteName::Overwrite => &Pattern::OVERWRITE,
        SuiteName::Zones => &Pattern::ZONES,
        SuiteName::OverProvisioning => &Pattern::OVER_PROVISIONING,
        SuiteName::Concurrency | SuiteName::Latency => {
            let suites = "--suite overwrite, zones or over-provisioning";
            only(asked.patterns.is_some(), "--patterns", suites)?;
            &[]
        }
    };
    match asked.suite {
        SuiteName::Concurrency => Ok(Suite::Concurrency),
        SuiteName::Latency => {
            let time = asked.time.unwrap_or(if is_real { MEASURED_REAL } else { MEASURED });
            Ok(Suite::Latency(LatencySuite { rate: asked.rates, time }))
        }
        _ => match &asked.patterns {
            Some(pattern) if !series.iter().any(|known| known.is_like(pattern)) => {
                Err(StackError::request(format!(
                    "--patterns {pattern} does not go with --suite {}; accepted: patterns like {}",
                    name_of(asked.suite),
                    series.iter().map(Pattern::to_string).collect::<Vec<_>>().join(", ")
                )))
            }
            Some(pattern) => Ok(Suite::Steady(vec![pattern.clone()])),
            None => Ok(Suite::Steady(series.to_vec())),
        },
    }
}
