//! Defines the declaration of a setting.

use crate::build::Asked;
use crate::{Command, Run, StackError};
use fulgurite_base::SpecError;

/// The declaration of a setting of runs.
pub struct Setting {
    /// The name of the setting in study files. On the command line it has dashes for underscores.
    pub name: &'static str,
    /// The form of a value, for help; empty for a flag without a value.
    pub written: &'static str,
    /// Returns the meaning of the setting for a command, in a sentence without a full stop.
    pub(super) help: fn(Command) -> &'static str,
    /// The commands that have the setting, with the default for each command.
    pub commands: &'static [(Command, Absent)],
    pub(super) read: fn(&mut Asked, &str) -> Result<(), SpecError>,
    /// Returns the value of the setting in the identity of a run. `None` if the setting does not affect
    /// results, or if another setting includes it.
    pub(super) show: fn(&Run) -> Result<Option<String>, StackError>,
}

/// The default of a setting for one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// There is no default: the setting is required. On the command line it has no flag.
    Required,
    /// The default is this value.
    Value(&'static str),
    /// The default depends on other settings; the text describes it in words.
    Words(&'static str),
    /// The default is no value.
    Nothing,
}

impl Setting {
    /// Returns the default for `command`; `None` if `command` does not have the setting.
    pub fn absent(&self, command: Command) -> Option<Absent> {
        self.commands.iter().find(|(known, _)| *known == command).map(|(_, absent)| *absent)
    }

    /// Returns the meaning of the setting for `command`, in a sentence without a full stop.
    pub fn help(&self, command: Command) -> &'static str {
        (self.help)(command)
    }

    /// Returns the form of the setting on the command line: a flag, or a bare name for a positional argument.
    pub fn flag(&self) -> String {
        match self.name {
            "workload" | "device" | "benchmark" => self.name.to_owned(),
            name => format!("--{}", name.replace('_', "-")),
        }
    }

    /// Whether the setting records a single run. With such a setting, no other setting may have several
    /// values.
    pub fn is_recording(&self) -> bool {
        matches!(self.name, "trace_out" | "requests_out")
    }

    /// Returns the value of the setting in the identity of `run`. `None` if the setting does not affect
    /// results, or if another setting includes it.
    pub fn canonical(&self, run: &Run) -> Result<Option<String>, StackError> {
        (self.show)(run)
    }
}
