//! Formats the answer for people: one sentence, a table of the settings, a remark on its certainty, and the
//! commands to repeat the runs.

use super::Advice;
use super::axis::{Goal, Setup};
use super::lab::{Change, Spread};
use super::verdict::{Arm, Effect};
use crate::change::{self, signed};
use crate::people::fit::{Shown, fitted};
use crate::people::{humane, wrapped};
use fulgurite_stack::{Column, Value};

impl Advice {
    /// Returns the answer in lines of at most `width` characters, with bold headings if colours are enabled.
    /// A longer command is continued on the next line with a backslash.
    pub fn text(&self, width: usize, has_colours: bool) -> String {
        let mut text = wrapped(&self.sentence(), width) + "\n";
        // Prints the table only if a setting is advised. Otherwise the sentence says that nothing is advised.
        if !self.verdict.advised.setup.is_empty() {
            text += &self.settings(width, has_colours);
            text.push('\n');
        }
        for note in self.notes() {
            text += &wrapped(&note, width);
        }
        text += "\nRepeat it:\n";
        let arms = [("plain", &self.verdict.plain), ("advised", &self.verdict.advised)];
        let is_plain = self.verdict.advised.setup.is_empty();
        for (name, arm) in arms.into_iter().take(if is_plain { 1 } else { 2 }) {
            let rows = arm.series.len();
            let means = if rows > 1 { format!(", means of {rows} rows") } else { String::new() };
            text += &format!("# {name}: {}, p99 {}{means}{}\n", own_rate(arm), time(arm), self.counted(arm));
            for command in self.commands(&arm.setup) {
                text += &continued(&command, width);
            }
        }
        text
    }

    /// Returns the finding in one sentence.
    pub(crate) fn sentence(&self) -> String {
        let verdict = &self.verdict;
        let situation = self.situation();
        let advised = &verdict.advised;
        if advised.setup.is_empty() {
            let why = match (verdict.is_idle, &verdict.rejected) {
                (true, _) => {
                    "all pages that these requests touch fit into memory, so there is nothing to decide"
                        .to_owned()
                }
                (_, Some(_)) => format!(
                    "the settings that gained on the parts that chose them did not gain on the other {}",
                    self.question.evidence.called
                ),
                _ => format!(
                    "nothing that was tried gains more than {} of {}",
                    percent(verdict.noise),
                    named(self.question.goal)
                ),
            };
            return format!("{situation}: keep the plain settings ({}); {why}.", self.figures(advised));
        }
        let changes = verdict.effects.iter().filter(|effect| advised.setup.contains_key(effect.name));
        let (new, old): (Vec<String>, Vec<String>) = changes
            .map(|effect| (format!("{} {}", flag(effect.name), effect.advised), effect.plain.clone()))
            .unzip();
        let throughput =
            moved("throughput", advised.change.throughput, (rate(&verdict.plain), rate(advised)));
        let tail = advised.change.p99.map_or_else(
            || "p99 cannot be compared, because requests to larger pages are other requests".to_owned(),
            |p99| moved("p99", p99, (time(&verdict.plain), time(advised))),
        );
        let is_opposed = advised.change.gain(self.question.goal.other()).mean < -verdict.noise;
        let (first, second) = match self.question.goal {
            Goal::Throughput => (throughput, tail),
            Goal::P99 => (tail, throughput),
        };
        let join = if is_opposed { ", but " } else { " and " };
        format!("{situation}: use {} in place of {}; {first}{join}{second}.", listed(&new), listed(&old))
    }

    fn situation(&self) -> String {
        let row = self.verdict.plain.identity();
        let users = row.number(Column::Users).unwrap_or(1.0);
        let layer = row.get(Column::Layer).map_or_else(String::new, |layer| format!("{} on ", layer.exact()));
        format!(
            "For {} on {layer}{} with {} of memory and {} user{}",
            row.text(Column::Workload),
            row.text(Column::Device),
            bytes(self.question.memory_bytes),
            Value::Integer(users as u64).readable(),
            if users == 1.0 { "" } else { "s" },
        )
    }

    fn settings(&self, width: usize, has_colours: bool) -> String {
        let column = |head: &str, is_text: bool, cell: &dyn Fn(&Effect) -> String| Shown {
            head: head.to_owned(),
            cells: self.verdict.effects.iter().map(|effect| (cell(effect), false)).collect(),
            is_text,
        };
        let throughput = |change: &Option<Change>| {
            change.as_ref().map_or_else(|| "–".to_owned(), |change| signed(change.throughput.mean))
        };
        let p99 = |change: &Option<Change>| {
            change
                .as_ref()
                .and_then(|change| change.p99)
                .map_or_else(|| "–".to_owned(), |p99| signed(p99.mean))
        };
        let mut columns = vec![
            column("setting", true, &|effect| flag(effect.name)),
            column("plain", true, &|effect| effect.plain.clone()),
            column("advised", true, &|effect| effect.advised.clone()),
            column("alone", false, &|effect| throughput(&effect.alone)),
            column("p99", false, &|effect| p99(&effect.alone)),
        ];
        if self.verdict.effects.iter().any(|effect| effect.without.is_some()) {
            columns.push(column("without it", false, &|effect| throughput(&effect.without)));
            columns.push(column("p99", false, &|effect| p99(&effect.without)));
        }
        let mut caption =
            "alone: what changing this setting by itself does to throughput and to p99".to_owned();
        if columns.len() > 5 {
            caption += "; without it: what keeping it plain does, with the others changed";
        }
        let kept = columns.len();
        fitted(columns, kept, width, has_colours).0 + &wrapped(&caption, width)
    }

    /// Returns the remarks that follow the sentence, one text per remark.
    pub(crate) fn notes(&self) -> Vec<String> {
        let verdict = &self.verdict;
        let mut notes = vec![self.how_sure()];
        if let Some((auto, change)) = &verdict.auto {
            notes.push(self.beside_auto(auto, change));
        }
        let goal = self.question.goal;
        if verdict.advised.change.gain(goal.other()).mean < -verdict.noise {
            notes.push(format!(
                "This advice improves {}; --for {} improves the other.",
                named(goal),
                goal.other().name()
            ));
        }
        let figure = |column: Column| verdict.profile.get(column).map(|value| humane(column, value));
        let [alpha, k_r, k_w] =
            [Column::Alpha, Column::KR, Column::KW].map(|column| figure(column).unwrap_or_default());
        let page = bytes(u64::from(self.question.page_bytes));
        notes.push(format!("The drive: alpha {alpha}, k_r {k_r}, k_w {k_w} with pages of {page}."));
        if self.question.is_real {
            let noise = percent(verdict.noise);
            notes.push(format!(
                "This is a real drive, on which two equal runs may differ by {noise}. \
                 Smaller gains count as none."
            ));
        }
        notes.extend(self.altered());
        notes.extend(self.question.remarks.iter().cloned());
        notes
    }

    /// Returns a remark on what reading the trace left out or changed; `None` if it is nothing.
    fn altered(&self) -> Option<String> {
        let count = |column| self.verdict.plain.altered(column).filter(|count| *count > 0);
        let number = |count: u64| Value::from(count).readable();
        let left_out = count(Column::Skipped).map(|count| match count {
            1 => "1 record that is no request is left out".to_owned(),
            count => format!("{} records that are no requests are left out", number(count)),
        });
        let clamped = count(Column::TimesClamped).map(|count| match count {
            1 => "1 time goes back, which a pool does not use".to_owned(),
            count => format!("{} times go back, which a pool does not use", number(count)),
        });
        let said: Vec<String> = [left_out, clamped].into_iter().flatten().collect();
        (!said.is_empty()).then(|| format!("The trace: {}.", listed(&said)))
    }

    /// Returns a remark that says how certain the answer is, and why.
    fn how_sure(&self) -> String {
        let (verdict, evidence) = (&self.verdict, &self.question.evidence);
        let (called, judging) = (evidence.called, evidence.judging().len());
        let chosen = match judging {
            1 => "chosen by one half of the trace, judged by the other".to_owned(),
            _ => format!("chosen by {} {called}, judged by {judging} others", evidence.choosing().len()),
        };
        let runs = format!("{} runs, {chosen}", verdict.executed);
        let arm = verdict.rejected.as_ref().unwrap_or(&verdict.advised);
        if arm.setup.is_empty() {
            return match verdict.is_idle {
                true => format!("How sure: {runs}."),
                false => format!("How sure: {runs}; gains up to {} count as none.", percent(verdict.noise)),
            };
        }
        let tail = arm.change.p99.map_or_else(String::new, |p99| format!(", p99 {}", range(p99)));
        let ranges = format!("throughput {}{tail}", range(arm.change.throughput));
        if verdict.rejected.is_some() {
            let what = said(&arm.setup);
            return format!(
                "How sure: {runs}; {what} gained on the parts that chose it, but on the others it gave {ranges}."
            );
        }
        if judging == 1 {
            return format!(
                "How sure: {ranges} in the half of the trace that took no part in the choice ({runs}). A \
                 longer trace would tell how much that varies."
            );
        }
        format!(
            "How sure: better in {} of {judging} {called} that took no part in the choice: {ranges} ({runs}).",
            verdict.better
        )
    }

    /// Returns a remark that compares the advice with `auto`.
    pub(super) fn beside_auto(&self, auto: &Arm, change: &Change) -> String {
        let (goal, noise) = (self.question.goal, self.verdict.noise);
        let gain = change.gain(goal);
        let figures = format!("Compared with --write-back auto alone ({})", self.figures(auto));
        let tail = change.p99.map_or_else(String::new, |p99| format!(", p99 {}", signed(p99.mean)));
        let more = format!("throughput {}{tail}", signed(change.throughput.mean));
        let advised = &self.verdict.advised.setup;
        if advised.is_empty() {
            let tail = auto.change.p99.map_or_else(String::new, |p99| format!(", p99 {}", signed(p99.mean)));
            let changes = format!("throughput {}{tail}", signed(auto.change.throughput.mean));
            return match auto.change.is_gain(goal, noise) {
                true => format!(
                    "{figures}: {changes} against the plain settings. It did not gain on every part that \
                     chose the settings."
                ),
                false => format!("{figures}: no gain, {changes} against the plain settings."),
            };
        }
        if *advised == auto.setup {
            return format!(
                "{figures}: this alone is the advice; no other setting gains anything beside it."
            );
        }
        if change.is_gain(goal, noise) {
            return format!("{figures}: the advice is better, {more}.");
        }
        if gain.mean > -noise {
            return format!(
                "{figures}: the advice is no better, {more}; its batches come from the same curves of the drive."
            );
        }
        format!(
            "{figures}: the advice is worse, {more}; on the parts that chose the settings it was better. Use auto."
        )
    }

    /// Returns a remark on the unit in which the commands count requests, if that unit differs from the unit
    /// of the answer.
    fn counted(&self, arm: &Arm) -> String {
        let page = self.question.page_of(&arm.setup);
        if page == self.question.page_bytes {
            return String::new();
        }
        format!(
            ", in requests to pages of {}; above, to pages of {}",
            bytes(u64::from(page)),
            bytes(u64::from(self.question.page_bytes))
        )
    }

    fn figures(&self, arm: &Arm) -> String {
        format!("{}, p99 {}", rate(arm), time(arm))
    }
}

fn rate(arm: &Arm) -> String {
    humane(Column::ThroughputOpsS, &Value::Real(arm.throughput()))
}

fn own_rate(arm: &Arm) -> String {
    humane(Column::ThroughputOpsS, &Value::Real(arm.own_throughput()))
}

fn time(arm: &Arm) -> String {
    humane(Column::LatencyP99Ns, &Value::Real(arm.p99()))
}

fn bytes(bytes: u64) -> String {
    humane(Column::MemoryBytes, &Value::Real(bytes as f64))
}

fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

fn named(goal: Goal) -> &'static str {
    match goal {
        Goal::Throughput => "throughput",
        Goal::P99 => "the 99th percentile",
    }
}

fn said(setup: &Setup) -> String {
    let settings: Vec<String> = setup.iter().map(|(name, value)| format!("{} {value}", flag(name))).collect();
    listed(&settings)
}

/// Breaks a command into lines of about `width` characters. A line breaks only before an option, so that no
/// word of the shell is split.
pub(crate) fn continued(command: &str, width: usize) -> String {
    let mut lines = vec![String::new()];
    for (at, part) in command.split(" --").enumerate() {
        let part = if at == 0 { part.to_owned() } else { format!("--{part}") };
        let length = lines.last().map_or(0, |line| line.chars().count());
        // Adds 3 for a space before the option, and for a space and a backslash at the end of the line.
        if at > 0 && length + part.chars().count() + 3 > width {
            lines.push(format!("    {part}"));
        } else if let Some(line) = lines.last_mut() {
            *line += &format!("{}{part}", if at == 0 { "" } else { " " });
        }
    }
    lines.join(" \\\n") + "\n"
}

/// Joins words into a list like `a, b and c`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Describes a change, like `throughput rises by 24.1 % (15.7 K/s to 19.5 K/s)`.
fn moved(what: &str, moved: Spread, (from, to): (String, String)) -> String {
    match moved.mean {
        mean if mean.abs() < 0.0005 => format!("{what} stays ({to})"),
        mean if change::is_large(mean) => {
            format!("{what} rises to {} times ({from} to {to})", change::factor(mean))
        }
        mean if mean > 0.0 => format!("{what} rises by {} ({from} to {to})", percent(mean)),
        mean => format!("{what} falls by {} ({from} to {to})", percent(-mean)),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn range(change: Spread) -> String {
    match signed(change.least) == signed(change.most) {
        true => signed(change.mean),
        false => format!("{} to {}", signed(change.least), signed(change.most)),
    }
}
