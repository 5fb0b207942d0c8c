//! Fields of text formats: numbers, and how an error shows what stands in the file instead.

use fulgurite_base::Nanos;

/// Parses the whole number `field`, at most `most`; `what` names it in the error.
pub fn number(what: &str, field: &[u8], most: u64) -> Result<u64, String> {
    let mut value = Some(0u64);
    for byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(not_a_number(what, field));
        }
        value = value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit)));
    }
    match value {
        Some(_) if field.is_empty() => Err(not_a_number(what, field)),
        Some(value) if value <= most => Ok(value),
        _ => Err(format!("{what} {} is out of range; at most {most}", quote(field))),
    }
}

/// Parses a decimal number of units of `unit_ns` nanoseconds, exactly; digits beyond a nanosecond are cut.
pub fn time(field: &[u8], unit_ns: u64) -> Result<Nanos, String> {
    let dot = field.iter().position(|byte| *byte == b'.').unwrap_or(field.len());
    let (whole, fraction) = (&field[..dot], field.get(dot + 1..).unwrap_or_default());
    let whole = number("time", whole, u64::MAX / unit_ns)
        .map_err(|reason| if dot == field.len() { reason } else { not_a_time(field) })?;
    let mut rest = 0u128;
    let mut scale = u128::from(unit_ns) * 10u128.pow(18);
    for digit in fraction {
        if !digit.is_ascii_digit() {
            return Err(not_a_time(field));
        }
        scale /= 10;
        rest += u128::from(digit - b'0') * scale;
    }
    let nanos = (whole * unit_ns).checked_add((rest / 10u128.pow(18)) as u64);
    nanos.map(Nanos).ok_or_else(|| format!("time {} is out of range", quote(field)))
}

#[cold]
fn not_a_time(field: &[u8]) -> String {
    format!("time {} is not a decimal number, like 12.5", quote(field))
}

/// Splits a line into exactly `N` fields; `form` is what they should be.
pub fn fields<'a, const N: usize>(
    line: &'a [u8],
    separator: Separator,
    form: &str,
) -> Result<[&'a [u8]; N], String> {
    let mut fields = [[].as_slice(); N];
    let mut count = 0;
    let mut take = |field: &'a [u8]| {
        if let Some(place) = fields.get_mut(count) {
            *place = field.trim_ascii();
        }
        count += 1;
    };
    match separator {
        Separator::Comma => line.split(|byte| *byte == b',').for_each(&mut take),
        Separator::Space => {
            line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).for_each(&mut take);
        }
    }
    if count == N { Ok(fields) } else { Err(wrong_count(line, count, form)) }
}

#[cold]
fn wrong_count(line: &[u8], count: usize, form: &str) -> String {
    format!("{} has {count} fields; a line is {form}", quote(line))
}

/// What stands between fields.
#[derive(Clone, Copy)]
pub enum Separator {
    Comma,
    Space,
}

/// A position or length in sectors of 512 bytes, in bytes.
pub fn sectors(what: &str, field: &[u8]) -> Result<u64, String> {
    Ok(number(what, field, u64::MAX / SECTOR_BYTES)? * SECTOR_BYTES)
}

/// The sector of most formats.
pub const SECTOR_BYTES: u64 = 512;

#[cold]
fn not_a_number(what: &str, field: &[u8]) -> String {
    format!("{what} {} is not a whole number; it has decimal digits only, like 4096", quote(field))
}

/// The bytes as they can stand in a sentence: printable, and cut after 40 characters.
#[cold]
pub fn quote(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    // No character is longer than four bytes, so the rest of a long line need not be looked at.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MOST)]);
    let shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    let is_cut = bytes.len() > 4 * MOST || text.chars().nth(MOST).is_some();
    format!("`{shown}{}`", if is_cut { "…" } else { "" })
}

/// The reason why a text was refused, or the simpler one that the bytes are no text at all: that
/// they hold control characters other than white space.
#[cold]
pub fn unless_binary(bytes: &[u8], reason: String) -> String {
    let is_binary = bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
    if is_binary {
        "this is binary data; a trace is text, plain or packed with gzip or zstd".to_owned()
    } else {
        reason
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_digits_and_a_range() {
        assert_eq!(number("page", b"0", 9), Ok(0));
        assert_eq!(number("page", b"0017", 17), Ok(17));
        assert_eq!(number("page", b"18446744073709551615", u64::MAX), Ok(u64::MAX));
        for (field, shown) in
            [("", "``"), ("-1", "`-1`"), ("1.5", "`1.5`"), ("0x1", "`0x1`"), ("9\n", "`9\\n`")]
        {
            assert_eq!(
                number("page", field.as_bytes(), 9).unwrap_err(),
                format!("page {shown} is not a whole number; it has decimal digits only, like 4096")
            );
        }
        for (field, most) in [("18446744073709551616", u64::MAX), ("10", 9)] {
            assert_eq!(
                number("page", field.as_bytes(), most).unwrap_err(),
                format!("page `{field}` is out of range; at most {most}")
            );
        }
    }

    #[test]
    fn quotes_stay_short_and_printable() {
        assert_eq!(quote(b"a\x00\xff"), "`a\\0\u{fffd}`");
        assert_eq!(quote(&[b'x'; 40]), format!("`{}`", "x".repeat(40)));
        assert_eq!(quote(&[b'x'; 70_000]), format!("`{}…`", "x".repeat(40)));
        assert_eq!(quote("ä".repeat(41).as_bytes()), format!("`{}…`", "ä".repeat(40)));
    }
}
