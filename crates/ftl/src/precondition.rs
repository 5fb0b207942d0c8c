//! Brings a drive to the state from which measurements should start. This always ends.
//!
//! Filling writes every logical page once, in order. The steady state is reached by overwriting at
//! random, uniformly, until write amplification over one window (half the logical space) is within
//! 1 % of the window before, twice in a row. After 20 windows the state is taken as it is.

use crate::Ftl;
use fulgurite_base::{Choice, Prng};

/// What happens to a drive before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// Nothing: the drive is empty.
    None,
    /// Every logical page is written once, in order.
    Fill,
    /// Filled, then overwritten at random until write amplification settles.
    Steady,
}

impl Choice for Precondition {
    const NAMES: &'static [(&'static str, Precondition)] =
        &[("none", Precondition::None), ("fill", Precondition::Fill), ("steady", Precondition::Steady)];
}

const WINDOWS_AT_MOST: u32 = 20;

/// Preconditions `ftl`. `write` is given the first logical page and the number of pages; overwrites take
/// `request_pages` at a time. Costs no virtual time.
pub fn precondition(
    ftl: &mut Ftl,
    goal: Precondition,
    request_pages: u32,
    seed: u64,
    mut write: impl FnMut(&mut Ftl, u32, u32),
) {
    let logical = ftl.config().logical_pages;
    if goal == Precondition::None {
        return;
    }
    for lpn in 0..logical {
        write(ftl, lpn, 1);
    }
    let requests = logical / request_pages;
    if goal == Precondition::Fill || requests == 0 {
        return;
    }
    let mut prng = Prng::new(seed, "precondition");
    let mut settled = 0;
    let mut before = f64::INFINITY;
    for _ in 0..WINDOWS_AT_MOST {
        let copied = ftl.counters().copied_pages;
        for _ in 0..requests.div_ceil(2) {
            let first = prng.below(u64::from(requests)) as u32 * request_pages;
            write(ftl, first, request_pages);
        }
        let host = f64::from(requests.div_ceil(2) * request_pages);
        let waf = 1.0 + (ftl.counters().copied_pages - copied) as f64 / host;
        // The first window is compared with infinity, so it never counts as settled.
        settled = if (waf - before).abs() <= 0.01 * waf { settled + 1 } else { 0 };
        if settled == 2 {
            return;
        }
        before = waf;
    }
}
