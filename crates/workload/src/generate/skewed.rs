//! The skewed workloads, which have a hot and a cold class of pages, and the uniform workload.

use super::generator::Generator;
use super::recipe::{Recipe, Space};
use super::two_class::TwoClass;
use fulgurite_base::option::{COUNT, SHARE, YES_NO};
use fulgurite_base::{Declared, Opt, Share, SpecError, opt};

/// The options of the skewed workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkewConfig {
    /// The share of requests that write.
    pub write: Share,
    /// The share of pages that are hot; neither none nor all.
    pub hot_pages: Share,
    /// The share of requests that go to hot pages.
    pub hot_requests: Share,
    /// Whether requests carry the class of their page as a placement hint.
    pub hints: bool,
    /// The number of pages in a chain. These are pages requested one after the other, always the same ones
    /// after the same first page, like the pages of a record or of an index path. 1 means no chains.
    pub chain: u32,
}

impl SkewConfig {
    /// Returns the options for 90 % of the requests to 10 % of the pages, with this percentage of writes.
    pub fn write(percent: u32) -> SkewConfig {
        SkewConfig {
            write: Share::percent(percent),
            hot_pages: Share::percent(10),
            hot_requests: Share::percent(90),
            hints: false,
            chain: 1,
        }
    }
}

/// The least share above zero, and the greatest share below one.
const SOME: Share = Share::from_ppm(1);
const NOT_ALL: Share = Share::from_ppm(Share::ONE.ppm() - 1);

impl Declared for SkewConfig {
    const OPTIONS: &'static [Opt<SkewConfig>] = &[
        opt!("write", write, SHARE, Share::ZERO => Share::ONE, "requests that write"),
        opt!("hot_pages", hot_pages, SHARE, SOME => NOT_ALL, "pages that are hot"),
        opt!("hot_requests", hot_requests, SHARE, Share::ZERO => Share::ONE, "requests to hot pages"),
        opt!("hints", hints, YES_NO, "requests carry their class as a placement hint"),
        opt!(
            "chain", chain, COUNT, 1 => 1 << 16,
            "pages requested in a row, always the same ones after the same first page, so that their order can \
             be learnt"
        ),
    ];
}

impl Recipe for SkewConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        let SkewConfig { write, hot_pages, hot_requests, hints, chain } = *self;
        let Space { name, pages, .. } = space;
        let hot = hot_pages.of(pages);
        if !(SOME..=NOT_ALL).contains(&hot_pages) {
            return Err(SpecError::new(format!(
                "hot_pages of {name}: {hot_pages} leaves a class without pages; accepted: {SOME} to {NOT_ALL}"
            )));
        }
        if hot == 0 {
            let enough = u64::from(Share::ONE.ppm().div_ceil(hot_pages.ppm()));
            return Err(SpecError::new(format!(
                "pages of {name}: {pages} is too few for a hot class of {hot_pages}; at least {enough} are needed"
            )));
        }
        let prng = space.prng();
        let cold = pages - hot;
        Ok(Generator::two_class(TwoClass {
            write,
            hot_requests,
            hot,
            cold,
            hints,
            chain,
            left: 0,
            last: 0,
            prng,
        }))
    }

    fn writes_anything(&self) -> bool {
        self.write > Share::ZERO
    }

    /// Ignores that the hot class is rounded to whole pages.
    fn is_uniform_random(&self) -> bool {
        self.hot_pages == self.hot_requests && self.chain == 1
    }
}

/// The options of `mixed-uniform`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformConfig {
    /// The share of requests that write.
    pub write: Share,
}

impl Default for UniformConfig {
    fn default() -> UniformConfig {
        UniformConfig { write: Share::percent(50) }
    }
}

impl Declared for UniformConfig {
    const OPTIONS: &'static [Opt<UniformConfig>] =
        &[opt!("write", write, SHARE, Share::ZERO => Share::ONE, "requests that write")];
}

impl Recipe for UniformConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        Ok(Generator::two_class(TwoClass {
            write: self.write,
            hot_requests: Share::ONE,
            hot: space.pages,
            cold: 0,
            hints: false,
            chain: 1,
            left: 0,
            last: 0,
            prng: space.prng(),
        }))
    }

    fn writes_anything(&self) -> bool {
        self.write > Share::ZERO
    }

    fn is_uniform_random(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GeneratorConfig, Op};

    fn make(text: &str, pages: u64) -> Result<Generator, SpecError> {
        text.parse::<GeneratorConfig>()?.start(pages, 4096, 42)
    }

    /// Returns the number of writes and the number of requests to the first tenth of 1,000 pages, out of `n`
    /// requests.
    fn count(text: &str, n: usize) -> (f64, f64) {
        make(text, 1000).unwrap().take(n).fold((0.0, 0.0), |(writes, hot), request| {
            let is = |condition: bool| f64::from(u8::from(condition));
            (writes + is(request.op == Op::Write), hot + is(request.page < 100))
        })
    }

    #[test]
    fn shares_of_writes_and_hot_requests_hold() {
        let rows = [
            ("mixed-skewed", 0.5, 0.9),
            ("write-intensive", 0.9, 0.9),
            ("read-intensive", 0.1, 0.9),
            ("mixed-uniform", 0.5, 0.1),
            ("mixed-skewed:write=0%,hot_requests=70%", 0.0, 0.7),
            ("mixed-skewed:hot_requests=100%", 0.5, 1.0),
        ];
        for (text, write, hot) in rows {
            let n = 100_000;
            let (writes, hots) = count(text, n);
            for (seen, share) in [(writes, write), (hots, hot)] {
                let n = n as f64;
                let five_sigma = 5.0 * (n * share * (1.0 - share)).sqrt();
                assert!((seen - n * share).abs() <= five_sigma, "{text}: {seen} of {n}, expected {share}");
            }
        }
    }

    #[test]
    fn each_class_is_uniform() {
        let mut counts = [0f64; 20];
        let n = 400_000;
        for request in make("mixed-skewed", 20).unwrap().take(n) {
            counts[request.page as usize] += 1.0;
        }
        for (page, count) in counts.into_iter().enumerate() {
            let share = if page < 2 { 0.45 } else { 0.1 / 18.0 };
            let sigma = (n as f64 * share * (1.0 - share)).sqrt();
            assert!((count - n as f64 * share).abs() < 5.0 * sigma, "page {page}: {count}");
        }
    }

    #[test]
    fn a_chain_has_the_same_pages_after_the_same_page() {
        let requests: Vec<u64> =
            make("mixed-skewed:chain=4", 20_000).unwrap().take(40_000).map(|request| request.page).collect();
        let mut next = std::collections::BTreeMap::new();
        for chain in requests.chunks(4) {
            for pair in chain.windows(2) {
                assert_eq!(*next.entry(pair[0]).or_insert(pair[1]), pair[1]);
                assert!(pair[0].abs_diff(pair[1]) > 1 && (pair[0] < 2_000) == (pair[1] < 2_000));
            }
        }
        // The first page of each chain is random, so the last page of a chain does not determine it.
        let follows = requests.chunks(4).zip(requests.chunks(4).skip(1));
        let by_chance = follows.filter(|(chain, after)| next.get(&chain[3]) == Some(&after[0])).count();
        assert!(by_chance < 50, "{by_chance}");
        // A workload with chains of one page equals the workload without chains.
        let plain =
            |text| make(text, 1_000).unwrap().take(1_000).map(|request| request.page).collect::<Vec<_>>();
        assert_eq!(plain("mixed-skewed:chain=1"), plain("mixed-skewed"));
    }

    #[test]
    fn an_empty_class_is_an_error() {
        let sentence = |text, pages| make(text, pages).unwrap_err().to_string();
        assert_eq!(
            sentence("mixed-skewed", 9),
            "pages of mixed-skewed: 9 is too few for a hot class of 10%; at least 10 are needed"
        );
        assert!(make("mixed-skewed", 10).is_ok());
        assert_eq!(
            sentence("read-intensive:hot_pages=100%", 1000),
            "hot_pages=100% of read-intensive is out of range; accepted: 0.0001% to 99.9999%"
        );
        assert!(sentence("mixed-skewed:hot_pages=0%", 1000).contains("accepted: 0.0001% to"));
        assert!(make("mixed-skewed:hot_pages=99.9999%", 2).is_ok());
    }
}
