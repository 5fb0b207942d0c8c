//! The declaration of a setting.

use crate::build::Asked;
use crate::{Command, Run, StackError};
use fulgurite_base::SpecError;

/// One setting.
pub struct Setting {
    /// Its name in study files; on the command line with dashes.
    pub name: &'static str,
    /// How a value is written, for help; empty for a setting that is given or not.
    pub written: &'static str,
    /// Its meaning for a command, in a sentence without a full stop.
    pub(super) help: fn(Command) -> &'static str,
    /// The commands that know it.
    pub commands: &'static [(Command, Absent)],
    pub(super) read: fn(&mut Asked, &str) -> Result<(), SpecError>,
    /// What the identity of a run says of it; nothing where it changes no result or another setting tells it.
    pub(super) show: fn(&Run) -> Result<Option<String>, StackError>,
}

/// What stands in where a setting is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// Nothing: it must be given, and on the command line it stands without a flag.
    Required,
    /// This value.
    Value(&'static str),
    /// Something that depends on other settings, in words.
    Words(&'static str),
    /// Nothing, and nothing is needed.
    Nothing,
}

impl Setting {
    /// What stands in where it is not given; `None` where `command` does not know it.
    pub fn absent(&self, command: Command) -> Option<Absent> {
        self.commands.iter().find(|(known, _)| *known == command).map(|(_, absent)| *absent)
    }

    /// Its meaning for `command`, in a sentence without a full stop.
    pub fn help(&self, command: Command) -> &'static str {
        (self.help)(command)
    }

    /// Its name as it is typed: a flag, or the bare name of what stands without one.
    pub fn flag(&self) -> String {
        match self.name {
            "workload" | "device" | "benchmark" => self.name.to_owned(),
            name => format!("--{}", name.replace('_', "-")),
        }
    }

    /// Whether the setting records a single run, so that no other setting may have several values beside it.
    pub fn is_recording(&self) -> bool {
        matches!(self.name, "trace_out" | "requests_out")
    }

    /// What the identity of `run` says of it; `None` where it changes no result or another setting tells it.
    pub fn canonical(&self, run: &Run) -> Result<Option<String>, StackError> {
        (self.show)(run)
    }
}
