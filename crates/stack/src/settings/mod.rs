//! Declares every setting of a run once, in `table.rs`. A declaration has the name, the form of a value, the
//! default and the meaning of a setting. It also says how the value is read, and how the value enters the
//! identity of a run.
//!
//! The command line, study files, help and run ids all use these declarations. A run is made in two steps:
//! `read.rs` turns text into typed values, and `build` makes a [`Run`] of the values.

mod read;
mod setting;
mod write_back;
mod table;

pub use crate::workload::Workloads;
pub use read::read_sample;
pub use setting::{Absent, Setting};

use crate::build::{self, Asked};
use crate::{Command, Run, StackError};
use fulgurite_base::{SpecError, fnv1a};
use std::collections::BTreeMap;
use table::SETTINGS;

impl Command {
    /// Returns the settings of the command, in the order of axes.
    pub fn settings(self) -> impl Iterator<Item = &'static Setting> + Clone {
        SETTINGS.iter().filter(move |setting| setting.absent(self).is_some())
    }

    /// Returns the setting `name` of this command.
    pub fn setting(self, name: &str) -> Result<&'static Setting, SpecError> {
        self.settings().find(|setting| setting.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.settings().map(|setting| setting.name).collect();
            SpecError::unknown("setting", name, &names)
        })
    }
}

impl Run {
    /// Returns the identity of the run as text: the command, and every setting that affects the result of the
    /// run with its value. A default and the same value written out give the same text.
    pub fn canonical(&self) -> Result<String, StackError> {
        let mut text = self.command().name().to_owned();
        for setting in self.command().settings() {
            if let Some(value) = setting.canonical(self)? {
                text += &format!(" {}={value}", setting.name);
            }
        }
        Ok(text)
    }

    /// Returns the id of the run, which is a hash of [`Run::canonical`] and of Fulgurite's version.
    pub fn id(&self) -> Result<String, StackError> {
        // Hash the version too, since another version may give other results.
        let text = format!("{} {}", env!("CARGO_PKG_VERSION"), self.canonical()?);
        Ok(format!("{:016x}", fnv1a(text.as_bytes())))
    }
}

/// Builds and checks the run with these values of settings. Other settings have their defaults.
pub fn run(
    command: Command,
    values: &BTreeMap<&str, &str>,
    workloads: &mut Workloads,
) -> Result<Run, StackError> {
    // Check the names first, because the loop below would ignore an unknown name.
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
            // Errors of these three settings name their argument already.
            "workload" | "device" | "benchmark" => StackError::request(error.to_string()),
            _ => StackError::request(format!("{}: {error}", setting.flag())),
        })?;
    }
    let run = build::build(command, asked, workloads)?;
    run.check()?;
    Ok(run)
}
