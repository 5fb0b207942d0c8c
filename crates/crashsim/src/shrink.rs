//! Reduces a failing input to a smaller one that still fails.

/// Reduces `start` while `fails` returns true, with at most `most` attempts.
///
/// `simpler` returns the candidates of one step, the largest reductions first. The first candidate that fails
/// is taken, and the search continues from it. No candidate of the returned input fails, unless the attempts
/// ran out.
pub(crate) fn shrink<T>(
    start: T,
    simpler: impl Fn(&T) -> Vec<T>,
    mut fails: impl FnMut(&T) -> bool,
    mut most: u32,
) -> T {
    let mut smallest = start;
    // The next candidate that fails is likely near the last one, so each round continues from there.
    let mut from = 0;
    loop {
        let mut candidates = simpler(&smallest);
        let count = candidates.len();
        if count == 0 {
            return smallest;
        }
        candidates.rotate_left(from.min(count - 1));
        let mut found = None;
        for (at, candidate) in candidates.into_iter().enumerate() {
            if most == 0 {
                return smallest;
            }
            most -= 1;
            if fails(&candidate) {
                found = Some((at, candidate));
                break;
            }
        }
        let Some((at, candidate)) = found else { return smallest };
        from = (from.min(count - 1) + at) % count;
        smallest = candidate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all lists with one element removed.
    #[allow(clippy::ptr_arg)] // `shrink` requires this signature
    fn shorter(list: &Vec<u32>) -> Vec<Vec<u32>> {
        let without = |at: usize| {
            let mut list = list.clone();
            list.remove(at);
            list
        };
        (0..list.len()).map(without).collect()
    }

    #[test]
    fn only_the_cause_of_the_failure_remains() {
        let fails = |list: &Vec<u32>| list.contains(&3) && list.contains(&17);
        assert_eq!(shrink((0..20).collect(), shorter, fails, 10_000), [3, 17]);
    }

    #[test]
    fn attempts_are_bounded() {
        let mut attempts = 0;
        let smallest = shrink(
            (0..20).collect(),
            shorter,
            |_: &Vec<u32>| {
                attempts += 1;
                true
            },
            7,
        );
        assert_eq!((attempts, smallest.len()), (7, 13));
    }
}
