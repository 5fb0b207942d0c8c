//! Formats relative changes for people. A change below +100 % is written as a percentage. A larger rise is
//! written as a factor, because "12.5 times as high" is easier to read than "rises by 1146 %".

use fulgurite_base::units::significant;

/// Whether the change is written as a factor instead of a percentage.
pub(crate) fn is_large(change: f64) -> bool {
    change >= 1.0
}

/// Whether any of the changes is written as a factor. The caller then writes all of them as factors, so that
/// readers can compare them.
pub(crate) fn any_is_large(changes: impl IntoIterator<Item = f64>) -> bool {
    changes.into_iter().any(is_large)
}

/// Formats a change as a percentage with its sign: 0.1 is `+10.0 %`.
pub(crate) fn percent(change: f64) -> String {
    match size(change).as_str() {
        // A change that rounds to zero has no sign.
        "0.0 %" => "0.0 %".to_owned(),
        size if change < 0.0 => format!("−{size}"),
        size => format!("+{size}"),
    }
}

/// Formats a change as a percentage without its sign: −0.1 is `10.0 %`.
pub(crate) fn size(change: f64) -> String {
    let percent = 100.0 * change.abs();
    let decimals = if percent < 100.0 { 1 } else { 0 };
    format!("{percent:.decimals$} %")
}

/// Whether the change would be written as 0.0 %.
pub(crate) fn is_none(change: f64) -> bool {
    size(change) == size(0.0)
}

/// Formats a change as a factor, without the word "times": 11.5 is `12.5`.
pub(crate) fn factor(change: f64) -> String {
    significant(1.0 + change)
}

/// Formats a change as a percentage with its sign, or as a factor if it is large: `−18.5 %`, `2.48 times`.
pub(crate) fn signed(change: f64) -> String {
    if is_large(change) { format!("{} times", factor(change)) } else { percent(change) }
}

/// Describes the range of some changes in words: `falls by 6.1 % to 24.1 %`, `is up to 12.5 times as high`.
/// The smallest and the largest change are each followed by a text in brackets that says in which case it
/// occurs. An empty text is left out.
pub(crate) fn moved((low, at_low): (f64, &str), (high, at_high): (f64, &str)) -> String {
    let place = |at: &str| if at.is_empty() { String::new() } else { format!(" ({at})") };
    let (rises, falls) = (high > 0.0 && !is_none(high), low < 0.0 && !is_none(low));
    let by = |(change, at): (f64, &str)| size(change) + &place(at);
    let times = |(change, at): (f64, &str)| factor(change) + &place(at);
    let [low, high] = [(low, at_low), (high, at_high)];
    let up_to = || format!("is up to {} times as high{}", factor(high.0), place(at_high));
    match (falls, rises) {
        (false, false) => "does not change".to_owned(),
        (true, true) if is_large(high.0) => format!("falls by up to {} or {}", by(low), up_to()),
        (true, true) => format!("falls by up to {} and rises by up to {}", by(low), by(high)),
        (false, true) if is_large(high.0) => match () {
            () if is_none(low.0) => up_to(),
            () if factor(low.0) == factor(high.0) => format!("is {} times as high", factor(high.0)),
            () => format!("is {} to {} times as high", times(low), times(high)),
        },
        _ => {
            let (verb, least, most) = if rises { ("rises", low, high) } else { ("falls", high, low) };
            match () {
                () if is_none(least.0) => format!("{verb} by up to {}", by(most)),
                () if size(least.0) == size(most.0) => format!("{verb} by {}", size(most.0)),
                () => format!("{verb} by {} to {}", by(least), by(most)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_unless_it_rounds_to_zero() {
        assert_eq!([-0.185, 0.999, 0.0004, -0.0004].map(percent), ["−18.5 %", "+99.9 %", "0.0 %", "0.0 %"]);
    }

    /// The rule: a range of changes that round to 0.0 % is described as no change. Other changes are written
    /// as percentages with a verb, and as factors from +100 % on.
    #[test]
    fn a_large_change_is_written_as_a_factor() {
        let said = |low: f64, high: f64| moved((low, ""), (high, ""));
        for (low, high, text) in [
            (-0.0004, 0.0004, "does not change"),
            (-0.241, -0.061, "falls by 6.1 % to 24.1 %"),
            (-0.02, -0.02, "falls by 2.0 %"),
            (-0.02, 0.0, "falls by up to 2.0 %"),
            (0.0, 0.02, "rises by up to 2.0 %"),
            (-0.05, 0.03, "falls by up to 5.0 % and rises by up to 3.0 %"),
            (0.5, 0.99, "rises by 50.0 % to 99.0 %"),
            (0.5, 1.0, "is 1.50 to 2.00 times as high"),
            (0.0, 11.46, "is up to 12.5 times as high"),
            (11.46, 11.46, "is 12.5 times as high"),
            (-0.05, 11.46, "falls by up to 5.0 % or is up to 12.5 times as high"),
        ] {
            assert_eq!(said(low, high), text);
        }
        assert_eq!([0.24, 1.4, 635.0].map(signed), ["+24.0 %", "2.40 times", "636 times"]);
    }

    /// The rule: each figure of a range is followed by the case in which it occurs.
    #[test]
    fn a_change_is_followed_by_its_place() {
        let said = |low: f64, high: f64| moved((low, "A"), (high, "B"));
        assert_eq!(said(-0.3, -0.1), "falls by 10.0 % (B) to 30.0 % (A)");
        assert_eq!(said(0.0, 0.1), "rises by up to 10.0 % (B)");
        assert_eq!(said(0.1, 1.5), "is 1.10 (A) to 2.50 (B) times as high");
        assert_eq!(said(0.0, 1.5), "is up to 2.50 times as high (B)");
        assert_eq!(said(-0.1, 1.5), "falls by up to 10.0 % (A) or is up to 2.50 times as high (B)");
        assert_eq!(said(0.2, 0.2), "rises by 20.0 %");
    }
}
