//! A spec is a name with options, as a user types it: `name` or `name:key=value,key=value`. A value that has
//! commas stands in double quotes, as in `name:key="a,b"`.
//!
//! Devices, policies and workloads are all chosen by a spec. A constructor takes each option that it knows
//! with [`Spec::take`] and calls [`Spec::finish`], which refuses any option that is left.

use crate::units::{self, Share};
use crate::{Nanos, SpecError};

/// A parsed spec `name:key=value,…`. Its options are those that no constructor has taken yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    name: String,
    options: Vec<(String, String)>,
    /// The keys that were passed to [`Spec::take`]. They are the accepted keys, which error sentences list.
    asked: Vec<&'static str>,
}

/// Returns whether a list of numbers is probably one number with grouped digits, such as `1,000`. A group
/// after the first may begin with a zero; a value of a list does not.
fn is_grouped(text: &str) -> bool {
    let is_digits = |item: &str| !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit());
    let mut items = text.split(',');
    let first = items.next().is_some_and(is_digits);
    first && items.any(|item| matches!(item.as_bytes(), [b'0', second, ..] if second.is_ascii_digit()))
}

/// Splits a text at its commas. Commas between double quotes do not count.
fn split_at_commas(text: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |letter| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    })
}

/// Returns a value without the double quotes around it, if it has them.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}

impl Spec {
    /// The one name whose options are specs themselves: `switch:A,B@N`. All text after its colon belongs to
    /// it.
    pub const NESTED: &'static str = "switch";

    /// Parses the text of one spec.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        if let Some((Self::NESTED, inner)) = text.split_once(':') {
            let options = vec![(Self::NESTED.to_owned(), inner.to_owned())];
            return Ok(Spec { name: Self::NESTED.to_owned(), options, asked: Vec::new() });
        }
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        if name.is_empty() {
            return Err(SpecError::new(format!(
                "`{text}` has no name before its options; write name:key=value"
            )));
        }
        let mut options: Vec<(String, String)> = Vec::new();
        if rest == Some("") {
            return Err(SpecError::new(format!("`{text}` has no option after its colon; write key=value")));
        }
        for option in rest.map(split_at_commas).into_iter().flatten() {
            if let Some(key) = option.strip_suffix('=').filter(|key| !key.is_empty() && !key.contains('=')) {
                return Err(SpecError::new(format!(
                    "`{key}` in `{text}` has no value; accepted: {key}=VALUE"
                )));
            }
            let (key, value) = option
                .split_once('=')
                .map(|(key, value)| (key, unquoted(value)))
                .filter(|(key, value)| !key.is_empty() && !value.is_empty())
                .ok_or_else(|| {
                    SpecError::new(format!("`{option}` in `{text}` is not an option; write key=value"))
                })?;
            if options.iter().any(|(known, _)| known == key) {
                return Err(SpecError::new(format!("`{key}` is given twice in `{text}`")));
            }
            options.push((key.to_owned(), value.to_owned()));
        }
        Ok(Spec { name: name.to_owned(), options, asked: Vec::new() })
    }

    /// Splits a comma-separated list into its specs. An item with `=` and no `:` before the `=` belongs to
    /// the spec before it. After `switch:`, all items up to the `@` belong to the `switch:`.
    pub fn split_list(text: &str) -> Result<Vec<String>, SpecError> {
        if is_grouped(text) {
            return Err(SpecError::new(format!(
                "`{text}` has a comma, which separates values; accepted: {} for one value",
                text.replace(',', "")
            )));
        }
        let mut items: Vec<String> = Vec::new();
        for item in split_at_commas(text) {
            let is_open = |last: &&mut String| {
                let name = last.split_once(':').map(|(name, _)| name);
                name == Some(Self::NESTED) && !last.contains('@')
            };
            // The value of an option may be a spec with options of its own, so only the text before the first
            // `:` is examined.
            let continues = item.split(':').next().is_some_and(|before| before.contains('='));
            match items.last_mut() {
                _ if text.is_empty() => {
                    return Err(SpecError::new("no value; write one, or leave the option out"));
                }
                _ if item.is_empty() => {
                    return Err(SpecError::new(format!(
                        "`{text}` has an empty item; write names separated by single commas"
                    )));
                }
                Some(last) if is_open(&last) => {
                    last.push(',');
                    last.push_str(item);
                }
                Some(last) if continues => {
                    last.push(if last.contains(':') { ',' } else { ':' });
                    last.push_str(item);
                }
                _ => items.push(item.to_owned()),
            }
        }
        Ok(items)
    }

    /// Returns the name before the colon.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the option `key` was given and not taken yet.
    pub fn has(&self, key: &str) -> bool {
        self.options.iter().any(|(given, _)| given == key)
    }

    /// Returns the options that were not taken yet.
    pub fn options(&self) -> &[(String, String)] {
        &self.options
    }

    /// Takes the option `key` and parses it with `parse`; `None` if the option was not given.
    fn take_with<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&str) -> Result<T, SpecError>,
    ) -> Result<Option<T>, SpecError> {
        let Some(value) = self.take_text(key) else { return Ok(None) };
        parse(&value).map(Some).map_err(|error| SpecError::new(format!("{key} of {}: {error}", self.name)))
    }

    /// Takes the text of the option `key`; `None` if the option was not given.
    pub fn take_text(&mut self, key: &'static str) -> Option<String> {
        self.asked.push(key);
        let at = self.options.iter().position(|(known, _)| known == key)?;
        Some(self.options.remove(at).1)
    }

    /// Takes the option `key` and parses it by its type; `None` if the option was not given.
    pub fn take<T: FromOption>(&mut self, key: &'static str) -> Result<Option<T>, SpecError> {
        self.take_with(key, T::from_option)
    }

    /// Fails if an option is left that no constructor took.
    pub fn finish(self) -> Result<(), SpecError> {
        match self.options.first() {
            None => Ok(()),
            Some((key, _)) => Err(SpecError::unknown(&format!("option of {}", self.name), key, &self.asked)),
        }
    }
}

/// A type whose values can follow `key=` in a spec.
pub trait FromOption: Sized {
    /// Parses the text behind the `=`.
    fn from_option(text: &str) -> Result<Self, SpecError>;
}

impl FromOption for u64 {
    fn from_option(text: &str) -> Result<Self, SpecError> {
        units::parse_count(text)
    }
}

impl FromOption for u32 {
    fn from_option(text: &str) -> Result<Self, SpecError> {
        u32::try_from(units::parse_count(text)?)
            .map_err(|_| SpecError::new(format!("`{text}` is too large; at most {}", u32::MAX)))
    }
}

impl FromOption for Share {
    fn from_option(text: &str) -> Result<Self, SpecError> {
        units::parse_share(text)
    }
}

impl FromOption for Nanos {
    fn from_option(text: &str) -> Result<Self, SpecError> {
        units::parse_micros(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_options_with_their_name() {
        assert_eq!(
            Spec::split_list("single,ace:n_w=8,n_e=8,raw").unwrap(),
            ["single", "ace:n_w=8,n_e=8", "raw"]
        );
        assert_eq!(Spec::split_list("ace,n_w=8").unwrap(), ["ace:n_w=8"]);
        assert_eq!(
            Spec::split_list("log:op=9%,placement=hints:streams=4,none").unwrap(),
            ["log:op=9%,placement=hints:streams=4", "none"]
        );
        assert_eq!(
            Spec::split_list("zipf,switch:zipf:theta=1,write=5%,tpcc@2M,varmail").unwrap(),
            ["zipf", "switch:zipf:theta=1,write=5%,tpcc@2M", "varmail"]
        );
        assert!(Spec::split_list("lru,,lfu").is_err());
        for grouped in ["1,000", "10,000,000", "1,024MiB", "1,000,512"] {
            let refused = Spec::split_list(grouped).unwrap_err().to_string();
            assert!(refused.contains(&grouped.replace(',', "")), "{refused}");
        }
        for list in ["1,8,64", "100,200", "0,1", "1,0", "0.05,0.1", "a,007", "1,0%"] {
            assert!(Spec::split_list(list).is_ok(), "{list}");
        }
    }

    #[test]
    fn options_are_taken_and_leftovers_named() {
        let mut spec = Spec::parse("zipf:theta=0.9,write=50%,wirte=1").unwrap();
        assert_eq!(spec.take::<Share>("write"), Ok(Some(Share::percent(50))));
        assert_eq!(spec.take::<u32>("pages"), Ok(None));
        assert_eq!(spec.take_with("theta", |t| Ok(t.to_owned())), Ok(Some("0.9".to_owned())));
        let sentence = spec.finish().unwrap_err().to_string();
        assert!(sentence.contains("unknown option of zipf `wirte`; did you mean `write`?"), "{sentence}");
    }

    #[test]
    fn a_quoted_value_keeps_its_commas() {
        let spec = Spec::parse(r#"fio2:volume="/d/a,b=1",long=read"#).unwrap();
        let expected = [("volume", "/d/a,b=1"), ("long", "read")];
        assert_eq!(spec.options(), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
        assert_eq!(
            Spec::split_list(r#"blkparse:volume="9,0",long=read,msr"#).unwrap(),
            [r#"blkparse:volume="9,0",long=read"#, "msr"]
        );
        assert!(Spec::parse(r#"blkparse:volume="""#).is_err());
        assert!(Spec::parse("blkparse:volume=9,0").is_err());
    }

    #[test]
    fn malformed_specs_are_refused() {
        for text in ["", ":a=1", "lru:", "lru:x", "lru:x=", "lru:=1", "lru:x=1,x=2"] {
            assert!(Spec::parse(text).is_err(), "{text}");
        }
    }
}
