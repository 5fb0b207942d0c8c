//! The commands that run stacks. Each is a shape of a [`Run`](crate::Run).

use fulgurite_base::Choice;

/// What a grid runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Command {
    /// A workload against a buffer pool on a device.
    Pool,
    /// A workload's writes against a translation layer, counted without time.
    Gc,
    /// Timed requests against a device.
    Replay,
    /// A benchmark on a storage engine on a device.
    Bench,
    /// The characterisation of a device.
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
