//! From lists of settings to runs: a setting with several values is an axis of the grid.
//!
//! The command line and study files use the same words (`--write-back single,ace`, `write_back = ["single", "ace"]`),
//! so both end here. The grid's last axis varies fastest; axes come in the order of [`Command::settings`], and not
//! in the order in which they were given.

use fulgurite_base::Spec;
use fulgurite_stack::settings::{self, Setting, Workloads};
use fulgurite_stack::{Command, Run, StackError};
use std::collections::BTreeMap;

/// Settings with their values: more than one makes an axis.
pub type Settings = BTreeMap<String, Vec<String>>;

/// The values that `text` lists: `single,ace:n_w=8,raw` has three.
pub fn values(text: &str) -> Result<Vec<String>, StackError> {
    Ok(Spec::split_list(text)?)
}

/// Every run of the grid, checked, so that a wrong request is refused before the first run.
pub fn expand(command: Command, settings: &Settings) -> Result<Vec<Run>, StackError> {
    for (name, values) in settings {
        let setting = command.setting(name)?;
        if values.is_empty() {
            let flag = setting.flag();
            return Err(StackError::request(format!("{flag} has no value; give one, or leave it out")));
        }
    }
    let axes: Vec<(&Setting, &Vec<String>)> =
        command.settings().filter_map(|setting| Some((setting, settings.get(setting.name)?))).collect();
    let size: usize = axes.iter().map(|(_, values)| values.len()).product();
    if let Some((setting, _)) = axes.iter().find(|(setting, _)| setting.is_recording()).filter(|_| size > 1) {
        return Err(StackError::request(format!(
            "{} records one run, here are {size}; accepted: one value for every option",
            setting.flag()
        )));
    }
    // One cache for the whole grid, so that a trace is read once and not for every run.
    let mut workloads = Workloads::default();
    (0..size).map(|cell| settings::run(command, &cell_values(&axes, cell), &mut workloads)).collect()
}

/// The values of the cell with this number, counting with the last axis as the lowest digit.
fn cell_values<'a>(axes: &[(&'a Setting, &'a Vec<String>)], mut cell: usize) -> BTreeMap<&'a str, &'a str> {
    let mut values = BTreeMap::new();
    for (setting, of_axis) in axes.iter().rev() {
        values.insert(setting.name, of_axis[cell % of_axis.len()].as_str());
        cell /= of_axis.len();
    }
    values
}
