//! The declaration of a setting.

use crate::build::Asked;
use crate::{Command, Run, StackError};
use fulgurite_base::SpecError;

/// A setting.
pub struct Setting {
    /// Its name in study files; on the command line with dashes.
    pub name: &'static str,
    /// The form of a value, for help; empty for a flag.
    pub written: &'static str,
    /// Its meaning for a command, in a sentence without a full stop.
    pub(super) help: fn(Command) -> &'static str,
    /// The commands that have the setting, with the default of each.
    pub commands: &'static [(Command, Absent)],
    pub(super) read: fn(&mut Asked, &str) -> Result<(), SpecError>,
    /// The value in the identity of a run; `None` if it does not affect results or another setting includes
    /// it.
    pub(super) show: fn(&Run) -> Result<Option<String>, StackError>,
}

/// The default of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// No default: the setting is required. On the command line it has no flag.
    Required,
    /// This value.
    Value(&'static str),
    /// A value that depends on other settings, in words.
    Words(&'static str),
    /// No value.
    Nothing,
}

impl Setting {
    /// The default for `command`; `None` if `command` does not have the setting.
    pub fn absent(&self, command: Command) -> Option<Absent> {
        self.commands.iter().find(|(known, _)| *known == command).map(|(_, absent)| *absent)
    }

    /// Its meaning for `command`, in a sentence without a full stop.
    pub fn help(&self, command: Command) -> &'static str {
        (self.help)(command)
    }

    /// Its form on the command line: a flag, or a bare name for a positional argument.
    pub fn flag(&self) -> String {
        match self.name {
            "workload" | "device" | "benchmark" => self.name.to_owned(),
            name => format!("--{}", name.replace('_', "-")),
        }
    }

    /// Whether the setting records a single run. Then no other setting may have several values.
    pub fn is_recording(&self) -> bool {
        matches!(self.name, "trace_out" | "requests_out")
    }

    /// The value in the identity of `run`; `None` if it does not affect results or another setting includes
    /// it.
    pub fn canonical(&self, run: &Run) -> Result<Option<String>, StackError> {
        (self.show)(run)
    }
}
