//! Lists all names of the command line and of study files, with descriptions and options.

use crate::device::{FileOptions, LOG, MEM, MemConfig, NO_DEVICE, REAL};
use crate::run::STORES_OWN;
use crate::workload::{OWN_TRACE, OWN_TRACE_ABOUT};
use crate::{Column, Row};
use fulgurite_base::{Declared, OptionHelp, Registry, units};
use fulgurite_bench::BenchmarkConfig;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_log::LogConfig;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};
use fulgurite_ssd::SsdConfig;
use fulgurite_ssd::preset::{self, Concurrency, Preset, Target};
use fulgurite_workload::GeneratorConfig;
use fulgurite_workload::trace::Format;

/// The name of a kind of names, such as "workloads", and a function that lists the names of this kind.
pub type KindOfNames = (&'static str, fn() -> Vec<Item>);

/// A name that the command line accepts, with its description.
pub struct Item {
    /// The cells of this name in a list: the name, the description, the options and other columns.
    pub row: Row,
    /// The options that may follow the name, with their defaults.
    pub options: Vec<OptionHelp>,
}

impl Item {
    /// Creates the entry of a name without options.
    pub fn new(name: &str, about: &str) -> Item {
        let mut row = Row::default();
        row.set(Column::Name, name);
        row.set(Column::About, about);
        Item { row, options: Vec::new() }
    }

    fn with(mut self, options: Vec<OptionHelp>) -> Item {
        let shown: Vec<String> =
            options.iter().map(|option| format!("{}={}", option.key, option.default)).collect();
        self.row.set_some(Column::Options, Some(shown.join(" ")).filter(|shown| !shown.is_empty()));
        Item { options, ..self }
    }
}

/// All kinds of names, in the order of a stack from the workload down to the device.
pub const KINDS: [KindOfNames; 12] = [
    ("workloads", || {
        let own = Item::new(OWN_TRACE, OWN_TRACE_ABOUT);
        items(GeneratorConfig::registry()).into_iter().chain([own]).collect()
    }),
    ("benchmarks", || items(BenchmarkConfig::registry())),
    ("formats", || {
        let format = |format: &Format| Item::new(format.name(), format.about()).with(format.options());
        Format::all().iter().map(format).collect()
    }),
    ("replacement", || items(ReplacementConfig::registry())),
    ("write-back", || {
        let about = "of bench alone, and its default: the storage engine chooses, and batches pages";
        items(WriteBackConfig::registry()).into_iter().chain([Item::new(STORES_OWN, about)]).collect()
    }),
    ("prefetch", || items(PrefetchConfig::registry())),
    ("layers", layers),
    ("devices", devices),
    (DEVICE_PARAMETERS, parameters),
    ("placement", || items(PlacementConfig::registry())),
    ("victim", || items(VictimConfig::registry())),
    ("schedule", || items(Schedule::registry())),
];

/// The kind of names that lists the parameters of every simulated drive. It is listed only on request,
/// because there are many parameters.
pub const DEVICE_PARAMETERS: &str = "device-parameters";

/// Returns all names of a registry, with their options and defaults.
fn items<M>(registry: &'static Registry<M>) -> Vec<Item> {
    let item = |entry: &fulgurite_base::Entry<M>| Item::new(entry.name, entry.about).with((entry.options)());
    registry.entries.iter().map(item).collect()
}

fn devices() -> Vec<Item> {
    let preset = |preset: &Preset| {
        let mut item = Item::new(preset.name, preset.about);
        let targets: Vec<String> = preset.targets.iter().map(target).collect();
        item.row.set(Column::Targets, targets.join("; "));
        item.row.set(Column::Source, preset.source);
        item
    };
    let about = "an ideal drive: every request takes no time";
    let ideal = Item::new(MEM, about).with(MemConfig::default().describe_options());
    let none = Item::new(NO_DEVICE, "no drive and no time: pool counts misses and writes alone, fast");
    let about = "a file or block device, without the page cache";
    let real = Item::new(REAL, about).with(FileOptions::default().describe_options());
    preset::registry().entries.iter().map(|entry| preset(&entry.make)).chain([real, ideal, none]).collect()
}

fn layers() -> Vec<Item> {
    let none = Item::new(NO_DEVICE, "the workload meets the drive itself");
    let about = "log-structured, with placement, victims and a schedule of its own";
    vec![none, Item::new(LOG, about).with(LogConfig::default().describe_options())]
}

fn target(target: &Target) -> String {
    let concurrency = |k: Concurrency| match k {
        Concurrency::Is(k) => k.to_string(),
        Concurrency::MoreThan(k) => format!(">{k}"),
    };
    format!(
        "{}: alpha {}, k_r {}, k_w {}",
        units::format_size(u64::from(target.page_bytes)),
        target.alpha,
        concurrency(target.k_r),
        concurrency(target.k_w)
    )
}

fn parameters() -> Vec<Item> {
    let p4510 = preset::by_name("p4510").map(|preset| (preset.config)()).ok();
    let parameter = |option: OptionHelp| {
        let mut item = Item::new(option.key, option.about);
        item.row.set(Column::Default, option.default.as_str());
        Item { options: vec![option], ..item }
    };
    p4510.map_or_else(Vec::new, |config: SsdConfig| {
        config.describe_options().into_iter().map(parameter).collect()
    })
}

#[cfg(test)]
mod tests {
    use fulgurite_bench::BenchmarkConfig;
    use fulgurite_workload::GeneratorConfig;

    /// Some page workloads have the name of a benchmark, so the description of each must say that it only
    /// imitates pages.
    #[test]
    fn a_page_workload_with_the_name_of_a_benchmark_says_that_it_is_none() {
        let benchmarks: Vec<&str> = BenchmarkConfig::registry().names().collect();
        let alike =
            GeneratorConfig::registry().entries.iter().filter(|entry| benchmarks.contains(&entry.name));
        let mut count = 0;
        for entry in alike {
            let about = entry.about;
            assert!(about.starts_with("pages like those of "), "{}: {about}", entry.name);
            assert!(about.ends_with("; not transactions (see bench)"), "{}: {about}", entry.name);
            count += 1;
        }
        assert_eq!(count, 11, "YCSB's six, TPC-C, LinkBench, three of sysbench");
    }
}
