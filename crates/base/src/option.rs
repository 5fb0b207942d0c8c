//! Declares the options of a name, as in `name:key=value,key=value`. Each option is declared once.
//!
//! A type with options implements [`Declared`]. Its table has one row for each option: the key, the notation
//! of its value, the bounds and the meaning. Parsing, error sentences, lists, help and the canonical text all
//! use that table, so none of them can miss an option.

use crate::units::{self, Portion, Share};
use crate::{Nanos, Spec, SpecError};

/// How values of a type are written and read.
pub struct Form<V: 'static> {
    /// The notation of a value, for help: `N`, `4KiB`, `yes|no`.
    pub written: &'static str,
    /// Reads a value.
    pub parse: fn(&str) -> Result<V, SpecError>,
    /// Writes a value as `parse` reads it.
    pub show: fn(&V) -> String,
}

/// A count that fits into 16 bits: `8`.
pub const COUNT_16: Form<u16> =
    Form { written: "N", parse: |text| narrow(text, u64::from(u16::MAX)), show: u16::to_string };
/// A count that fits into 32 bits: `250K`.
pub const COUNT: Form<u32> =
    Form { written: "N", parse: |text| narrow(text, u64::from(u32::MAX)), show: u32::to_string };
/// A count that fits into 64 bits.
pub const COUNT_64: Form<u64> = Form { written: "N", parse: units::parse_count, show: u64::to_string };
/// A size in bytes: `4KiB`.
pub const SIZE: Form<u64> =
    Form { written: "SIZE", parse: units::parse_size, show: |bytes| units::format_size(*bytes) };
/// A share of a whole: `6%`.
pub const SHARE: Form<Share> = Form { written: "%", parse: units::parse_share, show: Share::to_string };
/// A count, or a share of a whole: `500`, `6%`, `1/3`.
pub const PORTION: Form<Portion> =
    Form { written: "N|%|1/N", parse: units::parse_portion, show: Portion::to_string };
/// A time in microseconds: `5.95`.
pub const MICROS: Form<Nanos> =
    Form { written: "µs", parse: units::parse_micros, show: |time| units::format_micros(*time) };
/// `yes` or `no`.
pub const YES_NO: Form<bool> = Form {
    written: "yes|no",
    parse: units::parse_yes_no,
    show: |yes| if *yes { "yes" } else { "no" }.to_owned(),
};

fn narrow<V: TryFrom<u64>>(text: &str, most: u64) -> Result<V, SpecError> {
    V::try_from(units::parse_count(text)?)
        .map_err(|_| SpecError::new(format!("`{text}` is too large; accepted: at most {most}")))
}

/// A type with a few values, each with a name.
pub trait Choice: Copy + PartialEq + 'static {
    /// Every value with its name.
    const NAMES: &'static [(&'static str, Self)];
}

impl<V: Choice> Form<V> {
    /// The form of a type with a few named values; `written` lists the names: `u|1+u`.
    pub const fn choice(written: &'static str) -> Form<V> {
        Form { written, parse: parse_choice, show: |value| name_of(*value).to_owned() }
    }
}

/// The value called `text`.
pub fn parse_choice<V: Choice>(text: &str) -> Result<V, SpecError> {
    let found = V::NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = V::NAMES.iter().map(|(name, _)| *name).collect();
        SpecError::unknown("value", text, &names)
    })
}

/// The name of a value.
pub fn name_of<V: Choice>(value: V) -> &'static str {
    V::NAMES.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

impl<V: PartialOrd> Form<V> {
    /// Reads a value and refuses it outside `least..=most`.
    pub fn parse_within(&self, text: &str, least: &V, most: &V) -> Result<V, SpecError> {
        let value = (self.parse)(text)?;
        if value < *least || value > *most {
            let (least, most) = ((self.show)(least), (self.show)(most));
            return Err(SpecError::new(format!("{text} is out of range; accepted: {least} to {most}")));
        }
        Ok(value)
    }
}

/// One option of a `T`; made by [`opt!`](crate::opt).
pub struct Opt<T: 'static> {
    /// The key in `key=value`.
    pub key: &'static str,
    /// A short description of the option.
    pub about: &'static str,
    /// The notation of a value.
    pub written: &'static str,
    /// The least and the greatest accepted value as text; `None` if every value of the form is accepted.
    pub bounds: fn() -> Option<(String, String)>,
    /// Reads a value into a `T`.
    pub set: fn(&mut T, &str) -> Result<(), SpecError>,
    /// The value in a `T`, as text.
    pub show: fn(&T) -> String,
}

/// Declares one option: `opt!("d", choices, COUNT, 1 => 1000, "how many are drawn")`. The field may be nested
/// (`collect.reserve`). The bounds are optional.
#[macro_export]
macro_rules! opt {
    ($key:literal, $($field:ident).+, $form:expr, $least:expr => $most:expr, $about:literal) => {
        $crate::Opt {
            key: $key,
            about: $about,
            written: $form.written,
            bounds: || Some((($form.show)(&$least), ($form.show)(&$most))),
            set: |target, text| {
                target.$($field).+ = $form.parse_within(text, &$least, &$most)?;
                Ok(())
            },
            show: |target| ($form.show)(&target.$($field).+),
        }
    };
    ($key:literal, $($field:ident).+, $form:expr, $about:literal) => {
        $crate::Opt {
            key: $key,
            about: $about,
            written: $form.written,
            bounds: || None,
            set: |target, text| {
                target.$($field).+ = ($form.parse)(text)?;
                Ok(())
            },
            show: |target| ($form.show)(&target.$($field).+),
        }
    };
}

/// A type whose options are declared in one table.
pub trait Declared: Sized + 'static {
    /// Every option.
    const OPTIONS: &'static [Opt<Self>];

    /// Takes the declared options out of `spec` and returns this value with them applied. Each option is
    /// checked against its bounds; the caller checks combinations of options.
    fn with_options(mut self, spec: &mut Spec) -> Result<Self, SpecError> {
        for option in Self::OPTIONS {
            if let Some(text) = spec.take_text(option.key) {
                (option.set)(&mut self, &text)
                    .map_err(|error| refusal(option.key, spec.name(), &text, &error))?;
            }
        }
        Ok(self)
    }

    /// The options that differ from those of `usual`, as text: `d=4,window=2%`.
    fn options_beside(&self, usual: &Self) -> String {
        let shown =
            Self::OPTIONS.iter().map(|option| (option.key, (option.show)(self), (option.show)(usual)));
        let differing = shown.filter(|(_, own, usual)| own != usual);
        differing.map(|(key, own, _)| format!("{key}={own}")).collect::<Vec<_>>().join(",")
    }

    /// Refuses values outside their bounds, for a value that was not made from text.
    fn check_bounds(&self) -> Result<(), SpecError>
    where
        Self: Clone,
    {
        let bounded = Self::OPTIONS.iter().filter(|option| (option.bounds)().is_some());
        // Reading a value back from its text fails if the value is outside its bounds.
        bounded.map(|option| (option, (option.show)(self))).try_for_each(|(option, text)| {
            let refused = |error| SpecError::new(format!("{}: {error}", option.key));
            // Only the result matters, so the value is set on a clone.
            (option.set)(&mut self.clone(), &text).map_err(refused)
        })
    }

    /// The options as lists and help show them, with the values of `self` as defaults.
    fn describe_options(&self) -> Vec<OptionHelp> {
        let help = |option: &Opt<Self>| OptionHelp {
            key: option.key,
            about: option.about,
            written: option.written,
            default: (option.show)(self),
            bounds: (option.bounds)(),
        };
        Self::OPTIONS.iter().map(help).collect()
    }
}

/// The error for value `text` of option `key` of `name`. If the error begins with the value, the key is
/// joined to it.
fn refusal(key: &str, name: &str, text: &str, error: &SpecError) -> SpecError {
    let error = error.to_string();
    SpecError::new(match error.strip_prefix(text).and_then(|rest| rest.strip_prefix(" is ")) {
        Some(rest) => format!("{key}={text} of {name} is {rest}"),
        None => format!("{key} of {name}: {error}"),
    })
}

/// The options of a name that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NoOptions;

impl Declared for NoOptions {
    const OPTIONS: &'static [Opt<NoOptions>] = &[];
}

/// An option as lists and help show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionHelp {
    /// The key in `key=value`.
    pub key: &'static str,
    /// A short description of the option.
    pub about: &'static str,
    /// The notation of a value.
    pub written: &'static str,
    /// The value that is used if the option is not given.
    pub default: String,
    /// The least and the greatest accepted value, if the option has bounds.
    pub bounds: Option<(String, String)>,
}

/// `name:options`, or the name alone if `options` is empty.
pub fn with_name(name: &str, options: &str) -> String {
    if options.is_empty() { name.to_owned() } else { format!("{name}:{options}") }
}

/// One thing that can be chosen by name, and its constructor.
pub struct Entry<M: 'static> {
    /// Its name.
    pub name: &'static str,
    /// One line about it, without its options.
    pub about: &'static str,
    /// Its options, with their defaults.
    pub options: fn() -> Vec<OptionHelp>,
    /// Its constructor.
    pub make: M,
}

/// All things of one kind that can be chosen by name. The `registry()` of each kind returns it.
pub struct Registry<M: 'static> {
    /// The kind, for error sentences: `victim`.
    pub kind: &'static str,
    /// The things, in the order in which lists show them.
    pub entries: &'static [Entry<M>],
}

impl<M> Registry<M> {
    /// The entry called `name`. The error offers the nearest name.
    pub fn get(&self, name: &str) -> Result<&'static Entry<M>, SpecError> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            SpecError::unknown(self.kind, name, &names)
        })
    }

    /// Every name.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<M> {
        self.entries.iter().map(|entry| entry.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Cost {
        Copies,
        Both,
    }

    impl Choice for Cost {
        const NAMES: &'static [(&'static str, Cost)] = &[("u", Cost::Copies), ("1+u", Cost::Both)];
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Draw {
        choices: u32,
        cost: Cost,
    }

    const USUAL: Draw = Draw { choices: 10, cost: Cost::Copies };

    impl Declared for Draw {
        const OPTIONS: &'static [Opt<Draw>] = &[
            opt!("d", choices, COUNT, 1 => 1_000, "segments drawn"),
            opt!("cost", cost, Form::<Cost>::choice("u|1+u"), "what a victim costs"),
        ];
    }

    fn read(text: &str) -> Result<Draw, SpecError> {
        let mut spec = Spec::parse(text).unwrap();
        let draw = USUAL.with_options(&mut spec)?;
        spec.finish().map(|()| draw)
    }

    #[test]
    fn one_table_reads_and_writes_the_options() {
        let draw = read("draw:cost=1+u,d=1K").unwrap();
        assert_eq!(draw, Draw { choices: 1_000, cost: Cost::Both });
        assert_eq!(with_name("draw", &draw.options_beside(&USUAL)), "draw:d=1000,cost=1+u");
        // A default that is written out is still the default.
        assert_eq!(with_name("draw", &read("draw:d=10").unwrap().options_beside(&USUAL)), "draw");
    }

    #[test]
    fn refusals_name_the_option_and_what_would_do() {
        let sentence = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(sentence("draw:d=0"), "d=0 of draw is out of range; accepted: 1 to 1000");
        let unread = Draw { choices: 0, cost: Cost::Both }.check_bounds().unwrap_err();
        assert_eq!(unread.to_string(), "d: 0 is out of range; accepted: 1 to 1000");
        assert_eq!(
            sentence("draw:cost=v"),
            "cost of draw: unknown value `v`; did you mean `u`? (known: u 1+u)"
        );
        assert_eq!(sentence("draw:dd=1"), "unknown option of draw `dd`; did you mean `d`? (known: d cost)");
    }
}
