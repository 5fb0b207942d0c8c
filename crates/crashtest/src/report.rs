//! The outcome of tests in words, and as JUnit's XML for build servers.

use crate::case::{GuiltyCut, Violation};
use crate::run::Outcome;
use std::fmt::Write;

/// The beginning of a JUnit report, by which a later one knows that it may replace it.
pub const JUNIT_BEGINNING: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- Fulgurite crashtest -->\n";

/// The most violations that are told in words. Others differ in their guilty changes.
const TOLD_AT_MOST: usize = 10;

impl Outcome {
    /// Returns the outcome in sentences.
    pub fn in_words(&self) -> String {
        let Outcome { cuts, cuts_in_run, recovery_cuts, operations, unsynced, lost, seconds, violations } =
            self;
        let mut text = format!(
            "{cuts} cuts in {seconds:.1} s, {cuts_in_run} of them before the end of the program, which makes \
                {operations} changes and syncs\n{lost} of {unsynced} unsynced changes were lost\n"
        );
        if *recovery_cuts > 0 {
            let _ = writeln!(text, "{recovery_cuts} more cuts during recovery");
        }
        if violations.is_empty() {
            text += "no violation\n";
        } else {
            let seeds: Vec<String> = violations.iter().map(|violation| violation.seed.to_string()).collect();
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{} violations, with the seeds {}", violations.len(), seeds.join(", "));
        }
        let mut told: Vec<(&Violation, usize)> = Vec::new();
        for violation in violations {
            match told.iter_mut().find(|(first, _)| first.is_like(violation)) {
                Some((_, others)) => *others += 1,
                None => told.push((violation, 0)),
            }
        }
        for (violation, others) in told.iter().take(TOLD_AT_MOST) {
            text += &violation.in_words();
            if *others > 0 {
                let _ = writeln!(text, "  {others} other seeds failed in this way");
            }
        }
        if told.len() > TOLD_AT_MOST {
            let _ =
                writeln!(text, "\nand {} other ways; --json tells all of them", told.len() - TOLD_AT_MOST);
        }
        text
    }

    /// Returns the outcome as a JUnit test suite with a test for each violation, or one that passed.
    pub fn junit(&self, name: &str) -> String {
        let failures = self.violations.len();
        let mut text = format!(
            "{JUNIT_BEGINNING}<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" \
                time=\"{:.3}\">\n",
            escaped(name),
            self.cuts,
            self.seconds
        );
        for violation in &self.violations {
            let _ = writeln!(
                text,
                "  <testcase name=\"seed {}\"><failure message=\"{}\">{}</failure></testcase>",
                violation.seed,
                escaped(&violation.failure),
                escaped(&violation.in_words())
            );
        }
        if self.cuts > failures as u64 {
            let _ = writeln!(text, "  <testcase name=\"{} other seeds\"/>", self.cuts - failures as u64);
        }
        text + "</testsuite>\n"
    }
}

impl Violation {
    /// Whether the same changes are guilty, or being killed at the same kind of operation.
    fn is_like(&self, other: &Violation) -> bool {
        self.repeats == other.repeats
            && self.cut.key() == other.cut.key()
            && self.recovery.as_ref().map(GuiltyCut::key) == other.recovery.as_ref().map(GuiltyCut::key)
    }

    fn in_words(&self) -> String {
        let Violation { seed, cut, recovery, failure, repeats } = self;
        let GuiltyCut { operation, at, unsynced, lost, .. } = cut;
        let mut text = format!(
            "\nseed {seed}: the power was cut at operation {operation} ({at}), and {lost} of {unsynced} unsynced \
                changes were lost\n"
        );
        if let Some(GuiltyCut { operation, at, unsynced, lost, .. }) = recovery {
            let _ = writeln!(
                text,
                "  the power failed twice: also during recovery, at the check's operation {operation} ({at}), and \
                    {lost} of {unsynced} unsynced changes of the check were lost"
            );
        }
        let _ = writeln!(text, "  the check failed: {failure}");
        if !repeats {
            return text
                + "  the same loss did not make it fail again, so the check depends on more than the files\n";
        }
        match recovery {
            None => text + &cut.guilty_in_words(""),
            Some(recovery) => {
                text + &cut.guilty_in_words(" at the first cut")
                    + &recovery.guilty_in_words(" at the second cut")
            }
        }
    }
}

impl GuiltyCut {
    /// Returns a text that is the same for cuts that fail in the same way.
    fn key(&self) -> Vec<&str> {
        match self.guilty.is_empty() {
            true => self.at.split(' ').take(1).collect(),
            false => self.guilty.iter().map(String::as_str).collect(),
        }
    }

    fn guilty_in_words(&self, place: &str) -> String {
        if self.guilty.is_empty() {
            return format!("  it fails even if nothing is lost{place}: being killed there is enough\n");
        }
        let lines = self.guilty.iter().map(|piece| format!("    {piece}\n"));
        format!("  it is enough to lose{place}:\n") + &lines.collect::<String>()
    }
}

/// Returns a text as XML has it in attributes and elements.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // XML has no other control characters, not even escaped.
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: a report names each violation's seed and guilty changes, and its XML is well formed whatever the
    /// checker prints.
    #[test]
    fn a_report_names_seeds_and_guilty_changes() {
        let violation = Violation {
            seed: 17,
            cut: GuiltyCut {
                operation: 3,
                at: "sync of a file".to_owned(),
                unsynced: 9,
                lost: 4,
                guilty: vec!["write of 512 bytes at 0 of a.db".to_owned()],
            },
            recovery: None,
            failure: "exit status: 1: <\u{1b}[1m\"no\" & no".to_owned(),
            repeats: true,
        };
        let outcome = Outcome {
            cuts: 5,
            cuts_in_run: 5,
            recovery_cuts: 2,
            operations: 8,
            unsynced: 20,
            lost: 10,
            seconds: 1.25,
            violations: vec![violation],
        };
        let words = outcome.in_words();
        for part in [
            "5 cuts in 1.2 s",
            "10 of 20",
            "2 more cuts during recovery",
            "seeds 17",
            "operation 3 (sync of a file)",
            "write of 512 bytes at 0",
        ] {
            assert!(words.contains(part), "{part} is not in {words}");
        }
        let xml = outcome.junit("a \"b\"");
        assert!(xml.contains("name=\"a &quot;b&quot;\" tests=\"5\" failures=\"1\" time=\"1.250\""), "{xml}");
        assert!(xml.contains("message=\"exit status: 1: &lt;\u{fffd}[1m&quot;no&quot; &amp; no\""), "{xml}");
        assert!(xml.contains("<testcase name=\"4 other seeds\"/>"), "{xml}");
        let mut twice = outcome.clone();
        let cut = GuiltyCut {
            operation: 2,
            at: "removal of journal".to_owned(),
            ..twice.violations[0].cut.clone()
        };
        twice.violations[0].recovery = Some(cut);
        for part in ["the power failed twice", "operation 2 (removal of journal)", "at the second cut"] {
            assert!(twice.in_words().contains(part) && !words.contains(part), "{part}: {}", twice.in_words());
        }
        assert_eq!(Outcome { violations: vec![], ..outcome }.in_words().lines().last(), Some("no violation"));
    }
}
