//! Every name that the command line and study files know, as rows.

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

/// A kind of names, and its rows.
pub type KindOfNames = (&'static str, fn() -> Vec<Row>);

/// Every kind of names, in the order of a stack from the workload down.
pub const KINDS: [KindOfNames; 12] = [
    ("workloads", || {
        let own = row(OWN_TRACE, OWN_TRACE_ABOUT);
        rows(GeneratorConfig::registry()).into_iter().chain([own]).collect()
    }),
    ("benchmarks", || rows(BenchmarkConfig::registry())),
    ("formats", || {
        let format = |format: &Format| with_options(row(format.name(), format.about()), &format.options());
        Format::all().iter().map(format).collect()
    }),
    ("replacement", || rows(ReplacementConfig::registry())),
    ("write-back", || {
        let own =
            row(STORES_OWN, "of bench alone, and its default: the storage engine chooses, and batches pages");
        rows(WriteBackConfig::registry()).into_iter().chain([own]).collect()
    }),
    ("prefetch", || rows(PrefetchConfig::registry())),
    ("layers", layers),
    ("devices", devices),
    (DEVICE_PARAMETERS, parameters),
    ("placement", || rows(PlacementConfig::registry())),
    ("victim", || rows(VictimConfig::registry())),
    ("schedule", || rows(Schedule::registry())),
];

/// The parameters of every simulated drive: many, so they are listed only when asked for.
pub const DEVICE_PARAMETERS: &str = "device-parameters";

/// A row for every name of a registry, with its options and their defaults.
fn rows<M>(registry: &'static Registry<M>) -> Vec<Row> {
    let entry =
        |entry: &fulgurite_base::Entry<M>| with_options(row(entry.name, entry.about), &(entry.options)());
    registry.entries.iter().map(entry).collect()
}

fn with_options(mut row: Row, options: &[OptionHelp]) -> Row {
    let shown: Vec<String> =
        options.iter().map(|option| format!("{}={}", option.key, option.default)).collect();
    row.set_some(Column::Options, Some(shown.join(" ")).filter(|shown| !shown.is_empty()));
    row
}

/// A row of a list.
pub fn row(name: &str, about: &str) -> Row {
    let mut row = Row::default();
    row.set(Column::Name, name);
    row.set(Column::About, about);
    row
}

fn devices() -> Vec<Row> {
    let preset = |preset: &Preset| {
        let mut row = row(preset.name, preset.about);
        let targets: Vec<String> = preset.targets.iter().map(target).collect();
        row.set(Column::Targets, targets.join("; "));
        row.set(Column::Source, preset.source);
        row
    };
    let about = "an ideal drive: every request takes no time";
    let ideal = with_options(row(MEM, about), &MemConfig::default().describe_options());
    let none = row(NO_DEVICE, "no drive and no time: pool counts misses and writes alone, fast");
    let about = "a file or block device, without the page cache";
    let real = with_options(row(REAL, about), &FileOptions::default().describe_options());
    preset::registry().entries.iter().map(|entry| preset(&entry.make)).chain([real, ideal, none]).collect()
}

fn layers() -> Vec<Row> {
    let none = row(NO_DEVICE, "the workload meets the drive itself");
    let about = "log-structured, with placement, victims and a schedule of its own";
    let log = with_options(row(LOG, about), &LogConfig::default().describe_options());
    vec![none, log]
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

fn parameters() -> Vec<Row> {
    let p4510 = preset::by_name("p4510").map(|preset| (preset.config)()).ok();
    let parameter = |option: OptionHelp| {
        let mut row = row(option.key, option.about);
        row.set(Column::Default, option.default);
        row
    };
    p4510.map_or_else(Vec::new, |config: SsdConfig| {
        config.describe_options().into_iter().map(parameter).collect()
    })
}

#[cfg(test)]
mod tests {
    use fulgurite_bench::BenchmarkConfig;
    use fulgurite_workload::GeneratorConfig;

    /// Both kinds have one name, so the list must say which is which.
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
