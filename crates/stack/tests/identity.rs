//! Tests the identity of a run. A value that changes the result changes the identity, and a default that is
//! written out does not. The tests cover every declared setting, and every declared option of devices, layers
//! and policies.

use fulgurite_base::OptionHelp;
use fulgurite_bench::BenchmarkConfig;
use fulgurite_ftl::placement::PlacementConfig;
use fulgurite_ftl::victim::VictimConfig;
use fulgurite_log::LogConfig;
use fulgurite_pool::{PrefetchConfig, ReplacementConfig, WriteBackConfig};
use fulgurite_ssd::preset;
use fulgurite_stack::settings::{self, Absent, Workloads};
use fulgurite_stack::{Command, Progress, Row, Run, StackError};
use fulgurite_workload::GeneratorConfig;
use std::collections::BTreeMap;
use std::path::Path;

const COMMANDS: [Command; 6] =
    [Command::Pool, Command::Gc, Command::Replay, Command::Bench, Command::Profile, Command::Serve];

type Values<'a> = BTreeMap<&'a str, &'a str>;

/// Returns the settings of a small run of each command.
fn base(command: Command) -> Values<'static> {
    match command {
        Command::Pool => [("workload", "mixed-skewed"), ("device", "virtual")].into(),
        Command::Gc => [
            ("workload", "mixed-uniform:write=100%"),
            ("logical", "32MB"),
            ("physical", "64MB"),
            ("segment", "64KiB"),
        ]
        .into(),
        Command::Replay => [("workload", "financial-like"), ("device", "virtual")].into(),
        Command::Bench => [("benchmark", "ycsb-a"), ("device", "virtual")].into(),
        Command::Profile => [("device", "virtual")].into(),
        Command::Serve => [("device", "virtual"), ("frames", "100")].into(),
    }
}

fn run(command: Command, values: &Values) -> Result<Run, StackError> {
    settings::run(command, values, &mut Workloads::default())
}

fn id(command: Command, values: &Values) -> String {
    run(command, values).and_then(|run| run.id()).unwrap_or_else(|error| panic!("{values:?}: {error}"))
}

/// Returns, for each setting, its default in other words, and another value together with the settings that
/// this value needs. The test fails for a setting without an entry.
fn other(command: Command, setting: &str) -> (Option<&'static str>, Values<'static>) {
    let one = |name: &'static str, value: &'static str| Values::from([(name, value)]);
    match (command, setting) {
        (Command::Replay, "workload") => (None, one("workload", "cello-like")),
        (_, "workload") => (None, one("workload", "mixed-uniform:write=90%")),
        (_, "benchmark") => (None, one("benchmark", "ycsb-a:theta=0.8")),
        (_, "scale") => (Some("1"), one("scale", "2")),
        // The default memory is 10 % of the data.
        (_, "memory") => (Some("10%"), one("memory", "20%")),
        (Command::Profile, "time") => (None, [("suite", "latency"), ("time", "1s")].into()),
        (_, "time") => (None, one("time", "1s")),
        (_, "suite") => (Some("concurrency"), one("suite", "overwrite")),
        (_, "rates") => (None, one("rates", "20K")),
        (_, "patterns") => (None, one("patterns", "zones:90/10")),
        (_, "warm_up") => (Some("2K"), one("warm_up", "1s")),
        (_, "place") => (Some("in-place"), one("place", "out-of-place")),
        (_, "torn_pages") => (Some("atomic"), one("torn_pages", "double-write")),
        (_, "durability") => (Some("group"), one("durability", "relaxed")),
        (_, "log_size") => (Some("64MiB"), one("log_size", "32MiB")),
        (_, "records") => (Some("70%"), one("records", "0%")),
        (_, "cpu_per_op") => (Some("2"), one("cpu_per_op", "3")),
        (Command::Pool, "curve") => (Some("no"), [("curve", "yes"), ("device", "none")].into()),
        (_, "curve") => (Some("no"), one("curve", "yes")),
        (_, "sample") => (Some("1"), one("sample", "1/8")),
        (_, "by_type") => (Some("no"), one("by_type", "yes")),
        (_, "device") => (None, one("device", "virtual:program_us=500")),
        (_, "layer") => (Some("none"), one("layer", "log:segment=1MiB,op=30%")),
        (_, "placement") => (Some("none"), one("placement", "sep-gc")),
        (_, "victim") => (Some("greedy"), one("victim", "fifo")),
        (_, "schedule") => (Some("paced"), one("schedule", "semi-preemptive")),
        (_, "replacement") => (Some("lru"), one("replacement", "clock")),
        (Command::Bench, "write_back") => (Some("store"), one("write_back", "ace:n_w=4")),
        (_, "write_back") => (Some("single"), one("write_back", "ace:n_w=4")),
        (_, "prefetch") => (Some("none"), one("prefetch", "sequential")),
        (Command::Serve, "frames") => (None, one("frames", "500")),
        // The default number of frames is 6 % of the default number of pages.
        (_, "frames") => (Some("6144"), one("frames", "500")),
        (_, "pages") => (Some("102400"), one("pages", "4K")),
        (_, "logical") => (None, one("logical", "31MB")),
        (_, "physical") => (None, one("physical", "40MB")),
        (_, "segment") => (None, one("segment", "32KiB")),
        (_, "page") => (Some("4KiB"), one("page", "8KiB")),
        (_, "gc_reserve") => (Some("2"), one("gc_reserve", "3")),
        (Command::Pool, "users") => (Some("1"), one("users", "4")),
        (Command::Bench, "users") => (Some("1"), one("users", "4")),
        (_, "users") => (None, one("users", "4")),
        (_, "speed") => (Some("1x"), one("speed", "2x")),
        (_, "rate") => (None, one("rate", "1000")),
        (_, "until_steady") => (Some("no"), one("until_steady", "yes")),
        (_, "addresses") => (Some("scale"), one("addresses", "compact")),
        (_, "cpu_per_request") => (Some("0"), one("cpu_per_request", "5")),
        (Command::Bench, "cores") => (Some("1"), one("cores", "2")),
        (_, "cores") => (Some("1"), one("cores", "4")),
        (_, "shards") => (Some("1"), one("shards", "2")),
        (_, "skip") => (Some("0"), one("skip", "100")),
        (Command::Pool, "ops") => (Some("1M"), one("ops", "5K")),
        (Command::Bench, "ops") => (Some("20K"), one("ops", "5K")),
        (Command::Replay, "ops") => (Some("100K"), one("ops", "5K")),
        (Command::Gc, "ops") => (Some("156240"), one("ops", "5K")),
        (_, "explain") => (Some("no"), one("explain", "yes")),
        (_, "groups") => (Some("no"), one("groups", "yes")),
        (Command::Gc, "interval") => (None, one("interval", "25%")),
        (_, "interval") => (None, one("interval", "10ms")),
        (_, "seed") => (Some("42"), one("seed", "43")),
        (command, setting) => {
            panic!("{command:?} {setting}: say here what its default and another value are")
        }
    }
}

/// Returns the settings that a setting needs to have an effect.
fn beside(command: Command, setting: &str) -> Values<'static> {
    match setting {
        // A core without a shard is refused.
        "cores" if command == Command::Bench => [("shards", "2")].into(),
        // A generator addresses the pages of the drive, but a trace has addresses of its own, so only a trace
        // needs a mapping.
        "addresses" => [("workload", "postgres-pgbench"), ("users", "1")].into(),
        "rates" => [("suite", "latency")].into(),
        "sample" => [("curve", "yes"), ("device", "none")].into(),
        "patterns" => [("suite", "overwrite")].into(),
        _ => Values::new(),
    }
}

/// Settings with tests of their own: only an index scan has a degree, and only a file can be reused.
const APART: [&str; 2] = ["degree", "reuse"];

/// Settings that change the place of the output or the permissions, and not the result.
const WITHOUT_EFFECT: [&str; 7] =
    ["destroy_contents", "trace_out", "requests_out", "force", "format", "sort", "files"];

#[test]
fn a_default_written_out_keeps_the_identity_and_another_value_changes_it() {
    for command in COMMANDS {
        for setting in command
            .settings()
            .filter(|setting| !WITHOUT_EFFECT.contains(&setting.name) && !APART.contains(&setting.name))
        {
            let (default, others) = other(command, setting.name);
            let base = || base(command).into_iter().chain(beside(command, setting.name)).collect::<Values>();
            let usual = id(command, &base());
            if let Some(Absent::Value(declared)) = setting.absent(command)
                && !base().contains_key(setting.name)
            {
                let written: Values = base().into_iter().chain([(setting.name, declared)]).collect();
                assert_eq!(id(command, &written), usual, "{command:?} {}={declared}", setting.name);
            }
            if let Some(default) = default {
                let written: Values = base().into_iter().chain([(setting.name, default)]).collect();
                assert_eq!(id(command, &written), usual, "{command:?} {}={default}", setting.name);
            }
            let changed: Values = base().into_iter().chain(others.clone()).collect();
            assert_ne!(id(command, &changed), usual, "{command:?} {others:?}");
        }
    }
}

fn rows(command: Command, values: &Values) -> Vec<Row> {
    let mut rows = run(command, values).unwrap().execute(&Progress::default()).unwrap();
    rows.iter_mut().for_each(Row::drop_cost);
    rows
}

#[test]
fn settings_without_effect_change_neither_identity_nor_rows() {
    let (command, folder) = (Command::Replay, Path::new(env!("CARGO_TARGET_TMPDIR")));
    let (timeline, requests) = (folder.join("identity.json"), folder.join("identity.csv"));
    let small: Values = base(command).into_iter().chain([("ops", "2K")]).collect();
    let usual = rows(command, &small);
    for (setting, value) in [
        ("destroy_contents", "yes"),
        ("trace_out", timeline.to_str().unwrap()),
        ("requests_out", requests.to_str().unwrap()),
        ("force", "yes"),
        ("format", "page-ops"),
        ("sort", "yes"),
        ("files", "volumes"),
    ] {
        assert!(WITHOUT_EFFECT.contains(&setting));
        let with: Values = small.clone().into_iter().chain([(setting, value)]).collect();
        assert_eq!(rows(command, &with), usual, "{setting}");
    }
}

#[test]
fn the_settings_of_a_benchmark_that_few_accept() {
    let bench = |values: &[(&'static str, &'static str)]| {
        run(Command::Bench, &values.iter().copied().collect()).and_then(|run| run.id())
    };
    let scan = [("benchmark", "index-scan")];
    assert_eq!(bench(&scan), bench(&[scan[0], ("degree", "32")]));
    assert_eq!(bench(&scan), bench(&[("benchmark", "index-scan:degree=32")]));
    assert_ne!(bench(&scan), bench(&[scan[0], ("degree", "1")]));
    let file = [("benchmark", "ycsb-c"), ("device", "file:/tmp/no-such-drive,engine=psync")];
    assert_ne!(bench(&file).unwrap(), bench(&[file[0], file[1], ("reuse", "yes")]).unwrap());
    let drive = [("benchmark", "ycsb-a"), ("cores", "2")];
    assert_eq!(
        bench(&[drive[0], drive[1], ("shards", "auto")]),
        bench(&[drive[0], drive[1], ("shards", "2")])
    );
    // A scale and an option that give the same size of data give the same identity.
    let scaled = bench(&[("benchmark", "tpcc"), ("scale", "2")]).unwrap();
    assert_eq!(scaled, bench(&[("benchmark", "tpcc:warehouses=2")]).unwrap());
    assert_ne!(scaled, bench(&[("benchmark", "tpcc")]).unwrap());
}

#[test]
fn every_option_of_a_benchmark_is_part_of_the_identity() {
    let drive: Values = [("device", "virtual"), ("memory", "64MiB"), ("ops", "1K")].into();
    for entry in BenchmarkConfig::registry().entries {
        options_count(Command::Bench, "benchmark", entry.name, &drive, &(entry.options)());
    }
}

/// Checks the options of a name: the written-out default of each keeps the identity, and some other value
/// changes it.
fn options_count(command: Command, setting: &str, name: &str, beside: &Values, options: &[OptionHelp]) {
    const VALUES: [&str; 13] =
        ["1", "2", "3", "4", "7", "16", "1%", "30%", "99%", "4KiB", "64KiB", "0.5", "9999"];
    let with = |text: &str| {
        let values: Values = beside.clone().into_iter().chain([(setting, text)]).collect();
        run(command, &values).and_then(|run| run.id())
    };
    let usual = with(name).unwrap_or_else(|error| panic!("{setting} {name}: {error}"));
    for option in options {
        let text = |value: &str| format!("{name}:{}={value}", option.key);
        // Skip an option that is refused because it has no effect, since a refused run has no identity to
        // compare.
        if let Ok(written) = with(&text(&option.default)) {
            assert_eq!(written, usual, "{}", text(&option.default));
        }
        let values =
            VALUES.into_iter().chain(option.written.split('|')).filter(|value| *value != option.default);
        let accepted: Vec<(&str, String)> =
            values.filter_map(|value| Some((value, with(&text(value)).ok()?))).collect();
        assert!(
            accepted.is_empty() || accepted.iter().any(|(_, id)| *id != usual),
            "{setting} {name}: {} changes no identity, whatever its value",
            option.key
        );
    }
}

#[test]
fn every_option_of_a_policy_is_part_of_the_identity() {
    let pool: Values = [("workload", "mixed-skewed"), ("ops", "1K"), ("device", "p4510")].into();
    let each = |setting: &str, entries: Vec<(&'static str, Vec<OptionHelp>)>, command, beside: &Values| {
        for (name, options) in entries {
            options_count(command, setting, name, beside, &options);
        }
    };
    macro_rules! entries {
        ($config:ty) => {
            <$config>::registry().entries.iter().map(|entry| (entry.name, (entry.options)())).collect()
        };
    }
    // Leave out `belady`, because it runs without a drive only, and has no options.
    let replacements: Vec<_> = entries!(ReplacementConfig);
    let replacements = replacements.into_iter().filter(|(name, _)| *name != "belady").collect();
    each("replacement", replacements, Command::Pool, &pool);
    each("prefetch", entries!(PrefetchConfig), Command::Pool, &pool);
    // Leave out `auto`, because it measures the drive, which takes a while, and has no options.
    let write_backs: Vec<_> = entries!(WriteBackConfig);
    let write_backs = write_backs.into_iter().filter(|(name, _)| *name != "auto").collect();
    each("write_back", write_backs, Command::Pool, &pool);
    let gc: Values = base(Command::Gc).into_iter().chain([("ops", "1K")]).collect();
    each("placement", entries!(PlacementConfig), Command::Gc, &gc);
    each("victim", entries!(VictimConfig), Command::Gc, &gc);
    // Leave out `switch`, because it nests two workloads and has no options of its own.
    let generators: Vec<_> = entries!(GeneratorConfig);
    let generators = generators.into_iter().filter(|(name, _)| *name != "switch").collect();
    each("workload", generators, Command::Pool, &[("ops", "1K"), ("device", "none")].into());
}

#[test]
fn every_option_of_a_device_and_a_layer_is_part_of_the_identity() {
    let replay: Values = [("workload", "mixed-uniform"), ("users", "1"), ("ops", "1K")].into();
    for name in ["p4510", "preemptive-gc"] {
        let options = (preset::by_name(name).unwrap().config)();
        let options = fulgurite_base::Declared::describe_options(&options);
        options_count(Command::Replay, "device", name, &replay, &options);
    }
    let below: Values = replay.into_iter().chain([("device", "p4510")]).collect();
    let options = fulgurite_base::Declared::describe_options(&LogConfig::default());
    options_count(Command::Replay, "layer", "log", &below, &options);
}

#[test]
fn equal_runs_have_one_identity_however_they_are_written() {
    let pool = |more: &[(&'static str, &'static str)]| {
        id(Command::Pool, &base(Command::Pool).into_iter().chain(more.iter().copied()).collect())
    };
    for (one, another) in [
        (("replacement", "clock"), ("replacement", "clock:max=5")),
        (("workload", "zipf:write=50%,theta=0.99"), ("workload", "zipf")),
        (("device", "virtual:channels=16,program_us=500"), ("device", "virtual:program_us=500,channels=16")),
        (("device", "reference-e:streams=4"), ("device", "reference-e:placement=hints:streams=4")),
        (("device", "reference-e:streams=1"), ("device", "reference-e")),
        (
            ("device", "file:/tmp/no-such-drive,size=1GiB"),
            ("device", "file:/tmp/no-such-drive,page=4KiB,size=1GiB"),
        ),
    ] {
        assert_eq!(pool(&[one]), pool(&[another]), "{one:?} {another:?}");
    }
    // Parameters that are measured, and the same parameters when given, give the same identity.
    let k_w = run(Command::Pool, &[("workload", "mixed-skewed"), ("write_back", "ace")].into()).unwrap();
    let n_w = format!("ace:n_w={}", k_w.stack.write_back().unwrap().batches.n_w);
    let told = run(Command::Pool, &[("workload", "mixed-skewed"), ("write_back", &n_w)].into()).unwrap();
    assert_eq!(k_w.id().unwrap(), told.id().unwrap());
}
