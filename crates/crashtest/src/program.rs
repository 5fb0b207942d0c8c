//! Runs a program in a folder, and kills it with everything that it has started.

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group, test_kill_process_group};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The environment variable that marks the processes of a program, so that all of them are found.
const MARK: &str = "FULGURITE_CRASHTEST";

/// The environment variable with the path of the folder.
const FOLDER: &str = "FULGURITE_FOLDER";

/// The environment variable, and its value, by which glibc's `malloc` maps large buffers instead of clearing them.
/// `fuser` makes two of 16 MiB for each mount. Programs under test do not get it.
pub const MALLOC: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048577");

/// How often a program is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(1);

/// A running program.
pub(crate) struct Program {
    child: Child,
    mark: String,
    /// The folder, as `/proc` names it.
    folder: PathBuf,
    /// Whether no process outside the program's group had its mark when the group had been killed.
    is_alone: bool,
}

/// The files of a program: its input, if any, and its output.
pub(crate) struct Files<'a> {
    pub input: Option<&'a Path>,
    pub output: &'a Path,
    pub errors: &'a Path,
}

impl Program {
    /// Starts a program in `folder`. Its mark must be unique among those that run.
    pub(crate) fn start(
        words: &[impl AsRef<OsStr>],
        folder: &Path,
        files: &Files<'_>,
        mark: &str,
    ) -> io::Result<Program> {
        let [program, arguments @ ..] = words else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program"));
        };
        let input =
            files.input.map_or_else(|| Ok(Stdio::null()), |path| File::open(path).map(Stdio::from))?;
        let output = File::create(files.output)?;
        let errors =
            if files.errors == files.output { output.try_clone()? } else { File::create(files.errors)? };
        let mut command = Command::new(program);
        if std::env::var_os(MALLOC.0).is_some_and(|value| value == MALLOC.1) {
            command.env_remove(MALLOC.0);
        }
        let folder = folder.canonicalize()?;
        let child = command
            .args(arguments)
            .current_dir(&folder)
            .env(MARK, mark)
            .env(FOLDER, &folder)
            .stdin(input)
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()?;
        Ok(Program { child, mark: mark.to_owned(), folder, is_alone: false })
    }

    /// Waits until the program has ended, `stop` returns true, or the time is over. Returns how it ended, if it did.
    pub(crate) fn wait(
        &mut self,
        time: Duration,
        mut stop: impl FnMut(Duration) -> bool,
    ) -> io::Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if stop(LOOK) || start.elapsed() >= time {
                return Ok(None);
            }
        }
    }

    /// Kills the program and its descendants. They die when the requests that they wait for are answered; see
    /// [`Program::reap`].
    pub(crate) fn kill(&mut self) {
        if let Some(group) = self.group() {
            // A group that has ended already needs no kill.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let marked = self.marked();
        let is_apart = |process: &Pid| getpgid(Some(*process)).is_ok_and(|group| Some(group) != self.group());
        self.is_alone = !marked.iter().any(is_apart);
        for process in marked {
            let _ = kill_process(process, Signal::KILL);
        }
    }

    /// Waits until the program and its descendants are dead.
    pub(crate) fn reap(&mut self) -> io::Result<()> {
        self.child.wait()?;
        // A killed group starts no more processes, so another search would find none.
        if self.is_alone && self.group().is_none_or(|group| test_kill_process_group(group).is_err()) {
            return Ok(());
        }
        loop {
            let left = self.marked();
            if left.is_empty() {
                return Ok(());
            }
            // One of them may have started another before it was killed.
            for process in left {
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Returns the group of the program's processes. Those that leave it keep the mark.
    fn group(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Returns the processes with the program's mark, which descendants keep in their environment, and those that are
    /// in its folder. PostgreSQL's overwrite their environment.
    fn marked(&self) -> Vec<Pid> {
        let mark = format!("{MARK}={}", self.mark);
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let is_marked =
            |environment: &[u8]| environment.split(|byte| *byte == 0).any(|pair| pair == mark.as_bytes());
        // A file there has no size, so a new buffer would grow by many reads.
        let mut environment = Vec::with_capacity(64 << 10);
        processes
            .flatten()
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let is_there = fs::read_link(entry.path().join("cwd"))
                    .is_ok_and(|current| current.starts_with(&self.folder));
                environment.clear();
                if !is_there {
                    File::open(entry.path().join("environ")).ok()?.read_to_end(&mut environment).ok()?;
                }
                if is_there || is_marked(&environment) { Pid::from_raw(pid) } else { None }
            })
            .collect()
    }
}

/// Returns the last lines of an output, for a message.
pub(crate) fn last_lines(path: &Path) -> String {
    let text = fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" / ")
}
