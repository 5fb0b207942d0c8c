//! The parent process: limits memory, loads each engine once, and executes all runs in turn, each in its own
//! process.

use crate::engine::{Direct, Kind, Order, kind};
use crate::holes;
use crate::limit::Group;
use crate::meter;
use crate::setting::{Args, Bound, Durability, Measure, Task};
use crate::worker::Outcome;
use crate::workload::Workload;
use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A run that succeeded.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub engine: &'static str,
    pub workload: Workload,
    /// `None` if nothing is written.
    pub durability: Option<Durability>,
    pub repeat: u32,
    /// `direct`, `cached` (page cache within the memory group), or `unbound` (page cache without a limit).
    pub io: &'static str,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// Whether a memory group can be created, and how that was determined.
pub struct Memory {
    pub group: bool,
    /// A sentence for the head of the table.
    pub note: String,
}

/// Tries to set the limit that `args` request.
///
/// # Errors A group was requested and cannot be created.
pub fn memory(args: &Args) -> Result<Memory> {
    let mib = args.memory >> 20;
    let unbound = "direct I/O in the engines that can; the page cache of the others is not bound";
    if args.bound == Bound::Direct {
        return Ok(Memory { group: false, note: unbound.to_owned() });
    }
    match Group::create(args.memory) {
        Ok(group) => {
            let note =
                format!("{} limits each engine's process to {mib} MiB with its page cache", group.version());
            Ok(Memory { group: true, note })
        }
        Err(error) if args.bound == Bound::Auto => {
            Ok(Memory { group: false, note: format!("no memory group ({error:#}): {unbound}") })
        }
        Err(error) => Err(error.context("--bound cgroup")),
    }
}

/// Executes all runs and passes each to `done`. Returns the failures.
///
/// # Errors The folder cannot be used, or an engine cannot be loaded.
pub fn run_all(args: &Args, memory: &Memory, done: &mut dyn FnMut(Run)) -> Result<Vec<String>> {
    fs::create_dir_all(&args.dir).with_context(|| format!("making {}", args.dir.display()))?;
    let mut failures = Vec::new();
    let engines: Vec<&'static Kind> = args.engines.iter().filter_map(|name| kind(name)).collect();
    let needs_rows = args.workloads.iter().any(|&workload| workload != Workload::Load);
    for kind in engines.iter().filter(|kind| kind.reopens && needs_rows) {
        load_once(args, kind)?;
    }
    let mut number = 0;
    for repeat in 1..=args.repeat {
        for (workload, durability) in args.cells() {
            for kind in &engines {
                if durability == Durability::Durable && !kind.durable {
                    continue;
                }
                number += 1;
                let cell = Cell { args, memory, kind, workload, durability, repeat, number };
                match cell.run() {
                    Ok(run) => done(run),
                    Err(error) => failures.push(format!("{}: {error:#}", cell.name())),
                }
            }
        }
    }
    Ok(failures)
}

/// The folder of the loaded store. Its name includes everything on which the content depends.
fn loaded_folder(args: &Args, kind: &Kind) -> PathBuf {
    let order = if args.load == Order::Sorted { "sorted" } else { "random" };
    args.dir.join(format!("peers-{}-{}-{order}", kind.name, args.rows))
}

fn load_once(args: &Args, kind: &Kind) -> Result<()> {
    let folder = loaded_folder(args, kind);
    let mark = folder.with_extension("loaded");
    if mark.exists() && folder.exists() {
        return Ok(());
    }
    eprintln!("peers: loading {} rows into {}", args.rows, kind.name);
    let start = Instant::now();
    empty(&folder)?;
    let task = task(args, kind, &folder, false);
    // The load is not measured, so its memory is not limited.
    spawn(&Task { load: Some(args.load), ..task }, None).with_context(|| format!("loading {}", kind.name))?;
    meter::forget(&folder)?;
    let mib = meter::space_bytes(&folder)? >> 20;
    eprintln!("peers: loaded {} in {:.1} s, {mib} MiB", kind.name, start.elapsed().as_secs_f64());
    fs::write(&mark, "")?;
    Ok(())
}

fn task(args: &Args, kind: &Kind, folder: &Path, direct: bool) -> Task {
    Task {
        engine: kind.name.to_owned(),
        folder: folder.to_owned(),
        rows: args.rows,
        threads: args.threads,
        cache_bytes: args.cache,
        memory_bytes: args.memory,
        direct,
        seed: args.seed,
        load: None,
        measure: None,
    }
}

/// A run to be executed.
struct Cell<'a> {
    args: &'a Args,
    memory: &'a Memory,
    kind: &'static Kind,
    workload: Workload,
    durability: Durability,
    repeat: u32,
    number: u32,
}

impl Cell<'_> {
    fn name(&self) -> String {
        format!("{} {} {:?} repeat {}", self.kind.name, self.workload.name(), self.durability, self.repeat)
    }

    fn run(&self) -> Result<Run> {
        let Cell { args, kind, .. } = self;
        let folder = self.folder()?;
        let direct = match kind.direct {
            Direct::Never => false,
            Direct::Asked => args.direct || !self.memory.group,
            Direct::Always => true,
        };
        let load = (!kind.reopens && self.workload != Workload::Load).then_some(args.load);
        let task = Task { load, measure: Some(self.measure()), ..task(args, kind, &folder, direct) };
        eprintln!("peers: {}", self.name());
        let group = if self.memory.group { Some(Group::create(args.memory)?) } else { None };
        let mut outcome = spawn(&task, group.as_ref())?.context("the worker measured nothing")?;
        outcome.peak_group_bytes = group.as_ref().and_then(Group::peak_bytes);
        if !self.keeps() {
            fs::remove_dir_all(&folder)?;
        }
        let writes = self.workload.writes();
        Ok(Run {
            engine: kind.name,
            workload: self.workload,
            durability: writes.then_some(self.durability),
            repeat: self.repeat,
            io: if direct {
                "direct"
            } else if self.memory.group {
                "cached"
            } else {
                "unbound"
            },
            outcome,
        })
    }

    /// Whether it runs in the loaded store itself. A workload that inserts needs a copy, because its rows
    /// would not be new the second time.
    fn keeps(&self) -> bool {
        self.args.keep && self.kind.reopens && !self.workload.inserts()
    }

    fn measure(&self) -> Measure {
        let Args { warmup, seconds, .. } = *self.args;
        // An empty store needs no warm-up, and its first rows are part of the load.
        let loads = self.workload == Workload::Load;
        let (warmup_s, seconds) = if loads { (0.0, warmup + seconds) } else { (warmup, seconds) };
        Measure {
            workload: self.workload,
            durability: self.durability,
            batch: self.args.batch,
            theta: self.args.theta,
            warmup_s,
            seconds,
            // Runs that share a store must not write equal versions. The process number distinguishes
            // invocations.
            run: (std::process::id().wrapping_mul(251).wrapping_add(self.number) % 65_535 + 1) as u16,
            aged: self.keeps(),
        }
    }

    /// The folder of the run: a new copy of the loaded store, that store itself, or an empty folder.
    fn folder(&self) -> Result<PathBuf> {
        let loaded = loaded_folder(self.args, self.kind);
        if self.keeps() {
            meter::forget(&loaded)?;
            return Ok(loaded);
        }
        let folder = self.args.dir.join("peers-run");
        empty(&folder)?;
        if self.kind.reopens && self.workload != Workload::Load {
            holes::copy(&loaded, &folder)?;
            // No page of the copy may be cached at the start, because the memory group would not account for
            // it.
            meter::forget(&loaded)?;
            meter::forget(&folder)?;
        }
        Ok(folder)
    }
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

/// Executes `task` in its own process, in `group` if there is one.
fn spawn(task: &Task, group: Option<&Group>) -> Result<Option<Outcome>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some(group) = group {
        command.arg(group.procs());
    }
    // SAFETY: prctl may be called between fork and exec. It ends the worker when its parent ends for any
    // reason.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let mut child = command.spawn().context("starting a worker")?;
    let input = serde_json::to_vec(task)?;
    child.stdin.take().context("a worker without input")?.write_all(&input)?;
    let output = child.wait_with_output()?;
    if !output.status.success() {
        if group.is_some_and(Group::has_killed) {
            bail!("the kernel ended the worker: it needs more memory than the limit");
        }
        bail!("the worker failed ({})", output.status);
    }
    let outcome = serde_json::from_slice(&output.stdout).context("the worker's answer")?;
    ensure!(task.measure.is_none() == Option::is_none(&outcome), "the worker did something else");
    Ok(outcome)
}
