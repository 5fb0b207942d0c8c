//! The question: a workload on a drive with a limited memory. It is typed in the words of `fulgurite pool` and becomes
//! runs that can be compared.

use super::axis::{Axis, Goal, KEPT, OTHER_BATCHES, Setup, TRIED};
use super::evidence::{Evidence, Part};
use fulgurite_base::units;
use fulgurite_stack::settings::{self, Absent, Setting, Workloads};
use fulgurite_stack::{Command, Load, Outlook, Run, Stack, StackError};
use std::num::NonZeroUsize;

/// The settings of `pool` that describe the situation. Each has one value.
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

/// The settings that can be asked for, with what help says of each and of what stands in.
pub fn settings() -> impl Iterator<Item = (&'static Setting, String)> {
    Command::Pool.settings().filter_map(|setting| Some((setting, help(setting)?)))
}

/// What help says of a setting; `None` for one that cannot be asked for.
fn help(setting: &Setting) -> Option<String> {
    let (about, usual) = match (setting.name, setting.absent(Command::Pool)?) {
        ("ops", _) => (
            "Number of requests in each run; a run of a trace is one slice of it",
            "200K, or as many as fill the pool; at most 500K of a trace; 50K on a real drive",
        ),
        ("page", _) => (
            "Page sizes to try; the first is the plain one. A generated workload has one",
            "4KiB; also 8KiB and 16KiB for a trace that counts bytes",
        ),
        ("placement", _) => ("Placement policies of the layer", "all, where there is a layer"),
        ("victim", _) => ("Victim policies of the layer", "all, where there is a layer"),
        ("replacement", _) => ("Replacement policies", "all"),
        ("write_back", _) => ("Write-back policies", "all"),
        ("prefetch", _) => ("Prefetch policies", "all"),
        (name, absent) if SITUATION.contains(&name) => match absent {
            Absent::Value(usual) | Absent::Words(usual) => (setting.about, usual),
            Absent::Required | Absent::Nothing => return Some(setting.about.to_owned()),
        },
        _ => return None,
    };
    let is_list = TRIED.contains(&setting.name) && setting.name != "page";
    let list = if is_list { " to try; the first is the plain one" } else { "" };
    Some(format!("{about}{list} [default: {usual}]"))
}

/// What was typed.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    /// Values of [`settings()`], by name.
    pub typed: Vec<(&'static str, String)>,
    /// The memory of the pool: a size, or a share of the data.
    pub memory: Option<&'a str>,
    /// The objective.
    pub goal: Option<&'a str>,
    /// The seed.
    pub seed: Option<&'a str>,
}

/// A question that can be answered.
pub struct Question {
    /// What every run has.
    pub situation: Setup,
    /// What is tried.
    pub axes: Vec<Axis>,
    /// What for.
    pub goal: Goal,
    /// The parts of the workload.
    pub evidence: Evidence,
    /// What a reader should know beside the answer.
    pub remarks: Vec<String>,
    /// Bytes of the pool.
    pub memory_bytes: u64,
    /// The plain page size, in bytes.
    pub page_bytes: u32,
    /// Whether time passes of itself, so that two runs of the same differ.
    pub is_real: bool,
    /// A run with the plain settings, to look at.
    pub plain: Run,
    /// The trace, as it was read.
    pub workloads: Workloads,
}

impl Question {
    /// The values of `fulgurite pool` for a setup on a part of the workload; `None` where the page size has no parts.
    pub fn values(&self, setup: &Setup, part: usize) -> Option<(Setup, &Part)> {
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

    /// The same without what differs from part to part.
    pub fn setup(&self, setup: &Setup) -> Setup {
        let mut values = self.situation.clone();
        let plain = self.axes.iter().filter_map(|axis| Some((axis.name, axis.plain.clone()?)));
        values.extend(plain.chain(setup.clone()));
        values.insert("frames", (self.memory_bytes / u64::from(self.page_of(setup))).to_string());
        values
    }

    /// The page size of a setup, in bytes.
    pub fn page_of(&self, setup: &Setup) -> u32 {
        let page = setup.get("page").and_then(|text| units::parse_size(text).ok());
        page.map_or(self.page_bytes, |bytes| bytes as u32)
    }

    /// The run that measures the drive.
    pub fn profile(&self) -> Run {
        let stack = Stack { pool: None, ..self.plain.stack.clone() };
        let load = Load::Characterisation { page_bytes: self.page_bytes };
        Run { stack, load, ..self.plain.clone() }
    }

    /// The most runs that an answer takes for the first part that the choice rests on, for each other one, and for each
    /// that judges it.
    fn runs_of_a_part(&self) -> [usize; 3] {
        let again = self.axes.iter().find(|axis| axis.name == "write_back");
        let again = again.map(|axis| axis.others.len() + if axis.is_given { 0 } else { OTHER_BATCHES });
        let tried = || self.axes.iter().map(|axis| axis.others.len()).chain(again);
        // The plain settings; and each setting that has been changed is taken back once.
        let always = 1 + usize::from(self.is_real) + self.axes.len();
        let kept: usize = tried().map(|values| values.min(KEPT)).sum();
        // The plain settings, the advice, `auto`; and each setting changed alone and taken back alone.
        [always + tried().sum::<usize>(), always + kept, 3 + 2 * self.axes.len()]
    }

    /// The most runs of each part, for those that the choice rests on and then those that judge.
    fn runs_by_part(&self) -> impl Iterator<Item = usize> {
        let [first, other, judging] = self.runs_of_a_part();
        let choosing = (0..self.evidence.choosing().len()).map(move |at| if at == 0 { first } else { other });
        choosing.chain(self.evidence.judging().map(move |_| judging))
    }

    /// The most runs that an answer takes.
    pub fn runs(&self) -> u64 {
        self.runs_by_part().sum::<usize>() as u64
    }

    /// The run of a setup on a part of the workload, where there is one.
    fn look_at(&self, setup: &Setup, part: usize, workloads: &mut Workloads) -> Option<Run> {
        // A trace has the same requests wherever it is cut, so one run of it tells enough.
        let part = if self.evidence.called == "seeds" { part } else { 0 };
        run(&self.values(setup, part)?.0, workloads).ok()
    }

    /// What answering takes, with `threads` runs at once.
    pub fn outlook(&self, threads: NonZeroUsize) -> Outlook {
        let mut outlook = Outlook::new(threads);
        let mut workloads = Workloads::dry();
        for (at, count) in self.runs_by_part().enumerate() {
            // Settings cost differently, and a placement or a victim policy makes a layer of its own: as many are looked
            // at as this part tries.
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

    /// Refuses values that were given and cannot be had; of values that were not, what cannot be had is left out.
    pub fn check_given(&mut self) -> Result<(), StackError> {
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

/// The run of `fulgurite pool` with these values.
pub fn run(values: &Setup, workloads: &mut Workloads) -> Result<Run, StackError> {
    let values = values.iter().map(|(name, text)| (*name, text.as_str())).collect();
    settings::run(Command::Pool, &values, workloads)
}

/// A setting as it is typed.
pub fn flag(name: &str) -> String {
    Command::Pool.setting(name).map_or_else(|_| name.to_owned(), Setting::flag)
}
