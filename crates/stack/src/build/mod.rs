//! Builds a run from what was asked. Defaults that depend on other settings are filled in here.

mod bench;

use crate::device::{DeviceConfig, DriveConfig};
use crate::execute::profile;
use crate::run::{
    Arrivals, ChosenWriteBack, Load, Measure, Policies, PoolStage, Requested, Rows, Run, Stack,
};
use crate::settings::{Asked, Workloads};
use crate::workload::{AddressMap, Origin, View, Workload};
use crate::{Command, StackError, Unit};
use fulgurite_base::SpecError;
use fulgurite_base::units::{self, Portion, Share};
use fulgurite_ftl::{Collect, FtlConfig};
use fulgurite_pool::WriteBackConfig;
use fulgurite_pool::write_back::{Curve, MeasuredDrive};
use std::path::PathBuf;

/// Pages and requests of a generated pool workload where nothing is said: those of the published comparison of ACE
/// with LRU.
const DEFAULT_PAGES: u64 = 102_400;
const DEFAULT_OPS: u64 = 1_000_000;
/// Reads, and writes, that many drives do at once, where a drive must not be measured.
const USUAL_K_R: u32 = 64;
const USUAL_K_W: u32 = 8;
/// Requests of a generated replay where nothing is said.
const DEFAULT_REPLAY_OPS: u64 = 100_000;

/// The run of `command` that was asked for.
pub(crate) fn build(command: Command, asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    match command {
        Command::Pool => pool(asked, workloads),
        Command::Gc => gc(asked, workloads),
        Command::Replay => replay(asked, workloads),
        Command::Bench => bench::bench(asked, workloads.is_dry()),
        Command::Profile => {
            let (page_bytes, seed) = (asked.page_bytes, asked.seed);
            let rows = if asked.curve { Rows::Curve } else { Rows::Run };
            let (stack, load) = (stack(asked)?, Load::Characterisation { page_bytes });
            Ok(Run { stack, load, measure: Measure { rows, ..Measure::default() }, seed })
        }
    }
}

/// The device, and what stands above it but for a pool.
fn stack(asked: Asked) -> Result<Stack, StackError> {
    let Asked { device, layer, placement, victim, schedule, destroy_contents, reuse, .. } = asked;
    let device = device.ok_or_else(|| StackError::request("device is missing"))?;
    let mut stack = Stack { engine: None, pool: None, layer, device };
    if let Some(placement) = placement {
        stack.change_collect("--placement", placement, |collect| &mut collect.placement)?;
    }
    if let Some(victim) = victim {
        stack.change_collect("--victim", victim, |collect| &mut collect.victim)?;
    }
    if let Some(schedule) = schedule {
        stack.change_collect("--schedule", schedule, |collect| &mut collect.schedule)?;
    }
    if let DriveConfig::File(file) = &mut stack.device.drive {
        file.destroy_contents = destroy_contents;
        file.keeps_store = reuse;
    }
    Ok(stack)
}

impl Stack {
    fn change_collect<T: std::fmt::Display>(
        &mut self,
        flag: &str,
        value: T,
        field: impl FnOnce(&mut Collect) -> &mut T,
    ) -> Result<(), StackError> {
        let Some(collect) = self.collect_mut() else {
            return Err(StackError::request(format!(
                "{flag} {value} does not go with {}, which collects no garbage; leave it out",
                self.device.label
            )));
        };
        *field(collect) = value;
        Ok(())
    }
}

fn pool(mut asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    let (page_bytes, seed) = (asked.page_bytes, asked.seed);
    let workload = workloads.get(&asked.workload, asked.format.take())?;
    let frames = asked.frames.ok_or_else(|| StackError::request("--frames is missing"))?;
    // `stack` consumes `asked`, so the settings of the pool are taken out before.
    let (replacement, write_back) = (asked.replacement.take(), asked.write_back.take());
    let prefetch = asked.prefetch.take().ok_or_else(|| StackError::request("--prefetch is missing"))?;
    let (ops, skip, pages) = (asked.ops, asked.skip, asked.pages);
    let (users, cpu_per_request, cores) = (asked.users.unwrap_or(1), asked.cpu_per_request, asked.cores);
    let mut stack = stack(asked)?;
    let device_pages = u64::from(stack.device_pages_per(page_bytes)?);
    let pages = pool_pages(&workload, &stack, frames, page_bytes, pages)?;
    let ops = pool_ops(&workload, View::Pool { page_bytes, pages }, skip, ops)?;
    stack.make_room_for(pages.saturating_mul(device_pages));
    // Before the write-back policy asks it how many writes it does at once.
    if !stack.device.is_none() {
        stack.check_storage()?;
    }
    let write_back = write_back.ok_or_else(|| StackError::request("--write-back is missing"))?;
    let write_back = ChosenWriteBack::on(
        write_back,
        Measured { stack: &stack, page_bytes, seed, is_dry: workloads.is_dry() },
    )?;
    let replacement = replacement.ok_or_else(|| StackError::request("--replacement is missing"))?;
    stack.pool = Some(PoolStage {
        policies: Policies { replacement, prefetch },
        write_back,
        frames: frames_of(frames, pages)?,
        page_bytes,
        cpu_per_request,
        cores,
    });
    let arrivals = Arrivals::Closed { users };
    let load = Requested { workload, pages, addresses: AddressMap::Scale, arrivals, skip, ops };
    Ok(Run { stack, load: Load::Requests(load), measure: Measure::default(), seed })
}

/// Pages of a pool run: those of the trace, or what was asked for; `u64::MAX` where the number is not needed.
fn pool_pages(
    workload: &Workload,
    stack: &Stack,
    frames: Portion,
    page_bytes: u32,
    asked: Option<u64>,
) -> Result<u64, StackError> {
    match &workload.origin {
        Origin::Generator(_) => Ok(asked.unwrap_or(DEFAULT_PAGES)),
        Origin::Trace(_) => {
            // Without a drive it does not matter how many pages there are, unless frames are a share of them.
            let streams = stack.device.is_none() && matches!(frames, Portion::Count(_));
            let known = match streams {
                true => None,
                false => workload.bind(View::Pool { page_bytes, pages: 0 })?.distinct_pages(),
            };
            if asked.is_some() {
                let has =
                    known.map_or_else(|| "its own".to_owned(), |pages| format!("{pages} distinct pages"));
                return Err(StackError::request(format!(
                    "--pages does not go with a trace, which has {has}; leave it out"
                )));
            }
            Ok(known.unwrap_or(u64::MAX))
        }
    }
}

/// Requests of a pool run behind those that are passed over.
fn pool_ops(workload: &Workload, view: View, skip: u64, asked: Option<u64>) -> Result<u64, StackError> {
    match (&workload.origin, view) {
        (Origin::Generator(_), _) => Ok(asked.unwrap_or(DEFAULT_OPS)),
        // The length of a trace that is read on the way is not known yet.
        (Origin::Trace(_), View::Pool { pages: u64::MAX, .. }) => Ok(asked.unwrap_or(u64::MAX)),
        (Origin::Trace(_), view) => {
            let has = workload.bind(view)?.page_count().unwrap_or(u64::MAX);
            if skip >= has && has > 0 {
                return Err(passes_over(skip, has));
            }
            within_trace(asked, has - skip, "page requests").map_err(|error| match skip {
                0 => error,
                skip => StackError::request(format!("{error}, behind --skip {skip}")),
            })
        }
    }
}

/// The error for a trace of which nothing is left.
pub(crate) fn passes_over(skip: u64, has: u64) -> StackError {
    StackError::request(format!(
        "--skip {skip} passes over the whole trace, which has {has} page requests; accepted: 0 to {}",
        has.saturating_sub(1)
    ))
}

/// How many frames they are for a pool that `pages` go through.
fn frames_of(asked: Portion, pages: u64) -> Result<u32, StackError> {
    let frames = match asked {
        Portion::Count(frames) => frames,
        Portion::Share(Share::ZERO) => 0,
        // A share of a few pages is still a pool.
        share => share.of(pages).max(1),
    };
    let is = if matches!(asked, Portion::Count(_)) { String::new() } else { format!(" is {frames} frames") };
    let refused = |why: &str| {
        StackError::request(format!(
            "--frames {asked}{is} for {pages} pages: {why}; accepted: 1 to {}",
            pages.min(u64::from(u32::MAX))
        ))
    };
    match u32::try_from(frames) {
        Ok(0) => Err(refused("a pool needs at least one frame")),
        _ if frames > pages => Err(refused("some frames would never be used")),
        Ok(frames) => Ok(frames),
        Err(_) => Err(refused("a pool numbers its frames in 32 bits")),
    }
}

/// What a write-back policy asks about the device of a stack.
struct Measured<'a> {
    stack: &'a Stack,
    page_bytes: u32,
    seed: u64,
    /// Whether the drive must be left alone, and usual figures stand in.
    is_dry: bool,
}

impl ChosenWriteBack {
    /// What `policy` means for a drive.
    fn on(policy: WriteBackConfig, drive: Measured) -> Result<ChosenWriteBack, StackError> {
        let batches = policy.resolve(drive);
        let batches = batches.map_err(|error| StackError::request(format!("--write-back: {error}")))?;
        Ok(ChosenWriteBack { policy, batches })
    }
}

impl Measured<'_> {
    fn refused(&self, what: &str) -> Result<(), SpecError> {
        if self.stack.device.is_none() {
            return Err(SpecError::new(format!(
                "{what} is measured on the drive, and device none is no drive; accepted: ace:n_w=8"
            )));
        }
        Ok(())
    }
}

impl Measured<'_> {
    /// How many reads the drive does at once.
    fn k_r(&mut self) -> Result<u32, SpecError> {
        if self.is_dry {
            return Ok(USUAL_K_R);
        }
        let plateau = profile::plateau(self.stack, self.page_bytes, false, self.seed);
        plateau.map(|reads| reads.k).map_err(|error| SpecError::new(error.to_string()))
    }
}

impl MeasuredDrive for Measured<'_> {
    fn k_w(&mut self) -> Result<u32, SpecError> {
        self.refused("n_w")?;
        if self.is_dry {
            return Ok(USUAL_K_W);
        }
        let plateau = profile::plateau(self.stack, self.page_bytes, true, self.seed);
        plateau.map(|writes| writes.k).map_err(|error| SpecError::new(error.to_string()))
    }

    fn curves(&mut self) -> Result<[Curve; 2], SpecError> {
        self.refused("everything in auto")?;
        if self.is_dry {
            let curve: Curve = vec![(1, 1.0), (USUAL_K_W, f64::from(USUAL_K_W))];
            return Ok([curve.clone(), curve]);
        }
        let profile = profile::profile(self.stack, self.page_bytes, self.seed);
        let profile = profile.map_err(|error| SpecError::new(error.to_string()))?;
        Ok([profile.reads.curve, profile.writes.curve])
    }
}

fn gc(mut asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    let (page_bytes, seed) = (asked.page_bytes, asked.seed);
    let workload = workloads.get(&asked.workload, asked.format.take())?;
    let ftl = translation_shape(&asked)?;
    let logical = u64::from(ftl.logical_pages);
    let rows = gc_rows(&asked, logical)?;
    let bound = workload.bind(View::Changes { page_bytes, pages: ftl.logical_pages })?;
    if let Some(pages) = bound.distinct_pages().filter(|pages| *pages > logical) {
        return Err(StackError::request(format!(
            "the trace touches {pages} pages, --logical has {logical}; use at least {}",
            units::format_size(pages * u64::from(page_bytes))
        )));
    }
    let ops = match bound.change_count() {
        None => asked.ops.unwrap_or(20 * logical),
        Some(has) => within_trace(asked.ops, has, "page writes and trims")?,
    };
    let mut stack =
        Stack { engine: None, pool: None, layer: None, device: DeviceConfig::translation(ftl, page_bytes) };
    if let DriveConfig::Translation(translation) = &mut stack.device.drive {
        translation.labels = [asked.placement_label, asked.victim_label];
    }
    let arrivals = Arrivals::Closed { users: 1 };
    let load = Requested { workload, pages: logical, addresses: AddressMap::Scale, arrivals, skip: 0, ops };
    let measure = Measure { rows, ..Measure::default() };
    Ok(Run { stack, load: Load::Requests(load), measure, seed })
}

fn translation_shape(asked: &Asked) -> Result<FtlConfig, StackError> {
    let page_bytes = u64::from(asked.page_bytes);
    let pages = |flag: &str, bytes: u64| -> Result<u64, StackError> {
        if bytes < page_bytes {
            return Err(StackError::request(format!(
                "--{flag} {bytes}B is less than a page; accepted: at least {}",
                units::format_size(page_bytes)
            )));
        }
        Ok(bytes / page_bytes)
    };
    let logical = pages("logical", asked.logical_bytes)?;
    let physical = pages("physical", asked.physical_bytes)?;
    let segment = pages("segment", asked.segment_bytes)?;
    if logical >= physical {
        return Err(StackError::request(format!(
            "--logical {} is not less than --physical {}; accepted: less logical than physical, since garbage collection needs free space",
            Unit::Bytes.humane(asked.logical_bytes as f64),
            Unit::Bytes.humane(asked.physical_bytes as f64)
        )));
    }
    if segment > physical {
        return Err(StackError::request(format!(
            "--segment {} is larger than --physical {}; accepted: a small part of it, like 4MiB",
            Unit::Bytes.humane(asked.segment_bytes as f64),
            Unit::Bytes.humane(asked.physical_bytes as f64)
        )));
    }
    let narrow = |flag: &str, value: u64| {
        u32::try_from(value).map_err(|_| {
            StackError::request(format!("--{flag} has {value} pages; accepted: fewer than 2^32"))
        })
    };
    let shape = FtlConfig::plain(
        narrow("logical", logical)?,
        narrow("physical", physical / segment)?,
        narrow("segment", segment)?,
    );
    let collect = Collect {
        reserve: asked.gc_reserve.unwrap_or(Collect::PLAIN.reserve),
        victim: asked.victim.clone().unwrap_or(Collect::PLAIN.victim),
        placement: asked.placement.clone().unwrap_or(Collect::PLAIN.placement),
        ..Collect::PLAIN
    };
    Ok(FtlConfig { collect, ..shape })
}

/// A row for the run, for every stretch of it, or for every group.
fn gc_rows(asked: &Asked, logical: u64) -> Result<Rows, StackError> {
    let interval = asked.page_interval.map(|interval| interval.of(logical));
    match (interval, asked.groups, asked.explain) {
        (Some(0), ..) => Err(StackError::request(format!(
            "--interval {} is less than one page write (there are {logical} logical pages); accepted: a count, or a larger share of them",
            asked.page_interval.unwrap_or(Portion::ZERO)
        ))),
        (None, false, false) => Ok(Rows::Run),
        (None, false, true) => Ok(Rows::Explained),
        (Some(length), false, false) => Ok(Rows::PageIntervals(length)),
        (None, true, false) => Ok(Rows::Groups),
        (Some(_), true, _) => Err(StackError::request(
            "--interval and --groups both choose what a row describes; accepted: one of them",
        )),
        (_, _, true) => Err(StackError::request(
            "--explain describes whole runs; accepted: --explain without --interval and --groups",
        )),
    }
}

fn replay(mut asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    let seed = asked.seed;
    let workload = workloads.get(&asked.workload, asked.format.take())?;
    let addresses = match (asked.addresses, asked.wrap) {
        (Some(_), true) => {
            return Err(StackError::request(
                "--addresses and --wrap each say what becomes of addresses; accepted: one of them",
            ));
        }
        (None, true) => AddressMap::Wrap,
        (addresses, false) => addresses.unwrap_or(AddressMap::Scale),
    };
    let arrivals = arrivals(&asked, &workload)?;
    let rows = asked.time_interval.map_or(Rows::Run, Rows::TimeIntervals);
    let measure = Measure {
        rows,
        timeline: asked.trace_out.as_ref().map(PathBuf::from),
        requests: asked.requests_out.as_ref().map(PathBuf::from),
        force: asked.force,
    };
    let asked_ops = asked.ops;
    let stack = stack(asked)?;
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

/// An open loop by times or by a rate, or a closed one.
fn arrivals(asked: &Asked, workload: &Workload) -> Result<Arrivals, StackError> {
    match (asked.users, asked.speed, asked.rate) {
        (Some(users), None, None) => Ok(Arrivals::Closed { users }),
        (None, None, Some(requests_s)) => Ok(Arrivals::Rate { requests_s: requests_s as f64 }),
        (None, speed, None) if workload.is_timed()? => Ok(Arrivals::Times { speed: speed.unwrap_or(1.0) }),
        (None, _, None) => Err(StackError::request(format!(
            "workload {} has no arrival times that go forward; give a --rate of requests per second, or a number of --users",
            workload.label
        ))),
        _ => Err(StackError::request(
            "--users, --speed and --rate each say when requests are made; accepted: one of them",
        )),
    }
}

fn within_trace(asked: Option<u64>, has: u64, what: &str) -> Result<u64, StackError> {
    match asked {
        // No number of `--ops` would suit an empty trace, so it is refused first.
        _ if has == 0 => Err(StackError::request(format!("the trace has no {what}"))),
        Some(asked) if asked > has => Err(StackError::request(format!(
            "--ops {asked} exceeds the trace's {has} {what}; accepted: 1 to {has}"
        ))),
        asked => Ok(asked.unwrap_or(has)),
    }
}
