//! Builds a run of `bench`, which executes a benchmark on a storage engine.

use super::measured::Measured;
use super::stack::stack;
use super::{Asked, Memory};
use crate::StackError;
use crate::device::{DriveConfig, MemConfig};
use crate::run::{Benchmarked, ChosenWriteBack, EngineStage, Load, Measure, Policies, Rows, Run, Stack};
use fulgurite_base::{Nanos, NoOptions};
use fulgurite_bench::index_scan::Degree;
use fulgurite_bench::{BenchmarkConfig, Extent};
use fulgurite_engine::{Durability, Options, PlaceConfig, TornPages};
use fulgurite_pool::WriteBackConfig;

/// The default number of transactions in the measured part of a run.
const DEFAULT_OPS: u64 = 20_000;
/// The default memory of an engine is the number of bytes of the loaded data divided by this number.
const DATA_PER_MEMORY: u64 = 10;
/// The least memory in bytes of each shard of an engine whose memory is a share of the data.
const LEAST_MEMORY: u64 = 1 << 20;
/// The space in bytes that a new drive gets in addition to the log and twice the data.
const ROOM_BESIDE: u64 = 64 << 20;
/// The default CPU time that a call of the store costs on a simulated drive.
const CPU_PER_OP: Nanos = Nanos::from_micros(2);

pub(super) fn bench(mut asked: Asked, is_dry: bool) -> Result<Run, StackError> {
    let (page_bytes, log_bytes, seed, reuse) = (asked.page_bytes, asked.log_bytes, asked.seed, asked.reuse);
    let mut load = benchmarked(&asked)?;
    let measure = Measure { rows: rows(&asked), ..Measure::default() };
    let data_bytes = load.benchmark.data_bytes();
    let memory = asked.memory;
    let missing = |what: &str| StackError::request(format!("{what} is missing"));
    // `stack` consumes `asked`, so the settings of the engine are taken out first.
    let replacement = asked.replacement.take().ok_or_else(|| missing("--replacement"))?;
    let write_back = asked.write_back.take();
    let prefetch = asked.prefetch.take().ok_or_else(|| missing("--prefetch"))?;
    let place = asked.place.take().unwrap_or(PlaceConfig::InPlace(NoOptions));
    let torn_pages = asked.torn_pages.unwrap_or(TornPages::Auto);
    let durability = asked.durability.unwrap_or(Durability::Group);
    let (cpu_per_op, records, cores) = (asked.cpu_per_op, asked.records, asked.cores);
    let shards = asked.shards.unwrap_or(cores);
    let mut stack = stack(asked)?;
    let room = data_bytes.saturating_mul(2).saturating_add(log_bytes).saturating_add(ROOM_BESIDE);
    make_room(&mut stack, page_bytes, room)?;
    stack.check_storage()?;
    if reuse {
        check_reuse(&stack, write_back.as_ref())?;
        check_reuse_of_degree(&load.benchmark)?;
    }
    resolve_degree(&mut load.benchmark, Measured { stack: &stack, page_bytes, seed, is_dry })?;
    let measured = Measured { stack: &stack, page_bytes, seed, is_dry };
    let write_back = write_back.map(|policy| ChosenWriteBack::on(policy, measured)).transpose()?;
    let usual = if stack.device.is_real() { Nanos::ZERO } else { CPU_PER_OP };
    let torn_pages = stack.torn_pages(torn_pages, &place, page_bytes)?;
    let mut stage = EngineStage {
        policies: Policies { replacement, prefetch },
        write_back,
        page_bytes,
        memory_bytes: LEAST_MEMORY,
        log_bytes,
        records,
        place,
        torn_pages,
        durability,
        cpu_per_op: cpu_per_op.unwrap_or(usual),
        shards,
        cores,
        reuse,
    };
    // `Run::check` refuses the run if the store cannot be created on this device, so the error is dropped
    // here.
    let map_memory = stack.map_memory(&stage.options(), shards).unwrap_or_default();
    stage.memory_bytes = memory_bytes(memory, data_bytes, LEAST_MEMORY * u64::from(shards), map_memory);
    stack.engine = Some(stage);
    Ok(Run { stack, load: Load::Benchmark(load), measure, seed })
}

fn benchmarked(asked: &Asked) -> Result<Benchmarked, StackError> {
    let mut benchmark: BenchmarkConfig = asked.benchmark.parse()?;
    let usual = benchmark.clone().with_scale(1)?;
    let has_own_size = benchmark.data() != usual.data();
    if let Some(scale) = asked.scale {
        if has_own_size {
            return Err(StackError::request(format!(
                "--scale {scale} and {} each say how much data there are; accepted: one of them",
                asked.benchmark
            )));
        }
        benchmark = benchmark.with_scale(scale)?;
    }
    if let Some(degree) = &asked.degree {
        benchmark = with_degree(benchmark, degree)?;
    }
    let stop = match (asked.ops, asked.time) {
        (Some(_), Some(_)) => {
            return Err(StackError::request(
                "--ops and --time each say how long the measured part is; accepted: one of them",
            ));
        }
        (_, Some(time)) => Extent::Time(time),
        (ops, None) => Extent::Ops(ops.unwrap_or(DEFAULT_OPS)),
    };
    let tenth = match stop {
        Extent::Ops(ops) => Extent::Ops(ops / 10),
        Extent::Time(time) => Extent::Time(Nanos(time.0 / 10)),
    };
    Ok(Benchmarked {
        label: asked.benchmark.clone(),
        benchmark,
        scale: asked.scale.or((!has_own_size).then_some(1)),
        users: asked.users.unwrap_or(1),
        stop,
        warm_up: asked.warm_up.unwrap_or(tenth),
    })
}

fn with_degree(mut benchmark: BenchmarkConfig, degree: &str) -> Result<BenchmarkConfig, StackError> {
    let BenchmarkConfig::IndexScan(scan) = &mut benchmark else {
        return Err(StackError::request(format!(
            "--degree {degree} does not go with {}, which reads no rows through an index; leave it out, or choose \
                index-scan",
            benchmark.name()
        )));
    };
    scan.set_degree(degree).map_err(|error| StackError::request(format!("--degree: {error}")))?;
    Ok(benchmark)
}

/// Replaces the degree `auto` of an index scan by k_r, the measured number of concurrent reads. The degree is
/// the number of database rows that the scan reads at once.
fn resolve_degree(benchmark: &mut BenchmarkConfig, mut drive: Measured<'_>) -> Result<(), StackError> {
    let BenchmarkConfig::IndexScan(scan) = benchmark else { return Ok(()) };
    scan.resolve(|| drive.k_r()).map_err(|error| StackError::request(format!("degree auto: {error}")))
}

/// Returns the subject of each result row: the run, an interval, a type of transaction, or a type in an
/// interval.
fn rows(asked: &Asked) -> Rows {
    match (asked.time_interval, asked.by_type) {
        (None, false) => Rows::Run,
        (Some(length), false) => Rows::TimeIntervals(length),
        (None, true) => Rows::Types,
        (Some(length), true) => Rows::TypeIntervals(length),
    }
}

/// Returns the engine's memory in bytes. Memory that was given in bytes includes the map of pages out of
/// place. A share of the data and the default exclude the map, so its size is added, which is half of
/// `map_memory`. The memory for pages therefore does not depend on whether pages are in place or out of
/// place.
fn memory_bytes(asked: Option<Memory>, data_bytes: u64, least: u64, map_memory: u64) -> u64 {
    let beside_map = |bytes: u64| (bytes.max(least) + map_memory / 2).max(map_memory);
    match asked {
        Some(Memory::Bytes(bytes)) => bytes,
        Some(Memory::OfData(share)) => beside_map(share.of(data_bytes)),
        None => beside_map(data_bytes / DATA_PER_MEMORY),
    }
}

/// Gives the device room for `bytes`, if it is a file or a `mem` device without a given size.
fn make_room(stack: &mut Stack, page_bytes: u32, bytes: u64) -> Result<(), StackError> {
    stack.device_pages_per(page_bytes)?;
    let pages = bytes.div_ceil(u64::from(page_bytes)) * u64::from(page_bytes / stack.device.page_bytes());
    let below = stack.pages_below(pages);
    if let DriveConfig::Mem(mem) = &mut stack.device.drive {
        // Fit the drive to the data: a store uses the whole drive, and the default size of `mem` is far
        // larger than any data.
        if mem.pages == MemConfig::default().pages {
            mem.pages = below;
        }
    }
    stack.make_room_for(pages);
    Ok(())
}

/// Refuses `--reuse` if the write-back policy must be measured: measuring a drive overwrites the data in the
/// file.
fn check_reuse(stack: &Stack, write_back: Option<&WriteBackConfig>) -> Result<(), StackError> {
    if !stack.device.is_real() || stack.layer.is_some() {
        return Err(StackError::request(format!(
            "--reuse does not go with {}: only a file without a layer keeps data from one run to the next; a grid \
                loads simulated drives once by itself",
            stack.device.label
        )));
    }
    let Some(write_back) = write_back else { return Ok(()) };
    let known = write_back.resolve(|| Err(fulgurite_base::SpecError::new("measured")));
    known.map(drop).map_err(|_| {
        StackError::request(format!(
            "--reuse does not go with --write-back {write_back}, which measures the drive and so overwrites the \
                file; accepted: store, or one with its numbers given, like ace:n_w=8",
        ))
    })
}

fn check_reuse_of_degree(benchmark: &BenchmarkConfig) -> Result<(), StackError> {
    match benchmark {
        BenchmarkConfig::IndexScan(scan) if scan.degree == Degree::Auto => Err(StackError::request(
            "--reuse does not go with a degree of auto, which measures the drive and so overwrites the file; \
                accepted: 1 to 256",
        )),
        _ => Ok(()),
    }
}

impl Stack {
    /// Returns the least memory in bytes for the maps of pages out of place of all shards, given the options of each.
    /// It is 0 if pages are in place, or if only the opened drive can tell.
    pub(crate) fn map_memory(&self, options: &Options, shards: u32) -> Result<u64, fulgurite_engine::Error> {
        match options.place {
            PlaceConfig::Auto(_) if self.device.is_real() => Ok(0),
            _ => Ok(options.map_memory(&self.shard_caps(shards)?)? * u64::from(shards)),
        }
    }

    /// Returns the protection from torn writes on this device, as far as it is known before the device is
    /// opened. Fails if the device does not support the protection that was asked for.
    fn torn_pages(
        &self,
        asked: TornPages,
        place: &PlaceConfig,
        page_bytes: u32,
    ) -> Result<TornPages, StackError> {
        let refused = |error| {
            let name = fulgurite_base::option::name_of(asked);
            StackError::request(format!("--torn-pages {name} on {}: {error}", self.device.label))
        };
        match (self.device.simulated(), &self.layer) {
            (Some(config), None) if place.is_out(&config.caps(true), page_bytes) => Ok(asked),
            (Some(config), None) => asked.resolve(&config.caps(true), page_bytes).map_err(refused),
            _ => Ok(asked),
        }
    }
}
