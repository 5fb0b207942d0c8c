//! Builds a run from the values of its settings, and fills in the defaults that depend on other settings.

mod asked;
mod measured;
mod stack;
mod bench;
mod trace_length;
mod gc;
mod pool;
mod replay;

pub(crate) use asked::{Asked, Memory};

use crate::run::{Load, Measure, Rows, Run};
use crate::workload::Workloads;
use crate::{Command, StackError};

/// Builds the run of `command` from the values of its settings.
pub(crate) fn build(command: Command, asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    match command {
        Command::Pool => pool::pool(asked, workloads),
        Command::Gc => gc::gc(asked, workloads),
        Command::Replay => replay::replay(asked, workloads),
        Command::Bench => bench::bench(asked, workloads.is_dry()),
        Command::Profile => {
            let (page_bytes, seed) = (asked.page_bytes, asked.seed);
            let rows = if asked.curve { Rows::Curve } else { Rows::Run };
            let (stack, load) = (stack::stack(asked)?, Load::Characterisation { page_bytes });
            Ok(Run { stack, load, measure: Measure { rows, ..Measure::default() }, seed })
        }
    }
}
