//! Patterns of writes to a whole drive, as the SSD-iq study (Haas, Lee, Bonnet and Leis, PVLDB 18(11), 2025)
//! writes them to real drives.

use fulgurite_base::units::{self, Share};
use fulgurite_base::{Spec, SpecError};
use fulgurite_workload::{Generator, GeneratorConfig};
use std::fmt;
use std::str::FromStr;

/// A pattern of writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Every page is equally likely.
    Uniform,
    /// The popularity of a page falls with its rank to the power of minus this many hundredths; ranks are
    /// scattered over the drive.
    Zipf(u32),
    /// This many per cent of the writes go to the rest of the space, as its second number says: `zones:95/5` is
    /// 95 % of the writes to 5 % of the space.
    Zones(u32, u32),
    /// This share of the space is written once and then only read; the writes are uniform over the rest.
    ReadOnly(Share),
    /// This share of the space is used, and the writes are uniform over it.
    Used(Share),
    /// Sequential writes into so many zones of 8 GiB. A full zone is closed, and another one, chosen at
    /// random, is trimmed and opened.
    OpenZones(u32),
    /// Sequential writes into one open zone of so many bytes.
    OneZone(u64),
}

impl Pattern {
    /// The patterns of the suite `overwrite`.
    pub const OVERWRITE: [Pattern; 14] = [
        Pattern::Uniform,
        Pattern::Zipf(20),
        Pattern::Zipf(40),
        Pattern::Zipf(60),
        Pattern::Zipf(80),
        Pattern::Zipf(100),
        Pattern::Zones(60, 40),
        Pattern::Zones(70, 30),
        Pattern::Zones(80, 20),
        Pattern::Zones(90, 10),
        Pattern::Zones(95, 5),
        Pattern::ReadOnly(Share::percent(25)),
        Pattern::ReadOnly(Share::percent(50)),
        Pattern::ReadOnly(Share::percent(75)),
    ];
    /// The patterns of the suite `zones`.
    pub const ZONES: [Pattern; 11] = [
        Pattern::OpenZones(1),
        Pattern::OpenZones(2),
        Pattern::OpenZones(4),
        Pattern::OpenZones(8),
        Pattern::OpenZones(16),
        Pattern::OpenZones(32),
        Pattern::OneZone(1 << 30),
        Pattern::OneZone(2 << 30),
        Pattern::OneZone(4 << 30),
        Pattern::OneZone(8 << 30),
        Pattern::OneZone(16 << 30),
    ];
    /// The patterns of the suite `over-provisioning`.
    pub const OVER_PROVISIONING: [Pattern; 6] = [
        Pattern::Used(Share::percent(50)),
        Pattern::Used(Share::percent(60)),
        Pattern::Used(Share::percent(70)),
        Pattern::Used(Share::percent(80)),
        Pattern::Used(Share::percent(90)),
        Pattern::Used(Share::percent(100)),
    ];

    /// Returns whether the other pattern is of the same kind.
    pub(crate) fn is_like(&self, other: &Pattern) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }

    /// Returns the generator of single-page writes over `pages` pages; `None` for sequential zones.
    pub(crate) fn generator(
        &self,
        pages: u64,
        page_bytes: u32,
        seed: u64,
    ) -> Option<Result<Generator, SpecError>> {
        let text = match self {
            Pattern::Uniform | Pattern::ReadOnly(_) | Pattern::Used(_) => {
                "mixed-uniform:write=100%".to_owned()
            }
            Pattern::Zipf(hundredths) => format!("zipf:theta={},write=100%", theta(*hundredths)),
            Pattern::Zones(writes, space) => {
                format!("mixed-skewed:write=100%,hot_requests={writes}%,hot_pages={space}%")
            }
            Pattern::OpenZones(_) | Pattern::OneZone(_) => return None,
        };
        let config = Spec::parse(&text).and_then(GeneratorConfig::from_spec);
        Some(config.and_then(|config| config.start(pages, page_bytes, seed)))
    }

    /// Returns the number of pages, from the first on, that hold data, and the number of pages among them,
    /// from the first on, that are overwritten.
    pub(crate) fn used_and_written(&self, pages: u64) -> (u64, u64) {
        let part = |share: Share| share.of(pages).clamp(1, pages);
        match self {
            Pattern::ReadOnly(share) => (pages, pages - part(*share).min(pages - 1)),
            Pattern::Used(share) => (part(*share), part(*share)),
            _ => (pages, pages),
        }
    }
}

/// Writes hundredths as a decimal number: 80 is `0.8`.
fn theta(hundredths: u32) -> String {
    (f64::from(hundredths) / 100.0).to_string()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Uniform => write!(f, "uniform"),
            Pattern::Zipf(hundredths) if hundredths % 100 == 0 => write!(f, "zipf:{}.0", hundredths / 100),
            Pattern::Zipf(hundredths) => write!(f, "zipf:{}", theta(*hundredths)),
            Pattern::Zones(writes, space) => write!(f, "zones:{writes}/{space}"),
            Pattern::ReadOnly(share) => write!(f, "read-only:{share}"),
            Pattern::Used(share) => write!(f, "used:{share}"),
            Pattern::OpenZones(zones) => write!(f, "open-zones:{zones}"),
            Pattern::OneZone(bytes) => write!(f, "one-zone:{}", units::format_size(*bytes)),
        }
    }
}

impl FromStr for Pattern {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Pattern, SpecError> {
        let (name, value) = text.split_once(':').unwrap_or((text, ""));
        let refused = || {
            SpecError::new(format!(
                "`{text}` is not a pattern; accepted: uniform, zipf:0.8, zones:95/5, read-only:25%, used:80%, \
                 open-zones:8 or one-zone:4GiB"
            ))
        };
        let share = || units::parse_share(value).map_err(|_| refused());
        match name {
            "uniform" if value.is_empty() => Ok(Pattern::Uniform),
            "zipf" => {
                let theta = value.parse::<f64>().ok().filter(|theta| (0.01..=2.0).contains(theta));
                theta.map(|theta| Pattern::Zipf((theta * 100.0).round() as u32)).ok_or_else(refused)
            }
            "zones" => {
                let parts = value
                    .split_once('/')
                    .and_then(|(writes, space)| Some((writes.parse().ok()?, space.parse().ok()?)));
                let fits = |(writes, space): &(u32, u32)| (1..100).contains(writes) && writes + space == 100;
                parts.filter(fits).map(|(writes, space)| Pattern::Zones(writes, space)).ok_or_else(refused)
            }
            "read-only" => share().map(Pattern::ReadOnly),
            "used" => share().map(Pattern::Used),
            "open-zones" => {
                let zones = value.parse().ok().filter(|zones| (1..=1_024).contains(zones));
                zones.map(Pattern::OpenZones).ok_or_else(refused)
            }
            "one-zone" => units::parse_size(value).map(Pattern::OneZone).map_err(|_| refused()),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: the text of a pattern is read as the same pattern.
    #[test]
    fn every_pattern_survives_a_round_trip() {
        let all = Pattern::OVERWRITE.iter().chain(&Pattern::ZONES).chain(&Pattern::OVER_PROVISIONING);
        for pattern in all {
            assert_eq!(&pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "zipf", "zipf:0", "zones:95/6", "zones:100/0", "used:x", "open-zones:0", "uniform:1"]
        {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
