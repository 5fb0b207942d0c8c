//! Defines the commands that execute runs.

use fulgurite_base::{Choice, SpecError};

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
    /// Gives a simulated drive to other programs. A server does this; the run has no load of its own and no end.
    Serve,
}

impl Choice for Command {
    const NAMES: &'static [(&'static str, Command)] = &[
        ("pool", Command::Pool),
        ("gc", Command::Gc),
        ("replay", Command::Replay),
        ("bench", Command::Bench),
        ("profile", Command::Profile),
        ("serve", Command::Serve),
    ];
}

impl Command {
    /// Returns the name of the command on the command line and in study files.
    pub fn name(self) -> &'static str {
        fulgurite_base::option::name_of(self)
    }

    /// Returns the command called `name` for a study or a list of runs, whose commands end with result rows. Refuses
    /// any other name, and the command `serve`.
    pub fn of_runs(name: &str) -> Result<Command, SpecError> {
        let ends = |command: Command| command != Command::Serve;
        let names = Command::NAMES.iter().filter(|(_, command)| ends(*command));
        let names: Vec<&str> = names.map(|(name, _)| *name).collect();
        match Command::NAMES.iter().find(|(known, _)| *known == name) {
            Some((_, command)) if ends(*command) => Ok(*command),
            Some(_) => Err(SpecError::new(format!(
                "{name} is no command of a study or of a list of runs: it gives a drive to other programs until it is \
                 stopped; accepted: {}",
                names.join(", ")
            ))),
            None => Err(SpecError::unknown("value", name, &names)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: every command but `serve` is a command of a study. The error for `serve` says why, and neither error
    /// offers it.
    #[test]
    fn serve_is_no_command_of_a_study() {
        for (name, command) in Command::NAMES.iter().filter(|(name, _)| *name != "serve") {
            assert_eq!(Command::of_runs(name), Ok(*command));
        }
        let refused = |name: &str| Command::of_runs(name).unwrap_err().to_string();
        let said = refused("serve");
        assert!(said.starts_with("serve is no command of a study"), "{said}");
        assert!(said.ends_with("accepted: pool, gc, replay, bench, profile"), "{said}");
        assert!(!refused("server").contains("serve "), "{}", refused("server"));
    }
}
