//! Judges the choice, by the parts of the workload that did not choose it.

use super::axis::Setup;
use super::lab::{Change, Lab, Series};
use super::search::Chosen;
use fulgurite_stack::{Column, Row, StackError};

/// A setting and what it does.
pub struct Effect {
    /// The setting's name.
    pub name: &'static str,
    /// Its plain value.
    pub plain: String,
    /// The value that is advised.
    pub advised: String,
    /// What changing it alone brings; nothing where it stays.
    pub alone: Option<Change>,
    /// What taking it back alone costs; nothing where it stays, or is all that changes.
    pub without: Option<Change>,
}

/// A setup with what came of it on the parts that judge.
pub struct Arm {
    /// The settings that differ from the plain ones.
    pub setup: Setup,
    /// Its figures.
    pub series: Series,
    /// What it changes against the plain settings.
    pub change: Change,
}

/// The answer.
pub struct Verdict {
    /// The plain settings.
    pub plain: Arm,
    /// What is advised: the plain settings again where nothing else gains.
    pub advised: Arm,
    /// What was chosen and did not hold.
    pub rejected: Option<Arm>,
    /// `--write-back auto` beside plain settings, and what the advice changes against it.
    pub auto: Option<(Arm, Change)>,
    /// Setting by setting.
    pub effects: Vec<Effect>,
    /// How many of the parts that judge are better for the goal with the advice.
    pub better: usize,
    /// Gains up to this are none.
    pub noise: f64,
    /// The drive's characterisation.
    pub profile: Row,
    /// Whether no page had to leave the pool.
    pub is_idle: bool,
    /// Runs that were executed.
    pub executed: u64,
}

/// Judges what was chosen.
pub fn judge(lab: &mut Lab, chosen: Chosen) -> Result<Verdict, StackError> {
    let Chosen { setup, auto, noise, profile, is_idle } = chosen;
    let parts = lab.question().evidence.judging();
    let goal = lab.question().goal;
    // All are run at once, so that the cores have enough to do.
    let mut setups = vec![Setup::new(), setup.clone()];
    setups.extend(auto.clone());
    setups.extend(setup.keys().flat_map(|name| [alone(&setup, name), without(&setup, name)]));
    lab.figures(&setups, parts.clone())?;
    let series = lab.of(&Setup::new(), parts.clone())?;
    let plain = Arm { setup: Setup::new(), change: Change::between(&series, &series), series };
    let mut arm = |setup: Setup| -> Result<Arm, StackError> {
        let series = lab.of(&setup, parts.clone())?;
        Ok(Arm { change: Change::between(&plain.series, &series), setup, series })
    };
    let mut advised = arm(setup)?;
    let auto = auto.map(&mut arm).transpose()?;
    let mut rejected = None;
    if !advised.setup.is_empty() && !advised.change.is_gain(goal, noise) {
        let instead = arm(Setup::new())?;
        rejected = Some(std::mem::replace(&mut advised, instead));
    }
    let auto = auto.map(|auto| {
        let change = Change::between(&auto.series, &advised.series);
        (auto, change)
    });
    let gains = plain.series.iter().zip(&advised.series);
    let better = gains.filter(|(old, new)| {
        let change = Change::between(std::slice::from_ref(*old), std::slice::from_ref(*new));
        change.gain(goal).least > 0.0
    });
    let better = better.count();
    let effects = effects(lab, &plain, &advised)?;
    Ok(Verdict {
        plain,
        advised,
        rejected,
        auto,
        effects,
        better,
        noise,
        profile,
        is_idle,
        executed: lab.executed,
    })
}

/// One setting of a setup.
fn alone(setup: &Setup, name: &str) -> Setup {
    setup.iter().filter(|(known, _)| **known == name).map(|(name, value)| (*name, value.clone())).collect()
}

/// A setup without one setting.
fn without(setup: &Setup, name: &str) -> Setup {
    setup.iter().filter(|(known, _)| **known != name).map(|(name, value)| (*name, value.clone())).collect()
}

fn effects(lab: &mut Lab, plain: &Arm, advised: &Arm) -> Result<Vec<Effect>, StackError> {
    let question = lab.question();
    let parts = question.evidence.judging();
    let mut effects = Vec::new();
    for axis in &question.axes {
        let is_changed = advised.setup.contains_key(axis.name);
        let mut change = |from: &Setup, to: &Setup| -> Result<Option<Change>, StackError> {
            let figures = lab.figures(&[from.clone(), to.clone()], parts.clone())?;
            Ok(match figures.as_slice() {
                [Some(from), Some(to)] => Some(Change::between(from, to)),
                _ => None,
            })
        };
        let (mut alone_brings, mut without_costs) = (None, None);
        if is_changed {
            alone_brings = change(&plain.setup, &alone(&advised.setup, axis.name))?;
        }
        if is_changed && advised.setup.len() > 1 {
            without_costs = change(&advised.setup, &without(&advised.setup, axis.name))?;
        }
        effects.push(Effect {
            name: axis.name,
            plain: axis.in_words(&plain.setup),
            advised: axis.in_words(&advised.setup),
            alone: alone_brings,
            without: without_costs,
        });
    }
    Ok(effects)
}

impl Arm {
    /// The mean throughput, in requests per second to pages of the plain size.
    pub fn throughput(&self) -> f64 {
        mean(self.series.iter().map(|figures| figures.throughput))
    }

    /// The mean throughput as its runs have it, in requests per second to pages of their own size.
    pub fn own_throughput(&self) -> f64 {
        mean(self.series.iter().filter_map(|figures| figures.row.number(Column::ThroughputOpsS)))
    }

    /// The mean of the parts' 99th percentiles, in nanoseconds.
    pub fn p99(&self) -> f64 {
        mean(self.series.iter().map(|figures| figures.p99))
    }

    /// What its runs were asked for and have in common.
    pub fn identity(&self) -> Row {
        let mut row = self.series.first().map(|figures| figures.row.clone()).unwrap_or_default();
        let told = Column::all().filter(|column| column.is_axis() || *column == Column::NW);
        let told: Vec<Column> =
            told.filter(|column| ![Column::Seed, Column::Skip].contains(column)).collect();
        row.keep(&told);
        row
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count().max(1) as f64
}
