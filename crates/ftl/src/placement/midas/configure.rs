//! Group configuration selection (section 3.5 of Oh et al., FAST 2024): selects the number and the sizes of
//! groups for which the model predicts the least write amplification.

use super::model::{Chain, Hot, LastGroup, Learned, Lifetimes, Prediction};

/// The space and the limits for a configuration. HOT is the group for hot pages, and GN the last group.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// The number of segments for all groups together.
    pub segments: u32,
    /// The number of pages in a segment.
    pub segment_pages: u32,
    /// The number of valid pages.
    pub valid: f64,
    /// The valid pages in segments that are never overwritten; see [`Chain::still`].
    pub still: f64,
    /// The learned errors of the model; see [`Chain::learned`].
    pub learned: Learned,
    /// The victim policy of GN.
    pub last: LastGroup,
    /// The bound of GN's hot class; see [`Chain::hot_class`].
    pub hot_class: f64,
    /// Whether there is a group for hot pages.
    pub hot: bool,
    /// The most groups besides HOT.
    pub groups: usize,
    /// The least relative decrease of the predicted write amplification by which a split counts as a gain.
    pub gain: f64,
    /// The number of splits in a row without such a gain that end the search.
    pub stop: u32,
}

/// The sizes of the groups in segments, and the prediction for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The size of HOT in segments; 0 without HOT.
    pub hot: u32,
    /// The sizes of G1 … G(N−1) in segments.
    pub sized: Vec<u32>,
    /// The model's prediction for these sizes.
    pub prediction: Prediction,
}

impl Space {
    /// Returns the model's prediction for these sizes; `None` if the groups do not fit.
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

    /// Returns the best configuration that splitting and tuning find; `None` if the model makes no
    /// prediction.
    pub fn select(&self, lifetimes: &Lifetimes) -> Option<Configuration> {
        let mut best = self.better(lifetimes, 0, Vec::new(), None);
        if self.hot {
            for hot in self.sizes() {
                best = self.better(lifetimes, hot, Vec::new(), best);
            }
        }
        // Splits off one group after the other, each with the size of the best prediction.
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

    /// Tunes all sizes together, HOT's included. Each group in turn gets more or fewer segments, at the
    /// expense of GN, while that improves the prediction. Oh et al. only take segments away, one by one. But
    /// HOT's size was chosen before any other group existed, and the sizes of earlier groups before later
    /// groups were split off.
    fn tune(&self, lifetimes: &Lifetimes, mut best: Configuration) -> Configuration {
        loop {
            let before = best.prediction.waf;
            for group in 0..=best.sized.len() {
                let size = if group == 0 { best.hot } else { best.sized[group - 1] };
                // HOT alone may have no segment, so HOT may appear or disappear.
                let least = u32::from(group > 0);
                if group == 0 && !self.hot {
                    continue;
                }
                for new in steps(size).filter(|new| (least..self.segments).contains(new)) {
                    let (mut hot, mut sized) = (best.hot, best.sized.clone());
                    *(if group == 0 { &mut hot } else { &mut sized[group - 1] }) = new;
                    // `better` returns its last argument if the new sizes are no improvement, so it returns a
                    // configuration.
                    best = self.better(lifetimes, hot, sized, Some(best)).expect("there was one before");
                }
            }
            if best.prediction.waf >= before {
                return best;
            }
        }
    }

    /// Returns these sizes if their prediction is better than that of `best`, and otherwise `best`.
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

    /// Returns the sizes to try: every size up to 64 segments, then steps of a sixty-fourth.
    fn sizes(&self) -> impl Iterator<Item = u32> + use<> {
        let most = self.segments;
        std::iter::successors(Some(1u32), |size| Some(size + 1 + size / 64))
            .take_while(move |size| *size < most)
    }
}

/// Returns the sizes to try near `size`: one more or less, and up to half of `size` more or less.
fn steps(size: u32) -> impl Iterator<Item = u32> {
    let part = move |shift: u32| (size >> shift).max(1);
    let changes = [part(1), part(2), part(3), part(4), 1];
    changes.into_iter().flat_map(move |change| [size + change, size.saturating_sub(change)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lifetimes of a skewed load: each class is twice as long as the class before, with equal
    /// shares.
    fn skewed() -> Lifetimes {
        let counts: Vec<u64> = (1..4_000u64).map(|bucket| 1_000_000 / bucket).collect();
        Lifetimes::from_counts(64, &counts, &[], 0).unwrap()
    }

    /// The rule: no group, HOT included, would improve the prediction with one segment more or less, or with
    /// half as many.
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

    /// The rule: the number of groups besides HOT is limited, and each of them has a segment at least.
    #[test]
    fn the_number_of_groups_is_limited() {
        for hot in [false, true] {
            for groups in 1..=3 {
                let best = Space { groups, hot, ..space() }.select(&skewed()).unwrap();
                assert_eq!(best.sized.len(), groups - 1, "{best:?}");
                assert!(best.sized.iter().all(|size| *size > 0) && (hot || best.hot == 0), "{best:?}");
            }
        }
    }

    /// Returns the gain of each split, starting from HOT and GN alone: one group after the other is split
    /// off, each with the size of the best prediction.
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

    /// The rule: the search ends after the allowed number of splits in a row without a gain that counts. A
    /// split with a gain restarts the count.
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

    /// The rule: HOT disappears if it gains nothing. Every other group keeps a segment.
    #[test]
    fn only_hot_may_disappear() {
        // No page lives for less than 2,560 writes, so pages that enter HOT are still valid when they leave.
        let counts: Vec<u64> =
            (0..4_000u64).map(|bucket| if bucket < 40 { 0 } else { 1_000_000 / bucket }).collect();
        let lifetimes = Lifetimes::from_counts(64, &counts, &[], 0).unwrap();
        let space = Space { learned: Learned { hot_valid: 1.0, ..Learned::NOTHING }, ..space() };
        // The initial sizes for tuning. The second case has no HOT.
        for (hot, sized, hot_is_there) in [(1, vec![], true), (0, vec![1], false)] {
            let space = Space { hot: hot_is_there, ..space };
            let prediction = space.predict(&lifetimes, hot, &sized).unwrap();
            let tuned = space.tune(&lifetimes, Configuration { hot, sized: sized.clone(), prediction });
            assert_eq!(tuned.hot, 0);
            assert!(tuned.sized.iter().all(|size| *size > 0), "{tuned:?}");
        }
    }
}
