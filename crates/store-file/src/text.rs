//! Encodes keys and values as text. A byte outside a printable UTF-8 character is written as `\x` and two
//! hexadecimal digits, a backslash as two backslashes. So each text has one line, and decoding it gives
//! exactly the same bytes.

use std::fmt::Write as _;

/// Encodes bytes as text.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text += "\\\\",
                // Escape line and paragraph separators too, because some programs break lines at them.
                unseen if unseen.is_control() || matches!(unseen, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                    let mut utf8 = [0; 4];
                    escape_each(&mut text, unseen.encode_utf8(&mut utf8).as_bytes());
                }
                seen => text.push(seen),
            }
        }
        escape_each(&mut text, chunk.invalid());
    }
    text
}

fn escape_each(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "\\x{byte:02x}");
    }
}

/// Decodes a text. The error describes the first wrong escape.
pub(crate) fn unescape(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, len) = one_escape(&rest[at..])?;
        bytes.push(byte);
        rest = &rest[at + len..];
    }
    bytes.extend_from_slice(rest);
    Ok(bytes)
}

/// Decodes the escape at the beginning of `text`. Returns the byte that it encodes, and the length of the
/// escape.
fn one_escape(text: &[u8]) -> Result<(u8, usize), String> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    match (text.get(1), digit(2), digit(3)) {
        (Some(b'\\'), ..) => Ok((b'\\', 2)),
        (Some(b'x'), Some(high), Some(low)) => Ok(((high * 16 + low) as u8, 4)),
        _ => {
            let shown = String::from_utf8_lossy(&text[..text.len().min(4)]);
            Err(format!("`{shown}` is not an escape; accepted: \\\\ for a backslash, \\xNN for a byte"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_decodes_to_exactly_its_bytes() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in
            [&all[..], b"", b"\\", b"\\x41", "gr\u{fc}n \u{2028}".as_bytes(), b"\xf0\x9f\x98", b"a\nb\r"]
        {
            let text = escape(bytes);
            assert!(!text.contains(char::is_control), "{text}");
            assert_eq!(unescape(text.as_bytes()).as_deref(), Ok(bytes), "{text}");
        }
        assert_eq!(escape("gr\u{fc}n\\\n\u{85}".as_bytes()), "gr\u{fc}n\\\\\\x0a\\xc2\\x85");
        assert_eq!(unescape(b"\\xFf\xff"), Ok(vec![0xff, 0xff]), "bytes may stand for themselves");
    }

    #[test]
    fn half_an_escape_is_refused() {
        for text in ["\\", "a\\", "\\x", "\\x4", "\\xg0", "\\n", "\\\\\\"] {
            assert!(unescape(text.as_bytes()).is_err(), "{text}");
        }
    }
}
