//! From something that fails to something smaller that still fails.

/// Makes `start` smaller as long as `fails` says that it still fails, with at most `most` attempts.
///
/// `simpler` gives the candidates of one step, the greatest steps first. The first that fails is taken, and the search
/// begins again from it. What comes back has no candidate that fails, unless the attempts ran out.
pub fn shrink<T>(
    start: T,
    simpler: impl Fn(&T) -> Vec<T>,
    mut fails: impl FnMut(&T) -> bool,
    mut most: u32,
) -> T {
    let mut smallest = start;
    // Where the last step was found the next one is likely, so each round goes on from there.
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

    /// All lists with one element less.
    #[allow(clippy::ptr_arg)] // the signature that `shrink` calls
    fn shorter(list: &Vec<u32>) -> Vec<Vec<u32>> {
        let without = |at: usize| {
            let mut list = list.clone();
            list.remove(at);
            list
        };
        (0..list.len()).map(without).collect()
    }

    #[test]
    fn what_matters_stays_and_the_rest_goes() {
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
