//! Represents a question about drives: the workload, the drives to compare, and the requirements.

use super::requirement::{self, Requirement};
use crate::advise::{quoted, writes};
use crate::grid;
use fulgurite_stack::device::{DeviceConfig, DriveConfig};
use fulgurite_stack::settings::{self, Setting, Workloads};
use fulgurite_stack::{Command, Outlook, Run, StackError};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// The values of settings of the command `replay`, by the name of the setting.
pub(super) type Values = BTreeMap<&'static str, String>;

/// The settings that describe the load, besides the workload itself.
const LOAD: [&str; 6] = ["workload", "format", "sort", "ops", "speed", "rate"];

/// The settings of `replay` among them that are no settings of a pool.
const OF_REPLAY: [&str; 3] = ["sort", "speed", "rate"];

/// Returns the settings that a user can give besides those of [`crate::advise::settings`], with their help texts.
pub fn settings() -> impl Iterator<Item = (&'static Setting, String)> {
    let of_replay = Command::Replay.settings().filter(|setting| OF_REPLAY.contains(&setting.name));
    of_replay.map(|setting| (setting, format!("With --require: {}", setting.help(Command::Replay))))
}

/// The most runs that the search for the headroom makes for a drive.
pub(super) const SEARCH_AT_MOST: u64 = 9;

/// The request, as given by the user.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    /// The values of settings of `advise`, by the name of the setting.
    pub typed: Vec<(&'static str, String)>,
    /// The requirements, like `p99=2ms,years=5`.
    pub require: &'a str,
    /// The seed of all randomness; `None` means 42.
    pub seed: Option<&'a str>,
}

/// A question that was checked and can be answered.
pub struct Question {
    /// The settings that describe the load.
    pub(super) load: Values,
    /// The drives to compare.
    pub(super) drives: Vec<Drive>,
    /// The requirements.
    pub(super) requirements: Vec<Requirement>,
    /// Whether the workload writes. Without writes no drive is worn, and there is no steady state to reach.
    pub(super) writes: bool,
    /// The workloads that have been read, so that a trace is read only once.
    pub(super) workloads: Workloads,
}

/// A drive to compare.
#[derive(Clone, Debug)]
pub(super) struct Drive {
    /// The drive, as `--device` takes it.
    pub device: String,
    /// The same drive changed by one means, and the name of that means.
    pub variants: Vec<(&'static str, String)>,
    /// The means that are impossible on this drive, with the reasons.
    pub left_out: Vec<(&'static str, String)>,
}

/// The share of a drive's logical space that stays unused, in the variant with more spare space.
const UNUSED: f64 = 0.2;

/// The placement policy of the variant that separates pages. SepBIT needs no parameters and no training.
const PLACEMENT: &str = "sepbit";

/// The settings of `advise` that can be given together with requirements.
fn accepted() -> String {
    let flags = LOAD[1..].iter().map(|name| format!("--{}", name.replace('_', "-")));
    format!("--device, {}", flags.collect::<Vec<_>>().join(", "))
}

impl Question {
    /// Parses the user's request. Nothing is run or measured.
    pub fn new(asked: Asked) -> Result<Question, StackError> {
        let requirements = requirement::parse(asked.require)?;
        let mut load = Values::from([("seed", asked.seed.unwrap_or("42").to_owned())]);
        grid::seed(&load["seed"])?;
        let mut devices = Vec::new();
        for (name, text) in asked.typed {
            match name {
                "device" => devices = grid::values(&text)?,
                name if LOAD.contains(&name) => {
                    if grid::values(&text)?.len() != 1 {
                        return Err(StackError::request(format!(
                            "--{name} {text}: drives are compared for one load; accepted: one value"
                        )));
                    }
                    load.insert(name, text);
                }
                name => {
                    return Err(StackError::request(format!(
                        "--{} is about a buffer pool, and --require compares drives; accepted: {}",
                        name.replace('_', "-"),
                        accepted()
                    )));
                }
            }
        }
        if devices.is_empty() {
            return Err(StackError::request(
                "--require compares drives; accepted: --device with one or more of them, like p5520,pm9a3",
            ));
        }
        let value = |name| load.get(name).map_or(&[][..], std::slice::from_ref);
        grid::check_format(value("format"), value("workload"))?;
        let mut question =
            Question { load, drives: Vec::new(), requirements, writes: true, workloads: Workloads::dry() };
        for device in devices {
            let drive = question.drive(&device)?;
            if question.drives.iter().any(|known| known.device == drive.device) {
                return Err(StackError::request(format!(
                    "--device {device} stands twice; accepted: each drive once"
                )));
            }
            question.drives.push(drive);
        }
        if let Some(wear) = question.requirements.iter().find(|one| !question.writes && one.is_of_wear()) {
            return Err(StackError::request(format!(
                "--require {}: the workload writes nothing, so it wears out no drive; accepted: response times and \
                 headroom",
                wear.in_words()
            )));
        }
        Ok(question)
    }

    /// Checks a drive and prepares its variants.
    fn drive(&mut self, device: &str) -> Result<Drive, StackError> {
        let parsed = DeviceConfig::parse(device)?;
        let refused = |why: &str| StackError::request(format!("--device {device}: {why}"));
        let DriveConfig::Simulated { config, .. } = &parsed.drive else {
            return Err(refused(
                "drives are compared by simulation; accepted: presets, and for a real drive its twin from \
                 fulgurite calibrate",
            ));
        };
        if config.in_place {
            return Err(refused(
                "it is overwritten in place, so it has no steady state to compare; accepted: flash drives",
            ));
        }
        let needs_label = self.requirements.iter().any(Requirement::is_of_years);
        if needs_label && (config.nominal == 0 || config.endurance == 0) {
            return Err(refused(
                "years need the capacity on its label and its endurance; accepted: nominal=SIZE,endurance=N, or no \
                 years in --require",
            ));
        }
        let run = self.run(device, &Values::new())?;
        if let Some(requested) = run.requested() {
            self.writes = writes(&requested.workload, run.stack.pages(), run.seed)?;
        }
        // Longer erase blocks make a preset as large as the trace needs, and keep its rates and latencies.
        let (span, pages) = run.span()?.unwrap_or((0, 1));
        let times = span.div_ceil(pages.max(1));
        let mut device = device.to_owned();
        if times > 1 {
            let bytes = span * u64::from(config.page_bytes);
            if config.nominal > 0 && bytes > config.nominal {
                return Err(refused(&format!(
                    "the trace spans {} and the drive has {}; accepted: a larger drive",
                    fulgurite_base::units::format_size(bytes),
                    fulgurite_base::units::format_size(config.nominal)
                )));
            }
            let erase = config.erase.0 as f64 / 1e3 * times as f64;
            let pages = u64::from(config.pages) * times;
            device = with(&device, &[("pages", pages.to_string()), ("erase_us", format!("{erase}"))]);
        }
        let run = self.run(&device, &Values::new())?;
        run.check().map_err(|error| refused(&error.to_string()))?;
        let (mut variants, mut left_out) = (Vec::new(), Vec::new());
        if self.writes {
            let op = 100.0 * ((1.0 + config.op.as_f64()) / (1.0 - UNUSED) - 1.0);
            let changes = [
                ("20 % unused", ("op", format!("{op:.2}%"))),
                ("placement", ("placement", PLACEMENT.to_owned())),
                ("the rest trimmed", ("precondition", "none".to_owned())),
            ];
            for (name, change) in changes {
                let changed = with(&device, &[change]);
                match self.why_impossible(&changed) {
                    _ if changed == device => {}
                    None => variants.push((name, changed)),
                    Some(why) => left_out.push((name, why)),
                }
            }
        }
        Ok(Drive { device, variants, left_out })
    }

    /// Returns why a drive cannot run the load; `None` if it can.
    fn why_impossible(&mut self, device: &str) -> Option<String> {
        let run = match self.run(device, &Values::new()) {
            Ok(run) => run,
            Err(error) => return Some(error.to_string()),
        };
        match (run.check(), run.span()) {
            (Err(error), _) | (_, Err(error)) => Some(error.to_string()),
            (_, Ok(Some(_))) => Some("the trace would not fit".to_owned()),
            (_, Ok(None)) => None,
        }
    }

    /// Returns the settings of `fulgurite replay` for a drive, with `changes` to the load.
    pub(super) fn values(&self, device: &str, changes: &Values) -> Values {
        let mut values = self.load.clone();
        if changes.contains_key("users") {
            values.remove("speed");
            values.remove("rate");
        }
        values.extend(changes.clone());
        values.insert("device", device.to_owned());
        if self.writes {
            values.insert("until_steady", "yes".to_owned());
        }
        values
    }

    /// Builds the run of a drive, with `changes` to the load.
    fn run(&mut self, device: &str, changes: &Values) -> Result<Run, StackError> {
        let values = self.values(device, changes);
        run(&values, &mut self.workloads)
    }

    /// Returns the maximum number of runs of the answer.
    pub(super) fn runs(&self) -> u64 {
        self.drives.iter().map(|drive| 2 + drive.variants.len() as u64 + SEARCH_AT_MOST).sum()
    }

    /// Predicts the cost of the answer with `threads` runs in parallel.
    pub fn outlook(&mut self, threads: NonZeroUsize) -> Result<Outlook, StackError> {
        let mut outlook = Outlook::new(threads);
        let each = self.runs() as f64 / self.drives.len() as f64;
        for drive in self.drives.clone() {
            outlook.add(&self.run(&drive.device, &Values::new())?, each);
        }
        outlook.runs = self.runs();
        outlook.is_bound = true;
        Ok(outlook)
    }
}

/// Builds a run of `fulgurite replay`.
pub(super) fn run(values: &Values, workloads: &mut Workloads) -> Result<Run, StackError> {
    let values = values.iter().map(|(name, text)| (*name, text.as_str())).collect();
    settings::run(Command::Replay, &values, workloads)
}

/// Returns the command that repeats a run.
pub(super) fn command(values: &Values) -> String {
    let mut text = "fulgurite replay".to_owned();
    for setting in Command::Replay.settings() {
        let Some(value) = values.get(setting.name) else { continue };
        match (setting.name, setting.written) {
            ("workload", _) => text += &format!(" {}", quoted(value)),
            ("seed", _) if value == "42" => {}
            (name, "") => text += &format!(" --{}", name.replace('_', "-")),
            (name, _) => text += &format!(" --{} {}", name.replace('_', "-"), quoted(value)),
        }
    }
    text
}

/// Returns a drive with some options changed.
fn with(device: &str, changes: &[(&str, String)]) -> String {
    let (name, options) = device.split_once(':').unwrap_or((device, ""));
    let is_kept = |option: &&str| {
        let key = option.split('=').next();
        !option.is_empty() && !changes.iter().any(|(changed, _)| Some(*changed) == key)
    };
    let kept = options.split(',').filter(is_kept).map(str::to_owned);
    let changed = changes.iter().map(|(key, value)| format!("{key}={value}"));
    format!("{name}:{}", kept.chain(changed).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_a_drive_is_changed_or_added() {
        let op = [("op", "28%".to_owned())];
        assert_eq!(with("pe8110", &op), "pe8110:op=28%");
        assert_eq!(with("pe8110:op=7%,slots=0", &op), "pe8110:slots=0,op=28%");
        assert_eq!(with("my/drive.toml:slots=0", &op), "my/drive.toml:slots=0,op=28%");
    }

    fn refused(typed: &[(&'static str, &str)], require: &str) -> String {
        let typed = typed.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
        Question::new(Asked { typed, require, seed: None })
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    /// Each kind of request that cannot be answered is refused, with what would be accepted.
    #[test]
    fn a_question_that_cannot_be_answered_is_refused() {
        let load = ("workload", "financial-like");
        for (typed, require, said) in [
            (&[load][..], "p99=2ms", "accepted: --device with one or more"),
            (&[load, ("device", "mem")], "p99=2ms", "accepted: presets"),
            (&[load, ("device", "optane")], "p99=2ms", "accepted: flash drives"),
            (&[load, ("device", "reference-e")], "years=5", "accepted: nominal=SIZE,endurance=N"),
            (&[load, ("device", "pe8110,pe8110")], "p99=2ms", "each drive once"),
            (
                &[load, ("device", "pe8110"), ("replacement", "lru")],
                "p99=2ms",
                "--replacement is about a buffer pool",
            ),
            (&[load, ("device", "pe8110"), ("speed", "1x,2x")], "p99=2ms", "accepted: one value"),
            (&[("workload", "zipf"), ("device", "pe8110")], "p99=2ms", "--rate"),
            (
                &[("workload", "zipf:write=0%"), ("device", "pe8110"), ("rate", "9K")],
                "waf=2",
                "writes nothing",
            ),
        ] {
            let sentence = refused(typed, require);
            assert!(sentence.contains(said), "{typed:?} {require}: {sentence}");
        }
    }
}
