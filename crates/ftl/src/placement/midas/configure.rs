//! Group configuration selection (section 3.5 of the paper): how many groups, and how large, for the least
//! write amplification that the model predicts.

use super::model::{Chain, Hot, LastGroup, Learned, Lifetimes, Prediction};

/// What a configuration is chosen for.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Segments for all groups together.
    pub segments: u32,
    /// Pages in a segment.
    pub segment_pages: u32,
    /// Valid pages.
    pub valid: f64,
    /// See [`Chain::still`].
    pub still: f64,
    /// See [`Chain::learned`].
    pub learned: Learned,
    /// How GN is collected.
    pub last: LastGroup,
    /// See [`Chain::hot_class`].
    pub hot_class: f64,
    /// Whether there is a group for hot pages.
    pub hot: bool,
    /// Most groups, HOT aside.
    pub groups: usize,
    /// The least gain of a split that counts.
    pub gain: f64,
    /// Splits in a row without such a gain that end the search.
    pub stop: u32,
}

/// Sizes in segments and what they promise.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// Segments of HOT; none without one.
    pub hot: u32,
    /// Segments of G1 … G(N−1).
    pub sized: Vec<u32>,
    /// What the model predicts for them.
    pub prediction: Prediction,
}

impl Space {
    /// The model's prediction for these sizes.
    pub fn predict(&self, lifetimes: &Lifetimes, hot: u32, sized: &[u32]) -> Option<Prediction> {
        let pages = |segments: u32| f64::from(segments) * f64::from(self.segment_pages);
        let hot = if hot == 0 { Hot::Off } else { Hot::Pages(pages(hot)) };
        let chain = Chain {
            hot,
            sized: sized.iter().map(|segments| pages(*segments)).collect(),
            pages: pages(self.segments),
            valid: self.valid,
            last: self.last,
            hot_class: self.hot_class,
            half_segment: f64::from(self.segment_pages) / 2.0,
            still: self.still,
            learned: self.learned,
        };
        chain.predict(lifetimes)
    }

    /// The best configuration that splitting and tuning find; `None` where the model has nothing to say.
    pub fn select(&self, lifetimes: &Lifetimes) -> Option<Configuration> {
        let mut best = self.better(lifetimes, 0, Vec::new(), None);
        if self.hot {
            for hot in self.sizes() {
                best = self.better(lifetimes, hot, Vec::new(), best);
            }
        }
        // Split off one group after the other, each of the size that promises most.
        let mut chain = best.clone()?;
        let mut in_vain = 0;
        while chain.sized.len() + 1 < self.groups && in_vain < self.stop {
            let mut split: Option<Configuration> = None;
            for size in self.sizes() {
                let mut sized = chain.sized.clone();
                sized.push(size);
                split = self.better(lifetimes, chain.hot, sized, split);
            }
            let Some(split) = split else { break };
            let gain = 1.0 - split.prediction.waf / chain.prediction.waf;
            in_vain = if gain < self.gain { in_vain + 1 } else { 0 };
            chain = split;
            best = best.filter(|best| best.prediction.waf <= chain.prediction.waf).or(Some(chain.clone()));
        }
        best.map(|best| self.tune(lifetimes, best))
    }

    /// Sizes HOT together with the others: gives each group in turn more or fewer segments, GN the rest, as long as
    /// one of them lowers the prediction. The paper only takes segments away, one by one; but HOT's size was chosen
    /// when there was no other, and the sizes of groups before a later one was split off.
    fn tune(&self, lifetimes: &Lifetimes, mut best: Configuration) -> Configuration {
        loop {
            let before = best.prediction.waf;
            for group in 0..=best.sized.len() {
                let size = if group == 0 { best.hot } else { best.sized[group - 1] };
                // HOT may become or cease to be.
                let least = u32::from(group > 0);
                if group == 0 && !self.hot {
                    continue;
                }
                for new in steps(size).filter(|new| (least..self.segments).contains(new)) {
                    let (mut hot, mut sized) = (best.hot, best.sized.clone());
                    *(if group == 0 { &mut hot } else { &mut sized[group - 1] }) = new;
                    // `better` returns its last argument where the new sizes are no improvement.
                    best = self.better(lifetimes, hot, sized, Some(best)).expect("there was one before");
                }
            }
            if best.prediction.waf >= before {
                return best;
            }
        }
    }

    /// `best`, or these sizes where they promise less.
    fn better(
        &self,
        lifetimes: &Lifetimes,
        hot: u32,
        sized: Vec<u32>,
        best: Option<Configuration>,
    ) -> Option<Configuration> {
        match self.predict(lifetimes, hot, &sized) {
            Some(new) if best.as_ref().is_none_or(|best| new.waf < best.prediction.waf) => {
                Some(Configuration { hot, sized, prediction: new })
            }
            _ => best,
        }
    }

    /// Sizes to try: every one up to 64 segments, then in steps of a sixty-fourth.
    fn sizes(&self) -> impl Iterator<Item = u32> + use<> {
        let most = self.segments;
        std::iter::successors(Some(1u32), |size| Some(size + 1 + size / 64))
            .take_while(move |size| *size < most)
    }
}

/// Sizes to try beside `size`: one more or less, and up to twice or half as many.
fn steps(size: u32) -> impl Iterator<Item = u32> {
    let part = move |shift: u32| (size >> shift).max(1);
    let changes = [part(1), part(2), part(3), part(4), 1];
    changes.into_iter().flat_map(move |change| [size + change, size.saturating_sub(change)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lifetimes of a skewed load: as many in each class that is twice as long as the one before.
    fn skewed() -> Lifetimes {
        let counts: Vec<u64> = (1..4_000u64).map(|bucket| 1_000_000 / bucket).collect();
        Lifetimes::from_counts(64, &counts, &[], 0).unwrap()
    }

    /// No group, HOT among them, is better off with a segment more or less, or half as many.
    #[test]
    fn all_sizes_are_chosen_together() {
        let space = space();
        let best = space.select(&skewed()).unwrap();
        assert!(best.hot > 0 && best.sized.len() > 1, "{best:?}");
        for group in 0..=best.sized.len() {
            let size = if group == 0 { best.hot } else { best.sized[group - 1] };
            for new in [size + 1, size - 1, size + size / 2, size / 2] {
                let (mut hot, mut sized) = (best.hot, best.sized.clone());
                *(if group == 0 { &mut hot } else { &mut sized[group - 1] }) = new;
                let other =
                    space.predict(&skewed(), hot, &sized).map_or(f64::MAX, |prediction| prediction.waf);
                assert!(other >= best.prediction.waf, "group {group} of {new}: {other} for {best:?}");
            }
        }
    }

    fn space() -> Space {
        Space {
            segments: 500,
            segment_pages: 256,
            valid: 119_000.0,
            still: 0.0,
            learned: Learned::NOTHING,
            last: LastGroup::Fifo,
            hot_class: 1.0,
            hot: true,
            groups: 16,
            gain: 0.005,
            stop: 5,
        }
    }

    /// The rule: there are no more groups than allowed, HOT aside, and each but HOT has a segment at least.
    #[test]
    fn there_are_as_many_groups_as_allowed() {
        for hot in [false, true] {
            for groups in 1..=3 {
                let best = Space { groups, hot, ..space() }.select(&skewed()).unwrap();
                assert_eq!(best.sized.len(), groups - 1, "{best:?}");
                assert!(best.sized.iter().all(|size| *size > 0) && (hot || best.hot == 0), "{best:?}");
            }
        }
    }

    /// What each split gains, of HOT and GN alone first: one group after the other, each of the size that promises most.
    fn gains(space: &Space, splits: usize) -> Vec<f64> {
        let waf =
            |hot: u32, sized: &[u32]| space.predict(&skewed(), hot, sized).map_or(f64::MAX, |of| of.waf);
        let best = |wafs: Vec<(f64, u32)>| wafs.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        let (mut before, hot) =
            best(std::iter::once(0).chain(space.sizes()).map(|hot| (waf(hot, &[]), hot)).collect());
        let mut sized = Vec::new();
        let split = |_| {
            let with = |size: u32| [&sized[..], &[size]].concat();
            let (after, size) = best(space.sizes().map(|size| (waf(hot, &with(size)), size)).collect());
            sized.push(size);
            1.0 - after / std::mem::replace(&mut before, after)
        };
        (0..splits).map(split).collect()
    }

    /// The rule: the search ends after as many splits in a row as it may make without a gain that counts, and a split that gains begins a
    /// new row.
    #[test]
    fn splits_without_gain_end_the_search() {
        let small = Space { groups: 7, ..space() };
        let gains = gains(&small, 6);
        let mut least: Vec<f64> = gains.iter().map(|gain| gain - 1e-9).chain([0.9]).collect();
        least.retain(|gain| *gain > 0.0);
        assert!(least.len() > 3, "{gains:?}");
        for gain in least {
            for stop in 1..=3usize {
                let ends = (stop..=6)
                    .find(|end| gains[end - stop..*end].iter().all(|split| *split < gain))
                    .unwrap_or(6);
                let found = Space { gain, stop: stop as u32, ..small }.select(&skewed());
                let expected = Space { gain: f64::NEG_INFINITY, groups: ends + 1, ..small }.select(&skewed());
                assert_eq!(found, expected, "{gain} {stop}: {gains:?}");
            }
        }
    }

    /// The rule: HOT ceases to be where it gains nothing. Every other group keeps a segment.
    #[test]
    fn only_hot_ceases_to_be() {
        // No page lives for less than 2,560 writes, and whatever enters HOT comes out valid.
        let counts: Vec<u64> =
            (0..4_000u64).map(|bucket| if bucket < 40 { 0 } else { 1_000_000 / bucket }).collect();
        let lifetimes = Lifetimes::from_counts(64, &counts, &[], 0).unwrap();
        let space = Space { learned: Learned { hot_valid: 1.0, ..Learned::NOTHING }, ..space() };
        // The sizes from which tuning begins, and in the second case no HOT to choose.
        for (hot, sized, hot_is_there) in [(1, vec![], true), (0, vec![1], false)] {
            let space = Space { hot: hot_is_there, ..space };
            let prediction = space.predict(&lifetimes, hot, &sized).unwrap();
            let tuned = space.tune(&lifetimes, Configuration { hot, sized: sized.clone(), prediction });
            assert_eq!(tuned.hot, 0);
            assert!(tuned.sized.iter().all(|size| *size > 0), "{tuned:?}");
        }
    }
}
