//! Every name that the command line and study files know, as rows.

use crate::device::{LOG, MEM, NO_DEVICE};
use crate::workload::{OWN_TRACE, OWN_TRACE_ABOUT};
use crate::{Column, Row};
use fulgurite_base::{OptionHelp, Registry, units};
use fulgurite_ftl::placement::Placement;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimPolicy;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};
use fulgurite_ssd::preset::{Concurrency, PRESETS, Preset, Target};
use fulgurite_ssd::{PARAMS, Param, preset};
use fulgurite_workload::GeneratorConfig;
use fulgurite_workload::trace::Format;

/// Every kind of name, in the order of a stack from the workload down, with its rows.
pub const KINDS: [(&str, fn() -> Vec<Row>); 11] = [
    ("workloads", || {
        let own = row(OWN_TRACE, OWN_TRACE_ABOUT);
        rows(GeneratorConfig::registry()).into_iter().chain([own]).collect()
    }),
    ("formats", || {
        let format = |format: &Format| with_options(row(format.name(), format.about()), &format.options());
        Format::all().iter().map(format).collect()
    }),
    ("replacement", || rows(ReplacementConfig::registry())),
    ("write-back", || rows(WriteBackConfig::registry())),
    ("prefetch", || rows(PrefetchConfig::registry())),
    ("layers", layers),
    ("devices", devices),
    (DEVICE_PARAMETERS, parameters),
    ("placement", || Placement::list().map(|(name, about)| row(name, about)).collect()),
    ("victim", || VictimPolicy::ALL.iter().map(|(policy, about)| row(policy.name(), about)).collect()),
    ("schedule", || Schedule::all().map(|(schedule, about)| row(&schedule.to_string(), about)).collect()),
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
    let ideal = row(MEM, "an ideal drive: every request takes no time (options pages, page)");
    let none = row(NO_DEVICE, "no drive and no time: pool counts misses and writes alone, fast");
    let real = row(
        "file:PATH",
        "a file or block device, without the page cache; size= page=4KiB queue_depth=256 engine=uring|psync poll=no",
    );
    PRESETS.iter().map(preset).chain([real, ideal, none]).collect()
}

fn layers() -> Vec<Row> {
    let none = row(NO_DEVICE, "the workload meets the drive itself");
    let log = row(
        LOG,
        "log-structured, with --placement, --victim and --schedule of its own: op=7% segment=4MiB gc_reserve=4 gc_hard=2 depth=32 trim=yes fill=yes urgent_us=10000",
    );
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
    let parameter = |param: &Param| {
        let mut row = row(param.key, param.about);
        row.set_some(Column::Default, p4510.as_ref().map(|config| param.show(config)));
        row
    };
    PARAMS.iter().map(parameter).collect()
}
