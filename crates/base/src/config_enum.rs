//! The macro `config_enum!`, which defines the enum of one kind of configuration that is chosen by name, such
//! as replacement policies. Its input is a table with one row for each name.

use crate::{Entry, Registry, Spec, SpecError};

impl<T> Registry<fn(&mut Spec) -> Result<T, SpecError>> {
    /// Reads the configuration that `spec` names, with its options. Fails on an unknown name, an unknown
    /// option, and a value that the option does not accept.
    pub fn read(&self, mut spec: Spec) -> Result<T, SpecError> {
        let config = (self.get(spec.name())?.make)(&mut spec)?;
        spec.finish()?;
        Ok(config)
    }
}

impl<T: std::fmt::Display> Registry<fn(&mut Spec) -> Result<T, SpecError>> {
    /// Checks every name of the registry and each of its options, for tests. Writing out a default must not
    /// change the canonical text, another value must change it, and the text must read back as the same
    /// configuration.
    pub fn check_texts(&self) -> Result<(), String> {
        const VALUES: [&str; 12] = ["1", "2", "3", "4", "7", "16", "1%", "37%", "99%", "4KiB", "0.5", "9999"];
        let text = |name: &str| -> Result<String, String> {
            let read = |text: &str| Ok(self.read(Spec::parse(text)?)?.to_string());
            let text = read(name).map_err(|error: SpecError| format!("{name}: {error}"))?;
            match read(&text) {
                Ok(again) if again == text => Ok(text),
                again => Err(format!("{name} is written {text} and read back as {again:?}")),
            }
        };
        for Entry { name, options, .. } in self.entries {
            if text(name)? != *name {
                return Err(format!("{name} without options is written {}", text(name)?));
            }
            for option in options() {
                let with = |value: &str| text(&format!("{name}:{}={value}", option.key));
                if with(&option.default)? != *name {
                    return Err(format!("{name}: the default of {} changes the text", option.key));
                }
                // An option that accepts a single value cannot change the canonical text, so it is skipped.
                if option.bounds.as_ref().is_some_and(|(least, most)| least == most) {
                    continue;
                }
                // The option may refuse some of the trial values; one accepted value that changes the text is
                // enough.
                let values = VALUES.into_iter().chain(option.written.split('|'));
                if !values.filter_map(|value| with(value).ok()).any(|text| text != *name) {
                    return Err(format!("{name}: no value of {} changes the text", option.key));
                }
            }
        }
        Ok(())
    }
}

/// Defines the enum of one kind of configuration that is chosen by name.
///
/// ```ignore
/// config_enum! {
///     /// Replacement policies by name.
///     pub enum ReplacementConfig: "replacement", custom CustomReplacement;
///     "lru" Lru(NoOptions) "the page that was used least recently"
///     "clock" Clock(ClockConfig) "a hand that takes one use away"
/// }
/// ```
///
/// A row of the table has the name, the variant, the type of its options (a [`Declared`](crate::Declared)
/// type) and one line of help. The defaults of the options are those of `Default`, or the value after `=`:
/// `Skewed(SkewConfig = SkewConfig::new(90))`.
///
/// The enum gets `registry()`, `from_spec()`, `FromStr`, `name()`, and a `Display` that writes the canonical
/// text. Its variant `Custom` holds a user's own policy as an `Arc<dyn CustomReplacement>`. That trait must
/// have the methods `name(&self) -> &str` and `text(&self) -> String`, which returns the canonical text.
/// Without `, custom CustomReplacement`, the enum has no such variant.
#[macro_export]
macro_rules! config_enum {
    (
        $(#[$doc:meta])*
        pub enum $config:ident: $kind:literal $(, custom $custom:ident)?;
        $($name:literal $variant:ident($options:ty $(= $usual:expr)?) $about:literal)*
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub enum $config {
            $(#[doc = $about] $variant($options),)*
            $(
                /// The configuration is the user's own.
                Custom(std::sync::Arc<dyn $custom>),
            )?
        }

        impl $config {
            /// Returns the registry of all names of this kind.
            pub fn registry()
            -> &'static $crate::Registry<fn(&mut $crate::Spec) -> Result<$config, $crate::SpecError>> {
                type Make = fn(&mut $crate::Spec) -> Result<$config, $crate::SpecError>;
                static REGISTRY: $crate::Registry<Make> = $crate::Registry {
                    kind: $kind,
                    entries: &[$($crate::Entry {
                        name: $name,
                        about: $about,
                        options: || {
                            let usual = $crate::config_enum!(@usual $options $(, $usual)?);
                            $crate::Declared::describe_options(&usual)
                        },
                        make: |spec| {
                            let usual = $crate::config_enum!(@usual $options $(, $usual)?);
                            Ok($config::$variant($crate::Declared::with_options(usual, spec)?))
                        },
                    },)*],
                };
                &REGISTRY
            }

            /// Reads the configuration that `spec` names, with its options.
            pub fn from_spec(spec: $crate::Spec) -> Result<$config, $crate::SpecError> {
                Self::registry().read(spec)
            }

            /// Returns the name of the configuration, without its options.
            pub fn name(&self) -> &str {
                match self {
                    $($config::$variant(_) => $name,)*
                    $($config::Custom(custom) => $crate::config_enum!(@text $custom, custom.name()),)?
                }
            }
        }

        impl std::str::FromStr for $config {
            type Err = $crate::SpecError;

            fn from_str(text: &str) -> Result<$config, $crate::SpecError> {
                Self::from_spec($crate::Spec::parse(text)?)
            }
        }

        /// Writes the canonical text: the name, and those options that differ from their defaults.
        impl std::fmt::Display for $config {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let text = match self {
                    $($config::$variant(options) => {
                        let usual = $crate::config_enum!(@usual $options $(, $usual)?);
                        $crate::option::with_name($name, &$crate::Declared::options_beside(options, &usual))
                    })*
                    $($config::Custom(custom) => $crate::config_enum!(@text $custom, custom.text()),)?
                };
                f.write_str(&text)
            }
        }
    };
    (@text $custom:ident, $text:expr) => { $text };
    (@usual $options:ty) => { <$options as Default>::default() };
    (@usual $options:ty, $usual:expr) => { $usual };
}
