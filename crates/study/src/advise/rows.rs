//! Formats the answer as result rows: one row each for the advice, the plain settings and `auto`, and one row
//! per setting that was tried.

use super::Advice;
use super::axis::Setup;
use super::lab::{Change, Spread};
use super::verdict::{Arm, Effect};
use crate::table::Table;
use fulgurite_stack::{Column, Row};

/// The columns of a relative change: its mean, its minimum and its maximum.
const THROUGHPUT: [Column; 3] =
    [Column::ThroughputChange, Column::ThroughputChangeMin, Column::ThroughputChangeMax];
const P99: [Column; 3] = [Column::LatencyP99Change, Column::LatencyP99ChangeMin, Column::LatencyP99ChangeMax];

impl Advice {
    /// Returns the answer as result rows. The column `kind` names the subject of each row.
    pub fn table(&self) -> Table {
        let verdict = &self.verdict;
        let mut advice = self.arm("advice", &verdict.advised);
        set_change(&mut advice, &verdict.advised.change);
        advice.set(Column::Goal, self.question.goal.name());
        advice.set(Column::HeldOut, self.question.evidence.judging().len() as u64);
        advice.set(Column::HeldOutBetter, verdict.better as u64);
        advice.set(Column::Runs, verdict.executed);
        for column in [Column::Alpha, Column::KR, Column::KW] {
            advice.set_some(column, verdict.profile.get(column).cloned());
        }
        advice.set(Column::Note, self.notes().join(" "));
        let mut rows = vec![advice, self.arm("plain", &verdict.plain)];
        if let Some((auto, change)) = &verdict.auto {
            let mut row = self.arm("auto", auto);
            set_change(&mut row, &auto.change);
            row.set(Column::Note, self.beside_auto(auto, change));
            rows.push(row);
        }
        rows.extend(verdict.effects.iter().map(effect));
        Table { rows }
    }

    fn arm(&self, kind: &str, arm: &Arm) -> Row {
        let mut row = arm.identity();
        row.set(Column::Kind, kind);
        row.set(Column::ThroughputOpsS, arm.own_throughput());
        row.set(Column::LatencyP99Ns, arm.p99());
        for column in [Column::Skipped, Column::TimesClamped] {
            row.set_some(column, arm.altered(column));
        }
        row.set(Column::Repeat, self.commands(&arm.setup).join("; "));
        row
    }

    /// Returns the commands that repeat the runs of a setup on the held-out parts of the workload, by which the
    /// advice is judged. Parts with equal numbers of requests share one command.
    pub fn commands(&self, setup: &Setup) -> Vec<String> {
        let (mut commands, question) = (Vec::new(), &self.question);
        let parts: Vec<(Setup, u64)> = question
            .evidence
            .judging()
            .filter_map(|at| question.values(setup, at).map(|(values, part)| (values, part.ops)))
            .collect();
        let mut lengths: Vec<u64> = parts.iter().map(|(_, ops)| *ops).collect();
        lengths.sort_unstable();
        lengths.dedup();
        for length in lengths {
            let alike: Vec<&Setup> =
                parts.iter().filter(|(_, ops)| *ops == length).map(|(values, _)| values).collect();
            commands.push(command(&alike));
        }
        commands
    }
}

/// Returns the `fulgurite pool` command for runs that differ only in their seed and in their position in the
/// trace.
fn command(parts: &[&Setup]) -> String {
    let mut text = "fulgurite pool".to_owned();
    for setting in fulgurite_stack::Command::Pool.settings() {
        let mut values: Vec<&str> =
            parts.iter().filter_map(|part| part.get(setting.name)).map(String::as_str).collect();
        values.dedup();
        let value = quoted(&values.join(","));
        match (values.is_empty(), setting.name, setting.written) {
            (true, ..) => {}
            (_, "workload", _) => text += &format!(" {value}"),
            (_, name, "") => text += &format!(" --{}", name.replace('_', "-")),
            (_, name, _) => text += &format!(" --{} {value}", name.replace('_', "-")),
        }
    }
    text
}

/// Returns a word for a shell, in quotes if the shell would interpret it.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-./:=,%+@".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn set_change(row: &mut Row, change: &Change) {
    let spreads = [(THROUGHPUT, Some(change.throughput)), (P99, change.p99)];
    for ([mean, least, most], spread) in spreads {
        row.set_some(mean, spread.map(|spread: Spread| spread.mean));
        row.set_some(least, spread.map(|spread| spread.least));
        row.set_some(most, spread.map(|spread| spread.most));
    }
}

fn effect(effect: &Effect) -> Row {
    let mut row = Row::default();
    row.set(Column::Kind, "setting");
    row.set(Column::Name, effect.name);
    row.set(Column::Plain, effect.plain.as_str());
    row.set(Column::Advised, effect.advised.as_str());
    if let Some(alone) = &effect.alone {
        set_change(&mut row, alone);
    }
    if let Some(without) = &effect.without {
        row.set(Column::ThroughputChangeWithout, without.throughput.mean);
        row.set_some(Column::LatencyP99ChangeWithout, without.p99.map(|spread| spread.mean));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_for_a_shell() {
        let part = |seed: &str| {
            Setup::from([
                ("workload", "it's a trace.csv".to_owned()),
                ("device", "p4510:channels=4,op=28%".to_owned()),
                ("destroy_contents", "yes".to_owned()),
                ("seed", seed.to_owned()),
                ("ops", "300".to_owned()),
            ])
        };
        assert_eq!(
            command(&[&part("45"), &part("46")]),
            "fulgurite pool 'it'\\''s a trace.csv' --device p4510:channels=4,op=28% --destroy-contents \
             --ops 300 --seed 45,46"
        );
    }
}
