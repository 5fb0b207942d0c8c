//! Chooses the scheme that copies least, by a trial of every scheme on a sample of the pages.
//!
//! Each scheme has a shadow: a translation layer without flash, with the drive's victim policy, whose drive is a
//! scale model. One page in `every` is sampled, the same for all schemes, and segments have fewer pages. So a
//! shadow has the spare of the drive and, up to a limit, as many segments, and an open segment costs a scheme
//! as much as in the drive. The sampled pages are spread over the address space by a hash, so a shadow gets
//! every kind of page in proportion. This is the sampling of caches (Waldspurger et al., "Efficient MRC
//! Construction with SHARDS", FAST 2015) for collection.
//!
//! The programs of each shadow are counted with exponential decay. The drive changes its scheme when another
//! one has programmed 1 % less. A host write that is not sampled costs a comparison. Few pages in a segment and
//! the pages that are not sampled make errors: schemes that differ by a percent may be confused.
//!
//! Shadows rest while the result stays the same, because their writes cost as much as the drive's. A rest does
//! not change their sample: to a shadow it is as if the writes of the rest had not happened.

use super::config::{Choose, FulguriteConfig, Scheme};
use crate::divisor::Divisor;
use crate::placement::policy::{CustomPlacement, DriveShape, Model, ModelConfig};
use std::sync::Arc;

/// The number of pages that are sampled, if the segments allow it.
const SAMPLED: u32 = 16 << 10;
/// The fewest pages in a segment of a shadow. A drive with over 2,048 segments has more than its shadows; there an
/// open segment costs little.
const SEGMENT_PAGES: u32 = 8;
/// The decay factor of the counts at each evaluation. The half-life is four evaluations.
const KEPT: f64 = 0.84;
/// The share of the programs of the scheme in use below which another scheme replaces it.
const BETTER: f64 = 0.99;
/// The number of evaluations without a change of scheme after which the contest rests. The first rest lasts as
/// long, and each further one twice as long, up to `REST` evaluations, until the scheme changes.
const ROUND: u32 = 16;
const REST: u32 = 64;

/// A scheme on trial.
#[derive(Clone, Debug)]
struct Shadow {
    config: FulguriteConfig,
    model: Box<dyn Model>,
    /// The programs at the last evaluation, and the decayed sum of programs.
    before: u64,
    programs: f64,
}

/// The schemes on trial.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    schemes: Vec<FulguriteConfig>,
    scale: Scale,
    /// The most streams of any scheme, and the number of streams that the drive has room for.
    streams: u16,
    room: u32,
    shadows: Vec<Shadow>,
    best: usize,
    /// The number of evaluations until the next rest, and the length of that rest in evaluations.
    left: u32,
    rest: u32,
    /// The number of evaluations that are left of this rest; 0 outside rests.
    resting: u32,
}

impl Contest {
    /// Prepares the trial of all schemes. Nothing is on trial before [`Contest::receive`].
    pub(super) fn new(config: FulguriteConfig, drive: &DriveShape) -> Contest {
        let only =
            |scheme, streams, step| FulguriteConfig { scheme: Choose::Only(scheme), streams, step, ..config };
        Contest {
            schemes: vec![
                only(Scheme::Lifetimes, config.streams, config.step),
                only(Scheme::Lifetimes, config.streams.min(6), 16),
                only(Scheme::Lifetimes, config.streams.min(4), 24),
                only(Scheme::Generations, config.streams, config.step),
                only(Scheme::Copies, config.streams, config.step),
                only(Scheme::One, config.streams, config.step),
            ],
            scale: Scale::of(drive),
            streams: config.streams(),
            room: (drive.segments - drive.logical_pages.div_ceil(drive.segment_pages))
                .saturating_sub(drive.reserve),
            shadows: Vec::new(),
            best: 0,
            left: ROUND,
            rest: ROUND,
            resting: 0,
        }
    }

    /// Returns the models of all schemes; `policy` makes a policy of a scheme.
    pub(super) fn models(
        &self,
        policy: impl Fn(FulguriteConfig) -> Arc<dyn CustomPlacement>,
    ) -> Vec<ModelConfig> {
        let Scale { logical_pages, segments, segment_pages, .. } = self.scale;
        let model =
            |scheme| ModelConfig { placement: policy(scheme), logical_pages, segments, segment_pages };
        self.schemes.iter().copied().map(model).collect()
    }

    /// Begins the trial of every scheme for whose streams the drive and its model have room.
    pub(super) fn receive(&mut self, models: Vec<Option<Box<dyn Model>>>) {
        let shadow = |(config, model): (&FulguriteConfig, Option<_>)| {
            Some(Shadow { config: *config, model: model?, before: 0, programs: 0.0 })
        };
        let fits = |(config, _): &(&FulguriteConfig, _)| u32::from(config.streams()) <= self.room;
        self.shadows = self.schemes.iter().zip(models).filter(fits).filter_map(shadow).collect();
    }

    /// Returns the most streams of any scheme.
    pub(super) fn streams(&self) -> u16 {
        self.streams
    }

    /// Returns the scheme in use.
    pub(super) fn best(&self) -> FulguriteConfig {
        // A drive that is too small even for a shadow has one stream.
        let one = FulguriteConfig { scheme: Choose::Only(Scheme::One), ..FulguriteConfig::default() };
        self.shadows.get(self.best).map_or(one, |shadow| shadow.config)
    }

    /// Returns the page of the shadows for a page of the drive; `None` if the page is not sampled, or during a
    /// rest.
    #[inline]
    fn sampled(&self, lpn: u32) -> Option<u32> {
        let (group, at) = self.scale.every.divide(lpn);
        let hash = u64::from(group.wrapping_mul(0x9e37_79b9));
        let is_sampled = u64::from(at) == (hash * u64::from(self.scale.every.divisor())) >> 32;
        (is_sampled && self.resting == 0).then_some(group)
    }

    /// Tells the shadows that the host writes a page.
    #[inline]
    pub(super) fn write(&mut self, lpn: u32) {
        if let Some(page) = self.sampled(lpn) {
            self.shadows.iter_mut().for_each(|shadow| shadow.model.write(page));
        }
    }

    /// Tells the shadows that the host trims a page.
    pub(super) fn trim(&mut self, lpn: u32) {
        if let Some(page) = self.sampled(lpn) {
            self.shadows.iter_mut().for_each(|shadow| shadow.model.trim(page));
        }
    }

    /// Evaluates the schemes. Returns the new scheme, if the drive shall change to it.
    pub(super) fn judge(&mut self) -> Option<FulguriteConfig> {
        if self.resting > 0 {
            self.resting -= 1;
            return None;
        }
        for shadow in &mut self.shadows {
            let programs = shadow.model.programs();
            shadow.programs = KEPT * shadow.programs + (programs - shadow.before) as f64;
            shadow.before = programs;
        }
        let programs = |at: usize| self.shadows[at].programs;
        let best =
            (0..self.shadows.len()).min_by(|one, other| programs(*one).total_cmp(&programs(*other)))?;
        if programs(best) < BETTER * programs(self.best) {
            (self.best, self.left, self.rest) = (best, ROUND, ROUND);
            return Some(self.best());
        }
        self.left -= 1;
        if self.left == 0 {
            (self.left, self.resting) = (ROUND, self.rest);
            self.rest = (2 * self.rest).min(REST);
        }
        None
    }

    /// Returns the memory of the shadows, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.shadows.iter().map(|shadow| shadow.model.bytes()).sum()
    }
}

/// The geometry of all shadows.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// The number of pages of the drive that one page of a shadow stands for.
    every: Divisor,
    logical_pages: u32,
    segments: u32,
    segment_pages: u32,
}

impl Scale {
    /// Returns the geometry for this drive. A drive with fewer pages than the sample has shadows of its own size.
    fn of(drive: &DriveShape) -> Scale {
        let physical = u64::from(drive.segments) * u64::from(drive.segment_pages);
        let least = (physical / u64::from(SAMPLED)).max(1) as u32;
        // If few segments are spare, one more or less changes the order of the schemes. So a shadow has as many
        // as the drive, if the pages of a segment can be divided.
        let most = (drive.segment_pages / SEGMENT_PAGES).clamp(1, 2 * least);
        let divides = |every: &u32| drive.segment_pages.is_multiple_of(*every);
        let every = (least..=most).find(divides).unwrap_or(least);
        let segment_pages = (drive.segment_pages / every).max(SEGMENT_PAGES.min(drive.segment_pages));
        Scale {
            every: Divisor::new(every),
            logical_pages: drive.logical_pages.div_ceil(every),
            segments: (physical / u64::from(every * segment_pages)) as u32,
            segment_pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Fulgurite;
    use super::*;
    use crate::placement::PlacementConfig;
    use crate::{Collect, CountingSink, Ftl, FtlConfig};
    use fulgurite_base::{Prng, StreamId};

    fn ftl(logical_pages: u32, segments: u32, segment_pages: u32) -> Ftl {
        let placement = PlacementConfig::Fulgurite(FulguriteConfig::default());
        let collect = Collect { placement, victim: "hazard".parse().unwrap(), ..Collect::PLAIN };
        Ftl::new(FtlConfig { collect, ..FtlConfig::plain(logical_pages, segments, segment_pages) }).unwrap()
    }

    fn policy(ftl: &Ftl) -> &Fulgurite {
        ftl.placer().policy::<Fulgurite>().unwrap()
    }

    fn contest(logical_pages: u32, segments: u32, segment_pages: u32) -> Contest {
        policy(&ftl(logical_pages, segments, segment_pages)).contest.clone().unwrap()
    }

    /// A model that counts writes and trims, and whose programs the test sets.
    #[derive(Clone, Debug, Default)]
    struct Fake {
        programs: u64,
        writes: u64,
        trims: u64,
    }

    impl Model for Fake {
        fn write(&mut self, _: u32) {
            self.writes += 1;
        }

        fn trim(&mut self, _: u32) {
            self.trims += 1;
        }

        fn programs(&self) -> u64 {
            self.programs
        }

        fn bytes(&self) -> usize {
            (self.writes + 1_000 * self.trims) as usize
        }

        fn boxed_clone(&self) -> Box<dyn Model> {
            Box::new(self.clone())
        }
    }

    /// The rule: a shadow has about as much spare as the drive, and at least eight pages in a segment. It has as
    /// many segments, unless these are over 2,048 or their pages cannot be divided. A drive below the size of the
    /// sample has shadows of its own size.
    #[test]
    fn a_shadow_is_a_scale_model() {
        let exact = [false, true, false, true, true, true];
        for (at, (logical_pages, segments, segment_pages)) in [
            (1 << 21, 2_200, 1_024),
            (1 << 21, 140, 1 << 14),
            (1 << 18, 8_800, 32),
            (500_000, 800, 700),
            (90_000, 140, 701),
            (1_000, 20, 64),
        ]
        .into_iter()
        .enumerate()
        {
            let geometry = contest(logical_pages, segments, segment_pages).scale;
            let spare = |physical: u32, logical: u32| f64::from(physical) / f64::from(logical) - 1.0;
            let expected = spare(segments * segment_pages, logical_pages);
            let found = spare(geometry.segments * geometry.segment_pages, geometry.logical_pages);
            assert!((found - expected).abs() < 0.03 * expected, "{found}, {expected}");
            assert_eq!(geometry.segments == segments, exact[at], "{geometry:?}");
            let few = segments.min(SAMPLED / SEGMENT_PAGES);
            assert!((0.8..=1.3).contains(&(f64::from(geometry.segments) / f64::from(few))), "{geometry:?}");
            assert!(
                geometry.segment_pages >= SEGMENT_PAGES && geometry.logical_pages <= 20_000,
                "{geometry:?}"
            );
            if logical_pages == 1_000 {
                assert_eq!(
                    (geometry.logical_pages, geometry.segments, geometry.segment_pages),
                    (1_000, 20, 64)
                );
            }
        }
    }

    /// The rule: one page in each group of neighbours is sampled, and not always at the same position.
    #[test]
    fn samples_are_spread_over_the_pages() {
        let contest = contest(1 << 20, 1_100, 1_024);
        let every = contest.scale.every.divisor();
        assert!(every > 32, "{every}");
        let mut positions = std::collections::BTreeSet::new();
        let mut sampled = Vec::new();
        for lpn in 0..1 << 20 {
            if let Some(page) = contest.sampled(lpn) {
                positions.insert(lpn % every);
                assert_eq!(page, lpn / every);
                sampled.push(page);
            }
        }
        let groups = (1 << 20) / every;
        assert!(sampled.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((groups..=groups + 1).contains(&(sampled.len() as u32)), "{}", sampled.len());
        assert!(positions.len() as u32 > every * 9 / 10, "{} of {every}", positions.len());
    }

    /// The rule: another scheme replaces the one in use if it has programmed over 1 % less. Older programs
    /// count less.
    #[test]
    fn a_scheme_is_replaced_by_a_better_one() {
        let mut contest = contest(1 << 16, 1_100, 64);
        let programs = |contest: &mut Contest, counts: [u64; 2]| {
            for (at, shadow) in contest.shadows.iter_mut().enumerate() {
                let programs = shadow.before + counts.get(at).copied().unwrap_or(2_000);
                shadow.model = Box::new(Fake { programs, ..Fake::default() });
            }
            contest.judge().map(|config| config.scheme)
        };
        assert_eq!(programs(&mut contest, [1_000, 991]), None);
        assert_eq!(contest.best, 0);
        // The decayed counts are 1,840 and 1,817.4.
        assert!(programs(&mut contest, [1_000, 985]).is_some());
        assert_eq!(contest.best, 1);
        assert_eq!(contest.best(), contest.shadows[1].config);
        assert_eq!(programs(&mut contest, [1_000, 1_000]), None);
        // The counts 2,545.6 and 2,526.6 decay by 0.84 each time.
        assert_eq!((1..9).find(|_| programs(&mut contest, [980, 1_000]).is_some()), Some(4));
        assert_eq!(contest.best, 0);
    }

    /// The rule: after sixteen evaluations without a change the shadows rest, for 16, 32 and then 64 evaluations.
    /// After a change the next rest is a short one again. A resting shadow gets no writes and no trims.
    #[test]
    fn shadows_rest_while_the_result_stays() {
        let mut contest = contest(64 * 64, 1_100, 64);
        let page = (0..64 * 64).find(|lpn| contest.sampled(*lpn).is_some()).unwrap();
        let mut rests = Vec::new();
        for evaluation in 0..400 {
            contest.shadows[0].model = Box::new(Fake::default());
            contest.trim(page);
            contest.write(page);
            let rested = contest.shadows[0].model.bytes() == 0;
            assert!(rested || contest.shadows[0].model.bytes() == 1_001, "{evaluation}");
            if rested != (rests.len() % 2 == 1) {
                rests.push(evaluation);
            }
            contest.judge();
        }
        assert_eq!(rests, [16, 32, 48, 80, 96, 160, 176, 240, 256, 320, 336]);
        contest.resting = 0;
        contest.shadows[0].model = Box::new(Fake { programs: 1_000_000, ..Fake::default() });
        assert!(contest.judge().is_some());
        assert_eq!((contest.left, contest.rest), (ROUND, ROUND));
    }

    /// The rule: a scheme takes part if the drive has room for an open segment of each of its streams.
    #[test]
    fn schemes_without_room_take_no_part() {
        let streams = |segments| -> Vec<u16> {
            let contest = contest(64 * 64, segments, 64);
            contest.shadows.iter().map(|shadow| shadow.config.streams()).collect()
        };
        assert_eq!(streams(64 + 2 + 11), [11, 6, 4, 6, 2, 1]);
        assert_eq!(streams(64 + 2 + 10), [6, 4, 6, 2, 1]);
        assert_eq!(streams(64 + 2 + 5), [4, 2, 1]);
        assert_eq!(streams(64 + 2 + 1), [1]);
        // The drive begins with the first of them.
        let small = ftl(64 * 64, 64 + 2 + 5, 64);
        assert_eq!((policy(&small).config.streams(), policy(&small).scheme), (4, Scheme::Lifetimes));
        // The model has 2,125 segments and room for eleven streams, the drive for ten.
        let rounded = contest(17 * 1_987 + 2, 2_000, 17);
        assert_eq!(
            (rounded.scale.segments, rounded.room, rounded.shadows[0].config.streams()),
            (2_125, 10, 6)
        );
    }

    /// Returns the scheme after many writes to the pages that `draw` names.
    fn measured(draw: impl Fn(&mut Prng) -> u32) -> Scheme {
        let mut ftl = ftl(4_000, 140, 32);
        let (mut prng, mut sink) = (Prng::new(7, "contest"), CountingSink::default());
        (0..4_000).for_each(|lpn| ftl.write(lpn, 1, StreamId(0), &mut sink));
        (0..40_000).for_each(|_| ftl.write(draw(&mut prng), 1, StreamId(0), &mut sink));
        crate::check::check(&ftl).unwrap();
        policy(&ftl).scheme
    }

    /// The rule: uniform traffic has one stream; if a tenth of the pages gets nine tenths of the writes, pages
    /// are separated.
    #[test]
    fn the_scheme_follows_the_workload() {
        assert_eq!(measured(|prng| prng.below(4_000) as u32), Scheme::One);
        let skewed = |prng: &mut Prng| {
            let hot = prng.below(10) < 9;
            prng.below(if hot { 400 } else { 4_000 }) as u32
        };
        assert_eq!(measured(skewed), Scheme::Lifetimes);
    }
}
