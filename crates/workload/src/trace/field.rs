//! Parses the fields of lines in text formats, and quotes wrong fields in error messages.

use super::record::Record;
use crate::Op;
use fulgurite_base::Nanos;

/// Parses the whole number `field`, which must be at most `most`. `what` names the field in the error
/// message.
#[inline]
pub(crate) fn number(what: &str, field: &[u8], most: u64) -> Result<u64, String> {
    match digits(field) {
        Some(value) if value <= most => Ok(value),
        // `long_number` finds the reason, so that the fast path has a single check.
        _ => long_number(what, field, most),
    }
}

/// Returns the value of a number of up to 19 digits, which always fits in 64 bits. Returns `None` for any
/// other text.
#[inline]
fn digits(field: &[u8]) -> Option<u64> {
    if field.is_empty() || field.len() > 19 {
        return None;
    }
    let mut value = 0u64;
    for byte in field {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// Parses a number of any length, or returns the reason why the number is wrong.
#[cold]
fn long_number(what: &str, field: &[u8], most: u64) -> Result<u64, String> {
    if field.is_empty() || !field.iter().all(u8::is_ascii_digit) {
        return Err(not_a_number(what, field));
    }
    let value = field
        .iter()
        .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    let value = value.filter(|value| *value <= most);
    value.ok_or_else(|| format!("{what} {} is out of range; at most {most}", quote(field)))
}

/// Parses a number like [`number`], or in hexadecimal digits after `0x`.
#[inline]
pub(crate) fn number_or_hex(what: &str, field: &[u8], most: u64) -> Result<u64, String> {
    match field {
        [b'0', b'x' | b'X', digits @ ..] => hex_number(what, digits, most),
        _ => number(what, field, most),
    }
}

/// Parses a number in hexadecimal digits, which must be at most `most`.
pub(crate) fn hex_number(what: &str, digits: &[u8], most: u64) -> Result<u64, String> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(format!("{what} {} is not a hexadecimal number, like 7ff8", quote(digits)));
    }
    let text = std::str::from_utf8(digits).ok();
    let value = text.and_then(|text| u64::from_str_radix(text, 16).ok()).filter(|value| *value <= most);
    value.ok_or_else(|| format!("{what} {} is out of range; at most {most:x}", quote(digits)))
}

/// Parses a decimal number in units of `unit_ns` nanoseconds, a power of ten up to 10^9. Digits below a
/// nanosecond are dropped.
#[inline]
pub(crate) fn time(field: &[u8], unit_ns: u64) -> Result<Nanos, String> {
    debug_assert!(1_000_000_000 % unit_ns == 0);
    let dot = field.iter().position(|byte| *byte == b'.').unwrap_or(field.len());
    let (whole, fraction) = (&field[..dot], field.get(dot + 1..).unwrap_or_default());
    // With this bound, the product of the whole part and the unit does not overflow.
    let whole = number("time", whole, u64::MAX / unit_ns)
        .map_err(|reason| if field.iter().all(u8::is_ascii_digit) { reason } else { not_a_time(field) })?;
    // The greatest unit is a second, so at most nine decimal places count.
    let places = &fraction[..fraction.len().min(9)];
    let rest = if fraction.is_empty() { Some(0) } else { digits(places) };
    let rest = rest.filter(|_| fraction[places.len()..].iter().all(u8::is_ascii_digit));
    // Both factors are at most 10^9, so the product fits in 64 bits.
    let rest = rest.ok_or_else(|| not_a_time(field))? * unit_ns / 10u64.pow(places.len() as u32);
    let nanos = (whole * unit_ns).checked_add(rest);
    nanos.map(Nanos).ok_or_else(|| format!("time {} is out of range", quote(field)))
}

#[cold]
fn not_a_time(field: &[u8]) -> String {
    format!("time {} is not a decimal number, like 12.5", quote(field))
}

/// Parses fields of digits in a single pass, for the most usual lines of long traces. A method returns `None`
/// if the line is of any other kind. Slower functions then parse that line or refuse it with a reason.
pub(crate) struct Plain<'a>(pub &'a [u8]);

impl<'a> Plain<'a> {
    /// Parses a number of at most 19 digits.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        // Eight bytes are parsed at once if there are as many. The numbers differ in length, so a loop over
        // digits would have one mispredicted branch for each number.
        let Some((bytes, _)) = self.0.split_first_chunk::<8>() else { return self.more_digits(0, 0) };
        let (value, length) = leading_number(u64::from_le_bytes(*bytes));
        if length == 8 { self.long_number(value) } else { self.number_of(value, length) }
    }

    /// Parses a number whose first eight digits have this value.
    #[inline(never)]
    fn long_number(&mut self, first: u64) -> Option<u64> {
        let Some((bytes, _)) = self.0[8..].split_first_chunk::<8>() else {
            return self.more_digits(first, 8);
        };
        let (next, length) = leading_number(u64::from_le_bytes(*bytes));
        let value = first * POWERS_OF_TEN[length] + next;
        if length == 8 { self.more_digits(value, 16) } else { self.number_of(value, 8 + length) }
    }

    /// Parses a number of which this many digits, with this value, are known, digit by digit.
    #[inline(never)]
    fn more_digits(&mut self, known: u64, digits: usize) -> Option<u64> {
        let (mut value, mut length) = (known, digits);
        while let Some(digit) =
            self.0.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9)
        {
            // A number that overflows here has at least 20 digits, so the check of the length refuses it.
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            length += 1;
        }
        self.number_of(value, length)
    }

    /// Consumes a number of this many digits and returns its value.
    #[inline]
    fn number_of(&mut self, value: u64, digits: usize) -> Option<u64> {
        self.0 = &self.0[digits..];
        (1..=19).contains(&digits).then_some(value)
    }

    /// Consumes a field that ends with a comma, and the comma. The field has printable ASCII characters only and no
    /// quotes.
    #[inline]
    pub(crate) fn field(&mut self) -> Option<&'a [u8]> {
        let is_end = |byte: &u8| !matches!(byte, b'!' | b'#'..=b'+' | b'-'..=b'~');
        let length = self.0.iter().position(is_end)?;
        let (field, rest) = self.0.split_at(length);
        self.0 = rest;
        self.byte(b',')?;
        Some(field)
    }

    /// Consumes the next byte.
    #[inline]
    pub(crate) fn first(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Consumes the next byte, which must be `byte`.
    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) -> Option<()> {
        (self.first()? == byte).then_some(())
    }

    /// Parses a time in seconds with exactly nine decimal places.
    #[inline]
    pub(crate) fn nanos(&mut self) -> Option<Nanos> {
        // A single digit before the point is frequent. Its own branch lets the CPU continue before it knows
        // the length of the number.
        let seconds = match self.0 {
            [digit @ b'0'..=b'9', b'.', ..] => {
                self.0 = &self.0[1..];
                u64::from(digit - b'0')
            }
            _ => self.number()?,
        };
        self.byte(b'.')?;
        let (bytes, rest) = self.0.split_first_chunk::<8>()?;
        let (eight, length) = leading_number(u64::from_le_bytes(*bytes));
        let (last, rest) = rest.split_first()?;
        let ninth = last.wrapping_sub(b'0');
        self.0 = rest;
        let has_nine_places = length == 8 && ninth <= 9 && !rest.first().is_some_and(u8::is_ascii_digit);
        // If the ninth place is not a digit, the fraction is wrong, and the filter below refuses the number.
        let fraction = eight * 10 + u64::from(ninth);
        seconds.checked_mul(1_000_000_000)?.checked_add(fraction).map(Nanos).filter(|_| has_nine_places)
    }
}

/// The powers of ten up to that of eight digits.
const POWERS_OF_TEN: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Parses lines from the start of `text` with `line`, until `records` has `most` records. Stops before a line
/// that `line` does not accept, an incomplete line and a record of length zero. Returns the number of bytes
/// that were parsed.
#[inline]
pub(crate) fn plain_lines(
    text: &[u8],
    most: usize,
    records: &mut Vec<Record>,
    line: impl Fn(&mut Plain) -> Option<Record>,
) -> usize {
    let (mut rest, mut read) = (Plain(text), 0);
    while records.len() < most
        && let Some(record) = line(&mut rest)
        && record.length > 0
        && rest.byte(b'\n').is_some()
    {
        records.push(record);
        read = text.len() - rest.0.len();
    }
    read
}

/// Parses the number at the start of eight bytes of text, the first byte lowest. Returns its value and its
/// number of digits.
#[inline]
fn leading_number(text: u64) -> (u64, usize) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let digits = text ^ (ONES * 0x30);
    // `others` marks the bytes above 9: the addition carries into their high bit, or that bit is set already.
    let others = (digits | ((digits & (ONES * 0x7f)) + ONES * 0x76)) & (ONES * 0x80);
    let length = (others.trailing_zeros() / 8) as usize;
    // Without this return, the shift by all 64 bits would overflow.
    if length == 0 {
        return (0, 0);
    }
    // The digits are moved to the end, after zeros. Then pairs, groups of four and all eight digits are
    // combined.
    let digits = digits << (64 - 8 * length);
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    let eight = (fours * 10_000 + (fours >> 32)) & 0xffff_ffff;
    (eight, length)
}

/// Splits a line into exactly `N` fields. `form` describes the expected fields in the error message.
pub(crate) fn fields<'a, const N: usize>(
    line: &'a [u8],
    separator: Separator,
    form: &str,
) -> Result<[&'a [u8]; N], String> {
    let mut fields = [[].as_slice(); N];
    let (mut count, mut start) = (0, 0);
    // After a separator at the end of the line, one more field follows, which is empty.
    while start <= line.len() {
        let rest = &line[start..];
        let length = match separator {
            Separator::Comma => rest.iter().position(|byte| *byte == b','),
            Separator::Space => rest.iter().position(u8::is_ascii_whitespace),
        };
        let field = &rest[..length.unwrap_or(rest.len())];
        start += field.len() + 1;
        // Several white-space characters count as one separator.
        if field.is_empty() && matches!(separator, Separator::Space) {
            continue;
        }
        // Fields beyond `N` are only counted, for the error message.
        if let Some(place) = fields.get_mut(count) {
            *place = unquoted(field.trim_ascii());
        }
        count += 1;
    }
    if count == N { Ok(fields) } else { Err(wrong_count(line, count, form)) }
}

/// Returns a field without the double quotes around it. Spreadsheets write them around any field.
#[inline]
fn unquoted(field: &[u8]) -> &[u8] {
    match field {
        [b'"', inner @ .., b'"'] => inner,
        _ => field,
    }
}

/// Whether a line names the columns instead of holding their values: it has `count` fields, and each begins with
/// a letter, maybe after quotes or a `#`. Files that were put behind each other have such lines in the middle.
#[inline]
pub(crate) fn is_header(line: &[u8], separator: Separator, count: usize) -> bool {
    !matches!(line.first(), None | Some(b'0'..=b'9')) && names_columns(line, separator, count)
}

#[cold]
fn names_columns(line: &[u8], separator: Separator, count: usize) -> bool {
    let line = line.strip_prefix(b"#").unwrap_or(line).trim_ascii();
    let is_name = |field: &[u8]| {
        let field = field.trim_ascii();
        let field = field.strip_prefix(b"\"").unwrap_or(field);
        field.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
    };
    let fields: Vec<&[u8]> = match separator {
        Separator::Comma => line.split(|byte| *byte == b',').collect(),
        Separator::Space => line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect(),
    };
    fields.len() == count && fields.into_iter().all(is_name)
}

#[cold]
fn wrong_count(line: &[u8], count: usize, form: &str) -> String {
    format!("{} has {count} fields; a line is {form}", quote(line))
}

/// The separator between the fields of a line.
#[derive(Clone, Copy)]
pub(crate) enum Separator {
    Comma,
    Space,
}

/// Parses a position or length in sectors of 512 bytes, and returns the number of bytes.
pub(crate) fn sectors(what: &str, field: &[u8]) -> Result<u64, String> {
    Ok(number(what, field, u64::MAX / SECTOR_BYTES)? * SECTOR_BYTES)
}

/// The size of a sector in most formats, in bytes.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// Returns the number of the first sector that a record covers, and the number of sectors that it covers.
pub(crate) fn in_sectors(record: &Record) -> (u64, u64) {
    let first = record.start / SECTOR_BYTES;
    (first, (record.start + record.length).div_ceil(SECTOR_BYTES) - first)
}

/// Returns `read` for a read and `write` for a write. A trim is lost.
pub(crate) fn read_or_write<T>(op: Op, read: T, write: T) -> Result<T, &'static str> {
    match op {
        Op::Read => Ok(read),
        Op::Write => Ok(write),
        Op::Trim => Err("trims"),
    }
}

#[cold]
fn not_a_number(what: &str, field: &[u8]) -> String {
    format!("{what} {} is not a whole number; it has decimal digits only, like 4096", quote(field))
}

/// Returns the bytes as a quotation for an error message: printable, and cut after 40 characters.
#[cold]
pub(crate) fn quote(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    // A character has at most four bytes, so the rest of a long line is not needed.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * MOST)]);
    let shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    let is_cut = bytes.len() > 4 * MOST || text.chars().nth(MOST).is_some();
    format!("`{shown}{}`", if is_cut { "…" } else { "" })
}

/// Returns the reason why a text was refused. If the bytes contain control characters other than white space,
/// the reason is that they are not text; otherwise it is `reason`.
#[cold]
pub(crate) fn unless_binary(bytes: &[u8], reason: String) -> String {
    let is_binary = bytes.iter().any(|byte| byte.is_ascii_control() && !byte.is_ascii_whitespace());
    if is_binary {
        "this is binary data; a trace is text, plain or packed with gzip, zstd, xz or lz4".to_owned()
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

    /// The slow and obvious oracle: the value and the number of digits at the start of a text.
    fn digit_by_digit(text: &[u8]) -> (u128, usize) {
        let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (text[..count].iter().fold(0, |value, digit| value * 10 + u128::from(digit - b'0')), count)
    }

    #[test]
    fn numbers_of_every_length_and_end() {
        for count in 0..=25usize {
            for rest in ["", ",", ",1", ",4096,17,0,0", "x4096,17,0,0"] {
                for leading in
                    ["1234567890123456789012345", "0000000000000000000000001", "9999999999999999999999999"]
                {
                    let text = format!("{}{rest}", &leading[..count]);
                    let mut line = Plain(text.as_bytes());
                    let (value, digits) = digit_by_digit(text.as_bytes());
                    let expected = u64::try_from(value).ok().filter(|_| (1..=19).contains(&digits));
                    assert_eq!(line.number(), expected, "{text}");
                    assert!(expected.is_none() || line.0 == rest.as_bytes(), "{text}");
                }
            }
        }
    }

    #[test]
    fn parsing_eight_bytes_at_once_equals_parsing_digit_by_digit() {
        // The cases are every byte value after each number of digits, and numbers of every length.
        for length in 0..8usize {
            for byte in 0..=255u8 {
                let mut text = *b"98765432";
                text[length] = byte;
                let (value, count) = digit_by_digit(&text);
                let (found, digits) = leading_number(u64::from_le_bytes(text));
                assert_eq!((u128::from(found), digits), (value, count), "{text:?}");
            }
        }
        for number in (0..10_000_000_000_000_000_000).step_by((1 << 59) + 12_347).chain(0..2_000) {
            let text = format!("{number} 4096 ");
            let mut line = Plain(text.as_bytes());
            assert_eq!((line.number(), line.byte(b' '), line.number()), (Some(number), Some(()), Some(4096)));
        }
        let nanos = |text: &str| Plain(text.as_bytes()).nanos();
        assert_eq!(nanos("12.345678901 "), Some(Nanos(12_345_678_901)));
        assert_eq!(nanos("12.345678901"), Some(Nanos(12_345_678_901)));
        for text in ["12.34567890 ", "12.3456789012", "12,345678901", ".345678901", "12.34567a901"] {
            assert_eq!(nanos(text), None, "{text}");
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
