//! Defines the commands that execute runs.

use fulgurite_base::Choice;

/// A command that executes runs. Each command corresponds to a form of [`Run`](crate::Run).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// Executes a workload's requests against a buffer pool on a device.
    Pool,
    /// Performs a workload's writes on a flash translation layer, and counts them without time.
    Gc,
    /// Submits timed requests to a device without a pool.
    Replay,
    /// Executes a benchmark on a storage engine on a device.
    Bench,
    /// Measures a device's alpha (reads over writes per second), k_r and k_w (concurrent reads and writes).
    Profile,
}

impl Choice for Command {
    const NAMES: &'static [(&'static str, Command)] = &[
        ("pool", Command::Pool),
        ("gc", Command::Gc),
        ("replay", Command::Replay),
        ("bench", Command::Bench),
        ("profile", Command::Profile),
    ];
}

impl Command {
    /// Returns the name of the command on the command line and in study files.
    pub fn name(self) -> &'static str {
        fulgurite_base::option::name_of(self)
    }
}
