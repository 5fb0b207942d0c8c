//! Every name that the command line and study files know, as a table.

use crate::device;
use crate::error::StudyError;
use crate::table::{Row, Table};
use crate::{study, workload};
use fulgurite_base::{Entry, OptionHelp, Registry, SpecError, units};
use fulgurite_ftl::placement::Placement;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimPolicy;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};
use fulgurite_ssd::preset::{Concurrency, PRESETS, Preset, Target};
use fulgurite_ssd::{PARAMS, Param, preset};
use fulgurite_workload::GeneratorConfig;
use fulgurite_workload::trace::Format;

type Rows = fn() -> Vec<Row>;

/// Every kind of name, in the order of a stack from the workload down.
const KINDS: [(&str, Rows); 12] = [
    ("workloads", workloads),
    ("formats", formats),
    ("replacement", || entries(ReplacementConfig::registry())),
    ("write-back", || entries(WriteBackConfig::registry())),
    ("prefetch", || entries(PrefetchConfig::registry())),
    ("layers", layers),
    ("devices", devices),
    (PARAMETERS, parameters),
    ("placement", || Placement::list().map(|(name, about)| row(name, about)).collect()),
    ("victim", || VictimPolicy::ALL.iter().map(|(policy, about)| row(policy.name(), about)).collect()),
    ("schedule", || Schedule::all().map(|(schedule, about)| row(&schedule.to_string(), about)).collect()),
    ("studies", || study::names().map(|(name, title)| row(name, &title)).collect()),
];

/// The parameters of every simulated drive: many, so they are listed only when asked for.
const PARAMETERS: &str = "device-parameters";

/// The columns that matter most of its rows.
pub const MAIN_COLUMNS: &[&str] = &["kind", "name", "about", "default", "targets"];

/// The names of one kind, or of all.
pub fn list(kind: Option<&str>) -> Result<Table, StudyError> {
    let kinds = KINDS.map(|(kind, _)| kind);
    if let Some(unknown) = kind.filter(|kind| !kinds.contains(kind)) {
        return Err(SpecError::unknown("list", unknown, &kinds).into());
    }
    let is_asked = |name: &str| kind.map_or(name != PARAMETERS, |kind| kind == name);
    let mut table = Table::default();
    for (kind, rows) in KINDS.iter().filter(|(name, _)| is_asked(name)) {
        for mut row in rows() {
            row.set("kind", *kind);
            table.rows.push(row);
        }
    }
    Ok(table)
}

/// The entries of a registry.
fn entries<M>(registry: &Registry<M>) -> Vec<Row> {
    let entry = |entry: &Entry<M>| with_options(entry.name, entry.about, &(entry.options)());
    registry.entries.iter().map(entry).collect()
}

fn formats() -> Vec<Row> {
    Format::all()
        .iter()
        .map(|format| with_options(format.name(), format.about(), &format.options()))
        .collect()
}

/// What a thing is, and behind that its options with their defaults.
fn with_options(name: &str, about: &str, options: &[OptionHelp]) -> Row {
    let options: Vec<String> =
        options.iter().map(|option| format!("{}={}", option.key, option.default)).collect();
    match options.is_empty() {
        true => row(name, about),
        false => row(name, &format!("{about}; {}", options.join(", "))),
    }
}

fn workloads() -> Vec<Row> {
    let own = row(workload::OWN_TRACE, workload::OWN_TRACE_ABOUT);
    entries(GeneratorConfig::registry()).into_iter().chain([own]).collect()
}

fn row(name: &str, about: &str) -> Row {
    let mut row = Row::default();
    row.set("name", name);
    row.set("about", about);
    row
}

fn devices() -> Vec<Row> {
    let preset = |preset: &Preset| {
        let mut row = row(preset.name, preset.about);
        let targets: Vec<String> = preset.targets.iter().map(target).collect();
        row.set("targets", targets.join("; "));
        row.set("source", preset.source);
        row
    };
    let ideal = row(device::MEM, "an ideal drive: every request takes no time (options pages, page)");
    let none = row(device::NONE, "no drive and no time: pool counts misses and writes alone, fast");
    let real = row(
        "file:PATH",
        "a file or block device, without the page cache; size= page=4KiB queue_depth=256 engine=uring|psync poll=no",
    );
    PRESETS.iter().map(preset).chain([real, ideal, none]).collect()
}

fn layers() -> Vec<Row> {
    let none = row(device::NONE, "the workload meets the drive itself");
    let log = row(
        device::LOG,
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
        row.set_some("default", p4510.as_ref().map(|config| param.show(config)));
        row
    };
    PARAMS.iter().map(parameter).collect()
}
