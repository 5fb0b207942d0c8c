//! Refuses settings that cannot work together. Each run is checked before anything is executed, whether a
//! user typed it or a program built it.

mod intervals;
mod bench;

use crate::device::DriveConfig;
use crate::execute::replay::request_log;
use crate::run::{Arrivals, Load, Measure, Policies, PoolStage, Requested, Rows, Run, Sampling, Sizes};
use crate::{Command, Stack, StackError, memory, timeline};
use fulgurite_base::{Nanos, units};
use fulgurite_files::output::{self, Named, Replaces};
use fulgurite_ftl::FtlConfig;
use fulgurite_pool::{NextUses, ReplacementPolicy, WriteBack};
use intervals::check_intervals;

/// Bytes that the tables of the pool and its policies take for each frame.
const TABLES_PER_FRAME: u64 = 64;

impl Run {
    /// Refuses a run that cannot work. The error names the argument and the accepted values.
    pub fn check(&self) -> Result<(), StackError> {
        match (&self.load, &self.stack.pool, self.translation()) {
            (Load::Benchmark(asked), ..) => match &self.stack.engine {
                Some(stage) => return self.check_bench(asked, stage),
                None => {
                    Err(StackError::request("a benchmark runs on a storage engine, and the stack has none"))
                }
            },
            (Load::Characterisation { page_bytes, .. }, ..) => {
                if matches!(self.stack.device.drive, DriveConfig::Mem(_) | DriveConfig::None) {
                    return Err(StackError::request(format!(
                        "device {}: no request takes any time on it, so it has no alpha, k_r and k_w; accepted: a \
                            preset or file:PATH",
                        self.stack.device.label
                    )));
                }
                self.stack.refuse_bare_zones()?;
                self.stack.check_storage()?;
                self.stack.device_pages_per(*page_bytes).map(drop)
            }
            (Load::Served, ..) => self.check_served(),
            (Load::Requests(requested), Some(pool), _) => self.check_pool(requested, pool),
            (Load::Requests(requested), None, Some(translation)) => {
                check_translation(&translation.ftl)?;
                self.check_future(requested, &translation.ftl)?;
                if requested.workload.generator().is_some_and(|generator| !generator.keeps_writing()) {
                    return Err(StackError::request(format!(
                        "workload {} may stop writing, so the number of page writes may never be reached; accepted: \
                            a workload with writes, like mixed-skewed or ycsb-a",
                        requested.workload.label
                    )));
                }
                // Start the generator here, because it reports an unsuitable number of pages only when it
                // starts.
                self.bind()?.requests(self.seed)?;
                self.check_page_intervals(requested)
            }
            (Load::Requests(_), None, None) => {
                // Check the output files first, because overwriting a file is worse than any other error of
                // the run.
                self.check_outputs()?;
                self.stack.check_storage()?;
                self.bind()?.requests(self.seed)?;
                self.check_timeline()
            }
        }?;
        self.check_shares()?;
        self.check_arrivals()
    }

    /// Refuses what a server of drives cannot give to other programs.
    fn check_served(&self) -> Result<(), StackError> {
        let Stack { engine, pool, .. } = &self.stack;
        if engine.is_some() {
            return Err(StackError::request(
                "serve gives a drive to other programs, and not a store on it; accepted: a device, a layer and a pool",
            ));
        }
        self.stack.check_served()?;
        match pool {
            Some(pool) if pool.page_bytes != self.stack.device.page_bytes() => Err(StackError::request(
                "the pages of a pool before a served drive have the size of the drive's pages",
            )),
            Some(pool) if pool.policies.replacement.needs_future() => Err(StackError::request(format!(
                "--replacement {} needs to know all requests beforehand, and nobody knows those of other programs; \
                    accepted: another policy, like lru",
                pool.policies.replacement
            ))),
            Some(pool) => {
                self.check_frames(pool)?;
                self.check_policies(pool)
            }
            None => Ok(()),
        }
    }

    /// Refuses a workload that shares pages if the device cannot share them.
    fn check_shares(&self) -> Result<(), StackError> {
        let Some(requested) = self.requested().filter(|requested| {
            requested.workload.generator().is_some_and(|generator| generator.shares_anything())
        }) else {
            return Ok(());
        };
        let device = &self.stack.device;
        let simulated = device.simulated().is_some_and(|config| config.caps(true).share_pages > 0);
        let can_share = simulated || self.stack.layer.is_some() || self.translation().is_some();
        let label = &requested.workload.label;
        if self.stack.pool.is_some() {
            return Err(StackError::request(format!(
                "workload {label} shares pages of a drive, which a pool does not; accepted: replay, gc, or a \
                    workload without shares"
            )));
        }
        if !can_share {
            return Err(StackError::request(format!(
                "workload {label} shares pages, which {} cannot; accepted: a simulated drive like p4510, or \
                    checkpoint=copy",
                device.label
            )));
        }
        let looks_ahead = |ftl: &FtlConfig| ftl.collect.placement.needs_future();
        if self.translation().is_some_and(|translation| looks_ahead(&translation.ftl))
            || self.measure.rows == Rows::Groups
        {
            return Err(StackError::request(format!(
                "workload {label} shares pages, and --groups and policies that look ahead cannot tell when shared \
                    pages die; accepted: checkpoint=copy, or no --groups and another policy"
            )));
        }
        Ok(())
    }

    fn check_arrivals(&self) -> Result<(), StackError> {
        let timed = matches!(self.command(), Command::Replay);
        match self.requested().map(|requested| requested.arrivals) {
            Some(Arrivals::Closed { users: 0 }) => {
                Err(StackError::request("--users 0: there would be no request; accepted: at least 1"))
            }
            Some(Arrivals::Times { .. } | Arrivals::Rate { .. }) if !timed => Err(StackError::request(
                "arrival times are for devices without a pool; accepted here: a number of users",
            )),
            _ => Ok(()),
        }
    }

    fn check_timeline(&self) -> Result<(), StackError> {
        if self.measure.timeline.is_some() && self.stack.device.simulated().is_none() {
            return Err(StackError::request(format!(
                "--trace-out needs a simulated drive, which {} is not; accepted: a preset",
                self.stack.device.label
            )));
        }
        Ok(())
    }

    /// Refuses an output file that is an input file or another output file.
    fn check_outputs(&self) -> Result<(), StackError> {
        let trace = self.requested().and_then(|requested| requested.workload.trace());
        let traces = trace.map_or(&[][..], |trace| trace.files());
        let drive = match &self.stack.device.drive {
            DriveConfig::File(file) => Some(file.path.as_path()),
            _ => None,
        };
        let Measure { timeline, requests, force, .. } = &self.measure;
        let mut inputs: Vec<Named<'_>> = traces.iter().map(|path| Named::new("workload", path)).collect();
        inputs.extend(drive.map(|path| Named::new("device", path)));
        let outputs = [
            ("--trace-out", timeline.as_deref(), timeline::BEGINNING),
            ("--requests-out", requests.as_deref(), request_log::BEGINNING),
        ];
        let outputs: Vec<Named<'_>> = outputs
            .into_iter()
            .filter_map(|(argument, path, own)| {
                Some(Named::new(argument, path?).replacing(Replaces::Beginning(own).or_forced(*force)))
            })
            .collect();
        for Named { argument, path, .. } in &outputs {
            if let Some(end) = path.extension().filter(|end| *end == "gz" || *end == "zst") {
                return Err(StackError::request(format!(
                    "{argument} {}: it is not packed as this name says; accepted: a name without .{}, or - into a \
                        packer",
                    path.display(),
                    end.display()
                )));
            }
        }
        Ok(output::check(&inputs, &outputs)?)
    }

    /// Refuses a pool that needs more memory than there is.
    fn check_frames(&self, pool: &PoolStage) -> Result<(), StackError> {
        // A simulated drive keeps no contents, so its frames hold no bytes. Every frame has entries in
        // tables.
        let frame_bytes =
            TABLES_PER_FRAME + if self.stack.device.is_real() { u64::from(pool.page_bytes) } else { 0 };
        memory::check(&format!("--frames {}", pool.frames), u64::from(pool.frames) * frame_bytes)
    }

    /// Refuses policies that do not suit the device or the size of the pool.
    fn check_policies(&self, pool: &PoolStage) -> Result<(), StackError> {
        let stack = &self.stack;
        let replacement = pool.policies.replacement.start(pool.frames)?;
        if replacement.needs_erase_counts() && !stack.tells_erase_counts() {
            return Err(StackError::request(format!(
                "--replacement {} asks how often erase blocks were erased, which {} does not tell; accepted: a \
                    preset with flash, like p4510",
                pool.policies.replacement, stack.device.label
            )));
        }
        if pool.write_back.batches.buffers >= pool.frames {
            return Err(StackError::request(format!(
                "--write-back {} takes {} of {} frames for pages under way; accepted: more --frames, or fewer \
                    buffers=",
                pool.write_back.policy, pool.write_back.batches.buffers, pool.frames
            )));
        }
        Ok(())
    }

    fn check_pool(&self, requested: &Requested, pool: &PoolStage) -> Result<(), StackError> {
        let (stack, pages) = (&self.stack, requested.pages);
        let request_pages = stack.device_pages_per(pool.page_bytes)?;
        if !stack.device.is_none() {
            stack.check_storage()?;
            let on_device = stack.pages() / u64::from(request_pages);
            if pages > on_device {
                let above = stack.layer.as_ref();
                let larger = stack.device.larger(pages as f64 / on_device.max(1) as f64);
                // The number of pages of a trace is fixed, so `--pages` cannot reduce it.
                let fewer = if requested.workload.trace().is_some() { "" } else { "fewer --pages or " };
                return Err(StackError::request(format!(
                    "{pages} pages of {} do not fit on {}{}, which has {on_device}; use {fewer}a larger drive, like \
                        {larger}",
                    units::format_size(u64::from(pool.page_bytes)),
                    above.map_or_else(String::new, |layer| format!("the layer {} above ", layer.label)),
                    stack.device.label,
                )));
            }
        }
        self.check_frames(pool)?;
        self.bind()?.requests(self.seed)?;
        self.check_future_of_pool(requested, pool)?;
        if let Rows::Sizes(sizes) = self.measure.rows {
            return self.check_sizes(requested, pool, sizes);
        }
        self.check_policies(pool)?;
        if pool.cores > 1 && stack.device.is_real() {
            return Err(StackError::request(format!(
                "--cores {} needs a simulated drive, since on {} one thread does all work in real time; accepted: \
                    --cores 1, or a simulated drive like p4510",
                pool.cores, stack.device.label
            )));
        }
        if stack.device.is_none() { self.check_counting(requested, pool) } else { Ok(()) }
    }

    /// Refuses a replacement policy that must know the requests beforehand where their order is not known.
    fn check_future_of_pool(&self, requested: &Requested, pool: &PoolStage) -> Result<(), StackError> {
        let replacement = &pool.policies.replacement;
        if !replacement.needs_future() {
            return Ok(());
        }
        if !self.stack.device.is_none() {
            return Err(StackError::request(format!(
                "--replacement {replacement} must know all requests beforehand, and on {} their order depends on \
                    time; accepted: --device none",
                self.stack.device.label
            )));
        }
        let is_sampled = matches!(self.measure.rows, Rows::Sizes(sizes) if sizes.sampling != Sampling::Exact);
        if is_sampled {
            return Ok(());
        }
        if requested.ops > NextUses::REQUESTS_AT_MOST {
            return Err(StackError::request(format!(
                "--replacement {replacement}: {} requests are too many to look ahead; accepted: --ops up to {}",
                requested.ops,
                NextUses::REQUESTS_AT_MOST
            )));
        }
        // Each request takes four bytes, which double while the list grows, and each page 48.
        let of_pages = requested.pages.min(requested.ops) * 48;
        let bytes = requested.ops.saturating_mul(8).saturating_add(of_pages);
        memory::check(&format!("--replacement {replacement}"), bytes)
    }

    /// Refuses a curve of misses that cannot be made.
    fn check_sizes(&self, requested: &Requested, pool: &PoolStage, sizes: Sizes) -> Result<(), StackError> {
        let Policies { replacement, .. } = &pool.policies;
        if !self.stack.device.is_none() {
            return Err(StackError::request(format!(
                "--curve counts misses without time, and {} has time; accepted: --device none",
                self.stack.device.label
            )));
        }
        if pool.write_back.batches.batches {
            return Err(StackError::request(format!(
                "--write-back {} matters for writes, and --curve counts misses only; accepted: --write-back single",
                pool.write_back.policy
            )));
        }
        let counted = replacement.counted_option().filter(|_| sizes.sampling != Sampling::Exact);
        if let Some(option) = counted {
            return Err(StackError::request(format!(
                "--replacement {replacement}: {option} is a number, which does not suit the smaller pools of a \
                    sample; accepted: a share like 6%, or --sample 1"
            )));
        }
        match replacement.start(pool.frames) {
            Ok(policy) if policy.needs_erase_counts() => {
                return Err(StackError::request(format!(
                    "--replacement {replacement} asks how often erase blocks were erased, which none does not tell; \
                        accepted: another policy"
                )));
            }
            // Options cannot be checked against sizes that are not known yet.
            Err(error) if requested.pages < u64::MAX => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        if sizes.sampling == Sampling::Exact && !replacement.is_lru() {
            let bytes = u64::from(pool.frames) * TABLES_PER_FRAME * Sizes::COUNT / 2;
            memory::check(&format!("--curve with {} pools at once", Sizes::COUNT), bytes)?;
        }
        self.check_counting(requested, pool)
    }

    /// Refuses settings that only affect time if the run has no drive, since such a run has no time.
    fn check_counting(&self, requested: &Requested, pool: &PoolStage) -> Result<(), StackError> {
        let (write_back, prefetch) = (pool.write_back.policy.to_string(), pool.policies.prefetch.to_string());
        let users = match requested.arrivals {
            Arrivals::Closed { users } => users,
            _ => 1,
        };
        let layer = self.stack.layer.as_ref().map(|layer| layer.label.as_str());
        let WriteBack { buffers, ahead, lock, .. } = pool.write_back.batches;
        let timed = [
            (layer.is_some(), "--layer", layer.unwrap_or_default()),
            (buffers > 0 || ahead > 0 || lock, "--write-back", write_back.as_str()),
            (!pool.policies.prefetch.is_none(), "--prefetch", prefetch.as_str()),
            (users > 1, "--users", "more than 1"),
            (pool.cpu_per_request > Nanos::ZERO, "--cpu-per-request", "above 0"),
            (pool.cores > 1, "--cores", "more than 1"),
        ];
        match timed.into_iter().find(|(given, ..)| *given) {
            Some((_, what, value)) => Err(StackError::request(format!(
                "{what} {value} matters only in time, and device none has no time; accepted: a drive, or write-back \
                    single or ace, no prefetch, no layer, one user and one core"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a series with so many intervals that its result rows would fill the memory.
    fn check_page_intervals(&self, requested: &Requested) -> Result<(), StackError> {
        let Rows::PageIntervals(length) = self.measure.rows else { return Ok(()) };
        let check = |writes| check_intervals(writes, length, |length| length.to_string());
        // Compare all requests first. Counting the writes among them takes time and is seldom needed.
        match check(requested.ops) {
            Err(_) => check(self.bind()?.writes_within(requested.ops, self.seed)?),
            few => few,
        }
    }

    /// Refuses more page writes than a placement policy that looks ahead can number with 32 bits.
    fn check_future(&self, requested: &Requested, ftl: &FtlConfig) -> Result<(), StackError> {
        let fill = u64::from(ftl.logical_pages);
        // The number `u32::MAX` marks a page that is never overwritten, so no write may have it.
        let most = u64::from(u32::MAX) - fill;
        let looks_ahead = ftl.collect.placement.needs_future() || self.measure.rows == Rows::Groups;
        if looks_ahead && requested.ops >= most {
            let what = if ftl.collect.placement.needs_future() {
                format!("--placement {}", ftl.collect.placement)
            } else {
                "--groups".to_owned()
            };
            return Err(StackError::request(format!(
                "{what}: {} page writes are too many to look ahead; accepted: --ops below {most}",
                fill + requested.ops
            )));
        }
        Ok(())
    }
}

fn check_translation(ftl: &FtlConfig) -> Result<(), StackError> {
    ftl.validate().map_err(|error| {
        StackError::request(format!("--logical, --physical and --segment do not suit each other: {error}"))
    })
}

impl Stack {
    /// Refuses a device that a server of simulated drives cannot give to other programs.
    pub(crate) fn check_served(&self) -> Result<(), StackError> {
        match self.device.drive {
            DriveConfig::Simulated { .. } | DriveConfig::Mem(_) => {
                self.refuse_bare_zones()?;
                self.check_storage()
            }
            DriveConfig::File(_) | DriveConfig::None | DriveConfig::Translation(_) => {
                Err(StackError::request(format!(
                    "device {}: serve gives simulated drives to other programs, and `qemu-nbd` or `nbdkit file` \
                        serve files; accepted: a preset (p4510), a preset with changes, a drive that calibrate has \
                        written (my-drive.toml), or mem",
                    self.device.label
                )))
            }
        }
    }
}
