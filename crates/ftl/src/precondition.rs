//! Preconditioning: brings a drive to the state in which measurements start. It always ends.
//!
//! A fill writes every logical page once, in order. For the steady state, pages are then overwritten
//! uniformly at random until the write amplification of a window (half the logical space) is within 1 % of
//! the window before, twice in a row. After 20 windows the preconditioning ends in any case. SPRandom comes near
//! the steady state in one pass over the flash; see [`crate::sprandom`].

use crate::sprandom::SpRandom;
use crate::{Ftl, analytic};
use fulgurite_base::{Choice, Prng};

/// The state of a drive before the first request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// The drive is empty.
    None,
    /// Every logical page is written once, in order.
    Fill,
    /// The drive is filled, then overwritten at random until write amplification is steady.
    Steady,
    /// The flash is written once in the order of SPRandom. The write amplification of the next drive write is
    /// within 1 % of the steady one.
    SpRandom,
}

impl Choice for Precondition {
    const NAMES: &'static [(&'static str, Precondition)] = &[
        ("none", Precondition::None),
        ("fill", Precondition::Fill),
        ("steady", Precondition::Steady),
        ("sprandom", Precondition::SpRandom),
    ];
}

const WINDOWS_AT_MOST: u32 = 20;
/// The number of requests that are drawn before they are written, so that their map entries arrive in the
/// processor's cache in time. Without that, the wait for random entries is a third of the preconditioning.
const AHEAD: usize = 16;

/// Preconditions `ftl`. `write` is called with the first logical page and the number of pages; each overwrite
/// has `request_pages` pages. Takes no virtual time.
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
    let requests = logical / request_pages;
    let spread = if goal == Precondition::SpRandom { requests } else { 0 };
    // The pages that SPRandom leaves out are those behind the last whole request.
    for lpn in spread * request_pages..logical {
        write(ftl, lpn, 1);
    }
    if goal == Precondition::SpRandom {
        let spare = ftl.config().spare_effective();
        for request in SpRandom::new(requests, spare, analytic::waf_fifo(spare), seed) {
            write(ftl, request * request_pages, request_pages);
        }
        return;
    }
    if goal == Precondition::Fill || requests == 0 {
        return;
    }
    let mut prng = Prng::new(seed, "precondition");
    let mut draw = || prng.below(u64::from(requests)) as u32 * request_pages;
    let mut ahead: [u32; AHEAD] = std::array::from_fn(|_| draw());
    let mut turn = 0;
    until_steady(ftl, requests.div_ceil(2), request_pages, |ftl| {
        let first = std::mem::replace(&mut ahead[turn], draw());
        ftl.prefetch(ahead[turn]);
        turn = (turn + 1) % AHEAD;
        write(ftl, first, request_pages);
    });
}

/// Calls `write`, which writes `request_pages` pages, until write amplification is steady. A window has
/// `requests` calls.
pub fn until_steady(ftl: &mut Ftl, requests: u32, request_pages: u32, mut write: impl FnMut(&mut Ftl)) {
    let mut settled = 0;
    let mut before = f64::INFINITY;
    for _ in 0..WINDOWS_AT_MOST {
        let copied = ftl.counters().copied_pages;
        (0..requests).for_each(|_| write(ftl));
        let host = f64::from(requests) * f64::from(request_pages);
        // Until every segment was written once, nothing is collected, which is not the steady state.
        let collects = ftl.counters().copied_pages > copied || ftl.counters().erased_segments > 0;
        let waf = 1.0 + (ftl.counters().copied_pages - copied) as f64 / host;
        // The first window is compared with infinity, so it never counts as steady.
        settled = if collects && (waf - before).abs() <= 0.01 * waf { settled + 1 } else { 0 };
        if settled == 2 {
            return;
        }
        before = waf;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytic::{waf_fifo, waf_greedy, waf_random};
    use crate::check::check;
    use crate::victim::VictimConfig;
    use crate::{Collect, CountingSink, FtlConfig, UnitId};
    use fulgurite_base::StreamId;

    const PAGES: u32 = 1_001;
    const TOGETHER: u32 = 4;
    /// The number of requests in a window, which is half of the requests that fit into the logical space.
    const WINDOW: usize = 125;

    /// Returns the writes of a preconditioning on a drive that copies `copies` pages in each window.
    fn writes(goal: Precondition, copies: &[u32]) -> Vec<(u32, u32)> {
        let mut ftl = Ftl::new(FtlConfig::plain(PAGES, 1_000, 16)).unwrap();
        let mut sink = CountingSink::default();
        let mut writes = Vec::new();
        precondition(&mut ftl, goal, TOGETHER, 7, |ftl, first, pages| {
            writes.push((first, pages));
            if pages == 1 {
                let stream = StreamId(0);
                assert!(ftl.admit(UnitId(0), stream));
                ftl.append(first, stream, UnitId(0), stream, &mut sink);
            } else if (writes.len() - PAGES as usize) % WINDOW == 1 {
                let window = (writes.len() - PAGES as usize) / WINDOW;
                (0..copies[window % copies.len()]).for_each(|lpn| {
                    ftl.copy(ftl.lookup(lpn).unwrap(), &mut sink);
                });
            }
        });
        writes
    }

    /// The rule: an empty drive gets no writes, a fill writes every page once in order, and the steady state
    /// adds requests over the whole space, aligned to their size.
    #[test]
    fn a_drive_is_filled_in_order_and_then_overwritten_at_random() {
        let fill: Vec<(u32, u32)> = (0..PAGES).map(|lpn| (lpn, 1)).collect();
        assert_eq!(writes(Precondition::None, &[0]), []);
        assert_eq!(writes(Precondition::Fill, &[0]), fill);
        let steady = writes(Precondition::Steady, &[1]);
        let (filled, overwrites) = steady.split_at(fill.len());
        assert_eq!(filled, fill);
        // The first window has none before it, and the two windows after it are equal.
        assert_eq!(overwrites.len(), 3 * WINDOW);
        assert!(overwrites.iter().all(|(first, pages)| (first % TOGETHER, *pages) == (0, TOGETHER)));
        let (least, most) = (overwrites.iter().min().unwrap().0, overwrites.iter().max().unwrap().0);
        assert!(least < 40 && (961..997).contains(&most), "{least} to {most}");
    }

    /// The rule: a drive with much spare space is not steady before it collects garbage, though its write
    /// amplification does not change.
    #[test]
    fn a_drive_that_has_not_collected_is_not_steady() {
        let mut ftl = Ftl::new(FtlConfig::plain(PAGES, 500, 16)).unwrap();
        precondition(&mut ftl, Precondition::Steady, 1, 7, |ftl, first, pages| {
            ftl.write(first, pages, StreamId(0), &mut CountingSink::default());
        });
        assert!(ftl.counters().erased_segments > 0);
    }

    /// The rule: the state is steady after two windows in a row with a write amplification within 1 % of the
    /// window before. After twenty windows the preconditioning ends.
    #[test]
    fn a_drive_is_steady_after_two_equal_windows() {
        let windows = |copies: &[u32]| (writes(Precondition::Steady, copies).len() - PAGES as usize) / WINDOW;
        // A window has 500 host pages: 2, 2.02, 2.06, 2.08 and 2.098 pages are written for each host page.
        assert_eq!(windows(&[500, 510, 530, 540, 549, 0]), 5);
        assert_eq!(windows(&[500, 510, 505, 0]), 3, "it may fall");
        assert_eq!(windows(&[0, 100]), WINDOWS_AT_MOST as usize);
    }

    /// The rule: after SPRandom the write amplification of the next drive write is within 1 % of the closed form,
    /// with every victim that does not depend on the page, one unit or several, and requests of one page or several.
    /// A fill misses that by 3 % at least.
    #[test]
    fn one_pass_comes_near_the_steady_state() {
        let waf = |goal, rho: f64, victim: VictimConfig, units, request_pages| {
            let (segments, segment_pages) = (1_024, 128);
            let collect = Collect { victim, ..Collect::PLAIN };
            let effective = f64::from((segments - units * collect.reserve) * segment_pages);
            let logical = (effective / (1.0 + rho)).round() as u32;
            let plain = FtlConfig::plain(logical, segments, segment_pages);
            let mut ftl = Ftl::new(FtlConfig { collect, units, ..plain }).unwrap();
            let mut sink = CountingSink::default();
            precondition(&mut ftl, goal, request_pages, 7, |ftl, first, pages| {
                ftl.write(first, pages, StreamId(0), &mut sink);
            });
            assert_eq!(check(&ftl), Ok(()));
            assert!((0..logical).all(|lpn| ftl.lookup(lpn).is_some()));
            let (mut prng, before, requests) = (Prng::new(8, "next"), sink.programs, logical / request_pages);
            for _ in 0..requests {
                let first = prng.below(u64::from(requests)) as u32 * request_pages;
                ftl.write(first, request_pages, StreamId(0), &mut sink);
            }
            (sink.programs - before) as f64 / f64::from(requests * request_pages)
        };
        let greedy = |rho| waf_greedy(rho, 128).unwrap();
        for rho in [0.07, 0.15, 0.28] {
            for (victim, units, request_pages, expected) in [
                (VictimConfig::FIFO, 1, 1, waf_fifo(rho)),
                (VictimConfig::FIFO, 1, 4, waf_fifo(rho)),
                (VictimConfig::RANDOM, 1, 1, waf_random(rho)),
                (VictimConfig::GREEDY, 1, 1, greedy(rho)),
                (VictimConfig::GREEDY, 4, 1, greedy(rho)),
            ] {
                let of = |goal| waf(goal, rho, victim.clone(), units, request_pages) / expected - 1.0;
                let (one_pass, fill) = (of(Precondition::SpRandom), of(Precondition::Fill));
                println!("{rho} {victim} {units} {request_pages}: {one_pass:+.4}, fill {fill:+.4}");
                assert!(one_pass.abs() < 0.01, "{rho} {victim} {units} {request_pages}: {one_pass:+.4}");
                assert!(fill < -0.03, "{rho} {victim} {units} {request_pages}: {fill:+.4}");
            }
        }
    }

    /// The rule: pages behind the last whole request are written too, and a drive that is smaller than a request is
    /// filled.
    #[test]
    fn one_pass_writes_every_page() {
        for request_pages in [1, 4, 2_000] {
            let mut written = vec![0; PAGES as usize];
            let mut ftl = Ftl::new(FtlConfig::plain(PAGES, 1_000, 16)).unwrap();
            precondition(&mut ftl, Precondition::SpRandom, request_pages, 7, |_, first, pages| {
                (first..first + pages).for_each(|lpn| written[lpn as usize] += 1);
            });
            assert!(written.iter().all(|times| *times > 0), "{request_pages}");
        }
    }
}
