//! Synthetic workloads by name. Every generator is an endless iterator of one-page requests without
//! times, and a pure function of its spec, the number of pages and the seed: integers, IEEE 754 basic
//! arithmetic and `libm` only, so the stream is the same on every machine.
//!
//! To add one: a file here, a variant of [`Generator`], a row of `ENTRIES`.

mod alias;
mod power_sum;
mod scatter;
mod two_class;
mod zipf;

use crate::{Op, Request};
use fulgurite_base::{Prng, Share, Spec, SpecError, units};
use two_class::{Skew, TwoClass};
use zipf::Zipf;

/// A workload made up from a few parameters: an endless iterator of one-page requests at time zero.
#[derive(Clone, Debug)]
pub enum Generator {
    /// A hot and a cold class of pages, or one class of all pages.
    TwoClass(TwoClass),
    /// Popularity falls as a power of the rank.
    Zipf(Zipf),
}

/// Makes a generator from its options, the number of pages (at least one) and its randomness.
type Make = fn(&mut Spec, u64, Prng) -> Result<Generator, SpecError>;

/// A generator that can be asked for by name.
#[derive(Debug)]
pub struct Entry {
    /// Its name, as in `name:key=value`.
    pub name: &'static str,
    /// One line: what it does, and its options with their defaults.
    pub about: &'static str,
    make: Make,
}

static ENTRIES: [Entry; 5] = [
    Entry {
        name: "mixed-skewed",
        about: "half reads, 90% of requests to the first 10% of pages; write=50% hot_pages=10% hot_requests=90%",
        make: |spec, pages, prng| TwoClass::skewed(spec, Skew::write(50), pages, prng),
    },
    Entry {
        name: "write-intensive",
        about: "10% reads, 90% of requests to the first 10% of pages; write=90% hot_pages=10% hot_requests=90%",
        make: |spec, pages, prng| TwoClass::skewed(spec, Skew::write(90), pages, prng),
    },
    Entry {
        name: "read-intensive",
        about: "90% reads, 90% of requests to the first 10% of pages; write=10% hot_pages=10% hot_requests=90%",
        make: |spec, pages, prng| TwoClass::skewed(spec, Skew::write(10), pages, prng),
    },
    Entry {
        name: "mixed-uniform",
        about: "half reads, every page equally likely; write=50%",
        make: TwoClass::uniform,
    },
    Entry {
        name: "zipf",
        about: "page popularity falls as rank^-theta, popular pages scattered; theta=0.99 write=50%",
        make: Zipf::from_spec,
    },
];

/// Every generator, for lists and error messages.
pub fn names() -> &'static [Entry] {
    &ENTRIES
}

/// 2^48 pages: an exbibyte in pages of 4 KiB, and every page number is exact in an `f64`.
const MAX_PAGES: u64 = 1 << 48;

impl Generator {
    /// The generator that `spec` names, over the pages `0..pages`.
    ///
    /// Fails on an unknown name or option, a value out of range, and a number of pages that the
    /// generator cannot work with.
    pub fn from_spec(mut spec: Spec, pages: u64, seed: u64) -> Result<Generator, SpecError> {
        let Some(entry) = ENTRIES.iter().find(|entry| entry.name == spec.name()) else {
            return Err(SpecError::unknown("workload", spec.name(), &ENTRIES.each_ref().map(|e| e.name)));
        };
        if !(1..=MAX_PAGES).contains(&pages) {
            return Err(SpecError::new(format!(
                "pages of {}: {pages} is out of range; it must be from 1 to {MAX_PAGES}",
                entry.name
            )));
        }
        let generator = (entry.make)(&mut spec, pages, Prng::new(seed, "workload"))?;
        spec.finish()?;
        Ok(generator)
    }

    /// Whether every page is equally likely in every request, independently of all others: the case
    /// in which write amplification has a closed form.
    pub fn is_uniform_random(&self) -> bool {
        match self {
            Generator::TwoClass(generator) => generator.is_uniform(),
            Generator::Zipf(generator) => generator.is_uniform(),
        }
    }
}

impl Iterator for Generator {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        Some(match self {
            Generator::TwoClass(generator) => generator.request(),
            Generator::Zipf(generator) => generator.request(),
        })
    }
}

/// Takes an option that is a share of requests or pages; at most the whole.
fn take_share(spec: &mut Spec, key: &'static str, default: Share) -> Result<Share, SpecError> {
    let at_most_whole = |text: &str| {
        let share = units::parse_share(text)?;
        if share > Share::ONE {
            return Err(SpecError::new(format!(
                "`{text}` is more than the whole; write a share from 0% to 100%"
            )));
        }
        Ok(share)
    };
    Ok(spec.take_with(key, at_most_whole)?.unwrap_or(default))
}

/// A write with probability `write`, else a read.
#[inline]
fn draw_op(prng: &mut Prng, write: Share) -> Op {
    if prng.chance(write) { Op::Write } else { Op::Read }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(spec: &str, pages: u64, seed: u64) -> Result<Generator, SpecError> {
        Generator::from_spec(Spec::parse(spec).unwrap(), pages, seed)
    }

    fn sentence(spec: &str, pages: u64) -> String {
        make(spec, pages, 42).unwrap_err().to_string()
    }

    #[test]
    fn streams_are_pinned() {
        // Golden: these requests may never change, or every recorded result would.
        let golden = [
            ("mixed-skewed", "W49475 R96292 W38451 W76456 R69970 R46150 W67240 R67121"),
            ("write-intensive", "W49475 W96292 W38451 W76456 W69970 W46150 W67240 W67121"),
            ("read-intensive", "R49475 R96292 R38451 W76456 R69970 R46150 R67240 R67121"),
            ("mixed-uniform", "W494755 R962931 W384511 W764566 R699708 R461501 W672403 R671214"),
            ("zipf", "W482936 W778625 W798367 R832798 R992483 R116620 R472134 W180332"),
            ("zipf:theta=1.5", "W854102 W180332 W798367 R832798 R618035 R854102 R236067 W472134"),
        ];
        for (spec, expected) in golden {
            let first: Vec<String> = make(spec, 1_000_003, 42)
                .unwrap()
                .take(8)
                .map(|request| format!("{}{}", if request.op == Op::Read { 'R' } else { 'W' }, request.page))
                .collect();
            assert_eq!(first.join(" "), expected, "{spec}");
        }
    }

    #[test]
    fn every_name_makes_endless_one_page_requests_in_range() {
        for entry in names() {
            for request in make(entry.name, 17, 7).unwrap().take(2_000) {
                assert!(request.page < 17 && request.pages == 1, "{}: {request:?}", entry.name);
                assert_eq!(request.at, fulgurite_base::Nanos::ZERO);
            }
        }
    }

    #[test]
    fn the_description_names_every_option() {
        for entry in names() {
            let sentence = sentence(&format!("{}:no-such-option=1", entry.name), 1000);
            let known = sentence.split_once("(known: ").expect("options are listed").1.trim_end_matches(')');
            for option in known.split(' ') {
                assert!(entry.about.contains(&format!("{option}=")), "{} lacks {option}", entry.name);
            }
        }
    }

    #[test]
    fn uniform_is_recognised() {
        let uniform = |spec: &str| make(spec, 1000, 1).unwrap().is_uniform_random();
        assert!(uniform("mixed-uniform") && uniform("zipf:theta=0"));
        assert!(uniform("mixed-skewed:hot_pages=30%,hot_requests=30%"));
        assert!(!uniform("mixed-skewed") && !uniform("zipf") && !uniform("zipf:theta=0.001"));
    }

    #[test]
    fn what_cannot_be_made_is_named() {
        assert!(sentence("zpif", 10).starts_with("unknown workload `zpif`; did you mean `zipf`?"));
        assert_eq!(
            sentence("mixed-uniform", 0),
            "pages of mixed-uniform: 0 is out of range; it must be from 1 to 281474976710656"
        );
        assert!(sentence("zipf", u64::MAX).contains("is out of range"));
        assert!(sentence("mixed-uniform:hot_pages=10%", 10).contains("unknown option of mixed-uniform"));
        assert_eq!(
            sentence("zipf:write=101%", 10),
            "write of zipf: `101%` is more than the whole; write a share from 0% to 100%"
        );
    }
}
