//! Chooses the settings by a greedy search on the parts of the workload that choose.
//!
//! The search changes the settings one after the other, each to the value with the largest gain in
//! combination with the earlier changes. Then it tries other batch sizes, and reverts each change once. So
//! the maximum number of runs is known in advance.

use super::axis::{Axis, KEPT, Setup, other_batches};
use super::lab::{Change, Figures, Lab, Series};
use fulgurite_stack::{Column, Row, StackError};

/// The minimum gain for which a setting is changed, as a share of the objective.
pub(super) const WORTH: f64 = 0.01;

/// If several values gain about the same in the objective, one of them is preferred if it is better by this
/// share in the other objective.
const TELLS: f64 = 0.05;

/// The maximum relative difference between two equal runs. With a larger difference, settings cannot be
/// compared.
const NOISE_AT_MOST: f64 = 0.5;

/// The settings that the search has chosen.
pub(super) struct Chosen {
    /// The chosen settings that differ from the plain ones.
    pub setup: Setup,
    /// The setup that is equivalent to `--write-back auto` with otherwise plain settings; `None` if it was
    /// not tried.
    pub auto: Option<Setup>,
    /// The smallest relative gain that counts: the difference between equal runs, and at least [`WORTH`].
    pub noise: f64,
    /// The result row of the drive's characterisation.
    pub profile: Row,
    /// Whether the pool never had to evict a page with the plain settings.
    pub is_idle: bool,
}

/// Searches the settings with the largest gain.
pub(super) fn search(lab: &mut Lab) -> Result<Chosen, StackError> {
    let question = lab.question();
    let profile = lab.profile()?;
    let noise = lab.noise()?.max(WORTH);
    let plain = lab.of(&Setup::new(), question.evidence.choosing())?;
    let is_idle = plain.iter().all(never_full);
    if is_idle {
        // Without evictions no setting makes a difference, so the plain settings are chosen.
        return Ok(Chosen { setup: Setup::new(), auto: None, noise, profile, is_idle });
    }
    refuse_noise(noise)?;
    let auto = automatic(lab)?;
    let n_w = profile.number(Column::KW).map_or(1, |k_w| k_w as u32);
    let mut best = Setup::new();
    for axis in &question.axes {
        best = improved(lab, best, axis, &values(axis, n_w, &auto), noise)?;
    }
    if let Some(axis) = question.axes.iter().find(|axis| axis.name == "write_back") {
        let mut values = values(axis, n_w, &auto);
        if !axis.is_given {
            values.extend(
                ["ace", "ace+raw"]
                    .iter()
                    .flat_map(|name| other_batches(n_w).map(|n_w| format!("{name}:n_w={n_w}"))),
            );
        }
        best = improved(lab, best, axis, &values, noise)?;
    }
    // Reverts the changes in reverse order, because a later change may have made an earlier one superfluous.
    for axis in question.axes.iter().rev().filter(|axis| axis.name != "page") {
        best = without_idle(lab, best, axis, noise)?;
    }
    Ok(Chosen { setup: best, auto, noise, profile, is_idle })
}

/// Refuses to choose if two equal runs differ so much that a difference between setups may be chance.
fn refuse_noise(noise: f64) -> Result<(), StackError> {
    match noise <= NOISE_AT_MOST {
        true => Ok(()),
        false => Err(StackError::run(format!(
            "too noisy to advise: two equal runs differ by {:.0} %; use more --ops or an idle machine",
            100.0 * noise
        ))),
    }
}

/// Whether the pool always had a free frame in this run: it read at most one page for each frame, and wrote
/// none.
fn never_full(figures: &Figures) -> bool {
    let number = |column: Column| figures.row.number(column).unwrap_or(0.0);
    number(Column::PagesRead) <= number(Column::Frames) && number(Column::PagesWritten) == 0.0
}

/// Returns the values of an axis to try. A write-back policy with a batch size gets the batch size `n_w` of
/// the drive.
fn values(axis: &Axis, n_w: u32, auto: &Option<Setup>) -> Vec<String> {
    match (axis.name, axis.is_given) {
        ("write_back", false) => {
            let measured = auto.as_ref().and_then(|setup| setup.get("write_back")).cloned();
            let others = Axis::write_back(n_w).others.into_iter();
            others.map(|value| measured.clone().filter(|_| value == "auto").unwrap_or(value)).collect()
        }
        _ => axis.others.clone(),
    }
}

/// Returns the setup for `auto`, or `None` if `auto` is not to be tried. On a simulated drive each run
/// characterises the drive itself, at no cost. On a real drive a characterisation takes a minute and gives
/// different parameters each time, so the parameters from the one measurement are used.
fn automatic(lab: &mut Lab) -> Result<Option<Setup>, StackError> {
    let question = lab.question();
    if !question.axes.iter().any(|axis| axis.name == "write_back" && axis.others.contains(&"auto".to_owned()))
    {
        return Ok(None);
    }
    let setup = Setup::from([("write_back", "auto".to_owned())]);
    let Some(run) = lab.made(&setup)? else { return Ok(None) };
    let numbers = run.stack.write_back().map(|chosen| &chosen.batches).filter(|_| question.is_real);
    Ok(Some(match numbers {
        Some(numbers) => {
            let text = format!("ace+raw:n_w={},n_e={},buffers={}", numbers.n_w, numbers.n_e, numbers.buffers);
            Setup::from([("write_back", text)])
        }
        None => setup,
    }))
}

/// Returns `best` with the value of `axis` that gains most, or `best` itself if no value gains.
fn improved(
    lab: &mut Lab,
    best: Setup,
    axis: &Axis,
    values: &[String],
    noise: f64,
) -> Result<Setup, StackError> {
    let parts = lab.question().evidence.choosing();
    let with = |value: &String| {
        let mut setup = best.clone();
        setup.insert(axis.name, value.clone());
        setup
    };
    let mut setups: Vec<Setup> = values.iter().map(with).collect();
    setups.retain(|setup| *setup != best);
    let base = lab.of(&best, parts.clone())?;
    screen(lab, &base[..1], &mut setups)?;
    let figures = lab.figures(&setups, parts)?;
    let candidates: Vec<(Setup, Series)> =
        setups.into_iter().zip(figures).filter_map(|(setup, series)| Some((setup, series?))).collect();
    let at = pick(lab, &base, candidates.iter().map(|(_, series)| series.as_slice()), noise);
    Ok(at.map_or(best, |at| candidates[at].0.clone()))
}

/// Drops all setups but those that gain most on the first part. The others keep their order.
fn screen(lab: &mut Lab, base: &[Figures], setups: &mut Vec<Setup>) -> Result<(), StackError> {
    if setups.len() <= KEPT {
        return Ok(());
    }
    let goal = lab.question().goal;
    let figures = lab.figures(setups, 0..1)?;
    let gain = |series: &Series| Change::between(base, series).gain(goal).mean;
    let gains: Vec<f64> =
        figures.iter().map(|series| series.as_ref().map_or(f64::NEG_INFINITY, gain)).collect();
    let mut sorted = gains.clone();
    sorted.sort_by(|a, b| b.total_cmp(a));
    // If several setups have the same gain as the last that is kept, the simpler ones are kept.
    let mark = sorted[KEPT - 1];
    let mut at_mark = KEPT - gains.iter().filter(|gain| **gain > mark).count();
    let mut gains = gains.into_iter();
    setups.retain(|_| {
        let gain = gains.next().unwrap_or(f64::NEG_INFINITY);
        let stays = gain > mark || (gain == mark && at_mark > 0);
        at_mark -= usize::from(stays && gain == mark);
        stays
    });
    Ok(())
}

/// Returns the number of the candidate that replaces `base`, or `None` if no candidate gains. It is the
/// simplest of the candidates with about the highest gain, unless another of these is much better in the
/// other objective.
fn pick<'a>(
    lab: &Lab,
    base: &[Figures],
    candidates: impl Iterator<Item = &'a [Figures]>,
    noise: f64,
) -> Option<usize> {
    let goal = lab.question().goal;
    let changes: Vec<(usize, Change)> = candidates
        .enumerate()
        .map(|(at, series)| (at, Change::between(base, series)))
        .filter(|(_, change)| change.is_gain(goal, noise))
        .collect();
    let gain = |change: &Change| change.gain(goal).mean;
    let most = changes.iter().map(|(_, change)| gain(change)).fold(f64::NEG_INFINITY, f64::max);
    let mut alike = changes.iter().filter(|(_, change)| gain(change) >= most - noise);
    let mut picked = alike.next()?;
    for other in alike {
        let second = |(_, change): &(usize, Change)| change.gain(goal.other()).mean;
        if second(other) > second(picked) + TELLS.max(noise) {
            picked = other;
        }
    }
    Some(picked.0)
}

/// Returns `best` without its change of one setting if that change gains nothing beside the other changes;
/// otherwise returns `best` itself.
fn without_idle(lab: &mut Lab, best: Setup, axis: &Axis, noise: f64) -> Result<Setup, StackError> {
    let mut without = best.clone();
    if without.remove(axis.name).is_none() {
        return Ok(best);
    }
    let parts = lab.question().evidence.choosing();
    let goal = lab.question().goal;
    let figures = lab.figures(&[without.clone(), best.clone()], parts)?;
    Ok(match figures.as_slice() {
        [Some(old), Some(new)] if !Change::between(old, new).is_gain(goal, noise) => without,
        _ => best,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noisy_runs_give_no_advice() {
        assert_eq!(refuse_noise(0.3), Ok(()));
        let refused = refuse_noise(1.098).unwrap_err();
        assert_eq!(refused.exit_code(), 1);
        let sentence =
            "too noisy to advise: two equal runs differ by 110 %; use more --ops or an idle machine";
        assert_eq!(refused.to_string(), sentence);
        assert!(refuse_noise(f64::NAN).is_err());
    }
}
