//! Declares the options of a configuration that is chosen by name, as in `name:key=value,key=value`. Each
//! option is declared once.
//!
//! A type with options implements [`Declared`]. Its table has one row for each option: the key, the notation
//! of its value, the bounds and the meaning. Parsing, error sentences, lists, help and the canonical text all
//! use that table, so none of them can miss an option.

use crate::units::{self, Portion, Share};
use crate::{Nanos, Spec, SpecError};

/// A form: the notation of the values of a type, and how a value is read and written.
pub struct Form<V: 'static> {
    /// The notation of a value, for help: `N`, `4KiB`, `yes|no`.
    pub written: &'static str,
    /// Reads a value from its text.
    pub parse: fn(&str) -> Result<V, SpecError>,
    /// Writes a value as `parse` reads it.
    pub show: fn(&V) -> String,
}

/// The form of a count that fits into 16 bits: `8`.
pub const COUNT_16: Form<u16> =
    Form { written: "N", parse: |text| narrow(text, u64::from(u16::MAX)), show: u16::to_string };
/// The form of a count that fits into 32 bits: `250K`.
pub const COUNT: Form<u32> =
    Form { written: "N", parse: |text| narrow(text, u64::from(u32::MAX)), show: u32::to_string };
/// The form of a count that fits into 64 bits: `8G`.
pub const COUNT_64: Form<u64> = Form { written: "N", parse: units::parse_count, show: u64::to_string };
/// The form of a size in bytes: `4KiB`.
pub const SIZE: Form<u64> =
    Form { written: "SIZE", parse: units::parse_size, show: |bytes| units::format_size(*bytes) };
/// The form of a share of a whole: `6%`.
pub const SHARE: Form<Share> = Form { written: "%", parse: units::parse_share, show: Share::to_string };
/// The form of a count, or of a share of a whole: `500`, `6%`, `1/3`.
pub const PORTION: Form<Portion> =
    Form { written: "N|%|1/N", parse: units::parse_portion, show: Portion::to_string };
/// The form of a time in microseconds: `5.95`.
pub const MICROS: Form<Nanos> =
    Form { written: "µs", parse: units::parse_micros, show: |time| units::format_micros(*time) };
/// The form of `yes` or `no`.
pub const YES_NO: Form<bool> = Form {
    written: "yes|no",
    parse: units::parse_yes_no,
    show: |yes| if *yes { "yes" } else { "no" }.to_owned(),
};

fn narrow<V: TryFrom<u64>>(text: &str, most: u64) -> Result<V, SpecError> {
    V::try_from(units::parse_count(text)?)
        .map_err(|_| SpecError::new(format!("`{text}` is too large; accepted: at most {most}")))
}

/// A type with a few named values.
pub trait Choice: Copy + PartialEq + 'static {
    /// All values, each with its name.
    const NAMES: &'static [(&'static str, Self)];
}

impl<V: Choice> Form<V> {
    /// Returns the form of a type with a few named values; `written` lists the names: `u|1+u`.
    pub const fn choice(written: &'static str) -> Form<V> {
        Form { written, parse: parse_choice, show: |value| name_of(*value).to_owned() }
    }
}

/// Returns the value with the name `text`.
pub fn parse_choice<V: Choice>(text: &str) -> Result<V, SpecError> {
    let found = V::NAMES.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = V::NAMES.iter().map(|(name, _)| *name).collect();
        SpecError::unknown("value", text, &names)
    })
}

/// Returns the name of a value.
pub fn name_of<V: Choice>(value: V) -> &'static str {
    V::NAMES.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

impl<V: PartialOrd> Form<V> {
    /// Reads a value and refuses it if it is outside `least..=most`.
    pub fn parse_within(&self, text: &str, least: &V, most: &V) -> Result<V, SpecError> {
        let value = (self.parse)(text)?;
        if value < *least || value > *most {
            let (least, most) = ((self.show)(least), (self.show)(most));
            return Err(SpecError::new(format!("{text} is out of range; accepted: {least} to {most}")));
        }
        Ok(value)
    }
}

/// The declaration of one option of a type `T`, made by [`opt!`](crate::opt).
pub struct Opt<T: 'static> {
    /// The key in `key=value`.
    pub key: &'static str,
    /// A short description of the option.
    pub about: &'static str,
    /// The notation of a value.
    pub written: &'static str,
    /// Returns the least and the greatest accepted value as text; `None` if every value of the form is
    /// accepted.
    pub bounds: fn() -> Option<(String, String)>,
    /// Reads the option's value from text and stores it in a `T`.
    pub set: fn(&mut T, &str) -> Result<(), SpecError>,
    /// Returns the option's value in a `T`, as text.
    pub show: fn(&T) -> String,
}

/// Declares one option: `opt!("d", choices, COUNT, 1 => 1000, "how many are drawn")`. The arguments are the
/// key, the field, the form, the bounds (optional) and the description. The field may be nested
/// (`collect.reserve`).
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
    /// The declarations of all options.
    const OPTIONS: &'static [Opt<Self>];

    /// Takes the declared options out of `spec` and returns this value with them applied. Each option is
    /// checked against its bounds; the caller must check combinations of options.
    fn with_options(mut self, spec: &mut Spec) -> Result<Self, SpecError> {
        for option in Self::OPTIONS {
            if let Some(text) = spec.take_text(option.key) {
                (option.set)(&mut self, &text)
                    .map_err(|error| refusal(option.key, spec.name(), &text, &error))?;
            }
        }
        Ok(self)
    }

    /// Returns the options that differ from those of `usual`, as text: `d=4,window=2%`.
    fn options_beside(&self, usual: &Self) -> String {
        let shown =
            Self::OPTIONS.iter().map(|option| (option.key, (option.show)(self), (option.show)(usual)));
        let differing = shown.filter(|(_, own, usual)| own != usual);
        differing.map(|(key, own, _)| format!("{key}={own}")).collect::<Vec<_>>().join(",")
    }

    /// Refuses options outside their bounds, for a value that was not made from text.
    fn check_bounds(&self) -> Result<(), SpecError>
    where
        Self: Clone,
    {
        let bounded = Self::OPTIONS.iter().filter(|option| (option.bounds)().is_some());
        // Reading a value back from its text fails if the value is outside its bounds.
        bounded.map(|option| (option, (option.show)(self))).try_for_each(|(option, text)| {
            let refused = |error| SpecError::new(format!("{}: {error}", option.key));
            // Only the outcome of the check matters, so the value is set on a clone.
            (option.set)(&mut self.clone(), &text).map_err(refused)
        })
    }

    /// Returns the options as lists and help show them, with the values of `self` as defaults.
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

/// Returns the error for the value `text` of the option `key` of `name`. An error that begins with the value
/// then names the option as `key=value`.
fn refusal(key: &str, name: &str, text: &str, error: &SpecError) -> SpecError {
    let error = error.to_string();
    SpecError::new(match error.strip_prefix(text).and_then(|rest| rest.strip_prefix(" is ")) {
        Some(rest) => format!("{key}={text} of {name} is {rest}"),
        None => format!("{key} of {name}: {error}"),
    })
}

/// The options of a configuration that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NoOptions;

impl Declared for NoOptions {
    const OPTIONS: &'static [Opt<NoOptions>] = &[];
}

/// The description of an option in lists and help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionHelp {
    /// The key in `key=value`.
    pub key: &'static str,
    /// A short description of the option.
    pub about: &'static str,
    /// The notation of a value.
    pub written: &'static str,
    /// The value of the option if it is not given, as text.
    pub default: String,
    /// The least and the greatest accepted value as text; `None` if the option has no bounds.
    pub bounds: Option<(String, String)>,
}

/// Returns `name:options`, or the name alone if `options` is empty.
pub fn with_name(name: &str, options: &str) -> String {
    if options.is_empty() { name.to_owned() } else { format!("{name}:{options}") }
}

/// An entry of a registry: a configuration that can be chosen by name, with its constructor.
pub struct Entry<M: 'static> {
    /// The name by which the configuration is chosen.
    pub name: &'static str,
    /// One line of help about the configuration, without its options.
    pub about: &'static str,
    /// Returns the options of the configuration, with their defaults.
    pub options: fn() -> Vec<OptionHelp>,
    /// The constructor of the configuration.
    pub make: M,
}

/// All configurations of one kind that can be chosen by name. The method `registry()` of each kind returns
/// its registry.
pub struct Registry<M: 'static> {
    /// The name of the kind, for error sentences: `victim`.
    pub kind: &'static str,
    /// The entries, in the order in which lists show them.
    pub entries: &'static [Entry<M>],
}

impl<M> Registry<M> {
    /// Returns the entry with the name `name`. The error offers the nearest name.
    pub fn get(&self, name: &str) -> Result<&'static Entry<M>, SpecError> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            SpecError::unknown(self.kind, name, &names)
        })
    }

    /// Returns the names of all entries.
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
        // A default that is written out is still the default, so the canonical text omits it.
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
