//! Judges the chosen settings on the parts of the workload that did not choose them.

use super::axis::Setup;
use super::lab::{Change, Lab, Series};
use super::search::Chosen;
use fulgurite_stack::{Column, Row, StackError};

/// A setting and its effect.
pub(super) struct Effect {
    /// The setting's name.
    pub name: &'static str,
    /// Its plain value.
    pub plain: String,
    /// The advised value.
    pub advised: String,
    /// The effect of changing only this setting; `None` if it is not changed.
    pub alone: Option<Change>,
    /// The effect of reverting only this setting; `None` if it is not changed, or if nothing else is.
    pub without: Option<Change>,
}

/// A setup with its results on the parts that judge.
pub(super) struct Arm {
    /// The settings that differ from the plain ones.
    pub setup: Setup,
    /// Its figures.
    pub series: Series,
    /// The changes relative to the plain settings.
    pub change: Change,
}

/// The answer.
pub(super) struct Verdict {
    /// The plain settings.
    pub plain: Arm,
    /// The advised settings, which are the plain ones if no others gain.
    pub advised: Arm,
    /// The chosen settings, if they gained nothing on the parts that judge.
    pub rejected: Option<Arm>,
    /// `--write-back auto` with otherwise plain settings, and the change from it to the advice.
    pub auto: Option<(Arm, Change)>,
    /// The effect of each setting.
    pub effects: Vec<Effect>,
    /// The number of judging parts on which the advice improves the objective.
    pub better: usize,
    /// Smaller gains count as none.
    pub noise: f64,
    /// The drive's characterisation.
    pub profile: Row,
    /// Whether the pool never had to evict a page.
    pub is_idle: bool,
    /// The number of executed runs.
    pub executed: u64,
}

/// Judges the chosen settings.
pub(super) fn judge(lab: &mut Lab, chosen: Chosen) -> Result<Verdict, StackError> {
    let Chosen { setup, auto, noise, profile, is_idle } = chosen;
    let parts = lab.question().evidence.judging();
    let goal = lab.question().goal;
    // All setups are run together, so that the cores are busy.
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

/// A setup with only one of its settings.
fn alone(setup: &Setup, name: &str) -> Setup {
    setup.iter().filter(|(known, _)| **known == name).map(|(name, value)| (*name, value.clone())).collect()
}

/// A setup without one of its settings.
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
    /// The mean throughput, in requests per second for pages of the plain size.
    pub(super) fn throughput(&self) -> f64 {
        mean(self.series.iter().map(|figures| figures.throughput))
    }

    /// The mean throughput, in requests per second for pages of the runs' own size.
    pub(super) fn own_throughput(&self) -> f64 {
        mean(self.series.iter().filter_map(|figures| figures.row.number(Column::ThroughputOpsS)))
    }

    /// The mean over the parts of the 99th percentile, in nanoseconds.
    pub(super) fn p99(&self) -> f64 {
        mean(self.series.iter().map(|figures| figures.p99))
    }

    /// The settings that all its runs have in common, as a row.
    pub(super) fn identity(&self) -> Row {
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
