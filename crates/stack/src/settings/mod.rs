//! Declares every setting of a run once: its name, the form of a value, its default, its meaning, how it is
//! read, and its part in the identity of a run. The declarations are in `table.rs`.
//!
//! The command line, study files, help and run ids all use them. Reading has two steps: `read.rs` turns text
//! into typed values, and `build` makes a [`Run`] of them.

mod read;
mod setting;
mod write_back;
mod table;

pub use crate::workload::Workloads;
pub use setting::{Absent, Setting};

use crate::build::{self, Asked};
use crate::{Command, Run, StackError};
use fulgurite_base::{SpecError, fnv1a};
use std::collections::BTreeMap;
use table::SETTINGS;

impl Command {
    /// The settings of the command, in order.
    pub fn settings(self) -> impl Iterator<Item = &'static Setting> + Clone {
        SETTINGS.iter().filter(move |setting| setting.absent(self).is_some())
    }

    /// The setting `name` of this command.
    pub fn setting(self, name: &str) -> Result<&'static Setting, SpecError> {
        self.settings().find(|setting| setting.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.settings().map(|setting| setting.name).collect();
            SpecError::unknown("setting", name, &names)
        })
    }
}

impl Run {
    /// The identity of the run as text: the command, and every setting that affects its result with its
    /// value. A default and the same value written out give the same text.
    pub fn canonical(&self) -> Result<String, StackError> {
        let mut text = self.command().name().to_owned();
        for setting in self.command().settings() {
            if let Some(value) = setting.canonical(self)? {
                text += &format!(" {}={value}", setting.name);
            }
        }
        Ok(text)
    }

    /// The identity of the run: a hash of [`Run::canonical`] and of Fulgurite's version.
    pub fn id(&self) -> Result<String, StackError> {
        // Another version may give other results, so the version is part of the identity.
        let text = format!("{} {}", env!("CARGO_PKG_VERSION"), self.canonical()?);
        Ok(format!("{:016x}", fnv1a(text.as_bytes())))
    }
}

/// The run with these values of settings, checked. Other settings have their defaults.
pub fn run(
    command: Command,
    values: &BTreeMap<&str, &str>,
    workloads: &mut Workloads,
) -> Result<Run, StackError> {
    // The loop below would ignore an unknown name.
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
            // These errors name their argument.
            "workload" | "device" | "benchmark" => StackError::request(error.to_string()),
            _ => StackError::request(format!("{}: {error}", setting.flag())),
        })?;
    }
    let run = build::build(command, asked, workloads)?;
    run.check()?;
    Ok(run)
}
