//! Judges the chosen settings on the parts of the workload that did not choose them.

use super::axis::Setup;
use super::lab::{Change, Lab, Series};
use super::search::Chosen;
use fulgurite_stack::{Column, Row, StackError};

/// A setting that was tried, and its effect on the parts that judge.
pub(super) struct Effect {
    /// The name of the setting.
    pub name: &'static str,
    /// The plain value of the setting.
    pub plain: String,
    /// The advised value of the setting; equal to the plain value if the setting is not changed.
    pub advised: String,
    /// The effect of changing only this setting; `None` if the advice does not change it.
    pub alone: Option<Change>,
    /// The effect of reverting only this setting's change. `None` if the advice does not change this setting,
    /// or changes no other.
    pub without: Option<Change>,
}

/// A setup with its results on the parts that judge.
pub(super) struct Arm {
    /// The settings that differ from the plain ones.
    pub setup: Setup,
    /// The results of the setup, one per part.
    pub series: Series,
    /// The changes relative to the plain settings.
    pub change: Change,
}

/// The judgement on the chosen settings.
pub(super) struct Verdict {
    /// The plain settings with their results.
    pub plain: Arm,
    /// The advised settings with their results. These are the plain settings if no others gain.
    pub advised: Arm,
    /// The chosen settings with their results, if they gained nothing on the parts that judge; `None`
    /// otherwise.
    pub rejected: Option<Arm>,
    /// The setup `--write-back auto` with otherwise plain settings, and the change from that setup to the
    /// advice. `None` if `auto` was not tried.
    pub auto: Option<(Arm, Change)>,
    /// The effect of each setting that was tried.
    pub effects: Vec<Effect>,
    /// The number of judging parts on which the advice improves the objective.
    pub better: usize,
    /// The smallest relative gain that counts.
    pub noise: f64,
    /// The result row of the drive's characterisation.
    pub profile: Row,
    /// Whether the pool never had to evict a page with the plain settings.
    pub is_idle: bool,
    /// The number of executed runs.
    pub executed: u64,
}

/// Executes the runs on the parts that judge. If the chosen settings gain nothing there, the plain settings
/// are advised.
pub(super) fn judge(lab: &mut Lab, chosen: Chosen) -> Result<Verdict, StackError> {
    let Chosen { setup, auto, noise, profile, is_idle } = chosen;
    let parts = lab.question().evidence.judging();
    let goal = lab.question().goal;
    // Executes all setups in one call, so that all threads have work. The calls below find the results.
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

/// Returns the setup in which only one setting of `setup` is changed.
fn alone(setup: &Setup, name: &str) -> Setup {
    setup.iter().filter(|(known, _)| **known == name).map(|(name, value)| (*name, value.clone())).collect()
}

/// Returns `setup` without its change of one setting.
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
    /// Returns the mean throughput, in requests per second for pages of the plain size.
    pub(super) fn throughput(&self) -> f64 {
        mean(self.series.iter().map(|figures| figures.throughput))
    }

    /// Returns the mean throughput, in requests per second for pages of the runs' own page size.
    pub(super) fn own_throughput(&self) -> f64 {
        mean(self.series.iter().filter_map(|figures| figures.row.number(Column::ThroughputOpsS)))
    }

    /// Returns the mean over the parts of the 99th percentile of response times, in nanoseconds.
    pub(super) fn p99(&self) -> f64 {
        mean(self.series.iter().map(|figures| figures.p99))
    }

    /// Returns the settings that all runs of the setup have in common, as a result row.
    pub(super) fn identity(&self) -> Row {
        let mut row = self.series.first().map(|figures| figures.row.clone()).unwrap_or_default();
        let told = Column::all().filter(|column| column.is_axis() || *column == Column::NW);
        let told: Vec<Column> =
            told.filter(|column| ![Column::Seed, Column::Skip].contains(column)).collect();
        row.keep(&told);
        row
    }

    /// Returns how many records or times of the trace were left out or changed, by the column that counts
    /// them. `None` for a generated workload. All runs read the whole trace, so they agree.
    pub(super) fn altered(&self, column: Column) -> Option<u64> {
        self.series.first()?.row.number(column).map(|count| count as u64)
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count().max(1) as f64
}
