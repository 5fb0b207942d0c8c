//! Builds a run of `serve`, which gives a drive to other programs.

use super::Asked;
use super::measured::Measured;
use super::pool::frames_of;
use super::stack::stack;
use crate::StackError;
use crate::run::{ChosenWriteBack, Load, Measure, Policies, PoolStage, Run};
use fulgurite_base::Nanos;

pub(super) fn serve(mut asked: Asked, is_dry: bool) -> Result<Run, StackError> {
    let (seed, frames) = (asked.seed, asked.frames.take());
    let (replacement, write_back, prefetch) =
        (asked.replacement.take(), asked.write_back.take(), asked.prefetch.take());
    let mut stack = stack(asked)?;
    // The drive is checked here, because the write-back policy may measure it below.
    stack.check_served()?;
    let Some(frames) = frames else {
        let given = [
            ("--replacement", replacement.map(|policy| policy.to_string())),
            ("--write-back", write_back.map(|policy| policy.to_string())),
            ("--prefetch", prefetch.map(|policy| policy.to_string())),
        ];
        if let Some((flag, policy)) = given.iter().find_map(|(flag, given)| Some((flag, given.as_ref()?))) {
            return Err(StackError::request(format!(
                "{flag} {policy} is for the pool before the drive, which has none; accepted: --frames beside it"
            )));
        }
        return Ok(Run { stack, load: Load::Served, measure: Measure::default(), seed });
    };
    let page_bytes = stack.device.page_bytes();
    let frames = frames_of(frames, stack.pages())?;
    let write_back = write_back.map_or_else(|| "single".parse(), Ok)?;
    let write_back = ChosenWriteBack::on(write_back, Measured { stack: &stack, page_bytes, seed, is_dry })?;
    let replacement = replacement.map_or_else(|| "lru".parse(), Ok)?;
    let prefetch = prefetch.map_or_else(|| "none".parse(), Ok)?;
    stack.pool = Some(PoolStage {
        policies: Policies { replacement, prefetch },
        write_back,
        frames,
        page_bytes,
        cpu_per_request: Nanos::ZERO,
        cores: 1,
    });
    Ok(Run { stack, load: Load::Served, measure: Measure::default(), seed })
}
