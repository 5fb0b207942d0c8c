//! Fast division of page numbers by the sizes of a drive. The sizes are constant, so each division becomes a
//! multiplication.

/// Exact division of a `u32` by a fixed divisor, with a multiplication (Lemire, Kaser and Kurz, 2019).
#[derive(Clone, Copy, Debug)]
pub struct Divisor {
    divisor: u32,
    reciprocal: u64,
}

impl Divisor {
    /// Creates a divisor, which must not be zero.
    pub fn new(divisor: u32) -> Divisor {
        assert!(divisor > 0);
        Divisor { divisor, reciprocal: (u64::MAX / u64::from(divisor)).wrapping_add(1) }
    }

    /// Returns the divisor as a number.
    #[inline]
    pub fn divisor(self) -> u32 {
        self.divisor
    }

    /// Returns the quotient and the remainder of `n`.
    #[inline]
    pub fn divide(self, n: u32) -> (u32, u32) {
        // Treats 1 separately, since its reciprocal would be 2^64, which wraps to zero.
        if self.divisor == 1 {
            return (n, 0);
        }
        let quotient = ((u128::from(self.reciprocal) * u128::from(n)) >> 64) as u32;
        (quotient, n - quotient * self.divisor)
    }

    /// Returns the quotient of `n`, which is quick below 2^32.
    #[inline]
    pub fn quotient(self, n: u64) -> u64 {
        match u32::try_from(n) {
            Ok(n) => self.divide(n).0.into(),
            Err(_) => n / u64::from(self.divisor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn division_by_multiplication_is_exact(n: u32, divisor in 1u32..) {
            let by = Divisor::new(divisor);
            prop_assert_eq!((by.divisor(), by.divide(n)), (divisor, (n / divisor, n % divisor)));
        }

        #[test]
        fn long_numbers_are_divided_too(n: u64, shift in 0..64u32, divisor in 1u32..) {
            let n = n >> shift;
            prop_assert_eq!(Divisor::new(divisor).quotient(n), n / u64::from(divisor));
        }
    }
}
