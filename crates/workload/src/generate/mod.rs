//! Synthetic workloads by name. [`GeneratorConfig`] describes one and lists all of them. [`Generator`] is one at
//! work, an endless iterator of requests, most of one page and without times. It is a pure function of the
//! description, the pages and the seed. It uses integers, IEEE 754 basic arithmetic and `libm` only, so the
//! stream is the same on every machine.
//!
//! To add one: a file here, with a [`Recipe`] and a [`RequestSource`], and a line of `generators!`.

mod alias;
pub mod blocks;
mod bursts;
pub mod file_system;
pub mod irregular;
pub mod linkbench;
mod power_sum;
mod scatter;
pub mod switch;
pub mod sysbench;
mod tables;
pub mod timed;
pub mod tpcc;
pub mod two_class;
pub mod varmail;
pub mod ycsb;
pub mod zipf;

use crate::{Op, Request};
use file_system::append_only::AppendOnlyConfig;
use file_system::copy_on_write::CopyOnWriteConfig;
use file_system::journaling::JournalingConfig;
use file_system::log_structured::LogStructuredConfig;
use fulgurite_base::{Prng, Share, SpecError, config_enum};
use irregular::PhasesConfig;
use linkbench::LinkBenchConfig;
use std::fmt::Debug;
use switch::SwitchConfig;
use sysbench::SysbenchConfig;
use timed::{SyntheticConfig, TraceLikeConfig};
use tpcc::TpccConfig;
use two_class::{SkewConfig, TwoClass, UniformConfig};
use varmail::VarmailConfig;
use ycsb::{Letter, YcsbConfig, YcsbReadsConfig};
use zipf::{FioConfig, Zipf, ZipfConfig};

/// What a generator is started over.
#[derive(Clone, Copy, Debug)]
pub struct Space<'a> {
    /// The workload's name, for errors.
    pub name: &'a str,
    /// Pages, at least one.
    pub pages: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// The seed of all randomness.
    pub seed: u64,
}

impl Space<'_> {
    /// The stream that the requests are drawn from.
    pub fn prng(&self) -> Prng {
        Prng::new(self.seed, "workload")
    }

    /// Fails where there is no room for tables and their index pages.
    fn check_tables(&self) -> Result<(), SpecError> {
        let Space { name, pages, .. } = self;
        match *pages < 100 {
            true => Err(SpecError::new(format!(
                "pages of {name}: {pages} is too few for tables and index pages; accepted: at least 100"
            ))),
            false => Ok(()),
        }
    }
}

/// A workload as described. It tells the properties of its requests and starts a generator of them.
pub trait Recipe: Debug + Send + Sync {
    /// The generator over a space.
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError>;

    /// Whether any request can ever be a write or a trim.
    fn writes_anything(&self) -> bool;

    /// Whether writes or trims go on for ever, so that any number of them comes in time.
    fn keeps_writing(&self) -> bool {
        self.writes_anything()
    }

    /// Whether any request can ever be a trim.
    fn trims_anything(&self) -> bool {
        false
    }

    /// Whether any request can ever be a write of what another page holds, for which a drive must be able to share.
    fn shares_anything(&self) -> bool {
        false
    }

    /// The mean time between arrivals, in nanoseconds; none where requests have no times.
    fn mean_gap_ns(&self) -> Option<f64> {
        None
    }

    /// Whether every page is equally likely in every request, independently of all others: the case in which write
    /// amplification has a closed form.
    fn is_uniform_random(&self) -> bool {
        false
    }
}

/// A user's own workload, as a part of a description.
pub trait CustomGenerator: Recipe {
    /// The name.
    fn name(&self) -> &str;

    /// The canonical text: the name and the options that matter.
    fn text(&self) -> String {
        self.name().to_owned()
    }
}

/// A source of requests without end.
pub trait RequestSource: Debug + Send {
    /// The next request.
    fn request(&mut self) -> Request;
}

macro_rules! generators {
    ($($name:literal $variant:ident($config:ty $(= $usual:expr)?) $about:literal)*) => {
        config_enum! {
            /// The generated workloads by name, each with its options.
            pub enum GeneratorConfig: "workload", custom CustomGenerator;
            $($name $variant($config $(= $usual)?) $about)*
        }

        impl GeneratorConfig {
            fn recipe(&self) -> &dyn Recipe {
                match self {
                    $(GeneratorConfig::$variant(config) => config,)*
                    GeneratorConfig::Custom(custom) => &**custom,
                }
            }
        }
    };
}

// A new generator is a file and a line here.
generators! {
    "mixed-skewed" MixedSkewed(SkewConfig = SkewConfig::write(50)) "half reads, 90% of requests to the first 10% of pages"
    "write-intensive" WriteIntensive(SkewConfig = SkewConfig::write(90)) "10% reads, 90% of requests to the first 10% of pages"
    "read-intensive" ReadIntensive(SkewConfig = SkewConfig::write(10)) "90% reads, 90% of requests to the first 10% of pages"
    "mixed-uniform" MixedUniform(UniformConfig) "half reads, every page equally likely"
    "zipf" Zipf(ZipfConfig) "page popularity falls as rank^-theta, popular pages scattered"
    "tpcc" Tpcc(TpccConfig) "pages like those of TPC-C, or an engine's writes; not transactions (see bench)"
    "ycsb-a" YcsbA(YcsbConfig = YcsbConfig::new(Letter::A)) "pages like those of YCSB A, half updates, Zipf, or an engine's writes; not transactions (see bench)"
    "ycsb-b" YcsbB(YcsbConfig = YcsbConfig::new(Letter::B)) "pages like those of YCSB B, a twentieth updates; not transactions (see bench)"
    "ycsb-c" YcsbC(YcsbReadsConfig) "pages like those of YCSB C, reads alone; not transactions (see bench)"
    "ycsb-d" YcsbD(YcsbConfig = YcsbConfig::new(Letter::D)) "pages like those of YCSB D, reads of the latest, a twentieth inserts; not transactions (see bench)"
    "ycsb-e" YcsbE(YcsbConfig = YcsbConfig::new(Letter::E)) "pages like those of YCSB E, short scans, a twentieth inserts; not transactions (see bench)"
    "ycsb-f" YcsbF(YcsbConfig = YcsbConfig::new(Letter::F)) "pages like those of YCSB F, half read and then written; not transactions (see bench)"
    "fio-h" FioH(FioConfig = FioConfig { theta: 1.0 }) "writes alone, Zipf of 1.0"
    "fio-m" FioM(FioConfig = FioConfig { theta: 0.8 }) "writes alone, Zipf of 0.8"
    "fio-u" FioU(FioConfig = FioConfig { theta: 0.0 }) "writes alone, every page equally likely"
    "varmail" Varmail(VarmailConfig) "blocks of a mail server's files on a file system with a journal, writes alone"
    "journaling" Journaling(JournalingConfig) "blocks of a file system with a journal, after ext4: written twice, or shared from the journal (SHARE)"
    "log-structured" LogStructured(LogStructuredConfig) "blocks of a log-structured file system, after F2FS, with its cleaning and discards"
    "copy-on-write" CopyOnWrite(CopyOnWriteConfig) "blocks of a copy-on-write file system, after BTRFS: each change writes a path of its tree anew"
    "append-only" AppendOnly(AppendOnlyConfig) "blocks of a document store, after Couchbase's: appended to a file, whose compaction copies them or shares them (SHARE)"
    "alibaba-like" AlibabaLike(PhasesConfig = irregular::ALIBABA) "made up after a cloud volume: short intensive phases, writes alone"
    "exchange-like" ExchangeLike(PhasesConfig = irregular::EXCHANGE) "made up after a mail server: long phases, each of another kind, writes alone"
    "switch" Switch(SwitchConfig) "one workload, then another: switch:ycsb-a,tpcc@1.1G for 1.1 billion requests of the first"
    "linkbench" LinkBench(LinkBenchConfig) "pages like those of LinkBench's operations on a social graph; not transactions (see bench)"
    "sysbench-read-write" SysbenchReadWrite(SysbenchConfig = SysbenchConfig { reads: true, writes: true }) "pages like those of sysbench's OLTP: points, ranges, updates; not transactions (see bench)"
    "sysbench-read-only" SysbenchReadOnly(SysbenchConfig = SysbenchConfig { reads: true, writes: false }) "pages like those of sysbench's OLTP without its updates; not transactions (see bench)"
    "sysbench-write-only" SysbenchWriteOnly(SysbenchConfig = SysbenchConfig { reads: false, writes: true }) "pages like those of sysbench's OLTP without its points and ranges; not transactions (see bench)"
    "synthetic" Synthetic(SyntheticConfig) "timed: one size, Poisson arrivals"
    "financial-like" FinancialLike(TraceLikeConfig = TraceLikeConfig::new(timed::FINANCIAL)) "timed, synthetic, after a trace's row: 7.09 KB, 18.92% reads, 47.19/s"
    "cello-like" CelloLike(TraceLikeConfig = TraceLikeConfig::new(timed::CELLO)) "timed, synthetic, after a trace's row: 7.06 KB, 19.63% reads, 74.24/s"
    "tpch-like" TpchLike(TraceLikeConfig = TraceLikeConfig::new(timed::TPCH)) "timed, synthetic, after a trace's row: 31.62 KB, 91.80% reads, 172.73/s"
    "openmail-like" OpenmailLike(TraceLikeConfig = TraceLikeConfig::new(timed::OPENMAIL)) "timed, synthetic, after a trace's row: 9.49 KB, 63.30% reads, 846.62/s"
}

/// 2^48 pages: an exbibyte in pages of 4 KiB, and every page number is exact in an `f64`.
const MAX_PAGES: u64 = 1 << 48;

impl GeneratorConfig {
    /// The generator over the pages `0..pages` of `page_bytes` bytes.
    ///
    /// Fails on options that do not go together and on a number of pages that the workload cannot work with.
    pub fn start(&self, pages: u64, page_bytes: u32, seed: u64) -> Result<Generator, SpecError> {
        let name = self.name();
        if !(1..=MAX_PAGES).contains(&pages) {
            return Err(SpecError::new(format!(
                "pages={pages} of {name} is out of range; it must be from 1 to {MAX_PAGES}"
            )));
        }
        let generator = self.recipe().start(Space { name, pages, page_bytes, seed })?;
        // Sources do not know the mean gap; the description does.
        Ok(Generator { mean_gap_ns: self.mean_gap_ns(), ..generator })
    }

    /// Whether any request can ever be a write or a trim.
    pub fn writes_anything(&self) -> bool {
        self.recipe().writes_anything()
    }

    /// Whether any request can ever be a trim.
    pub fn trims_anything(&self) -> bool {
        self.recipe().trims_anything()
    }

    /// Whether any request can ever be a write of what another page holds ([`Request::copy_of`]).
    pub fn shares_anything(&self) -> bool {
        self.recipe().shares_anything()
    }

    /// Whether writes or trims go on for ever: a run that ends after a number of them ends only then.
    pub fn keeps_writing(&self) -> bool {
        self.recipe().keeps_writing()
    }

    /// The mean time between arrivals, in nanoseconds; none where requests have no times.
    pub fn mean_gap_ns(&self) -> Option<f64> {
        self.recipe().mean_gap_ns()
    }

    /// Whether requests have arrival times; without, they are all at time zero.
    pub fn is_timed(&self) -> bool {
        self.mean_gap_ns().is_some()
    }

    /// Whether every page is equally likely in every request, independently of all others: the case in which write
    /// amplification has a closed form.
    pub fn is_uniform_random(&self) -> bool {
        self.recipe().is_uniform_random()
    }
}

/// A workload at work: an endless iterator of requests.
#[derive(Debug)]
pub struct Generator {
    source: Source,
    mean_gap_ns: Option<f64>,
}

/// Counting runs draw hundreds of millions of requests from these two, so a call of them is compiled in place.
#[derive(Debug)]
enum Source {
    TwoClass(TwoClass),
    Zipf(Zipf),
    Other(Box<dyn RequestSource>),
}

impl Generator {
    /// A generator of the requests of `source`.
    pub fn new(source: impl RequestSource + 'static) -> Generator {
        Generator { source: Source::Other(Box::new(source)), mean_gap_ns: None }
    }

    fn two_class(source: TwoClass) -> Generator {
        Generator { source: Source::TwoClass(source), mean_gap_ns: None }
    }

    fn zipf(source: Zipf) -> Generator {
        Generator { source: Source::Zipf(source), mean_gap_ns: None }
    }

    /// The next request.
    #[inline]
    pub fn request(&mut self) -> Request {
        match &mut self.source {
            Source::TwoClass(source) => source.request(),
            Source::Zipf(source) => source.request(),
            Source::Other(source) => source.request(),
        }
    }

    /// Appends the next `count` requests.
    pub fn append(&mut self, requests: &mut Vec<Request>, count: usize) {
        // The source is told from the others once, not for each request.
        match &mut self.source {
            Source::TwoClass(source) => requests.extend((0..count).map(|_| source.request())),
            Source::Zipf(source) => requests.extend((0..count).map(|_| source.request())),
            Source::Other(source) => requests.extend((0..count).map(|_| source.request())),
        }
    }

    /// The mean time between arrivals, in nanoseconds; none where requests have no times.
    pub fn mean_gap_ns(&self) -> Option<f64> {
        self.mean_gap_ns
    }

    /// Whether requests have arrival times; without, they are all at time zero.
    pub fn is_timed(&self) -> bool {
        self.mean_gap_ns.is_some()
    }
}

impl Iterator for Generator {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        Some(self.request())
    }
}

/// A write with probability `write`, else a read.
#[inline]
fn draw_op(prng: &mut Prng, write: Share) -> Op {
    if prng.chance(write) { Op::Write } else { Op::Read }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_base::Registry;

    fn make(spec: &str, pages: u64, seed: u64) -> Result<Generator, SpecError> {
        spec.parse::<GeneratorConfig>()?.start(pages, 4096, seed)
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
        let own = GeneratorConfig::registry().names().filter(|name| *name != "switch");
        for name in own.chain(["switch:zipf,ycsb-d@100", "ycsb-a:blocks=yes", "tpcc:blocks=yes,dirty=1%"]) {
            let is_of_blocks =
                ["varmail", "blocks", "journaling", "log-structured", "copy-on-write", "append-only"];
            let pages = if is_of_blocks.iter().any(|part| name.contains(part)) { 14_217 } else { 217 };
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
    fn a_default_written_out_changes_no_text_and_another_value_does() {
        let Registry { kind, entries } = GeneratorConfig::registry();
        // A switch is not one without its two workloads.
        let at = entries.iter().position(|entry| entry.name == "switch").unwrap();
        for entries in [&entries[..at], &entries[at + 1..]] {
            Registry { kind, entries }.check_texts().unwrap();
        }
        let text = |text: &str| text.parse::<GeneratorConfig>().unwrap().to_string();
        assert_eq!(text("zipf:theta=1.0,write=50.0%"), "zipf:theta=1");
        assert_eq!(
            text("switch:zipf:theta=0.99,write=5%,ycsb-d:blocks=no@1K"),
            "switch:zipf:write=5%,ycsb-d@1000"
        );
        assert_eq!(text(&text("switch:zipf:write=5%,varmail@1K")), "switch:zipf:write=5%,varmail@1000");
    }

    #[test]
    fn what_never_writes_is_told_before_it_is_drawn() {
        let own = GeneratorConfig::registry().names().filter(|name| *name != "switch");
        let others = [
            "read-intensive:write=0%",
            "mixed-uniform:write=0%",
            "zipf:write=0%",
            "zipf:write=100%",
            "synthetic:read=100%",
            "synthetic:read=99%",
            "tpcc:transaction=order-status",
            "tpcc:transaction=stock-level",
            "tpcc:transaction=payment",
            "ycsb-b:blocks=yes",
            "switch:ycsb-c,zipf:write=0%@9",
            "switch:ycsb-c,zipf@9",
            "switch:zipf,ycsb-c@9",
            "switch:zipf,ycsb-c@0",
        ];
        for text in own.chain(others) {
            let config: GeneratorConfig = text.parse().unwrap();
            let mut generator = config.start(5_000, 4096, 5).unwrap();
            let mut writes =
                || generator.by_ref().take(50_000).filter(|request| request.op != Op::Read).count();
            assert_eq!(config.writes_anything(), writes() > 0, "{text}");
            assert_eq!(config.keeps_writing(), writes() > 0, "{text}");
            assert_eq!(config.is_timed(), config.start(5_000, 4096, 5).unwrap().is_timed(), "{text}");
        }
        // Without this an engine would be waited for without end.
        assert!(
            sentence("tpcc:transaction=order-status,blocks=yes", 100_000).contains("accepted: blocks=no")
        );
    }

    /// A workload of a user's own, which trims its pages one after the other.
    #[derive(Debug)]
    struct Sweep;

    impl Recipe for Sweep {
        fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
            #[derive(Debug)]
            struct Sweeping(std::iter::Cycle<std::ops::Range<u64>>);
            impl RequestSource for Sweeping {
                fn request(&mut self) -> Request {
                    Request::of_page(Op::Trim, self.0.next().expect("it goes on for ever"))
                }
            }
            Ok(Generator::new(Sweeping((0..space.pages).cycle())))
        }

        fn writes_anything(&self) -> bool {
            true
        }
    }

    impl CustomGenerator for Sweep {
        fn name(&self) -> &str {
            "sweep"
        }
    }

    #[test]
    fn a_description_may_hold_a_workload_of_the_users_own() {
        let config = GeneratorConfig::Custom(std::sync::Arc::new(Sweep));
        assert_eq!((config.name(), config.to_string().as_str()), ("sweep", "sweep"));
        let mut requests = Vec::new();
        config.start(2, 4096, 1).unwrap().append(&mut requests, 3);
        assert_eq!(requests, [0, 1, 0].map(|page| Request::of_page(Op::Trim, page)));
    }

    #[test]
    fn uniform_is_recognised() {
        let uniform = |spec: &str| spec.parse::<GeneratorConfig>().unwrap().is_uniform_random();
        assert!(uniform("mixed-uniform") && uniform("zipf:theta=0") && uniform("fio-u"));
        assert!(uniform("mixed-skewed:hot_pages=30%,hot_requests=30%"));
        assert!(!uniform("mixed-skewed") && !uniform("zipf") && !uniform("zipf:theta=0.001"));
    }

    #[test]
    fn what_cannot_be_made_is_named() {
        assert!(sentence("zpif", 10).starts_with("unknown workload `zpif`; did you mean `zipf`?"));
        assert_eq!(
            sentence("mixed-uniform", 0),
            "pages=0 of mixed-uniform is out of range; it must be from 1 to 281474976710656"
        );
        assert!(sentence("zipf", u64::MAX).contains("is out of range"));
        assert!(sentence("mixed-uniform:hot_pages=10%", 10).contains("unknown option of mixed-uniform"));
        assert_eq!(
            sentence("zipf:write=101%", 10),
            "write=101% of zipf is out of range; accepted: 0% to 100%"
        );
    }
}
