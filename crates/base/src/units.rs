//! Reads and writes numbers with units, as a user types them: `4KiB`, `8GB`, `2M`, `6%`, `5.95` µs. Parsing
//! is exact, in integers.

use crate::{Nanos, SpecError};

/// A share of a whole, in parts per million, so that probabilities need no floating point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// The share 0 %.
    pub const ZERO: Share = Share(0);
    /// The share 100 %.
    pub const ONE: Share = Share(1_000_000);

    /// Returns a share of `percent` percent, which may exceed 100.
    pub const fn percent(percent: u32) -> Share {
        Share(percent * 10_000)
    }

    /// Returns a share of `ppm` parts per million.
    pub const fn from_ppm(ppm: u32) -> Share {
        Share(ppm)
    }

    /// Returns the share in parts per million.
    pub const fn ppm(self) -> u32 {
        self.0
    }

    /// Returns the share as a fraction of 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Returns the logical part of `total` physical pages if the over-provisioning ρ = (physical − logical) /
    /// logical is this share: total / (1 + share).
    pub fn on_top_within(self, total: u64) -> u64 {
        // The product may exceed 64 bits, so the computation uses 128 bits.
        let one = u64::from(Share::ONE.0);
        (u128::from(total) * u128::from(one) / u128::from(one + u64::from(self.0))) as u64
    }

    /// Returns this share of `total`, rounded down.
    pub fn of(self, total: u64) -> u64 {
        (u128::from(total) * u128::from(self.0) / 1_000_000) as u64
    }
}

impl std::fmt::Display for Share {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 10_000, self.0 % 10_000);
        if rest == 0 {
            write!(f, "{whole}%")
        } else {
            write!(f, "{whole}.{}%", format!("{rest:04}").trim_end_matches('0'))
        }
    }
}

/// A part of a whole, as a count or as a share: `500`, `6%`, `1/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Portion {
    /// The part is this number.
    Count(u64),
    /// The part is this share of the whole.
    Share(Share),
    /// The part is the whole divided by this number. It is exact where a share in parts per million would be
    /// rounded.
    Fraction(u32),
}

impl Portion {
    /// The portion 0 %.
    pub const ZERO: Portion = Portion::Share(Share::ZERO);
    /// The portion 100 %.
    pub const ALL: Portion = Portion::Share(Share::ONE);

    /// Returns a portion of `percent` percent, which may exceed 100.
    pub const fn percent(percent: u32) -> Portion {
        Portion::Share(Share::percent(percent))
    }

    /// Returns the number that this portion is of `total`, rounded down.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Portion::Count(count) => count,
            Portion::Share(share) => share.of(total),
            Portion::Fraction(divisor) => total / u64::from(divisor),
        }
    }
}

/// A count and a share have no order, because the number of a share depends on the whole. So bounds that are
/// shares do not refuse counts.
impl PartialOrd for Portion {
    fn partial_cmp(&self, other: &Portion) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Portion::Count(own), Portion::Count(other)) => Some(own.cmp(other)),
            (Portion::Share(own), Portion::Share(other)) => Some(own.cmp(other)),
            (Portion::Fraction(own), Portion::Fraction(other)) => Some(other.cmp(own)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Portion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Portion::Count(count) => count.fmt(f),
            Portion::Share(share) => share.fmt(f),
            Portion::Fraction(divisor) => write!(f, "1/{divisor}"),
        }
    }
}

const SIZES: [(&str, u64); 13] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("EiB", 1 << 60),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("PB", 1_000_000_000_000_000),
    ("EB", 1_000_000_000_000_000_000),
    // This unit is the last entry, because all other units end with `B` too.
    ("B", 1),
];

const COUNTS: [(&str, u64); 4] =
    [("K", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];

/// Parses `yes` or `no`.
pub fn parse_yes_no(text: &str) -> Result<bool, SpecError> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(SpecError::new(format!("`{text}` is neither yes nor no"))),
    }
}

/// Parses a size in bytes: a number and a unit (`4KiB`, `1.5GB`, `512B`).
pub fn parse_size(text: &str) -> Result<u64, SpecError> {
    let fault = || {
        let meant = meant_size(text).map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        SpecError::new(format!(
            "`{text}` is not a size{meant} (accepted: a number and a unit, like 4KiB, 64MiB or 8GB)"
        ))
    };
    let (number, scale) = split_suffix(text, &SIZES).ok_or_else(fault)?;
    parse_scaled(number, scale).ok_or_else(|| too_large(text, number).unwrap_or_else(fault))
}

/// Returns the size that was probably meant by a text without a unit, or with the notation of another
/// program: `4K`, `4kb`, `512`.
fn meant_size(text: &str) -> Option<String> {
    let (number, unit) = text.split_at(text.find(char::is_alphabetic).unwrap_or(text.len()));
    let (number, unit) = (number.trim(), unit.to_lowercase());
    let is_meant = |known: &str| match unit.len() {
        0 => known == "B",
        // Other programs mean 1024 by `K`.
        1 => known.len() == 3 && known.to_lowercase().starts_with(&unit),
        _ => known.to_lowercase() == unit,
    };
    let (unit, scale) = SIZES.iter().find(|(known, _)| is_meant(known))?;
    parse_scaled(number, *scale).map(|_| format!("{number}{unit}"))
}

/// Parses a count: `1000`, `1_000`, `250K`, `2M`, `1.1G`.
pub fn parse_count(text: &str) -> Result<u64, SpecError> {
    let fault = || {
        SpecError::new(format!(
            "`{text}` is not a count: write a whole number, or one with K, M or G, like 250K or 2M"
        ))
    };
    let (number, scale) = split_suffix(text, &COUNTS).unwrap_or((text, 1));
    parse_scaled(number, scale).ok_or_else(|| too_large(text, number).unwrap_or_else(fault))
}

/// Parses a share: `6%`, `7.5%`.
pub fn parse_share(text: &str) -> Result<Share, SpecError> {
    let fault = || SpecError::new(format!("`{text}` is not a share: write a percentage, like 6% or 7.5%"));
    let number = text.strip_suffix('%').ok_or_else(fault)?;
    let ppm = parse_scaled(number, 10_000).ok_or_else(fault)?;
    u32::try_from(ppm).map(Share).map_err(|_| fault())
}

/// Parses a count or a share of a whole: `500`, `6%`, `1/3`.
pub fn parse_portion(text: &str) -> Result<Portion, SpecError> {
    let portion = match text.strip_prefix("1/") {
        Some(divisor) => divisor.parse().ok().filter(|divisor| *divisor > 0).map(Portion::Fraction),
        None if text.ends_with('%') => parse_share(text).ok().map(Portion::Share),
        None => parse_count(text).ok().map(Portion::Count),
    };
    portion.ok_or_else(|| {
        SpecError::new(format!("`{text}` is neither a count nor a share: write one like 500, 6% or 1/3"))
    })
}

/// Parses a duration that is written in microseconds, with up to three decimals: `40`, `5.95`.
pub fn parse_micros(text: &str) -> Result<Nanos, SpecError> {
    let fault = || {
        SpecError::new(format!(
            "`{text}` is not a time in microseconds: write a number with at most three decimals, like 40 or 5.95"
        ))
    };
    parse_scaled(text, 1_000).map(Nanos).ok_or_else(fault)
}

/// Parses a length of time: `10m`, `1.5h`, `250ms`. The units are ns, us, ms, s, m, h and d.
pub fn parse_time(text: &str) -> Result<Nanos, SpecError> {
    const SECOND: u64 = 1_000_000_000;
    const UNITS: [(&str, u64); 7] = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", SECOND),
        ("m", 60 * SECOND),
        ("h", 3_600 * SECOND),
        ("d", 86_400 * SECOND),
    ];
    let scaled = UNITS.iter().find_map(|(unit, scale)| parse_scaled(text.strip_suffix(unit)?, *scale));
    scaled.map(Nanos).ok_or_else(|| {
        SpecError::new(format!("`{text}` is not a length of time: write one like 90s, 10m or 1.5h"))
    })
}

/// Returns `bytes` as text, with the largest binary unit that divides it.
pub fn format_size(bytes: u64) -> String {
    // Only the first four units are used for output. Larger units are only read, so larger sizes are shown
    // in TiB.
    SIZES[..4]
        .iter()
        .rev()
        .find(|(_, scale)| bytes >= *scale && bytes.is_multiple_of(*scale))
        .map_or_else(|| format!("{bytes}B"), |(unit, scale)| format!("{}{unit}", bytes / scale))
}

/// The units of sizes in text for people, the largest first.
pub const HUMANE_SIZES: [(f64, &str); 5] = [
    (1_099_511_627_776.0, " TiB"),
    (1_073_741_824.0, " GiB"),
    (1_048_576.0, " MiB"),
    (1024.0, " KiB"),
    (1.0, " B"),
];

/// Returns `bytes` as text for people: `9.53 GiB`. The exact text that users can type is [`format_size`].
pub fn humane_size(bytes: u64) -> String {
    humane(bytes as f64, &HUMANE_SIZES)
}

/// Returns `bytes` rounded up to a whole number of the largest unit that is not larger than `bytes`. Three
/// significant digits would round the least accepted size down to a size that is refused.
pub fn whole_size(bytes: u64) -> u64 {
    let unit = HUMANE_SIZES.iter().map(|(scale, _)| *scale as u64).find(|scale| bytes >= *scale);
    bytes.checked_next_multiple_of(unit.unwrap_or(1)).unwrap_or(bytes)
}

/// Returns a value with three significant digits, in the largest unit that is not larger than the value. The
/// list `units` begins with the largest unit.
pub fn humane(value: f64, units: &[(f64, &str)]) -> String {
    // A value that would round to 1000 of one unit is written as 1.00 of the next unit.
    let fits = units.iter().find(|(scale, _)| value.abs() >= 0.9995 * scale);
    let (scale, name) = fits.or(units.last()).copied().unwrap_or((1.0, ""));
    let scaled = value / scale;
    // Counts and sizes that are whole are written without decimals. In measured values, trailing zeros show
    // the precision, so they are kept.
    let is_whole = scaled.fract() == 0.0 && (scale == 1.0 || name.ends_with('B'));
    if is_whole { format!("{scaled:.0}{name}") } else { format!("{}{name}", significant(scaled)) }
}

/// Returns a number with three significant digits.
pub fn significant(number: f64) -> String {
    significant_to(number, 3)
}

/// Returns a number with `digits` significant digits; all digits before the decimal point are kept.
pub fn significant_to(number: f64, digits: u8) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let decimals =
        |number: f64| (i32::from(digits) - 1 - number.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{number:.*}", decimals(number));
    // Rounding may add a digit before the decimal point: 9.996 is written as 10.0 and not as 10.00.
    match text.parse().map_or(0, decimals) {
        fewer if fewer < decimals(number) => format!("{number:.fewer$}"),
        _ => text,
    }
}

/// Returns a duration in microseconds as [`parse_micros`] reads it.
pub fn format_micros(time: Nanos) -> String {
    let (whole, rest) = (time.0 / 1_000, time.0 % 1_000);
    if rest == 0 {
        whole.to_string()
    } else {
        format!("{whole}.{}", format!("{rest:03}").trim_end_matches('0'))
    }
}

fn split_suffix<'a>(text: &'a str, table: &[(&str, u64)]) -> Option<(&'a str, u64)> {
    table.iter().find_map(|(suffix, scale)| text.strip_suffix(suffix).map(|number| (number, *scale)))
}

/// Returns the error for a well-formed whole number that does not fit into 64 bits; `None` for other texts.
fn too_large(text: &str, number: &str) -> Option<SpecError> {
    let is_whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| SpecError::new(format!("`{text}` is too large; accepted: at most {}", u64::MAX)))
}

/// Returns `number × scale`. The text `number` may have a decimal point; the result is `None` unless it is
/// whole.
fn parse_scaled(number: &str, scale: u64) -> Option<u64> {
    let digits = |text: &str| -> Option<u64> {
        let ok = text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
        ok.then(|| text.replace('_', "").parse().ok())?
    };
    let Some((whole, decimals)) = number.split_once('.') else {
        return digits(number)?.checked_mul(scale);
    };
    let power = 10u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let scaled_decimals = u128::from(digits(decimals)?) * u128::from(scale);
    // An underscore would count as a decimal place, so it is refused after the decimal point.
    if decimals.contains('_') || !scaled_decimals.is_multiple_of(u128::from(power)) {
        return None;
    }
    digits(whole)?.checked_mul(scale)?.checked_add(u64::try_from(scaled_decimals / u128::from(power)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_read_in_any_unit() {
        for (text, expected) in [
            ("0s", 0),
            ("7ns", 7),
            ("250ms", 250_000_000),
            ("1.5h", 5_400_000_000_000),
            ("10m", 600_000_000_000),
        ] {
            assert_eq!(parse_time(text), Ok(Nanos(expected)), "{text}");
        }
        for text in ["", "10", "m", "-1s", "1.5", "10 m", "1e3s", "300000d"] {
            assert!(parse_time(text).unwrap_err().to_string().contains("is not a length of time"), "{text}");
        }
    }

    #[test]
    fn a_size_is_shown_in_its_largest_unit() {
        let sizes =
            [(0, "0 B"), (1023, "1023 B"), (4096, "4 KiB"), (10_230_000_000, "9.53 GiB"), (9 << 40, "9 TiB")];
        for (bytes, said) in sizes {
            assert_eq!(humane_size(bytes), said);
        }
    }

    /// The rule: a rounded value has three significant digits, and a value that rounds to 1000 of a unit uses
    /// the next unit.
    #[test]
    fn rounding_keeps_three_digits() {
        let texts = [0.9994, 0.9996, 9.994, 9.996, 99.96, 999.6, 0.0, -9.996].map(significant);
        assert_eq!(texts, ["0.999", "1.00", "9.99", "10.0", "100", "1000", "0", "-10.0"]);
        let counts = [(1e6, " M"), (1e3, " K"), (1.0, "")];
        let texts = [999.4, 999.6, 999_400.0, 999_600.0].map(|number| humane(number, &counts));
        assert_eq!(texts, ["999", "1.00 K", "999 K", "1.00 M"]);
    }

    /// The rule: a size that is given to users as the least is at least the required size, and three
    /// significant digits show it exactly.
    #[test]
    fn the_least_size_is_rounded_up() {
        let sizes = [(0, "0 B"), (700, "700 B"), (1_024_100, "1001 KiB"), (66_432 << 10, "65 MiB")];
        for (bytes, said) in sizes.into_iter().chain([(13_313 << 20, "14 GiB"), (13 << 30, "13 GiB")]) {
            assert_eq!(humane_size(whole_size(bytes)), said);
        }
        assert_eq!(whole_size(u64::MAX), u64::MAX);
    }

    #[test]
    fn numbers_are_read_with_their_units() {
        assert_eq!(parse_size("4KiB"), Ok(4096));
        assert_eq!(parse_size("8GB"), Ok(8_000_000_000));
        assert_eq!(parse_size("1.5KiB"), Ok(1536));
        assert_eq!(parse_count("2M"), Ok(2_000_000));
        assert_eq!(parse_count("1.1G"), Ok(1_100_000_000));
        assert_eq!(parse_count("39_062_500"), Ok(39_062_500));
        assert_eq!(parse_share("6%"), Ok(Share::percent(6)));
        assert_eq!(parse_share("7.37%").map(Share::ppm), Ok(73_700));
        assert_eq!(parse_micros("5.95"), Ok(Nanos(5_950)));
    }

    #[test]
    fn a_number_over_64_bits_is_called_too_large() {
        for text in ["99999999999TiB", "18446744073709551616B"] {
            assert!(parse_size(text).unwrap_err().to_string().contains("is too large"), "{text}");
        }
        for text in ["18446744073709551616", "99999999999999T"] {
            assert!(parse_count(text).unwrap_err().to_string().contains("is too large"), "{text}");
        }
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn malformed_numbers_are_refused_with_an_offer() {
        for text in ["", "4", "KiB", "-4KiB", "4kib", "1.3B", "4 KiB", "1e3B"] {
            assert!(parse_size(text).unwrap_err().to_string().contains("is not a size"), "{text}");
        }
        for (text, meant) in [
            ("4K", "4KiB"),
            ("1.5m", "1.5MiB"),
            ("4kib", "4KiB"),
            ("8gb", "8GB"),
            ("4 KiB", "4KiB"),
            ("512", "512B"),
        ] {
            let sentence = parse_size(text).unwrap_err().to_string();
            assert!(sentence.contains(&format!("; did you mean `{meant}`? (accepted")), "{sentence}");
        }
        for text in ["", "KiB", "-4KiB", "1.3B", "1e3B", "K"] {
            assert!(!parse_size(text).unwrap_err().to_string().contains("did you mean"), "{text}");
        }
        for text in ["", "x", "1.5", "-1", "1e6", "_1"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
        assert!(
            parse_share("6").is_err() && parse_share("999999%").is_err() && parse_micros("0.0001").is_err()
        );
    }

    #[test]
    fn a_portion_is_a_count_or_a_share() {
        let of_1000 = |text: &str| parse_portion(text).map(|portion| portion.of(1_000));
        assert_eq!(["7", "6%", "1/3", "2K"].map(of_1000), [Ok(7), Ok(60), Ok(333), Ok(2_000)]);
        for text in ["7", "6%", "33.3333%", "1/3"] {
            assert_eq!(parse_portion(text).unwrap().to_string(), text);
        }
        for text in ["", "x", "1/0", "1/", "2/3", "-1%", "1/-2"] {
            assert!(parse_portion(text).unwrap_err().to_string().contains("neither a count nor"), "{text}");
        }
        // A bound that is a share refuses only shares.
        assert!(Portion::percent(200) > Portion::ALL && Portion::Fraction(3) < Portion::Fraction(2));
        assert_eq!(Portion::Count(9).partial_cmp(&Portion::ALL), None);
    }

    proptest! {
        #[test]
        fn sizes_and_times_survive_a_round_trip(value in 0u64..1 << 50) {
            prop_assert_eq!(parse_size(&format_size(value)), Ok(value));
            prop_assert_eq!(parse_micros(&format_micros(Nanos(value))), Ok(Nanos(value)));
        }
    }
}
