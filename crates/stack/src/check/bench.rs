//! Refuses runs of `bench` whose settings cannot work together.

use super::intervals::check_intervals;
use crate::device::DriveConfig;
use crate::run::{Benchmarked, EngineStage, Rows, Run};
use crate::{StackError, Unit, memory};
use fulgurite_base::{Nanos, units};
use fulgurite_bench::Extent;
use fulgurite_device::Caps;
use fulgurite_engine::Options;
use fulgurite_pool::ReplacementPolicy;

impl Run {
    pub(super) fn check_bench(&self, asked: &Benchmarked, stage: &EngineStage) -> Result<(), StackError> {
        let stack = &self.stack;
        stack.check_storage()?;
        stack.device_pages_per(stage.page_bytes)?;
        if asked.users == 0 || asked.stop == Extent::Ops(0) {
            return Err(StackError::request(
                "--users 0 or --ops 0: nothing would be measured; accepted: at least 1",
            ));
        }
        use Rows::{TimeIntervals, TypeIntervals, Types};
        if !matches!(self.measure.rows, Rows::Run | Types | TimeIntervals(_) | TypeIntervals(_)) {
            return Err(StackError::request(
                "rows of a benchmark are about the run, stretches of time or types of transactions",
            ));
        }
        self.check_time_intervals(asked)?;
        if stack.device.is_real() && stage.cpu_per_op > Nanos::ZERO {
            return Err(StackError::request(format!(
                "--cpu-per-op {} is for simulated drives: on {} the clock is real; leave it out",
                units::format_micros(stage.cpu_per_op),
                stack.device.label
            )));
        }
        if let DriveConfig::Mem(mem) = &stack.device.drive {
            // A store uses the whole drive, and a `mem` device holds all pages of a full drive in memory.
            let bytes = mem.pages.saturating_mul(mem.page_bytes);
            let what = match stack.device.label.contains("pages=") {
                true => format!("--device {}", stack.device.label),
                false => format!("{} with its log on --device {}", asked.benchmark, stack.device.label),
            };
            memory::check(&what, bytes)?;
        }
        self.check_fits(asked, stage)?;
        let caps = self.check_shards(stage)?;
        self.check_options(stage, &caps)
    }

    /// Refuses too many intervals of time. Only a run for a given time has a known number of intervals; a run
    /// for a number of transactions is not checked here.
    fn check_time_intervals(&self, asked: &Benchmarked) -> Result<(), StackError> {
        use Rows::{TimeIntervals, TypeIntervals};
        match (self.measure.rows, asked.stop) {
            (TimeIntervals(length) | TypeIntervals(length), Extent::Time(time)) => {
                check_intervals(time.0, length.0, |length| units::format_micros(Nanos(length)) + "us")
            }
            _ => Ok(()),
        }
    }

    /// Refuses shards that the device cannot have, and cores that would be idle. Returns the capabilities of a shard's
    /// part of the device.
    fn check_shards(&self, stage: &EngineStage) -> Result<Caps, StackError> {
        let (device, shards, cores) = (&self.stack.device, stage.shards, stage.cores);
        if shards > 1 && device.is_real() {
            return Err(StackError::request(format!(
                "--shards {shards} needs a simulated drive, since on {} one thread does all work in real time; \
                    accepted: --shards 1, or a simulated drive like p4510",
                device.label
            )));
        }
        if cores > shards {
            return Err(StackError::request(format!(
                "--cores {cores} with --shards {shards}: a shard works on one core, so {} would be idle; accepted: \
                    --cores 1 to {shards}, or --shards auto",
                cores - shards
            )));
        }
        let refused = |error| StackError::request(format!("--shards {shards} on {}: {error}", device.label));
        self.stack.shard_caps(shards).map_err(refused)
    }

    fn check_options(&self, stage: &EngineStage, caps: &Caps) -> Result<(), StackError> {
        let (options, device, shards) = (stage.options(), &self.stack.device, stage.shards);
        let of_each = if shards > 1 { format!(" of each of {shards} shards") } else { String::new() };
        let memory = format!("--memory {}", units::format_size(stage.memory_bytes));
        memory::check(&memory, stage.memory_bytes)?;
        options
            .check(caps)
            .map_err(|error| StackError::request(format!("--page or --log-size{of_each}: {error}")))?;
        let map = self.stack.map_memory(&options, shards).map_err(|error| {
            StackError::request(format!("--page, --log-size or --place on {}: {error}", device.label))
        })?;
        if map > stage.memory_bytes {
            return Err(memory::too_little_for_map(&format!("on {}", device.label), stage.memory_bytes, map));
        }
        let memory_bytes = (stage.memory_bytes - map / 2) / u64::from(shards);
        let frames = Options { memory_bytes, ..options }
            .frames(stage.page_bytes)
            .map_err(|error| StackError::request(format!("{memory}{of_each}: {error}")))?;
        let policies = &stage.policies;
        if policies.replacement.needs_future() {
            return Err(StackError::request(format!(
                "--replacement {} must know all requests beforehand, which a store does not; accepted: another \
                    policy, or pool with --device none",
                policies.replacement
            )));
        }
        let replacement = policies.replacement.start(frames)?;
        if replacement.needs_erase_counts() && !self.stack.tells_erase_counts() {
            return Err(StackError::request(format!(
                "--replacement {} asks how often erase blocks were erased, which {} does not tell; accepted: a \
                    preset with flash, like p4510",
                policies.replacement, device.label
            )));
        }
        match &stage.write_back {
            Some(chosen) if chosen.batches.buffers >= frames => Err(StackError::request(format!(
                "--write-back {} takes {} of {frames} frames for pages under way; accepted: more --memory, or fewer \
                    buffers=",
                chosen.policy, chosen.batches.buffers
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses data that do not fit on the device together with the log.
    fn check_fits(&self, asked: &Benchmarked, stage: &EngineStage) -> Result<(), StackError> {
        let (stack, data) = (&self.stack, asked.benchmark.data_bytes());
        let has = stack.pages().saturating_mul(u64::from(stack.device.page_bytes()));
        let needed = data.saturating_add(stage.log_bytes);
        if needed <= has {
            return Ok(());
        }
        let humane = |bytes: u64| Unit::Bytes.humane(bytes as f64);
        let larger = stack.device.larger(needed as f64 / has.max(1) as f64);
        Err(StackError::request(format!(
            "{} takes about {} of data and {} of log, and {} has {}; use a smaller --scale or a larger drive, like \
                {larger}",
            asked.benchmark,
            humane(data),
            humane(stage.log_bytes),
            stack.device.label,
            humane(has)
        )))
    }
}
