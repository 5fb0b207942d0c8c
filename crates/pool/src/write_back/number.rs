//! The parameters in a write-back policy's options. A parameter that is not set follows from the drive or
//! from another parameter.

use fulgurite_base::{Form, SpecError, units};
use std::cmp::Ordering;

/// The most pages that are written together, which is the most commands that an NVMe queue holds.
pub(super) const MOST_TOGETHER: u32 = 1 << 16;

/// A parameter that is set, or follows from another value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Number {
    /// The parameter follows from the value that its option names, such as the write concurrency.
    #[default]
    Follows,
    /// The parameter is set to this number.
    Is(u32),
}

/// A parameter that follows from another value cannot be compared with one that is set.
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Is(own), Number::Is(other)) => Some(own.cmp(other)),
            _ => (self == other).then_some(Ordering::Equal),
        }
    }
}

impl Number {
    pub(super) fn or_else(self, follows: impl FnOnce() -> Result<u32, SpecError>) -> Result<u32, SpecError> {
        match self {
            Number::Is(number) => Ok(number),
            Number::Follows => follows(),
        }
    }
}

/// Declares a form for parameters that follow from `$word` if they are not set.
macro_rules! follows {
    ($form:ident, $word:literal) => {
        pub(super) const $form: Form<Number> = Form {
            written: concat!("N|", $word),
            parse: |text| match text {
                $word => Ok(Number::Follows),
                _ => {
                    let number = u32::try_from(units::parse_count(text)?).unwrap_or(u32::MAX);
                    Ok(Number::Is(number))
                }
            },
            show: |number| match number {
                Number::Follows => $word.to_owned(),
                Number::Is(number) => number.to_string(),
            },
        };
    };
}

follows!(K_W, "k_w");
follows!(TWICE_K_W, "2k_w");
follows!(N_W, "n_w");
follows!(TWICE_N_W, "2n_w");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_numbers_are_compared_and_unset_ones_only_equal_each_other() {
        assert!(Number::Is(2) < Number::Is(3) && Number::Is(3) <= Number::Is(3));
        assert_eq!(Number::Follows.partial_cmp(&Number::Follows), Some(Ordering::Equal));
        assert_eq!(Number::Follows.partial_cmp(&Number::Is(3)), None);
    }
}
