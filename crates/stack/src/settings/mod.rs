//! Declares every setting of a run once: its name, how a value is written, its default, what it means, how it is read,
//! and what the identity of a run says of it. The declarations are in `table.rs`.
//!
//! The command line, study files, help and run ids all come from them. Reading has two steps: text becomes typed values
//! (`asked.rs`), and `build` makes a [`Run`] of them.

mod asked;
mod table;

pub(crate) use asked::{Asked, Memory};

use crate::build;
use crate::workload::Workload;
use crate::{Command, Run, StackError};
use fulgurite_base::SpecError;
use fulgurite_workload::trace::{Format, TraceOptions};
use std::collections::BTreeMap;
use table::SETTINGS;

/// One setting.
pub struct Setting {
    /// Its name in study files; on the command line with dashes.
    pub name: &'static str,
    /// How a value is written, for help; empty for a setting that is given or not.
    pub written: &'static str,
    /// What it means, in a sentence without its end.
    pub about: &'static str,
    /// The commands that know it.
    pub commands: &'static [(Command, Absent)],
    read: fn(&mut Asked, &str) -> Result<(), SpecError>,
    /// What the identity of a run says of it; nothing where it changes no result or another setting tells it.
    show: fn(&Run) -> Result<Option<String>, StackError>,
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

impl Command {
    /// The settings that the command knows, in order.
    pub fn settings(self) -> impl Iterator<Item = &'static Setting> + Clone {
        SETTINGS.iter().filter(move |setting| setting.absent(self).is_some())
    }

    /// The setting of this command called `name`.
    pub fn setting(self, name: &str) -> Result<&'static Setting, SpecError> {
        self.settings().find(|setting| setting.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.settings().map(|setting| setting.name).collect();
            SpecError::unknown("setting", name, &names)
        })
    }
}

impl Setting {
    /// What stands in where it is not given; `None` where `command` does not know it.
    pub fn absent(&self, command: Command) -> Option<Absent> {
        self.commands.iter().find(|(known, _)| *known == command).map(|(_, absent)| *absent)
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

/// Trace files that were read, so that each is read once for a grid.
#[derive(Default)]
pub struct Workloads {
    known: BTreeMap<String, Workload>,
    is_dry: bool,
}

impl Workloads {
    /// For runs of which only the outlook is wanted: no drive is measured. Where a policy's numbers follow from
    /// measurements, usual ones stand in.
    pub fn dry() -> Workloads {
        Workloads { is_dry: true, ..Workloads::default() }
    }

    /// Whether no drive may be measured.
    pub(crate) fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// The same files, as they were read, for runs that are executed.
    pub fn wet(self) -> Workloads {
        Workloads { is_dry: false, ..self }
    }

    /// The workload that `text` names.
    pub(crate) fn get(
        &mut self,
        text: &str,
        format: Option<(Format, TraceOptions)>,
    ) -> Result<Workload, StackError> {
        // The same file in another format is another workload.
        let key = format!("{text} {format:?}");
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let workload = Workload::parse(text, format)?;
        self.known.insert(key, workload.clone());
        Ok(workload)
    }
}

/// The run that these values of settings describe, checked. Settings that are not among them have their defaults.
pub fn run(
    command: Command,
    values: &BTreeMap<&str, &str>,
    workloads: &mut Workloads,
) -> Result<Run, StackError> {
    // The loop below would pass over an unknown name without a word.
    for name in values.keys() {
        command.setting(name)?;
    }
    let mut asked = Asked::default();
    for setting in command.settings() {
        let text = match (values.get(setting.name), setting.absent(command)) {
            (Some(text), _) => *text,
            (None, Some(Absent::Value(usual))) => usual,
            (None, Some(Absent::Required)) => {
                return Err(StackError::request(format!("{} is missing", setting.flag())));
            }
            (None, _) => continue,
        };
        (setting.read)(&mut asked, text).map_err(|error| match setting.name {
            // These errors say themselves what they are about.
            "workload" | "device" | "benchmark" => StackError::request(error.to_string()),
            _ => StackError::request(format!("{}: {error}", setting.flag())),
        })?;
    }
    let run = build::build(command, asked, workloads)?;
    run.check()?;
    Ok(run)
}
