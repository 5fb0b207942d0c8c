//! The commands that run stacks.

use fulgurite_base::Choice;

/// A command that runs stacks. Each corresponds to a form of [`Run`](crate::Run).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// A workload against a buffer pool on a device.
    Pool,
    /// A workload's writes to a translation layer, counted without time.
    Gc,
    /// Timed requests against a device.
    Replay,
    /// A benchmark on a storage engine on a device.
    Bench,
    /// Measurement of a device's alpha, k_r and k_w.
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
    /// Its name on the command line and in study files.
    pub fn name(self) -> &'static str {
        fulgurite_base::option::name_of(self)
    }
}
