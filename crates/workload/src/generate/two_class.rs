//! Two classes of pages, hot and cold, each drawn from uniformly; with all pages in one class, the
//! uniform workload. Hot pages are the first ones. These are the synthetic workloads of Papon and
//! Athanassoulis, "ACEing the Bufferpool Management Paradigm for Modern Storage Devices", ICDE 2023:
//! mixed, write-intensive and read-intensive with a 90/10 skew, and mixed uniform.

use super::{Generator, Make, draw_op, take_share};
use crate::Request;
use fulgurite_base::{Prng, Share, Spec, SpecError, units};

/// A generator over a hot class, the pages `0..hot`, and a cold class, the `cold` pages behind it.
#[derive(Clone, Debug)]
pub struct TwoClass {
    write: Share,
    hot_requests: Share,
    hot: u64,
    /// Zero only where every request is hot.
    cold: u64,
    /// Requests carry their class as a placement hint: 1 for hot, 0 for cold.
    hints: bool,
    prng: Prng,
}

/// The defaults of a skewed workload.
pub(super) struct Skew {
    write: Share,
    hot_pages: Share,
    hot_requests: Share,
}

impl Skew {
    /// 90 % of requests on 10 % of the pages, with this percentage of writes.
    pub(super) fn write(percent: u32) -> Skew {
        Skew {
            write: Share::percent(percent),
            hot_pages: Share::percent(10),
            hot_requests: Share::percent(90),
        }
    }
}

impl TwoClass {
    /// A skewed workload, with the options `write`, `hot_pages`, `hot_requests` and `hints`.
    pub(super) fn skewed(spec: &mut Spec, defaults: Skew, make: Make) -> Result<Generator, SpecError> {
        let (prng, pages) = (make.prng(), make.pages);
        let write = take_share(spec, "write", defaults.write)?;
        let hot_pages = take_share(spec, "hot_pages", defaults.hot_pages)?;
        let hot_requests = take_share(spec, "hot_requests", defaults.hot_requests)?;
        let hints = spec.take_with("hints", units::parse_yes_no)?.unwrap_or(false);
        if hot_pages == Share::ZERO || hot_pages == Share::ONE {
            return Err(SpecError::new(format!(
                "hot_pages of {}: {hot_pages} leaves a class without pages; write more than 0% and less than 100%",
                spec.name()
            )));
        }
        let hot = hot_pages.of(pages);
        if hot == 0 {
            let enough = u64::from(Share::ONE.ppm().div_ceil(hot_pages.ppm()));
            return Err(SpecError::new(format!(
                "pages of {}: {pages} is too few for a hot class of {hot_pages}; at least {enough} are needed",
                spec.name()
            )));
        }
        Ok(Generator::TwoClass(TwoClass { write, hot_requests, hot, cold: pages - hot, hints, prng }))
    }

    /// The uniform workload, with the option `write`.
    pub(super) fn uniform(spec: &mut Spec, make: Make) -> Result<Generator, SpecError> {
        let (prng, pages) = (make.prng(), make.pages);
        let write = take_share(spec, "write", Share::percent(50))?;
        Ok(Generator::TwoClass(TwoClass {
            write,
            hot_requests: Share::ONE,
            hot: pages,
            cold: 0,
            hints: false,
            prng,
        }))
    }

    /// Whether the hot class gets exactly its share of pages in requests.
    pub(super) fn is_uniform(&self) -> bool {
        let whole = u128::from(Share::ONE.ppm());
        u128::from(self.hot_requests.ppm()) * u128::from(self.hot + self.cold) == u128::from(self.hot) * whole
    }

    #[inline]
    pub(super) fn request(&mut self) -> Request {
        let op = draw_op(&mut self.prng, self.write);
        let is_hot = self.prng.chance(self.hot_requests);
        let (first, pages) = if is_hot { (0, self.hot) } else { (self.hot, self.cold) };
        let stream = u16::from(self.hints && is_hot);
        Request { stream, ..Request::of_page(op, first + self.prng.below(pages)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    fn make(text: &str, pages: u64) -> Result<Generator, SpecError> {
        Generator::from_spec(Spec::parse(text).unwrap(), pages, 4096, 42)
    }

    /// The number of writes and of requests to the first tenth of 1,000 pages, out of `n`.
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
    fn an_empty_class_is_an_error() {
        let sentence = |text, pages| make(text, pages).unwrap_err().to_string();
        assert_eq!(
            sentence("mixed-skewed", 9),
            "pages of mixed-skewed: 9 is too few for a hot class of 10%; at least 10 are needed"
        );
        assert!(make("mixed-skewed", 10).is_ok());
        assert_eq!(
            sentence("read-intensive:hot_pages=100%", 1000),
            "hot_pages of read-intensive: 100% leaves a class without pages; write more than 0% and less than 100%"
        );
        assert!(sentence("mixed-skewed:hot_pages=0%", 1000).contains("leaves a class without pages"));
        assert!(make("mixed-skewed:hot_pages=99.9999%", 2).is_ok());
    }
}
