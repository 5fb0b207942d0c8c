//! Counts the lines of a trace that hold no request, by reason.

/// The number of lines that were skipped for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The reason, a noun phrase for the contents of the lines.
    pub reason: &'static str,
    /// The number of lines skipped for this reason.
    pub count: u64,
}

impl Skipped {
    /// Returns the number of lines skipped for any of these reasons.
    pub fn total(all: &[Skipped]) -> u64 {
        all.iter().map(|skipped| skipped.count).sum()
    }

    /// Returns each number of lines with its reason, as text.
    pub fn reasons(all: &[Skipped]) -> String {
        let reasons: Vec<String> =
            all.iter().map(|skipped| format!("{} {}", skipped.count, skipped.reason)).collect();
        reasons.join("; ")
    }

    /// Counts further lines that were skipped for this reason.
    pub(super) fn count(all: &mut Vec<Skipped>, reason: &'static str, count: u64) {
        match all.iter_mut().find(|skipped| skipped.reason == reason) {
            Some(skipped) => skipped.count += count,
            None => all.push(Skipped { reason, count }),
        }
    }
}
