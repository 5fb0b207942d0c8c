//! Prepares a device with the data of a benchmark.
//!
//! A simulated drive is loaded once for all runs of a process with the same device, page size, log size,
//! `place` (in place or out of place), data and seed. The contents of the loaded drive are kept, and each run
//! begins with a copy of them at time zero. So runs with different users, durability, memory and policies
//! start from one state, and a run gives the same rows alone and in a grid. Every load uses the same options,
//! even if the run has others. On other drives each run loads the data itself, unless `--reuse` asks for the
//! data in the file.

use super::shared::{BenchRun, failed};
use super::watched::Watched;
use crate::StackError;
use crate::device::{AnyDrive, DriveConfig, FileConfig};
use crate::memo::Memo;
use crate::open::Boxed;
use fulgurite_base::{Lpn, units};
use fulgurite_bench::{BenchmarkConfig, Data};
use fulgurite_device::{Caps, Device, Executor, Handle};
use fulgurite_engine::sharded::{Store, divide, pages_of_shard};
use fulgurite_engine::{Durability, Options};
use fulgurite_files::holds_store;
use fulgurite_ssd::{Image, SimDrive};
use std::sync::Arc;

/// The name of the table that names the benchmark whose data a store holds.
const MARKER: &str = "benchmark";
/// The least and the most memory in bytes of a load. Between these bounds the memory is as large as the data.
const LOAD_MEMORY: (u64, u64) = (8 << 20, 256 << 20);

type Loaded = Result<Arc<Image>, StackError>;

impl BenchRun<'_> {
    /// Returns the device with the benchmark's data on it.
    pub(super) fn loaded_drive(&self) -> Result<AnyDrive, StackError> {
        let stack = &self.run.stack;
        match (&stack.device.drive, &stack.layer) {
            (DriveConfig::Simulated { config, .. }, None) => {
                let image = self.image()?;
                Ok(Box::new(SimDrive::with_image((**config).clone(), &image)))
            }
            (DriveConfig::File(file), _) if self.stage.reuse && holds_store(&file.path) => {
                let drive = self.drive()?;
                self.on(drive, |handle, load| async move { load.look(handle).await }).map(|(drive, ())| drive)
            }
            _ => self.load().map(|(drive, ())| drive),
        }
    }

    fn drive(&self) -> Result<AnyDrive, StackError> {
        let pages = self.run.stack.device_pages_per(self.stage.page_bytes)?;
        self.run.stack.with_device(self.run.seed, pages, Boxed)
    }

    fn load(&self) -> Result<(AnyDrive, ()), StackError> {
        let drive = self.drive()?;
        let file = match &self.run.stack.device.drive {
            DriveConfig::File(file) => Some(file),
            _ => None,
        };
        // Mark the file as loading, because an interrupted load leaves an incomplete store. The mark allows
        // the next run to replace that store.
        let mark = |begins| match file {
            Some(file) => fulgurite_uring::mark_loading(&file.path, begins)
                .map_err(|error| StackError::run(format!("{}: {error}", file.path.display()))),
            None => Ok(()),
        };
        mark(true)?;
        let loaded = self.on(drive, |handle, load| async move { load.fill(handle).await })?;
        mark(false)?;
        Ok(loaded)
    }

    /// Returns the contents of a simulated drive after the load. The memo keeps them for other runs.
    fn image(&self) -> Loaded {
        static KEPT: Memo<Loaded> = Memo::new();
        let (run, stage) = (self.run, self.stage);
        let key = format!(
            "{} {} {} {} {} {} {}",
            run.stack.canonical_storage(),
            stage.shards,
            stage.place,
            stage.page_bytes,
            stage.log_bytes,
            self.asked.benchmark.data(),
            run.seed
        );
        KEPT.get(key, || {
            let (mut drive, ()) = self.load()?;
            drive.settle();
            drive.drain_events();
            drive.verify(true).map_err(StackError::run)?;
            drive.image().map(Arc::new).ok_or_else(|| StackError::run("the drive is not idle after the load"))
        })
    }

    /// Runs a task on a drive, and returns the drive with the result of the task.
    fn on<T: 'static, F: Future<Output = Result<T, StackError>> + 'static>(
        &self,
        drive: AnyDrive,
        task: impl FnOnce(Handle, Load) -> F,
    ) -> Result<(AnyDrive, T), StackError> {
        let load = Load {
            benchmark: self.asked.benchmark.clone(),
            options: self.load_options(drive.caps()),
            shards: self.stage.shards,
            device: self.run.stack.device.label.clone(),
            seed: self.run.seed,
            is_overwritten: match &self.run.stack.device.drive {
                DriveConfig::File(FileConfig { destroy_contents, .. }) => *destroy_contents,
                _ => true,
            },
        };
        let (watched, watcher) = Watched::new(drive);
        let executor = Executor::new(watched);
        let task = task(executor.handle().into(), load);
        let output = executor.block_on(task).map_err(StackError::run)??;
        drop(executor);
        let drive = watcher.into_drive().ok_or_else(|| StackError::run("a task still uses the drive"))?;
        Ok((drive, output))
    }

    fn load_options(&self, caps: &Caps) -> Options {
        let memory = self.asked.benchmark.data_bytes().clamp(LOAD_MEMORY.0, LOAD_MEMORY.1);
        let shards = u64::from(self.stage.shards);
        let mut options = Options {
            page_bytes: self.stage.page_bytes,
            log_bytes: self.stage.shard_log_bytes(),
            memory_bytes: (memory / shards).max(u64::from(self.stage.page_bytes) * 256),
            // Commits need not wait for the drive, since the checkpoint at the end makes the whole load
            // durable.
            durability: Durability::Relaxed,
            place: self.stage.place.clone(),
            ..Options::default()
        };
        // `Store::create` reports a store that cannot be created on this drive, so the error is dropped here.
        let part = pages_of_shard(caps, self.stage.shards).ok().and_then(|pages| caps.part(Lpn(0), pages));
        let map_memory = options.map_memory(part.as_ref().unwrap_or(caps)).unwrap_or_default();
        options.memory_bytes = options.memory_bytes.max(map_memory);
        options
    }
}

/// The load of a benchmark's data into a store.
struct Load {
    benchmark: BenchmarkConfig,
    /// The options of each shard.
    options: Options,
    shards: u32,
    /// The label of the device, for errors.
    device: String,
    seed: u64,
    /// Whether the load may overwrite a store with other contents.
    is_overwritten: bool,
}

impl Load {
    /// Creates a store and loads the data into it.
    async fn fill(self, handle: Handle) -> Result<(), StackError> {
        let failed = |error| failed(&self.device, error);
        let failed_store = |error: fulgurite_engine::Error| failed(error.into());
        let handles = divide(handle, self.shards).map_err(failed_store)?;
        let store = Store::create(handles, self.options).await.map_err(failed_store)?;
        self.benchmark.load(&store, self.seed).await.map_err(failed)?;
        store.close().await.map_err(failed_store)
    }

    /// Checks whether the store holds the data already. If not, loads the data, if overwriting is allowed.
    async fn look(self, handle: Handle) -> Result<(), StackError> {
        let found = self.found(handle.clone()).await;
        match found {
            Ok(()) => Ok(()),
            Err(_) if self.is_overwritten => self.fill(handle).await,
            Err(why) => Err(StackError::request(format!(
                "--reuse: {why}; accepted: what the file holds, another file, or --destroy-contents to load it anew"
            ))),
        }
    }

    async fn found(&self, handle: Handle) -> Result<(), String> {
        let text = |error: fulgurite_engine::Error| error.to_string();
        let caps = handle.caps();
        let handles = divide(handle, self.shards).map_err(text)?;
        let store = Store::open(handles, self.options.clone()).await.map_err(text)?;
        let tables = store.tables().await.map_err(text)?;
        let data = match tables.iter().any(|name| name == MARKER) {
            true => Data::of(&store).await.map_err(|error| error.to_string())?,
            false => None,
        };
        let (page_bytes, log_bytes, is_out) =
            (store.first().page_bytes(), store.first().log_bytes(), store.first().is_out_of_place());
        store.close().await.map_err(text)?;
        let wanted = Data { text: self.benchmark.data(), seed: self.seed };
        match data {
            None => Err("the file holds a store without the data of a benchmark".to_owned()),
            Some(data) if data != wanted => Err(format!(
                "the file holds the data of {} from seed {}, and {} from seed {} was asked for",
                data.text, data.seed, wanted.text, wanted.seed
            )),
            Some(_) if page_bytes != self.options.page_bytes => {
                Err(format!("the store in the file has --page {}", units::format_size(page_bytes.into())))
            }
            Some(_) if is_out != self.options.place.is_out(&caps, page_bytes) => Err(format!(
                "the store in the file has --place {}",
                if is_out { "out-of-place" } else { "in-place" }
            )),
            // Refuse a store whose log has another size: result rows would show a size that its log does not
            // have.
            Some(_) if log_bytes != self.options.log_bytes => {
                Err(format!("the store in the file has --log-size {}", units::format_size(log_bytes)))
            }
            Some(_) => Ok(()),
        }
    }
}
