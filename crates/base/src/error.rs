//! The error for text that a user wrote. If a name was mistyped, the error offers the nearest known name.

use thiserror::Error;

/// A refused text of the user: one sentence that names the argument and the accepted values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SpecError(String);

impl SpecError {
    /// Creates an error with this sentence.
    pub fn new(sentence: impl Into<String>) -> SpecError {
        SpecError(sentence.into())
    }

    /// Creates the error for a name that is not in `known`. It offers the nearest known name, and lists all
    /// known names.
    pub fn unknown(kind: &str, name: &str, known: &[&str]) -> SpecError {
        let offer = offer(name, known);
        let listing = if known.is_empty() {
            "there are none".to_owned()
        } else {
            format!("known: {}", known.join(" "))
        };
        SpecError(format!("unknown {kind} `{name}`{offer} ({listing})"))
    }

    /// Creates the error for an unknown name if there are too many known names to list. The argument `list`
    /// is the command that shows them.
    pub fn unknown_of_many(kind: &str, name: &str, known: &[&str], list: &str) -> SpecError {
        let count = known.len();
        let offer = match offer(name, known) {
            none if none.is_empty() => offer_longer(name, known),
            offer => offer,
        };
        SpecError(format!("unknown {kind} `{name}`{offer} (`{list}` shows all {count})"))
    }
}

fn offer(name: &str, known: &[&str]) -> String {
    nearest(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

/// Returns the offer of up to three known names that begin with `name`, as text.
fn offer_longer(name: &str, known: &[&str]) -> String {
    let longer: Vec<&str> =
        known.iter().copied().filter(|known| known.starts_with(name) && !name.is_empty()).take(3).collect();
    if longer.is_empty() { String::new() } else { format!("; did you mean `{}`?", longer.join("` or `")) }
}

/// Returns the member of `known` that is closest to `name`, if it is close enough to be a typing error.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&name.to_lowercase(), candidate), *candidate))
        // One wrong letter in three still counts as a typing error.
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_offered_the_nearest() {
        let sentence = SpecError::unknown("replacement", "lur", &["fifo", "lru"]).to_string();
        assert_eq!(sentence, "unknown replacement `lur`; did you mean `lru`? (known: fifo lru)");
        assert!(!SpecError::unknown("replacement", "banana", &["lru"]).to_string().contains("did you mean"));
        let sentence =
            SpecError::unknown_of_many("column", "wfa", &["ops", "waf"], "list columns").to_string();
        assert_eq!(sentence, "unknown column `wfa`; did you mean `waf`? (`list columns` shows all 2)");
        // Several known names begin with `latency`, so the first three of them are offered.
        let columns = ["ops", "latency_mean_ns", "latency_p50_ns", "latency_p95_ns", "latency_p99_ns"];
        let sentence = SpecError::unknown_of_many("column", "latency", &columns, "list columns").to_string();
        assert!(
            sentence.contains("did you mean `latency_mean_ns` or `latency_p50_ns` or `latency_p95_ns`? ("),
            "{sentence}"
        );
    }
}
