//! Synthetic workloads by name. Every generator is an endless iterator of requests, most of one page and
//! without times, and a pure function of its spec, the pages and the seed: integers, IEEE 754 basic
//! arithmetic and `libm` only, so the stream is the same on every machine.
//!
//! To add one: a file here, a variant of [`Generator`], a row of `ENTRIES`.

mod alias;
mod blocks;
mod irregular;
mod linkbench;
mod power_sum;
mod scatter;
mod switch;
mod sysbench;
mod tables;
mod timed;
mod tpcc;
mod two_class;
mod varmail;
mod ycsb;
mod zipf;

use crate::{Op, Request};
use blocks::Blocks;
use fulgurite_base::{Prng, Share, Spec, SpecError, units};
use irregular::Irregular;
use linkbench::LinkBench;
use switch::Switch;
use sysbench::Sysbench;
use timed::Timed;
use tpcc::Tpcc;
use two_class::{Skew, TwoClass};
use varmail::Varmail;
use ycsb::{Letter, Ycsb};
use zipf::Zipf;

/// A workload made up from a few parameters: an endless iterator of requests.
#[derive(Clone, Debug)]
pub enum Generator {
    /// A hot and a cold class of pages, or one class of all pages.
    TwoClass(TwoClass),
    /// Popularity falls as a power of the rank.
    Zipf(Zipf),
    /// Requests arrive at times of their own, and have sizes.
    Timed(Timed),
    /// TPC-C's transactions, as pages.
    Tpcc(Box<Tpcc>),
    /// LinkBench's operations, as pages.
    LinkBench(Box<LinkBench>),
    /// sysbench's OLTP transactions, as pages.
    Sysbench(Box<Sysbench>),
    /// YCSB's operations, as pages.
    Ycsb(Box<Ycsb>),
    /// What an engine writes for any of these.
    Blocks(Box<Blocks>),
    /// A mail server's blocks.
    Varmail(Box<Varmail>),
    /// Phases, each of another kind.
    Irregular(Box<Irregular>),
    /// One workload, then another.
    Switch(Box<Switch>),
}

/// What a generator is made from besides its options.
struct Make {
    /// Pages, at least one.
    pages: u64,
    page_bytes: u32,
    seed: u64,
}

impl Make {
    /// The stream that the requests are drawn from.
    fn prng(&self) -> Prng {
        Prng::new(self.seed, "workload")
    }
}

/// A generator that can be asked for by name.
#[derive(Debug)]
pub struct Entry {
    /// Its name, as in `name:key=value`.
    pub name: &'static str,
    /// One line: what it does, and its options with their defaults.
    pub about: &'static str,
    make: fn(&mut Spec, Make) -> Result<Generator, SpecError>,
}

const fn entry(
    name: &'static str,
    about: &'static str,
    make: fn(&mut Spec, Make) -> Result<Generator, SpecError>,
) -> Entry {
    Entry { name, about, make }
}

static ENTRIES: [Entry; 28] = [
    Entry {
        name: "mixed-skewed",
        about: "half reads, 90% of requests to the first 10% of pages; write=50% hot_pages=10% hot_requests=90% hints=no",
        make: |spec, make| TwoClass::skewed(spec, Skew::write(50), make),
    },
    Entry {
        name: "write-intensive",
        about: "10% reads, 90% of requests to the first 10% of pages; write=90% hot_pages=10% hot_requests=90% hints=no",
        make: |spec, make| TwoClass::skewed(spec, Skew::write(90), make),
    },
    Entry {
        name: "read-intensive",
        about: "90% reads, 90% of requests to the first 10% of pages; write=10% hot_pages=10% hot_requests=90% hints=no",
        make: |spec, make| TwoClass::skewed(spec, Skew::write(10), make),
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
    Entry {
        name: "tpcc",
        about: "pages of TPC-C's transactions; transaction=mix|new-order|payment|order-status|stock-level|delivery blocks=no dirty=10%",
        make: |spec, make| Blocks::wrap(spec, make, Tpcc::from_spec),
    },
    entry(
        "ycsb-a",
        "YCSB A, half updates, Zipf: pages, or an engine's writes; blocks=no dirty=10%",
        |spec, make| Blocks::wrap(spec, make, |_, make| Ycsb::generator(Letter::A, make)),
    ),
    entry("ycsb-b", "YCSB B, a twentieth updates; blocks=no dirty=10%", |spec, make| {
        Blocks::wrap(spec, make, |_, make| Ycsb::generator(Letter::B, make))
    }),
    entry("ycsb-c", "YCSB C, reads alone", |_, make| Ycsb::generator(Letter::C, make)),
    entry("ycsb-d", "YCSB D, reads of the latest, a twentieth inserts; blocks=no dirty=10%", |spec, make| {
        Blocks::wrap(spec, make, |_, make| Ycsb::generator(Letter::D, make))
    }),
    entry("ycsb-e", "YCSB E, short scans, a twentieth inserts; blocks=no dirty=10%", |spec, make| {
        Blocks::wrap(spec, make, |_, make| Ycsb::generator(Letter::E, make))
    }),
    entry("ycsb-f", "YCSB F, half read and then written; blocks=no dirty=10%", |spec, make| {
        Blocks::wrap(spec, make, |_, make| Ycsb::generator(Letter::F, make))
    }),
    Entry { name: "fio-h", about: "writes alone, Zipf of 1.0", make: |_, make| Ok(Zipf::writes(make, 1.0)) },
    Entry { name: "fio-m", about: "writes alone, Zipf of 0.8", make: |_, make| Ok(Zipf::writes(make, 0.8)) },
    Entry {
        name: "fio-u",
        about: "writes alone, every page equally likely",
        make: |_, make| Ok(Zipf::writes(make, 0.0)),
    },
    Entry {
        name: "varmail",
        about: "blocks of a mail server's files on a file system with a journal, writes alone",
        make: Varmail::from_spec,
    },
    Entry {
        name: "alibaba-like",
        about: "made up after a cloud volume: short intensive phases, writes alone",
        make: |_, make| Irregular::generator(irregular::ALIBABA, make),
    },
    Entry {
        name: "exchange-like",
        about: "made up after a mail server: long phases, each of another kind, writes alone",
        make: |_, make| Irregular::generator(irregular::EXCHANGE, make),
    },
    Entry {
        name: "switch",
        about: "one workload, then another: switch:ycsb-a,tpcc@1.1G for 1.1 billion requests of the first",
        make: Switch::from_spec,
    },
    Entry {
        name: "linkbench",
        about: "pages of LinkBench's operations on a social graph, without an engine",
        make: LinkBench::from_spec,
    },
    Entry {
        name: "sysbench-read-write",
        about: "pages of sysbench's OLTP transactions, without an engine: points, ranges, updates",
        make: |_, make| Sysbench::generator(make, true, true),
    },
    Entry {
        name: "sysbench-read-only",
        about: "the same without the updates",
        make: |_, make| Sysbench::generator(make, true, false),
    },
    Entry {
        name: "sysbench-write-only",
        about: "the same without points and ranges",
        make: |_, make| Sysbench::generator(make, false, true),
    },
    Entry {
        name: "synthetic",
        about: "timed: one size, Poisson arrivals; size=32KiB interval_us=3000 sequential=40% read=40% footprint=100%",
        make: Timed::synthetic,
    },
    Entry {
        name: "financial-like",
        about: "timed, synthetic, after a trace's row: 7.09 KB, 18.92% reads, 47.19/s; bursty=0.14% burst_gap_us=500 sequential=10% footprint=100%",
        make: |spec, make| timed::FINANCIAL.make(spec, make),
    },
    Entry {
        name: "cello-like",
        about: "timed, synthetic, after a trace's row: 7.06 KB, 19.63% reads, 74.24/s; bursty=31.32% burst_gap_us=500 sequential=10% footprint=100%",
        make: |spec, make| timed::CELLO.make(spec, make),
    },
    Entry {
        name: "tpch-like",
        about: "timed, synthetic, after a trace's row: 31.62 KB, 91.80% reads, 172.73/s; bursty=11.29% burst_gap_us=500 sequential=60% footprint=100%",
        make: |spec, make| timed::TPCH.make(spec, make),
    },
    Entry {
        name: "openmail-like",
        about: "timed, synthetic, after a trace's row: 9.49 KB, 63.30% reads, 846.62/s; bursty=0.01% burst_gap_us=500 sequential=10% footprint=100%",
        make: |spec, make| timed::OPENMAIL.make(spec, make),
    },
];

/// Every generator, for lists and error messages.
pub fn names() -> &'static [Entry] {
    &ENTRIES
}

/// 2^48 pages: an exbibyte in pages of 4 KiB, and every page number is exact in an `f64`.
const MAX_PAGES: u64 = 1 << 48;

impl Generator {
    /// The generator that `spec` names, over the pages `0..pages` of `page_bytes` bytes.
    ///
    /// Fails on an unknown name or option, a value out of range, and a number of pages that the
    /// generator cannot work with.
    pub fn from_spec(mut spec: Spec, pages: u64, page_bytes: u32, seed: u64) -> Result<Generator, SpecError> {
        let Some(entry) = ENTRIES.iter().find(|entry| entry.name == spec.name()) else {
            return Err(SpecError::unknown("workload", spec.name(), &ENTRIES.each_ref().map(|e| e.name)));
        };
        if !(1..=MAX_PAGES).contains(&pages) {
            return Err(SpecError::new(format!(
                "pages of {}: {pages} is out of range; it must be from 1 to {MAX_PAGES}",
                entry.name
            )));
        }
        let generator = (entry.make)(&mut spec, Make { pages, page_bytes, seed })?;
        spec.finish()?;
        Ok(generator)
    }

    /// Appends the next `count` requests.
    pub fn append(&mut self, requests: &mut Vec<Request>, count: usize) {
        // The generator is told from the others once, not for each request.
        match self {
            Generator::TwoClass(generator) => requests.extend((0..count).map(|_| generator.request())),
            Generator::Zipf(generator) => requests.extend((0..count).map(|_| generator.request())),
            other => requests.extend(other.by_ref().take(count)),
        }
    }

    /// Whether every page is equally likely in every request, independently of all others: the case
    /// in which write amplification has a closed form.
    pub fn is_uniform_random(&self) -> bool {
        match self {
            Generator::TwoClass(generator) => generator.is_uniform(),
            Generator::Zipf(generator) => generator.is_uniform(),
            _ => false,
        }
    }

    /// The mean time between arrivals, in nanoseconds; none where requests have no times.
    pub fn mean_gap_ns(&self) -> Option<f64> {
        match self {
            Generator::Timed(generator) => Some(generator.mean_gap_ns()),
            _ => None,
        }
    }

    /// Whether requests have arrival times; without, they are all at time zero.
    pub fn is_timed(&self) -> bool {
        matches!(self, Generator::Timed(_))
    }
}

impl Iterator for Generator {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        Some(match self {
            Generator::TwoClass(generator) => generator.request(),
            Generator::Zipf(generator) => generator.request(),
            Generator::Timed(generator) => generator.request(),
            Generator::Tpcc(generator) => generator.request(),
            Generator::LinkBench(generator) => generator.request(),
            Generator::Sysbench(generator) => generator.request(),
            Generator::Ycsb(generator) => generator.request(),
            Generator::Blocks(generator) => generator.request(),
            Generator::Varmail(generator) => generator.request(),
            Generator::Irregular(generator) => generator.request(),
            Generator::Switch(generator) => return generator.request(),
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
        Generator::from_spec(Spec::parse(spec).unwrap(), pages, 4096, seed)
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
            (
                "financial-like",
                "W962931 W962932@32243169 W667290+3@67024344 W679639+2@86332586 W679641+2@99432723 W910371+2@167728148 W20140+4@209887716 W175637@222205720",
            ),
            ("zipf:theta=1.5", "W854102 W180332 W798367 R832798 R618035 R854102 R236067 W472134"),
        ];
        for (spec, expected) in golden {
            let first: Vec<String> = make(spec, 1_000_003, 42)
                .unwrap()
                .take(8)
                .map(|request| {
                    let op = if request.op == Op::Read { 'R' } else { 'W' };
                    let at = if request.at.0 > 0 { format!("@{}", request.at.0) } else { String::new() };
                    let pages = if request.pages > 1 { format!("+{}", request.pages) } else { String::new() };
                    format!("{op}{}{pages}{at}", request.page)
                })
                .collect();
            assert_eq!(first.join(" "), expected, "{spec}");
        }
    }

    #[test]
    fn every_name_makes_endless_requests_in_range() {
        let own = names().iter().map(|entry| entry.name).filter(|name| *name != "switch");
        for name in own.chain(["switch:zipf,ycsb-d@100", "ycsb-a:blocks=yes", "tpcc:blocks=yes,dirty=1%"]) {
            let pages = if name == "varmail" || name.contains("blocks") { 4_217 } else { 217 };
            let generator = make(name, pages, 7).unwrap();
            let is_timed = generator.is_timed();
            let mut before = fulgurite_base::Nanos::ZERO;
            for request in generator.take(20_000) {
                let end = request.page + u64::from(request.pages);
                assert!(request.pages > 0 && end <= pages, "{}: {request:?}", name);
                assert!(request.at >= before && (is_timed || request.pages == 1), "{}: {request:?}", name);
                before = request.at;
            }
            assert_eq!(before > fulgurite_base::Nanos::ZERO, is_timed);
        }
    }

    #[test]
    fn transactions_read_and_write_as_specified() {
        let writes = |spec: &str| {
            let requests = make(spec, 100_000, 3).unwrap().take(200_000);
            requests.filter(|request| request.op == Op::Write).count() as f64 / 200_000.0
        };
        // Every row is reached through an index page, so writes are at most half of the accesses.
        assert_eq!(writes("tpcc:transaction=order-status") + writes("tpcc:transaction=stock-level"), 0.0);
        assert_eq!(writes("tpcc:transaction=delivery"), 0.5);
        // Ten lines on average, of each a read of the item and two writes; five more rows, three written.
        assert!((writes("tpcc:transaction=new-order") - 23.0 / 70.0).abs() < 0.003);
        assert_eq!((writes("sysbench-read-only"), writes("sysbench-write-only")), (0.0, 0.5));
        assert!(writes("sysbench-read-write") < 0.15 && writes("linkbench") > 0.1);
        // New orders go to pages of their own district: as many append points as districts.
        let distinct = |spec: &str| {
            let written: std::collections::BTreeSet<u64> = make(spec, 100_000, 3)
                .unwrap()
                .take(200_000)
                .filter(|request| request.op == Op::Write)
                .map(|request| request.page)
                .collect();
            written.len()
        };
        assert!(distinct("tpcc:transaction=payment") > 1_000);
    }

    #[test]
    fn an_engine_writes_each_dirty_page_once_in_a_while() {
        // Of 100,000 pages 1/64 are the log, 512 the doublewrite buffer, the others the data.
        let requests: Vec<Request> = make("ycsb-a:blocks=yes", 100_000, 3).unwrap().take(300_000).collect();
        assert!(requests.iter().all(|request| request.op == Op::Write));
        let part = |from: u64, to: u64| {
            requests.iter().filter(|request| (from..to).contains(&request.page)).count() as f64 / 300_000.0
        };
        let (log, doublewrite, data) = (part(0, 1_562), part(1_562, 2_074), part(2_074, 100_000));
        assert!(log > 0.01 && log < 0.2 && (doublewrite - data).abs() < 0.001, "{log} {doublewrite} {data}");
        // Data are written in units of four blocks.
        let first = requests.iter().position(|request| request.page >= 2_074).unwrap();
        let unit: Vec<u64> = requests[first..first + 4].iter().map(|request| request.page).collect();
        assert!(unit.windows(2).all(|two| two[1] == two[0] + 1) && (unit[0] - 2_074).is_multiple_of(4));
    }

    #[test]
    fn a_switch_is_one_workload_and_then_the_other() {
        let take = |spec: &str, n: usize| make(spec, 1_000, 3).unwrap().take(n).collect::<Vec<_>>();
        let mut expected = take("zipf:theta=1.2,write=5%", 50);
        expected.extend(take("varmail", 70));
        assert_eq!(take("switch:zipf:theta=1.2,write=5%,varmail@50", 120), expected);
        assert!(sentence("switch:zipf@50", 1_000).contains("switch:ycsb-a,tpcc@1.1G"));
        assert!(sentence("switch:zipf,financial-like@50", 1_000).contains("have times"));
    }

    #[test]
    fn hints_name_the_class() {
        for request in make("mixed-skewed:hints=yes", 1000, 1).unwrap().take(1_000) {
            assert_eq!(request.stream, u16::from(request.page < 100));
        }
        assert!(make("mixed-skewed", 1000, 1).unwrap().take(1_000).all(|request| request.stream == 0));
        assert!(sentence("mixed-skewed:hints=maybe", 1000).contains("neither yes nor no"));
    }

    #[test]
    fn the_description_names_every_option() {
        for entry in names().iter().filter(|entry| entry.name != "switch") {
            let sentence = sentence(&format!("{}:no-such-option=1", entry.name), 4_000);
            let Some((_, known)) = sentence.split_once("(known: ") else {
                assert!(sentence.contains("there are none"), "{sentence}");
                continue;
            };
            let known = known.trim_end_matches(')');
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
