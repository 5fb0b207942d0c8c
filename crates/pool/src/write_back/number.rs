//! Numbers of a write-back policy that are given, or follow from the drive or from another number.

use fulgurite_base::{Form, SpecError, units};
use std::cmp::Ordering;

/// Pages written together at most: an NVMe queue holds no more commands.
pub(super) const MOST_TOGETHER: u32 = 1 << 16;

/// A number that is given, or follows from something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Number {
    /// It follows from something else; the option says from what.
    #[default]
    Follows,
    /// It is given.
    Is(u32),
}

/// A number that follows from something else cannot be compared with one that is given.
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

/// A form for numbers that follow from `$word` where they are not given.
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
    fn numbers_that_are_given_are_compared_and_one_that_follows_with_its_like_alone() {
        assert!(Number::Is(2) < Number::Is(3) && Number::Is(3) <= Number::Is(3));
        assert_eq!(Number::Follows.partial_cmp(&Number::Follows), Some(Ordering::Equal));
        assert_eq!(Number::Follows.partial_cmp(&Number::Is(3)), None);
    }
}
