//! The registry of generated workloads by name, and `switch`, which runs one workload and then another.

use super::file_system::append_only::AppendOnlyConfig;
use super::file_system::copy_on_write::CopyOnWriteConfig;
use super::file_system::journaling::JournalingConfig;
use super::file_system::log_structured::LogStructuredConfig;
use super::flash_cache::FlashCacheConfig;
use super::generator::{Generator, RequestSource};
use super::irregular::{self, PhasesConfig};
use super::linkbench::LinkBenchConfig;
use super::lsm::LsmConfig;
use super::popular::{FioConfig, ZipfConfig};
use super::recipe::{Recipe, Space};
use super::skewed::{SkewConfig, UniformConfig};
use super::sysbench::SysbenchConfig;
use super::timed::{self, SyntheticConfig, TraceLikeConfig};
use super::tpcc::TpccConfig;
use super::varmail::VarmailConfig;
use super::ycsb::{Letter, YcsbConfig, YcsbReadsConfig};
use crate::Request;
use fulgurite_base::{Declared, Opt, OptionHelp, Spec, SpecError, config_enum, units};

macro_rules! generators {
    ($($name:literal $variant:ident($config:ty $(= $usual:expr)?) $about:literal)*) => {
        config_enum! {
            /// The generated workloads by name, each with its options.
            pub enum GeneratorConfig: "workload";
            $($name $variant($config $(= $usual)?) $about)*
        }

        impl GeneratorConfig {
            fn recipe(&self) -> &dyn Recipe {
                match self {
                    $(GeneratorConfig::$variant(config) => config,)*
                }
            }
        }
    };
}

// To add a generator, write its file and add its line here.
generators! {
    "mixed-skewed" MixedSkewed(SkewConfig = SkewConfig::write(50))
        "half reads, 90% of requests to the first 10% of pages"
    "write-intensive" WriteIntensive(SkewConfig = SkewConfig::write(90))
        "10% reads, 90% of requests to the first 10% of pages"
    "read-intensive" ReadIntensive(SkewConfig = SkewConfig::write(10))
        "90% reads, 90% of requests to the first 10% of pages"
    "mixed-uniform" MixedUniform(UniformConfig) "half reads, every page equally likely"
    "zipf" Zipf(ZipfConfig) "page popularity falls as rank^-theta, popular pages scattered"
    "tpcc" Tpcc(TpccConfig) "pages like those of TPC-C, or an engine's writes; not transactions (see bench)"
    "ycsb-a" YcsbA(YcsbConfig = YcsbConfig::new(Letter::A))
        "pages like those of YCSB A, half updates, Zipf, or an engine's writes; not transactions (see bench)"
    "ycsb-b" YcsbB(YcsbConfig = YcsbConfig::new(Letter::B))
        "pages like those of YCSB B, a twentieth updates; not transactions (see bench)"
    "ycsb-c" YcsbC(YcsbReadsConfig) "pages like those of YCSB C, only reads; not transactions (see bench)"
    "ycsb-d" YcsbD(YcsbConfig = YcsbConfig::new(Letter::D))
        "pages like those of YCSB D, reads of the latest, a twentieth inserts; not transactions (see bench)"
    "ycsb-e" YcsbE(YcsbConfig = YcsbConfig::new(Letter::E))
        "pages like those of YCSB E, short scans, a twentieth inserts; not transactions (see bench)"
    "ycsb-f" YcsbF(YcsbConfig = YcsbConfig::new(Letter::F))
        "pages like those of YCSB F, half read and then written; not transactions (see bench)"
    "fio-h" FioH(FioConfig = FioConfig { theta: 1.0 }) "only writes, Zipf of 1.0"
    "fio-m" FioM(FioConfig = FioConfig { theta: 0.8 }) "only writes, Zipf of 0.8"
    "fio-u" FioU(FioConfig = FioConfig { theta: 0.0 }) "only writes, every page equally likely"
    "varmail" Varmail(VarmailConfig) "blocks of a mail server's files on a file system with a journal, only writes"
    "journaling" Journaling(JournalingConfig)
        "blocks of a file system with a journal, after ext4: written twice, or shared from the journal (SHARE)"
    "log-structured" LogStructured(LogStructuredConfig)
        "blocks of a log-structured file system, after F2FS, with its cleaning and discards"
    "copy-on-write" CopyOnWrite(CopyOnWriteConfig)
        "blocks of a copy-on-write file system, after BTRFS: each change writes a path of its tree anew"
    "append-only" AppendOnly(AppendOnlyConfig)
        "blocks of a document store, after Couchbase's: appended to a file, whose compaction copies them or \
         shares them (SHARE)"
    "cachelib-like" CachelibLike(FlashCacheConfig)
        "pages of a cache on flash: small objects in random sets, large ones in a log, told apart by hints"
    "lsm-like" LsmLike(LsmConfig)
        "pages of sorted tables of several levels, whose lives differ, after RocksDB: written once, then trimmed"
    "alibaba-like" AlibabaLike(PhasesConfig = irregular::ALIBABA)
        "made up after a cloud volume: short intensive phases, only writes"
    "exchange-like" ExchangeLike(PhasesConfig = irregular::EXCHANGE)
        "made up after a mail server: long phases, each of another kind, only writes"
    "switch" Switch(SwitchConfig)
        "one workload, then another: switch:ycsb-a,tpcc@1.1G for 1.1 billion requests of the first"
    "linkbench" LinkBench(LinkBenchConfig)
        "pages like those of LinkBench's operations on a social graph; not transactions (see bench)"
    "sysbench-read-write" SysbenchReadWrite(SysbenchConfig = SysbenchConfig { reads: true, writes: true })
        "pages like those of sysbench's OLTP: points, ranges, updates; not transactions (see bench)"
    "sysbench-read-only" SysbenchReadOnly(SysbenchConfig = SysbenchConfig { reads: true, writes: false })
        "pages like those of sysbench's OLTP without its updates; not transactions (see bench)"
    "sysbench-write-only" SysbenchWriteOnly(SysbenchConfig = SysbenchConfig { reads: false, writes: true })
        "pages like those of sysbench's OLTP without its points and ranges; not transactions (see bench)"
    "synthetic" Synthetic(SyntheticConfig) "timed: one size, Poisson arrivals"
    "financial-like" FinancialLike(TraceLikeConfig = TraceLikeConfig::new(timed::FINANCIAL))
        "timed, synthetic, after a trace's row: 7.09 KB, 18.92% reads, 47.19/s"
    "cello-like" CelloLike(TraceLikeConfig = TraceLikeConfig::new(timed::CELLO))
        "timed, synthetic, after a trace's row: 7.06 KB, 19.63% reads, 74.24/s"
    "tpch-like" TpchLike(TraceLikeConfig = TraceLikeConfig::new(timed::TPCH))
        "timed, synthetic, after a trace's row: 31.62 KB, 91.80% reads, 172.73/s"
    "openmail-like" OpenmailLike(TraceLikeConfig = TraceLikeConfig::new(timed::OPENMAIL))
        "timed, synthetic, after a trace's row: 9.49 KB, 63.30% reads, 846.62/s"
}

/// The most pages of a workload, 2^48. In pages of 4 KiB they are an exbibyte. Every page number up to it is
/// exact in an `f64`.
const MAX_PAGES: u64 = 1 << 48;

impl GeneratorConfig {
    /// Starts the generator over the pages `0..pages`, each of `page_bytes` bytes.
    ///
    /// Fails if options contradict each other, or if the workload does not support this number of pages.
    pub fn start(&self, pages: u64, page_bytes: u32, seed: u64) -> Result<Generator, SpecError> {
        let name = self.name();
        if !(1..=MAX_PAGES).contains(&pages) {
            return Err(SpecError::new(format!(
                "pages={pages} of {name} is out of range; it must be from 1 to {MAX_PAGES}"
            )));
        }
        let generator = self.recipe().start(Space { name, pages, page_bytes, seed })?;
        // The mean gap between arrivals follows from the options, so it is set here and not by each source of
        // requests.
        Ok(generator.with_mean_gap_ns(self.mean_gap_ns()))
    }

    /// Whether any request can be a write or a trim.
    pub(crate) fn writes_anything(&self) -> bool {
        self.recipe().writes_anything()
    }

    /// Whether any request can be a trim.
    pub fn trims_anything(&self) -> bool {
        self.recipe().trims_anything()
    }

    /// Whether any request can be a write of another page's content ([`Request::copy_of`]).
    pub fn shares_anything(&self) -> bool {
        self.recipe().shares_anything()
    }

    /// Whether writes or trims never cease, so that a run that waits for a given number of writes ends.
    pub fn keeps_writing(&self) -> bool {
        self.recipe().keeps_writing()
    }

    /// The mean time between arrivals, in nanoseconds; `None` if requests have no times.
    pub fn mean_gap_ns(&self) -> Option<f64> {
        self.recipe().mean_gap_ns()
    }

    /// Whether requests have arrival times. Without them, all requests arrive at time zero.
    pub fn is_timed(&self) -> bool {
        self.mean_gap_ns().is_some()
    }

    /// Whether every page is equally likely in every request, independently of all other requests. In this
    /// case write amplification has a closed form.
    pub fn is_uniform_random(&self) -> bool {
        self.recipe().is_uniform_random()
    }
}

/// The options of `switch`, which are two workloads and the number of requests drawn from the first.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// The first workload.
    pub first: Box<GeneratorConfig>,
    /// The number of requests drawn from the first workload before the second one begins.
    pub after: u64,
    /// The second workload, which never ends.
    pub second: Box<GeneratorConfig>,
}

/// Returns a placeholder. It never serves requests, because a `switch` without workloads cannot be parsed.
impl Default for SwitchConfig {
    fn default() -> SwitchConfig {
        let fio = |theta| Box::new(GeneratorConfig::FioU(FioConfig { theta }));
        SwitchConfig { first: fio(0.0), after: 0, second: fio(0.0) }
    }
}

/// The whole text after the colon is one option: `switch` has no `key=value` options.
impl Declared for SwitchConfig {
    const OPTIONS: &'static [Opt<SwitchConfig>] = &[];

    fn with_options(self, spec: &mut Spec) -> Result<SwitchConfig, SpecError> {
        let text = spec.take_text(Spec::NESTED);
        let text =
            text.ok_or_else(|| SpecError::new("switch names no workloads; write switch:ycsb-a,tpcc@1.1G"))?;
        let refused = || {
            SpecError::new(format!(
                "`switch:{text}` is not a pair of workloads; write switch:ycsb-a,tpcc@1.1G"
            ))
        };
        let (workloads, after) = text.rsplit_once('@').ok_or_else(refused)?;
        let names = Spec::split_list(workloads)?;
        let [first, second] = names.as_slice() else { return Err(refused()) };
        let (first, second) = (Box::new(first.parse()?), Box::new(second.parse()?));
        Ok(SwitchConfig { first, after: units::parse_count(after)?, second })
    }

    fn options_beside(&self, _: &SwitchConfig) -> String {
        format!("{},{}@{}", self.first, self.second, self.after)
    }

    fn describe_options(&self) -> Vec<OptionHelp> {
        Vec::new()
    }
}

impl Recipe for SwitchConfig {
    fn start(&self, space: Space<'_>) -> Result<Generator, SpecError> {
        // Workloads with times are refused, because the times of the second workload would start from zero
        // again.
        if self.first.is_timed() || self.second.is_timed() {
            return Err(SpecError::new(
                "switch cannot use workloads that have times; accepted: those without, like zipf and ycsb-a",
            ));
        }
        let Space { pages, page_bytes, seed, .. } = space;
        let start = |config: &GeneratorConfig| config.start(pages, page_bytes, seed);
        Ok(Generator::new(Switch {
            first: start(&self.first)?,
            left: self.after,
            second: start(&self.second)?,
        }))
    }

    fn writes_anything(&self) -> bool {
        self.after > 0 && self.first.writes_anything() || self.second.writes_anything()
    }

    fn trims_anything(&self) -> bool {
        self.first.trims_anything() || self.second.trims_anything()
    }

    fn shares_anything(&self) -> bool {
        self.first.shares_anything() || self.second.shares_anything()
    }

    fn keeps_writing(&self) -> bool {
        self.second.keeps_writing()
    }
}

/// The generator of `switch`, which has two workloads and the number of requests that remain of the first.
#[derive(Debug)]
struct Switch {
    first: Generator,
    left: u64,
    second: Generator,
}

impl RequestSource for Switch {
    fn request(&mut self) -> Request {
        if self.left == 0 {
            return self.second.request();
        }
        self.left -= 1;
        self.first.request()
    }
}
