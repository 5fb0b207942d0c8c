//! Executes the command as users do, each time in an empty folder.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The outcome of one execution of the command.
pub(crate) struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Returns the figure of a result row in a column.
pub(crate) fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} is missing from {row}"))
}

/// A temporary folder, which is empty at first and is removed at the end of the test.
pub(crate) struct Folder(pub PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Writes a file into the folder.
    pub(crate) fn with(self, name: &str, content: impl AsRef<[u8]>) -> Folder {
        self.write(name, content);
        self
    }

    /// Writes a file, which may replace an earlier one.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), content).unwrap();
    }

    /// Returns the names of the files in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Executes `fulgurite` in this folder with `arguments`, which are separated by spaces.
    pub(crate) fn run(&self, arguments: &str) -> Outcome {
        let output = Command::new(env!("CARGO_BIN_EXE_fulgurite"))
            .args(arguments.split_whitespace())
            .current_dir(&self.0)
            .output()
            .unwrap();
        Outcome {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Executes a bash script in this folder, in which `fulgurite` is the command under test.
    pub(crate) fn shell(&self, script: &str) -> Outcome {
        let script = script.replace("fulgurite", env!("CARGO_BIN_EXE_fulgurite"));
        let output = Command::new("bash").args(["-c", &script]).current_dir(&self.0).output().unwrap();
        Outcome {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Starts `fulgurite` in this folder and does not wait for its end.
    pub(crate) fn start(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the command `fulgurite`, prepared for an interrupt.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        // Reset the signals with `env`, because the child would inherit those that the test runner ignores,
        // as under nohup.
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP,INT,TERM", env!("CARGO_BIN_EXE_fulgurite")]);
        command.args(arguments.split_whitespace()).current_dir(&self.0);
        command
    }

    /// Executes a command with `--json`, which must succeed, and returns its result rows.
    pub(crate) fn rows(&self, arguments: &str) -> Vec<Value> {
        let outcome = self.run(&format!("{arguments} --json"));
        assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
        let rows: Value = serde_json::from_str(&outcome.stdout).unwrap();
        rows.as_array().unwrap().clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
