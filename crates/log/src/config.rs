//! The parameters of the log-structured layer, as options of `log:key=value`.

use fulgurite_base::option::{COUNT, SHARE, SIZE, YES_NO, with_name};
use fulgurite_base::{Declared, Opt, Share, Spec, SpecError, opt, units};
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::{Collect, FtlConfig, collect_opt};

/// The configuration of a log-structured layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Over-provisioning ρ: (pages of the drive below − pages of the layer) / pages of the layer.
    pub op: Share,
    /// The number of bytes in a segment.
    pub segment_bytes: u64,
    /// The most pages that collection moves at once.
    pub depth: u32,
    /// Whether freed segments are trimmed on the drive below.
    pub trim: bool,
    /// Whether the layer is filled before measurements. This option is for real drives below; a simulated
    /// drive has an option for its own initial state.
    pub fill: bool,
    /// The policies and thresholds of garbage collection.
    pub collect: Collect,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            op: Share::percent(7),
            segment_bytes: 4 << 20,
            depth: 32,
            trim: true,
            fill: true,
            collect: Collect { schedule: Schedule::PACED, reserve: 4, hard: 2, ..Collect::PLAIN },
        }
    }
}

impl Declared for LogConfig {
    // The option for background collection is left out, because a layer does not know when the host is idle.
    const OPTIONS: &'static [Opt<LogConfig>] = &[
        opt!("op", op, SHARE, Share::from_ppm(1) => Share::from_ppm(u32::MAX),
            "over-provisioning: (pages below - pages of the layer) / pages of the layer"),
        opt!("segment", segment_bytes, SIZE, "bytes in a segment"),
        collect_opt!(reserve, collect),
        collect_opt!(hard, collect),
        opt!("depth", depth, COUNT, 1 => 4096, "pages that collection moves at once"),
        opt!("trim", trim, YES_NO, "tell the drive below when a segment is garbage"),
        opt!("fill", fill, YES_NO, "fill the layer before measurements above a real drive"),
        collect_opt!(urgent, collect),
        collect_opt!(placement, collect),
        collect_opt!(victim, collect),
        collect_opt!(schedule, collect),
    ];
}

impl LogConfig {
    /// The most pages of one share command. Any number is possible on any drive, since the map is in memory.
    pub const SHARE_PAGES: u32 = u32::MAX;

    /// Returns the default configuration, changed by the options of `spec`.
    pub fn from_spec(mut spec: Spec) -> Result<LogConfig, SpecError> {
        let config = LogConfig::default().with_options(&mut spec)?;
        spec.finish()?;
        Ok(config)
    }

    /// Returns the canonical text of the layer: its name and the options that differ from the defaults.
    pub fn canonical(&self) -> String {
        with_name("log", &self.options_beside(&LogConfig::default()))
    }

    /// Returns the number of pages that a drive below must have, so that the layer has room for `pages`.
    pub fn pages_below(&self, pages: u64, page_bytes: u32) -> u64 {
        let segment = (self.segment_bytes / u64::from(page_bytes)).max(1);
        let (one, op) = (u64::from(Share::ONE.ppm()), u64::from(self.op.ppm()));
        // The physical pages beyond the logical ones must hold the reserved segments and every open segment.
        // One more segment keeps a small layer above the least size at which collection works.
        let spare = u128::from(self.collect.reserve + u32::from(self.collect.placement.streams()) + 1)
            * u128::from(segment);
        let least = spare * u128::from(one + op) / u128::from(op.max(1));
        let wanted = (u128::from(pages) * u128::from(one + op)).div_ceil(u128::from(one));
        u64::try_from(least.max(wanted)).unwrap_or(u64::MAX).div_ceil(segment).saturating_mul(segment)
    }

    /// Returns the configuration of the translation layer over a drive of `pages` pages. Fails if the drive
    /// is too small.
    pub fn ftl(&self, pages: u64, page_bytes: u32) -> Result<FtlConfig, SpecError> {
        let bytes = u64::from(page_bytes);
        if !self.segment_bytes.is_multiple_of(bytes) || self.segment_bytes < bytes {
            return Err(SpecError::new(format!(
                "segment={} is not a number of pages of {}; accepted: whole pages",
                units::format_size(self.segment_bytes),
                units::format_size(bytes)
            )));
        }
        let Collect { placement, schedule, reserve, hard, .. } = &self.collect;
        if placement.needs_future() {
            return Err(SpecError::new(format!(
                "placement={placement} must know all writes beforehand, and a layer above a drive does not; \
                 accepted in gc alone"
            )));
        }
        if schedule.is_about_dies() {
            return Err(SpecError::new(format!(
                "schedule={schedule} orders operations on the dies of a drive, which a layer above it cannot do; \
                 accepted: non-preemptive, paced, semi-preemptive"
            )));
        }
        if schedule.has_hard_threshold() && reserve <= hard {
            return Err(SpecError::new(format!(
                "gc_reserve={reserve} of log is too small; accepted: more than gc_hard={hard}"
            )));
        }
        self.check_bounds()?;
        if self.segment_bytes / bytes > pages {
            return Err(SpecError::new(format!(
                "segment={} is larger than the drive below, which has {pages} pages of {}; \
                 accepted: a small part of it",
                units::format_size(self.segment_bytes),
                units::format_size(bytes)
            )));
        }
        let segment_pages = self.segment_bytes / bytes;
        let segments = pages / segment_pages;
        let physical = segments * segment_pages;
        let logical = self.op.on_top_within(physical);
        let narrow = |value: u64, what: &str| {
            u32::try_from(value).map_err(|_| {
                SpecError::new(format!(
                    "the drive below has {value} {what}; accepted: fewer than 2^32 (a smaller drive, like mem:pages=1M)"
                ))
            })
        };
        narrow(physical, "pages")?;
        let config = FtlConfig {
            collect: self.collect.clone(),
            // A paced schedule has a slack of at most 16 times this number of pages, and all pages that move
            // at once must fit into the slack.
            stripe_pages: self.depth.div_ceil(8),
            ..FtlConfig::plain(logical as u32, segments as u32, narrow(segment_pages, "pages in a segment")?)
        };
        config.validate().map_err(|error| {
            SpecError::new(format!(
                "segment={} op={} do not suit a drive of {pages} pages: {error}",
                units::format_size(self.segment_bytes),
                self.op
            ))
        })?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: a drive of [`LogConfig::pages_below`] has room for the layer's pages, and a drive with one
    /// segment less has not. On a small drive, the physical pages beyond the logical ones also hold the
    /// reserved segments, the open segments and one more segment.
    #[test]
    fn the_drive_below_is_as_large_as_the_layer_needs() {
        for text in
            ["log", "log:op=7%", "log:op=200%", "log:placement=sepbit,gc_reserve=5", "log:segment=64KiB"]
        {
            let config = LogConfig::from_spec(Spec::parse(text).unwrap()).unwrap();
            let segment = config.segment_bytes / 4096;
            let kept = u64::from(config.collect.reserve) + u64::from(config.collect.placement.streams()) + 1;
            // Finds a number of pages that needs only a part of its last segment, which still counts as a
            // whole.
            let op = u64::from(config.op.ppm());
            let overhang = |pages: &u64| pages * (1_000_000 + op) % (segment * 1_000_000);
            let beyond =
                (2_000_000..).find(|pages| op % 1_000_000 == 0 || (1..1_000_000).contains(&overhang(pages)));
            // Finds a number of pages that fills its segments exactly, so no further segment is needed.
            let whole = (2_000_000..).find(|pages| overhang(pages) == 0);
            for pages in [1, 1_000, 100_000, 3_456_789, beyond.unwrap(), whole.unwrap()] {
                let below = config.pages_below(pages, 4096);
                let is_enough = |segments: u64| {
                    let Ok(ftl) = config.ftl(segments * segment, 4096) else { return false };
                    // The physical pages beyond the logical ones are op / (1 + op) of all.
                    let has_spare = segments * op >= kept * (1_000_000 + op);
                    has_spare && u64::from(ftl.logical_pages) >= pages
                };
                let least = (1..).find(|segments| is_enough(*segments)).unwrap();
                assert_eq!(below, least * segment, "{text}, {pages} pages");
            }
        }
    }
}
