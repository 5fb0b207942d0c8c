//! What the layer is made of, as options of `log:key=value`.

use fulgurite_base::{Nanos, Share, Spec, SpecError, units};
use fulgurite_ftl::FtlConfig;
use fulgurite_ftl::placement::Placement;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimPolicy;

/// A log-structured layer as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// Over-provisioning: (pages of the drive below − pages of the layer) / pages of the layer.
    pub op: Share,
    /// Bytes in a segment.
    pub segment_bytes: u64,
    /// Free segments below which garbage is collected.
    pub reserve: u32,
    /// Free segments that are collection's own.
    pub hard: u32,
    /// Pages that collection moves at once.
    pub depth: u32,
    /// Whether the drive below is told that a segment is garbage as a whole.
    pub trim: bool,
    /// Whether the layer is filled before measurements, where the drive below is not a simulated one, which
    /// says itself what state it starts from.
    pub fill: bool,
    /// How long a write waits for collection before everything else does too.
    pub urgent: Nanos,
    /// Which stream a page goes to.
    pub placement: Placement,
    /// Which segment is collected.
    pub victim: VictimPolicy,
    /// When it is collected.
    pub schedule: Schedule,
}

/// More are not kept free.
const SEGMENTS_AT_MOST: u32 = 1 << 20;

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            op: Share::percent(7),
            segment_bytes: 4 << 20,
            reserve: 4,
            hard: 2,
            depth: 32,
            trim: true,
            fill: true,
            urgent: Nanos::from_micros(10_000),
            placement: Placement::NONE,
            victim: VictimPolicy::Greedy,
            schedule: Schedule::PACED,
        }
    }
}

impl LogConfig {
    /// The defaults with the options of `spec`; policies have names of their own and are set by themselves.
    pub fn from_spec(mut spec: Spec) -> Result<LogConfig, SpecError> {
        let default = LogConfig::default();
        let config = LogConfig {
            op: spec.take_with("op", units::parse_share)?.unwrap_or(default.op),
            segment_bytes: spec.take_with("segment", units::parse_size)?.unwrap_or(default.segment_bytes),
            reserve: spec.take("gc_reserve")?.unwrap_or(default.reserve),
            hard: spec.take("gc_hard")?.unwrap_or(default.hard),
            depth: spec.take("depth")?.unwrap_or(default.depth),
            trim: spec.take_with("trim", units::parse_yes_no)?.unwrap_or(default.trim),
            fill: spec.take_with("fill", units::parse_yes_no)?.unwrap_or(default.fill),
            urgent: spec.take_with("urgent_us", units::parse_micros)?.unwrap_or(default.urgent),
            ..default
        };
        spec.finish()?;
        let LogConfig { depth, reserve, hard, .. } = config;
        for (key, value, most) in [
            ("depth", depth, 4096),
            ("gc_reserve", reserve, SEGMENTS_AT_MOST),
            ("gc_hard", hard, SEGMENTS_AT_MOST),
        ] {
            if !(1..=most).contains(&value) {
                let sentence = format!("{key}={value} of log is out of range; accepted: 1 to {most}");
                return Err(SpecError::new(sentence));
            }
        }
        if config.op == Share::ZERO {
            return Err(SpecError::new("op=0% of log leaves no room for garbage; accepted: more, like 7%"));
        }
        Ok(config)
    }

    /// The layer in full, for the identity of a run.
    pub fn canonical(&self) -> String {
        format!("{self:?}")
    }

    /// Pages of a drive below on which a layer has room for `pages`.
    pub fn pages_below(&self, pages: u64, page_bytes: u32) -> u64 {
        let segment = (self.segment_bytes / u64::from(page_bytes)).max(1);
        let (one, op) = (u64::from(Share::ONE.ppm()), u64::from(self.op.ppm()));
        // The spare must hold the reserve and every open segment as well.
        let spare = u128::from(self.reserve + u32::from(self.placement.streams()) + 1) * u128::from(segment);
        let least = spare * u128::from(one + op) / u128::from(op.max(1));
        let wanted = u128::from(pages) * u128::from(one + op) / u128::from(one) + 1;
        u64::try_from(least.max(wanted)).unwrap_or(u64::MAX).div_ceil(segment).saturating_mul(segment)
    }

    /// The translation layer over a drive of `pages` pages, if it can work.
    pub fn ftl(&self, pages: u64, page_bytes: u32) -> Result<FtlConfig, SpecError> {
        let bytes = u64::from(page_bytes);
        if !self.segment_bytes.is_multiple_of(bytes) || self.segment_bytes < bytes {
            return Err(SpecError::new(format!(
                "segment={} is not a number of pages of {}; accepted: whole pages",
                units::format_size(self.segment_bytes),
                units::format_size(bytes)
            )));
        }
        if self.placement.needs_future() {
            return Err(SpecError::new(format!(
                "placement={} must know all writes beforehand, and a layer above a drive does not; accepted in gc alone",
                self.placement
            )));
        }
        if self.schedule.is_about_dies() {
            return Err(SpecError::new(format!(
                "schedule={} reaches into the dies of a drive, and a layer above it does not; accepted: non-preemptive, paced, semi-preemptive",
                self.schedule
            )));
        }
        if self.schedule.has_hard_threshold() && self.reserve <= self.hard {
            return Err(SpecError::new(format!(
                "gc_reserve={} of log is too small; accepted: more than gc_hard={}",
                self.reserve, self.hard
            )));
        }
        if self.segment_bytes / bytes > pages {
            return Err(SpecError::new(format!(
                "segment={} is larger than the drive below, which has {pages} pages of {}; accepted: a small part of it",
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
            reserve: self.reserve,
            hard: self.hard,
            // A pace that all pages under way fit into.
            stripe_pages: self.depth.div_ceil(8),
            placement: self.placement,
            victim: self.victim,
            schedule: self.schedule,
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
