//! A served drive, which ends at the latest when the test does, and the programs that use it.

use super::client::Client;
use crate::folder::{Folder, Outcome};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time after which a program that does not end has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A served drive in a folder of its own, with the sockets `s` for NBD and `c` for control.
pub(crate) struct Served {
    pub folder: Folder,
    /// The first line on standard error.
    pub greeting: String,
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Served {
    /// Serves a drive with these arguments, and waits until programs can reach it.
    pub(crate) fn new(arguments: &str) -> Served {
        Served::within(Folder::new(), arguments)
    }

    /// Serves a drive at full speed, mounted at the folder `d` too.
    pub(crate) fn mounted(arguments: &str) -> Served {
        let folder = Folder::new();
        std::fs::create_dir(folder.0.join("d")).unwrap();
        Served::within(folder, &format!("{arguments} --fuse d --speed max"))
    }

    /// Serves a drive in a folder with files.
    pub(crate) fn within(folder: Folder, arguments: &str) -> Served {
        Served::started(folder, &format!("serve {arguments} --nbd unix:s --control c"))
    }

    /// Starts a server with exactly these arguments, and waits until programs can reach it.
    pub(crate) fn started(folder: Folder, arguments: &str) -> Served {
        let mut child = folder.start(arguments);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let served = Served { folder, greeting: line, child, stderr };
        assert!(served.greeting.starts_with("serving "), "{arguments}: {}", served.greeting);
        served
    }

    /// Returns the URI of the drive.
    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.folder.0.join("s").display())
    }

    /// Connects a client.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.folder.0.join("s"))
    }

    /// Executes a bash script in the folder, in which `$uri` is the drive. A program that is not installed, or
    /// that does not end, fails the test.
    pub(crate) fn shell(&self, script: &str) -> Outcome {
        shell(&self.folder, &format!("uri='{}'; {script}", self.uri()))
    }

    /// Executes a script as [`Served::shell`] does, which must succeed. Returns its standard output.
    pub(crate) fn done(&self, script: &str) -> String {
        let Outcome { code, stdout, stderr } = self.shell(script);
        assert_eq!(code, 0, "{script}: {stdout}{stderr}");
        stdout
    }

    /// Executes commands of `qemu-io`, which are separated by semicolons, on the drive.
    pub(crate) fn qemu_io(&self, commands: &str) -> Outcome {
        let commands: String = commands.split("; ").map(|command| format!(" -c '{command}'")).collect();
        self.shell(&format!("qemu-io -f raw{commands} \"$uri\" 2>&1"))
    }

    /// Sends a command of `ctl`.
    pub(crate) fn ctl(&self, command: &str) -> Outcome {
        self.folder.run(&format!("ctl c {command}"))
    }

    /// Sends a command of `ctl`, which must succeed, and returns its answer.
    pub(crate) fn told(&self, command: &str) -> Value {
        let outcome = self.ctl(&format!("{command} --json"));
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{command}");
        serde_json::from_str::<Value>(&outcome.stdout).unwrap()[0].take()
    }

    /// Arms a power cut at a point of the run.
    pub(crate) fn cut_at(&self, arguments: &str) -> Armed {
        let mut child = self.folder.start(&format!("ctl c power-cut --json --at {arguments}"));
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        assert_eq!(line, "waiting for the point of the cut\n", "{arguments}");
        Armed { child, stderr }
    }

    /// Sends a signal to the server.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end of the server.
    pub(crate) fn outcome(&mut self) -> Outcome {
        outcome(&mut self.child, &mut self.stderr)
    }

    /// Ends a server that was started with `--json`, and returns its row.
    pub(crate) fn row(mut self) -> Value {
        self.told("stop");
        let Outcome { code, stdout, stderr } = self.outcome();
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str::<Value>(&stdout).unwrap()[0].take()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The folder cannot be removed while it is a mount point, so the server ends by itself if it can.
        if self.child.try_wait().is_ok_and(|code| code.is_none()) {
            self.ctl("stop");
            if code(&mut self.child, Duration::from_secs(10)).is_none() {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// A power cut that waits for its point.
pub(crate) struct Armed {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Armed {
    /// Waits for the cut, and returns its report.
    pub(crate) fn report(mut self) -> Value {
        let Outcome { code, stdout, stderr } = self.outcome();
        assert_eq!(code, 0, "{stderr}");
        serde_json::from_str::<Value>(&stdout).unwrap()[0].take()
    }

    /// Waits for the end of the command.
    pub(crate) fn outcome(&mut self) -> Outcome {
        outcome(&mut self.child, &mut self.stderr)
    }
}

/// Waits for the end of a process.
fn outcome(child: &mut Child, stderr: &mut impl Read) -> Outcome {
    let Some(code) = code(child, PATIENCE) else {
        child.kill().unwrap();
        panic!("process {} does not end", child.id());
    };
    let mut outcome = Outcome { code, stdout: String::new(), stderr: String::new() };
    child.stdout.take().unwrap().read_to_string(&mut outcome.stdout).unwrap();
    stderr.read_to_string(&mut outcome.stderr).unwrap();
    outcome
}

/// Returns the exit code of a process, -1 after a signal; `None` if it does not end in time.
fn code(child: &mut Child, patience: Duration) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < patience {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(-1));
        }
        sleep(Duration::from_millis(2));
    }
    None
}

/// Executes a bash script in a folder. A program that is not installed, or that does not end, fails the test.
pub(crate) fn shell(folder: &Folder, script: &str) -> Outcome {
    let patience = PATIENCE.as_secs().to_string();
    // Programs for administrators are not in the path of every user.
    let script = format!("set -o pipefail; PATH=$PATH:/usr/sbin:/sbin; {script}");
    let output = Command::new("timeout")
        .args(["--signal=KILL", &patience, "bash", "-c", &script])
        .current_dir(&folder.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    for said in [&stdout, &stderr] {
        if let Some(missing) = said.lines().find(|line| line.ends_with("command not found")) {
            panic!("{missing}; `cargo xtask ci --install` installs Debian's packages for this test");
        }
    }
    Outcome { code: output.status.code().expect("the programs ended in time"), stdout, stderr }
}
