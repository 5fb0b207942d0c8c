//! Every name that the command line and study files know, as a table.

use crate::device;
use crate::error::StudyError;
use crate::table::{Row, Table};
use crate::{study, workload};
use fulgurite_base::{Declared, Entry, Opt, Registry, SpecError, units};
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::schedule::Schedule;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_log::LogConfig;
use fulgurite_pool::{Prefetch, Replacement, WriteBack};
use fulgurite_ssd::SsdConfig;
use fulgurite_ssd::preset::{self, Concurrency, Preset, Target};
use fulgurite_workload::trace::Format;

type Rows = fn() -> Vec<Row>;

/// Every kind of name, in the order of a stack from the workload down.
const KINDS: [(&str, Rows); 12] = [
    ("workloads", || workload::names().map(|(name, about)| row(name, about)).collect()),
    ("formats", || Format::all().iter().map(|format| row(format.name(), format.about())).collect()),
    ("replacement", || Replacement::list().map(|(name, about)| row(name, about)).collect()),
    ("write-back", || WriteBack::list().map(|(name, about)| row(name, about)).collect()),
    ("prefetch", || Prefetch::list().map(|(name, about)| row(name, about)).collect()),
    ("layers", layers),
    ("devices", devices),
    (PARAMETERS, parameters),
    ("placement", || entries(PlacementConfig::registry())),
    ("victim", || entries(VictimConfig::registry())),
    ("schedule", || entries(Schedule::registry())),
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

fn row(name: &str, about: &str) -> Row {
    let mut row = Row::default();
    row.set("name", name);
    row.set("about", about);
    row
}

/// What can be chosen by name, each with its options and their defaults.
fn entries<M>(registry: &Registry<M>) -> Vec<Row> {
    let entry = |entry: &Entry<M>| {
        let options =
            (entry.options)().into_iter().map(|option| format!("{}={}", option.key, option.default));
        let options = options.collect::<Vec<_>>().join(", ");
        let separator = if options.is_empty() { "" } else { "; " };
        row(entry.name, &format!("{}{separator}{options}", entry.about))
    };
    registry.entries.iter().map(entry).collect()
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
    preset::registry().entries.iter().map(|entry| preset(&entry.make)).chain([real, ideal, none]).collect()
}

fn layers() -> Vec<Row> {
    let none = row(device::NONE, "the workload meets the drive itself");
    let options = LogConfig::default().describe_options();
    let options: Vec<String> =
        options.iter().map(|option| format!("{}={}", option.key, option.default)).collect();
    let log = row(device::LOG, &format!("log-structured, on the host: {}", options.join(" ")));
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
    let parameter = |param: &Opt<SsdConfig>| {
        let mut row = row(param.key, param.about);
        row.set_some("default", p4510.as_ref().map(|config| (param.show)(config)));
        row
    };
    SsdConfig::OPTIONS.iter().map(parameter).collect()
}
