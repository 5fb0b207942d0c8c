//! Represents a question to `advise`: a workload, a drive and a limited memory. A question is asked with the
//! settings of `fulgurite pool`, and it makes the runs whose results are compared.

use super::axis::{Axis, Goal, KEPT, OTHER_BATCHES, Setup, TRIED};
use super::evidence::{Evidence, Part};
use fulgurite_base::units;
use fulgurite_stack::settings::{self, Absent, Setting, Workloads};
use fulgurite_stack::{Command, Load, Outlook, Run, Stack, StackError, Suite};
use std::num::NonZeroUsize;

/// The settings of `pool` that describe the user's situation. Each has a single value, because `advise` does
/// not change it.
const SITUATION: [&str; 10] = [
    "workload",
    "device",
    "destroy_contents",
    "layer",
    "pages",
    "users",
    "cpu_per_request",
    "cores",
    "ops",
    "format",
];

/// Returns the settings that a user can give, with their help texts.
pub fn settings() -> impl Iterator<Item = (&'static Setting, String)> {
    Command::Pool.settings().filter_map(|setting| Some((setting, help(setting)?)))
}

/// Returns the help text of a setting, or `None` for a setting that cannot be given.
fn help(setting: &Setting) -> Option<String> {
    let (about, usual) = match (setting.name, setting.absent(Command::Pool)?) {
        ("ops", _) => (
            "Number of requests in each run; a run of a trace is one slice of it",
            "200K, or as many as fill the pool; at most 500K of a trace; 50K on a real drive",
        ),
        ("page", _) => (
            "Page sizes to try; the first is the plain one. A generated workload has a single page size",
            "4KiB; also 8KiB and 16KiB for a trace that counts bytes",
        ),
        ("placement", _) => ("Placement policies of the layer", "all, if there is a layer"),
        ("victim", _) => ("Victim policies of the layer", "all, if there is a layer"),
        ("replacement", _) => ("Replacement policies", "all"),
        ("write_back", _) => ("Write-back policies", "all"),
        ("prefetch", _) => ("Prefetch policies", "all"),
        (name, absent) if SITUATION.contains(&name) => match absent {
            Absent::Value(usual) | Absent::Words(usual) => (setting.help(Command::Pool), usual),
            Absent::Required | Absent::Nothing => return Some(setting.help(Command::Pool).to_owned()),
        },
        _ => return None,
    };
    let is_list = TRIED.contains(&setting.name) && setting.name != "page";
    let list = if is_list { " to try; the first is the plain one" } else { "" };
    Some(format!("{about}{list} [default: {usual}]"))
}

/// The request, as given by the user.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    /// The values of [`settings()`], by the name of the setting.
    pub typed: Vec<(&'static str, String)>,
    /// The memory of the pool, as a size or as a share of the data. `None` means the default share.
    pub memory: Option<&'a str>,
    /// The name of the objective; `None` means throughput.
    pub goal: Option<&'a str>,
    /// The seed of the first part of the workload; `None` means 42.
    pub seed: Option<&'a str>,
}

/// A question that was checked and can be answered.
pub struct Question {
    /// The settings that all runs have in common.
    pub situation: Setup,
    /// The settings to try, with their values.
    pub(super) axes: Vec<Axis>,
    /// The objective of the advice.
    pub(super) goal: Goal,
    /// The parts of the workload.
    pub(super) evidence: Evidence,
    /// Sentences about settings that are left out, for the reader of the answer.
    pub(super) remarks: Vec<String>,
    /// The pool's memory in bytes.
    pub(super) memory_bytes: u64,
    /// The plain page size in bytes.
    pub(super) page_bytes: u32,
    /// Whether the drive is real. Two runs with equal settings on a real drive have different results.
    pub(super) is_real: bool,
    /// A run with the plain settings, from which the characterisation of the drive is derived.
    pub(super) plain: Run,
    /// The workloads that have been read, so that a trace is read only once.
    pub(super) workloads: Workloads,
}

impl Question {
    /// Returns the settings of `fulgurite pool` for a setup on a part of the workload. Returns `None` if
    /// there are no parts for the setup's page size.
    pub(super) fn values(&self, setup: &Setup, part: usize) -> Option<(Setup, &Part)> {
        let mut values = self.setup(setup);
        let page_bytes = self.page_of(setup);
        let part = self.evidence.part(page_bytes, part)?;
        values.insert("seed", part.seed.to_string());
        values.insert("ops", part.ops.to_string());
        if part.skip > 0 {
            values.insert("skip", part.skip.to_string());
        }
        Some((values, part))
    }

    /// Returns the settings of `fulgurite pool` for a setup, without the settings that differ between parts.
    pub(super) fn setup(&self, setup: &Setup) -> Setup {
        let mut values = self.situation.clone();
        let plain = self.axes.iter().filter_map(|axis| Some((axis.name, axis.plain.clone()?)));
        values.extend(plain.chain(setup.clone()));
        values.insert("frames", (self.memory_bytes / u64::from(self.page_of(setup))).to_string());
        values
    }

    /// Returns the page size of a setup, in bytes.
    pub(super) fn page_of(&self, setup: &Setup) -> u32 {
        let page = setup.get("page").and_then(|text| units::parse_size(text).ok());
        page.map_or(self.page_bytes, |bytes| bytes as u32)
    }

    /// Returns the run that characterises the drive.
    pub(super) fn profile(&self) -> Run {
        let stack = Stack { pool: None, ..self.plain.stack.clone() };
        let load = Load::Characterisation { page_bytes: self.page_bytes, suite: Suite::Concurrency };
        Run { stack, load, ..self.plain.clone() }
    }

    /// Returns the maximum number of runs for the first part that chooses, for each other part that chooses,
    /// and for each part that judges.
    fn runs_of_a_part(&self) -> [usize; 3] {
        let again = self.axes.iter().find(|axis| axis.name == "write_back");
        let again = again.map(|axis| axis.others.len() + if axis.is_given { 0 } else { OTHER_BATCHES });
        let tried = || self.axes.iter().map(|axis| axis.others.len()).chain(again);
        // Counts one run with the plain settings (two on a real drive, to measure the noise), and for each
        // setting one run without its change.
        let always = 1 + usize::from(self.is_real) + self.axes.len();
        let kept: usize = tried().map(|values| values.min(KEPT)).sum();
        // A part that judges needs a run with the plain settings, a run with the advice and a run with
        // `auto`. For each setting it needs one run in which only this setting is changed, and one in which
        // only this setting is not changed.
        [always + tried().sum::<usize>(), always + kept, 3 + 2 * self.axes.len()]
    }

    /// Returns the maximum number of runs of each part: first the parts that choose, then those that judge.
    fn runs_by_part(&self) -> impl Iterator<Item = usize> {
        let [first, other, judging] = self.runs_of_a_part();
        let choosing = (0..self.evidence.choosing().len()).map(move |at| if at == 0 { first } else { other });
        choosing.chain(self.evidence.judging().map(move |_| judging))
    }

    /// Returns the maximum number of runs of the answer.
    pub(super) fn runs(&self) -> u64 {
        self.runs_by_part().sum::<usize>() as u64
    }

    /// Builds the run of a setup on a part of the workload, from which the cost of executing that setup is
    /// estimated. Returns `None` for an invalid setup.
    fn look_at(&self, setup: &Setup, part: usize, workloads: &mut Workloads) -> Option<Run> {
        // All slices of a trace are assumed to cost the same, so the first slice stands for all.
        let part = if self.evidence.called == "seeds" { part } else { 0 };
        run(&self.values(setup, part)?.0, workloads).ok()
    }

    /// Predicts the cost of the answer with `threads` runs in parallel.
    pub fn outlook(&self, threads: NonZeroUsize) -> Outlook {
        let mut outlook = Outlook::new(threads);
        let mut workloads = Workloads::dry();
        for (at, count) in self.runs_by_part().enumerate() {
            // The cost of a run depends on its settings, and each placement or victim policy needs a layer of
            // its own. So the estimate covers as many setups as this part tries.
            let tried = self
                .axes
                .iter()
                .flat_map(|axis| axis.others.iter().map(|text| Setup::from([(axis.name, text.clone())])));
            let setups: Vec<Setup> = std::iter::once(Setup::new()).chain(tried).take(count).collect();
            let weight = count as f64 / setups.len().max(1) as f64;
            for setup in &setups {
                let run = self.look_at(setup, at, &mut workloads);
                outlook.add(run.as_ref().unwrap_or(&self.plain), weight);
            }
        }
        outlook.add(&self.profile(), 1.0);
        outlook.runs = self.runs();
        outlook.is_bound = true;
        outlook
    }

    /// Refuses a value that the user gave and that is invalid. A value that Fulgurite added is not checked
    /// here; an invalid one is left out when its run is built.
    pub(super) fn check_given(&mut self) -> Result<(), StackError> {
        let given = self.axes.iter().filter(|axis| axis.is_given);
        let setups =
            given.flat_map(|axis| axis.others.iter().map(|text| Setup::from([(axis.name, text.clone())])));
        for setup in setups.collect::<Vec<Setup>>() {
            if let Some((values, _)) = self.values(&setup, 0) {
                run(&values, &mut self.workloads)?;
            }
        }
        Ok(())
    }
}

/// Builds a run of `fulgurite pool` with these settings.
pub(super) fn run(values: &Setup, workloads: &mut Workloads) -> Result<Run, StackError> {
    let values = values.iter().map(|(name, text)| (*name, text.as_str())).collect();
    settings::run(Command::Pool, &values, workloads)
}

/// Returns the command-line option of a setting.
pub(super) fn flag(name: &str) -> String {
    Command::Pool.setting(name).map_or_else(|_| name.to_owned(), Setting::flag)
}
