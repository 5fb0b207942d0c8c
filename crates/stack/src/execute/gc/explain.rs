//! Explains the changes of the placement policy MiDAS to its groups of segments, and the errors of its
//! predictions.

use fulgurite_ftl::Ftl;
use fulgurite_ftl::placement::midas::{Configuration, Event, Midas, Why};
use std::fmt::Write as _;

fn events(ftl: &Ftl) -> &[Event] {
    ftl.placer().policy::<Midas>().map_or(&[], |midas| midas.events())
}

/// Returns the mean difference between the shares of valid pages that MiDAS predicted for its groups and the
/// measured shares. It covers all intervals between two changes that are at least as many page writes long as
/// the logical space has pages, and in each those groups that had the predicted sizes.
pub(super) fn valid_share_error(ftl: &Ftl) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0u32);
    for two in events(ftl).windows(2) {
        let is_long = two[1].at - two[0].at >= u64::from(ftl.config().logical_pages);
        let Some(Configuration { prediction, sized, .. }) = two[0].configuration.as_ref().filter(|_| is_long)
        else {
            continue;
        };
        // `sized` excludes the last group, which takes the remaining segments. So the last group has the
        // predicted size if all groups of `sized` have theirs.
        let sized_groups = usize::from(two[0].unsized_from.saturating_sub(1));
        let groups = if sized_groups == sized.len() { sized.len() + 1 } else { sized_groups };
        let measured = two[1].measured.iter().skip(1);
        for (predicted, measured) in prediction.valid.iter().zip(measured).take(groups) {
            if let Some(measured) = measured {
                (sum, count) = (sum + (predicted - measured).abs(), count + 1);
            }
        }
    }
    (count > 0).then(|| sum / f64::from(count))
}

fn percent(share: f64) -> String {
    format!("{:.1}", 100.0 * share)
}

/// Describes the reason of an event in words.
fn reason(why: Why) -> String {
    match why {
        Why::Lifetimes(difference) => {
            format!("lifetimes differ by {} % from those in use: sizes chosen", percent(difference))
        }
        Why::Unchanged(difference) => {
            format!("lifetimes differ by {} % from those in use: nothing changed", percent(difference))
        }
        Why::NoGain(promised, measured) => {
            format!(
                "lifetimes measured, the best choice promises WAF {promised:.3}, and {measured:.3} is measured: \
                    nothing changed"
            )
        }
        Why::Learned(promised, measured) => format!(
            "corrected by what was measured, the best choice promises WAF {promised:.3}, and {measured:.3} is \
                measured: sizes chosen"
        ),
        Why::Worse(had, measured) => {
            format!(
                "WAF {measured:.3} is measured, and was {had:.3} with the groups before: those groups again"
            )
        }
        Why::Irregular(group, predicted, measured) => format!(
            "G{group} passes on {} % of its pages and not {} % as predicted: no fixed sizes from this group on",
            percent(measured),
            percent(predicted)
        ),
        Why::Runaway => "collection made no room: no fixed sizes any more".to_owned(),
    }
}

/// Describes the changes of the placement policy, one event per line.
pub(super) fn explanation(ftl: &Ftl) -> String {
    let capacity = f64::from(ftl.config().logical_pages);
    let mut text = String::new();
    for event in events(ftl) {
        let _ = writeln!(text, "at {:.2} capacities: {}", event.at as f64 / capacity, reason(event.why));
        let shares: Vec<String> =
            event.measured.iter().map(|share| share.map_or_else(|| "–".to_owned(), percent)).collect();
        let _ = writeln!(text, "    until then: WAF {:.3}, valid % HOT {}", event.waf, shares.join(" "));
        let is_chosen = matches!(event.why, Why::Lifetimes(_) | Why::Learned(..));
        if let Some(Configuration { hot, sized, prediction }) =
            event.configuration.as_ref().filter(|_| is_chosen)
        {
            let sizes: Vec<String> = sized.iter().map(u32::to_string).collect();
            let shares: Vec<String> = prediction.valid.iter().copied().map(percent).collect();
            let _ = writeln!(
                text,
                "    from now on: HOT {hot}, {} + rest segments; predicted WAF {:.3}, valid % {}, {} % of writes to \
                    HOT",
                sizes.join(" "),
                prediction.waf,
                shares.join(" "),
                percent(prediction.hot.0)
            );
        }
    }
    if text.is_empty() {
        text.push_str(
            "the placement policy does not change its groups, or the run was too short for a change\n",
        );
    }
    text
}
