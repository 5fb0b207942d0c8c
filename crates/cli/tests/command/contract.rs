//! Tests the names and words that users and their scripts rely on.

use crate::folder::Folder;
use serde_json::Value;

fn has(row: &Value, columns: &[&str]) {
    for column in columns {
        assert!(!row[column].is_null(), "{column} is missing from {row}");
    }
    for (column, value) in row.as_object().unwrap() {
        assert!(value.is_string() || value.is_number(), "{column} is not flat");
    }
}

const FEW: &str = "--ops 20K --pages 4K";

#[test]
fn pool_gives_a_row_for_every_combination_in_order() {
    let folder = Folder::new();
    let rows = folder
        .rows(&format!("pool mixed-skewed,zipf:theta=0.8,write=30% --write-back single,ace,ace:n_w=3 {FEW}"));
    let names: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row["workload"].as_str().unwrap(), row["write_back"].as_str().unwrap()))
        .collect();
    let zipf = "zipf:theta=0.8,write=30%";
    let skewed = "mixed-skewed";
    assert_eq!(
        names,
        [
            (skewed, "single"),
            (skewed, "ace"),
            (skewed, "ace:n_w=3"),
            (zipf, "single"),
            (zipf, "ace"),
            (zipf, "ace:n_w=3")
        ]
    );
    for row in &rows {
        has(
            row,
            &["run_id", "device", "replacement", "prefetch", "frames", "users", "seed", "ops", "elapsed_ns"],
        );
        has(row, &["throughput_ops_s", "hits", "misses", "hit_ratio", "read_ios", "write_ios", "pages_read"]);
        has(row, &["pages_written", "pages_flushed", "prefetched", "prefetch_hits", "latency_mean_ns"]);
        has(
            row,
            &["latency_stddev_ns", "latency_p50_ns", "latency_p95_ns", "latency_p99_ns", "latency_p999_ns"],
        );
        has(row, &["latency_max_ns", "host_pages_written", "flash_pages_read", "flash_pages_programmed"]);
        has(row, &["gc_pages_copied", "erases", "waf", "sim_wall_s", "sim_ops_s"]);
        assert_eq!(row["hits"].as_u64().unwrap() + row["misses"].as_u64().unwrap(), 20_000);
        assert_eq!(row["seed"], 42);
        let written = row["pages_written"].as_u64().unwrap() + row["pages_flushed"].as_u64().unwrap();
        assert_eq!(row["host_pages_written"], written);
    }
    assert_eq!(rows[1]["n_w"], 8, "the drive's k_w");
}

#[test]
fn the_same_pool_runs_on_a_real_drive() {
    let folder = Folder::new();
    let command = "pool mixed-skewed --device file:drive,engine=psync --ops 4K --pages 2K --frames 100";
    let rows = folder.rows(&format!("{command} --write-back single,ace:n_w=4,raw:buffers=8,ace+raw:n_w=4"));
    let simulated = folder.rows("pool mixed-skewed --device none --ops 4K --pages 2K --frames 100");
    for row in &rows {
        has(row, &["hits", "pages_written", "latency_p99_ns", "throughput_ops_s", "pages_checked"]);
        assert!(row["pages_checked"].as_u64().unwrap() > 2_000);
    }
    for column in ["hits", "misses", "pages_written"] {
        assert_eq!(rows[0][column], simulated[0][column], "{column}");
    }
    // Without a drive no virtual time passes, so the cells stay empty.
    assert_eq!(
        [&simulated[0]["elapsed_ns"], &simulated[0]["throughput_ops_s"]],
        [&Value::Null, &Value::Null]
    );
    assert_eq!(folder.names(), ["drive"]);
    let profile = folder.rows("profile file:drive,engine=psync,queue_depth=2");
    has(&profile[0], &["alpha", "k_r", "k_w", "read_iops_max", "write_iops_max"]);
}

#[test]
fn every_replacement_works_with_every_write_back() {
    let folder = Folder::new();
    let replacement = folder.rows("list replacement");
    let mut names: Vec<&str> = replacement.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 18);
    // It must know the future, and on a drive nobody does.
    names.retain(|name| *name != "belady");
    let write_backs = "single,background,ace,raw,ace+raw,auto";
    let prefetches = "none,sequential,history,both";
    let command = format!(
        "pool mixed-skewed --replacement {} --write-back {write_backs} --prefetch {prefetches} --users 3 --ops 2K \
            --pages 2K",
        names.join(",")
    );
    let rows = folder.rows(&command);
    assert_eq!(rows.len(), 17 * 6 * 4);
}

const SMALL: &str = "--logical 12MiB --physical 16MiB --segment 64KiB --victim cost-benefit --ops 30K";

/// The rows of intervals and of groups add up to the row of the run.
#[test]
fn gc_gives_rows_of_intervals_and_groups() {
    let folder = Folder::new();
    let sum =
        |rows: &[Value], column: &str| rows.iter().map(|row| row[column].as_u64().unwrap()).sum::<u64>();
    let whole = folder.rows(&format!("gc fio-h --placement sepbit {SMALL}"));
    has(&whole[0], &["cpu_ns_per_op", "sim_wall_s", "sim_ops_s"]);
    let stretches = folder.rows(&format!("gc fio-h --placement sepbit --interval 7K {SMALL}"));
    assert_eq!(stretches.len(), 4, "what is left is less than half a stretch");
    for row in &stretches {
        has(row, &["run_id", "time_pages", "waf", "erases", "groups", "last_segments"]);
    }
    assert_eq!(sum(&stretches, "host_pages_written"), 30_000);
    assert_eq!(sum(&stretches, "gc_pages_copied"), whole[0]["gc_pages_copied"].as_u64().unwrap());
    let groups = folder.rows(&format!("gc fio-h --placement midas --groups {SMALL}"));
    assert_eq!(groups[0]["group"], "HOT");
    for row in &groups {
        has(row, &["group_segments", "host_pages_written", "gc_pages_copied", "segments_collected"]);
        let classes = (1..=6).map(|class| row[format!("share_c{class}")].as_f64().unwrap());
        assert!((classes.sum::<f64>() - 1.0).abs() < 1e-6, "{row}");
    }
    // The groups cover the last half of the run, which has 3,072 page writes of the fill and 30,000 others.
    assert_eq!(sum(&groups, "host_pages_written"), (3_072 + 30_000) / 2);
}

/// The page counts of the pool, the layer and the drive agree, on a simulated drive and on a file.
#[test]
fn a_log_structured_layer_works_above_any_drive() {
    let folder = Folder::new();
    let count = |row: &Value, column: &str| row[column].as_u64().unwrap();
    let drive = "reference-e:channels=2,chips=1,pages=32,blocks=256,op=12%,streams=17,precondition=fill";
    let command = format!("replay fio-h --device {drive} --users 8 --ops 20K");
    let rows = folder.rows(&format!("{command} --layer none,log:segment=256KiB,op=28%"));
    assert_eq!((rows.len(), rows[0].get("layer")), (2, None));
    let layer = "--layer log:segment=256KiB,op=28% --placement none,midas --victim hazard";
    let rows = folder.rows(&format!("{command} {layer}"));
    for row in &rows {
        has(row, &["layer", "placement", "victim", "schedule", "waf", "layer_waf", "drive_waf"]);
        has(row, &["layer_pages_padded", "layer_segments_freed", "layer_mapping_bytes", "latency_p999_ns"]);
        assert_eq!((&row["victim"], count(row, "host_pages_written")), (&"hazard".into(), 20_000));
        assert!(count(row, "layer_pages_copied") > 1_000);
        let waf = row["layer_waf"].as_f64().unwrap() * row["drive_waf"].as_f64().unwrap();
        assert!((waf / row["waf"].as_f64().unwrap() - 1.0).abs() < 0.01, "{row}");
        assert_eq!(row.get("wait_gc_mean_ns"), None, "the layer does not tell");
    }
    let pool = format!("pool mixed-skewed --device {drive} --ops 60K --pages 8K --frames 300");
    for row in folder.rows(&format!("{pool} {layer} --write-back ace,auto,raw")) {
        assert!(count(&row, "layer_pages_copied") > 0, "{row}");
    }
    // The elapsed time of a run excludes the time of filling a layer above a real drive.
    let replay = "replay synthetic:read=50%,size=4KiB --device file:other,engine=psync,size=16MiB";
    for arrivals in ["--users 4", "--rate 20000"] {
        let row = &folder.rows(&format!("{replay} --layer log:segment=64KiB {arrivals} --ops 500"))[0];
        let busy = row["latency_mean_ns"].as_f64().unwrap() * 500.0;
        assert!(count(row, "elapsed_ns") as f64 > busy / 500.0 && count(row, "layer_pages_copied") > 0);
        assert!(arrivals == "--users 4" || count(row, "elapsed_ns") >= 24_000_000, "{row}");
    }
    let pool = "pool mixed-skewed --device file:drive,engine=psync --ops 8K --pages 2K --frames 100";
    let above = &folder.rows(&format!("{pool} --layer log:segment=64KiB --placement sepbit"))[0];
    assert!(count(above, "pages_checked") > 2_000 && count(above, "layer_pages_copied") > 500, "{above}");
}

/// A generated trace requests the same pages as its generator.
#[test]
fn a_generated_trace_has_the_requests_of_its_generator() {
    let folder = Folder::new();
    for format in ["midas", "alibaba", "page-ops"] {
        let made = folder
            .rows(&format!("trace generate fio-h t.{format}.zst --to {format} --logical 12MiB --ops 30K"));
        has(&made[0], &["file", "format", "workload", "pages", "seed", "requests", "requests_left_out"]);
        let of_file = folder.rows(&format!("gc t.{format}.zst --format {format} --placement sepbit {SMALL}"));
        let of_generator = folder.rows(&format!("gc fio-h --placement sepbit {SMALL}"));
        for column in ["host_pages_written", "gc_pages_copied", "erases", "waf_steady"] {
            assert_eq!(of_file[0][column], of_generator[0][column], "{format}: {column}");
        }
    }
}

#[test]
fn gc_profile_list_and_trace_info_give_their_columns() {
    let folder = Folder::new().with("t.pages", "R 1\nW 2\nR 1\n");
    let rows = folder
        .rows("gc mixed-uniform --victim fifo,greedy --logical 12MiB --physical 16MiB --segment 256KiB");
    assert_eq!(rows.len(), 2);
    for row in &rows {
        has(row, &["run_id", "workload", "placement", "victim", "seed", "ops", "host_pages_written", "waf"]);
        has(row, &["gc_pages_copied", "erases", "waf_steady", "waf_closed_form", "spare_effective"]);
        let (measured, expected) =
            (row["waf_steady"].as_f64().unwrap(), row["waf_closed_form"].as_f64().unwrap());
        assert!((measured / expected - 1.0).abs() < 0.02, "{measured} for {expected}");
    }
    let rows = folder.rows("profile optane --page 4KiB,8KiB");
    assert_eq!(rows.len(), 2);
    has(&rows[0], &["device", "page_bytes", "alpha", "k_r", "k_w", "read_iops_max", "write_iops_max"]);
    has(&rows[1], &["alpha_target", "k_r_target", "k_w_target"]);
    for kind in
        "devices layers replacement write-back prefetch placement victim schedule workloads benchmarks formats \
            studies"
            .split(' ')
    {
        let rows = folder.rows(&format!("list {kind}"));
        assert!(!rows.is_empty() && rows.iter().all(|row| row["kind"] == kind), "{kind}");
        rows.iter().for_each(|row| has(row, &["name", "about"]));
    }
    let rows = folder.rows("trace info t.pages");
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["requests"], &rows[0]["writes"], &rows[0]["footprint_pages"]),
        (&3.into(), &1.into(), &2.into())
    );
}

#[test]
fn replay_gives_its_columns_in_both_loops() {
    let folder = Folder::new().with("t.spc", "0,0,8192,W,0.5\n0,64,4096,R,0.75\n0,8,512,w,1.0\n");
    let rows =
        folder.rows("replay t.spc --device p4510 --schedule non-preemptive,semi-preemptive+merge,preemptive");
    assert_eq!(rows.len(), 3);
    for row in &rows {
        has(row, &["run_id", "workload", "device", "schedule", "ops", "elapsed_ns", "throughput_ops_s"]);
        has(row, &["latency_mean_ns", "latency_stddev_ns", "latency_variance_ns2", "latency_p50_ns"]);
        has(row, &["latency_p999_ns", "latency_max_ns", "read_latency_mean_ns", "write_latency_p99_ns"]);
        has(row, &["wait_gc_mean_ns", "wait_die_mean_ns", "wait_channel_mean_ns", "wait_buffer_mean_ns"]);
        has(row, &["energy_j", "wear_max", "mapping_bytes", "host_pages_written", "erases", "waf"]);
        // The requests arrive over half a second and write 3 pages.
        assert!(row["elapsed_ns"].as_u64().unwrap() >= 500_000_000, "{row}");
        assert_eq!((&row["ops"], &row["host_pages_written"]), (&3.into(), &3.into()));
    }
    let twice = folder.rows("replay t.spc --speed 2x");
    assert!((250_000_000..260_000_000).contains(&twice[0]["elapsed_ns"].as_u64().unwrap()));
    let users = folder.rows("replay mixed-uniform --users 4 --ops 2K --device reference-e:precondition=fill");
    assert_eq!((&users[0]["users"], &users[0]["ops"]), (&4.into(), &2_000.into()));
    let series = folder.rows("replay synthetic --ops 1K --interval 500ms");
    let requests: u64 = series.iter().map(|row| row["requests"].as_u64().unwrap()).sum();
    assert_eq!(requests, 1_000);
    series.iter().for_each(|row| has(row, &["time_ns", "bandwidth_bytes_s", "read_bandwidth_bytes_s"]));
}

#[test]
fn every_request_has_its_waits() {
    let folder = Folder::new();
    let row = &folder.rows("replay synthetic --device preemptive-gc --ops 500 --requests-out r.csv")[0];
    let text = String::from_utf8(folder.read("r.csv")).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), lines[0].len()), (501, 10));
    let sum = |column: usize| lines[1..].iter().map(|line| line[column].parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(sum(4) as f64 / 500.0, row["latency_mean_ns"].as_f64().unwrap());
    for line in &lines[1..] {
        let numbers: Vec<u64> = line[4..].iter().map(|number| number.parse().unwrap()).collect();
        assert!(numbers[1..].iter().sum::<u64>() <= numbers[0], "waits exceed the response time: {line:?}");
    }
}

#[test]
fn a_timeline_is_a_chrome_trace() {
    let folder = Folder::new();
    folder.rows("replay synthetic --device preemptive-gc --ops 200 --trace-out run.json");
    let trace: Value = serde_json::from_slice(&folder.read("run.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let count = |phase: &str, name: &str| {
        events.iter().filter(|event| event["ph"] == phase && event["name"] == name).count()
    };
    assert_eq!(count("b", "read") + count("b", "write"), 200, "every request begins");
    assert_eq!(count("e", "read") + count("e", "write"), 200, "and ends");
    assert!(count("X", "program") > 100 && count("X", "transfer") > 200);
    assert!(count("M", "thread_name") > 8 + 8, "channels, dies and the host have names");
    assert!(events.iter().all(|event| event["pid"].is_u64() && event["tid"].is_u64()));
}

/// If a trace writes only a part of the logical space, one remark says that little was collected, and
/// suggests smaller sizes. A run with these sizes works.
#[test]
fn gc_remarks_on_a_trace_that_is_too_short() {
    let trace: String = (0..3000).map(|at| format!("W {}\n", at * 7 % 800)).collect();
    let folder = Folder::new().with("t.pages", trace);
    let sizes = "--logical 64MiB --physical 68MiB --segment 256KiB";
    let outcome = folder.run(&format!("gc t.pages {sizes} --placement none,sepbit"));
    let said: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(
        said,
        [
            "t.pages writes 3,000 pages after the fill, 18 % of the logical space, so little is collected and waf \
                says little; it fits into --logical 4MiB --physical 5MiB"
        ]
    );
    let outcome = folder.run("gc t.pages --logical 4MiB --physical 5MiB --segment 256KiB");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let quiet = folder.run(&format!("gc t.pages {sizes} --quiet"));
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
}

#[test]
fn a_trace_is_converted_there_and_back() {
    let folder = Folder::new().with("t.spc", "0,0,8192,W,0.5\n0,64,4096,R,0.75\n0,8,512,w,1.0\n");
    folder.rows("trace convert t.spc t.msr.gz --to msr");
    folder.rows("trace convert t.msr.gz t.vscsi.zst --to vscsi");
    folder.rows("trace convert t.vscsi.zst back.spc --to spc");
    assert_eq!(
        String::from_utf8(folder.read("back.spc")).unwrap(),
        "0,0,8192,W,0.000000000\n0,64,4096,R,0.250000000\n0,8,512,W,0.500000000\n"
    );
}

#[test]
fn every_form_of_output_has_every_row() {
    let folder = Folder::new();
    let command = format!("pool mixed-skewed --write-back single,ace {FEW}");
    let csv = folder.run(&format!("{command} --csv")).stdout;
    assert_eq!(csv.lines().count(), 3);
    assert!(csv.starts_with("run_id,workload,device,"));
    let text = folder.run(&command).stdout;
    assert_eq!(text.lines().count(), 3);
    assert!(text.starts_with("workload ") && text.contains("elapsed_ns"), "{text}");
}

#[test]
fn help_and_version_are_no_failures() {
    let folder = Folder::new();
    for arguments in ["--help", "--version", "pool --help", "trace info --help"] {
        let outcome = folder.run(arguments);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{arguments}");
        assert!(outcome.stdout.contains("fulgurite") || outcome.stdout.contains("Usage"), "{arguments}");
    }
}

#[test]
fn a_trace_is_a_workload_with_a_detected_or_given_format() {
    let folder = Folder::new().with("anything", "1,5,2a,4096,8\n1,6,28,8192,0\n1,7,28,4096,64\n");
    let rows = folder.rows("pool anything --frames 1");
    assert_eq!((&rows[0]["ops"], &rows[0]["pages"]), (&4.into(), &3.into()));
    assert_eq!(folder.rows("pool anything --frames 1 --format cloudphysics")[0]["run_id"], rows[0]["run_id"]);
    assert_eq!(folder.run("pool anything --format page-ops").code, 2);
}

/// Another seed changes the run, and the same seed does not.
#[test]
fn the_seed_is_the_only_source_of_chance() {
    let folder = Folder::new();
    let elapsed =
        |seed: &str| folder.rows(&format!("pool mixed-skewed {FEW} {seed}"))[0]["elapsed_ns"].clone();
    assert_eq!(elapsed(""), elapsed("--seed 42"));
    assert_ne!(elapsed(""), elapsed("--seed 43"));
}

#[test]
fn a_study_reports_the_conclusions_that_hold() {
    let study = "title = 't'\nquestion = 'q'\ncommand = 'pool'\n\
        [grid]\nworkload = 'mixed-skewed'\nops = 2000\npages = 1000\nframes = [20, 200]\nwrite_back = ['single', \
        'ace:n_w=8']\n";
    let checks = [
        ("hits are counted", true, "column = 'hits'\nat_least = 1\nat_most = 2000"),
        ("all is a hit", false, "column = 'hits'\nat_least = 2000"),
        ("misses fall", true, "column = 'misses'\nfalls_with = 'frames'\nfor_each = 'write_back'"),
        ("hits fall", false, "column = 'hits'\nfalls_with = 'frames'\nfor_each = 'write_back'"),
        (
            "batches",
            true,
            "column = 'write_ios'\nat_most = 0.2\ncompare = { axis = 'write_back', baseline = 'single', candidate = \
                'ace:n_w=8' }",
        ),
        ("none", false, "column = 'write_ios'\nat_most = 10\nwhere = { write_back = 'single' }"),
        (
            "batches in a larger pool",
            true,
            "column = 'write_ios'\nat_most = 0.18\ncompare = { baseline = { write_back = 'single', frames = '20' }, \
                candidate = { write_back = 'ace:n_w=8', frames = '200' } }",
        ),
        (
            "a larger pool has more hits",
            true,
            "column = 'hits'\nat_least = 2\ncompare = { baseline = { frames = '20' }, candidate = { frames = '200' \
                } }",
        ),
    ];
    let text: String =
        checks.iter().map(|(says, _, law)| format!("[[checks]]\nsays = '{says}'\n{law}\n")).collect();
    let folder = Folder::new().with("own.toml", format!("{study}{text}"));
    let outcome = folder.run("study own.toml");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for (says, holds, _) in checks {
        let verdict = if holds { "holds" } else { "does not hold here" };
        assert!(outcome.stdout.contains(&format!("\n{verdict}: {says} (")), "{says}: {}", outcome.stdout);
    }
}

/// The title of a plot makes a claim only if the checks hold that the claim needs. A quick run is not judged
/// by checks that need a full run.
#[test]
fn a_title_claims_only_checked_conclusions() {
    let study = "title = 't'\nquestion = 'q'\ncommand = 'pool'\n[names]\nace = 'the batch'\n\
        [grid]\nworkload = 'mixed-skewed'\nops = 2000\npages = 1000\nframes = 20\nwrite_back = ['single', 'ace']\n";
    let check = |name: &str, bound: &str| {
        format!("[[checks]]\nname = '{name}'\nsays = 'on {name}'\ncolumn = 'hits'\n{bound}\n")
    };
    let plot = |holds: &str| {
        format!(
            "[[plots]]\ntitle = 'claim of {holds}: it {{change}}'\nholds = ['{holds}']\notherwise = 'neutral on \
                {holds}'\n\
             caption = 'c'\nkind = 'bar'\nx = 'workload'\ny = 'write_ios'\nseries = 'write_back'\n\
             relative_to = 'single'\ny_label = 'requests'\n"
        )
    };
    let text = [
        study.to_owned(),
        check("sound", "at_most = 20_000"),
        check("wrong", "at_least = 2000"),
        check("large", "at_most = 400\nfull = 'it is too short'"),
        ["sound", "wrong", "large"].map(plot).concat(),
    ]
    .concat();
    let folder = Folder::new().with("own.toml", text);
    let whole = folder.run("study own.toml --out whole");
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    let page = String::from_utf8(folder.read("whole/report.html")).unwrap();
    for title in
        ["<h2>claim of sound: it falls by ", "<h2>neutral on wrong</h2>", "<h2>claim of large: it falls by "]
    {
        assert!(page.contains(title), "{title}");
    }
    assert!(page.contains("change against single") && page.contains("<th>the batch</th>"));
    let quick = folder.run("study own.toml --quick --out quick");
    let left = "\n1 conclusion needs the full run, so it was not checked.\n";
    assert!(quick.stdout.contains(left) && !quick.stdout.contains("on large"), "{}", quick.stdout);
    // No injected fault, not even one that multiplies figures by ten, makes 296 hits more than 20,000.
    let vacuous = "on sound (hits: 296 in all 2 cases) [no planted fault makes this check fail]";
    assert!(quick.stdout.contains(vacuous), "{}", quick.stdout);
    let page = String::from_utf8(folder.read("quick/report.html")).unwrap();
    assert!(page.contains(" (in figures that hold).</span>") && page.contains("proves nothing"));
    assert!(page.contains("<h2>neutral on large</h2>") && page.contains(left.trim()));
    assert!(!page.contains("it is too short"), "the page lists a conclusion that was not checked");
    let unknown = String::from_utf8(folder.read("own.toml")).unwrap().replace("['wrong']", "['wrnog']");
    std::fs::write(folder.0.join("unknown.toml"), unknown).unwrap();
    let refused = folder.run("study unknown.toml");
    assert!(refused.code == 2 && refused.stderr.contains("did you mean `wrong`"), "{}", refused.stderr);
}

/// With `over` the bounds must hold for the whole 95 % confidence interval of the mean, and not only for the
/// mean.
#[test]
fn a_conclusion_over_seeds_is_as_sure_as_its_interval() {
    let grid = "workload = 'mixed-skewed'\nops = 2000\npages = 1000\nframes = 50\nseed = [1, 2, 3, 4]\nwrite_back = \
        ['single', 'ace:n_w=8']\n";
    let head = format!("title = 't'\nquestion = 'q'\ncommand = 'pool'\n[grid]\n{grid}");
    let folder = Folder::new().with("plain.toml", &head);
    let rows = folder.rows("study plain.toml");
    let of = |write_back: &str| {
        let rows = rows.iter().filter(move |row| row["write_back"] == write_back);
        rows.map(|row| row["elapsed_ns"].as_f64().unwrap()).collect::<Vec<f64>>()
    };
    let mean = of("single").iter().sum::<f64>() / 4.0;
    let ratios = std::iter::zip(of("ace:n_w=8"), of("single")).map(|(new, old)| new / old);
    let ratio = ratios.product::<f64>().powf(0.25);
    let check = |says: &str, column: &str, bound: f64| {
        format!(
            "[[checks]]\nsays = '{says}'\ncolumn = 'elapsed_ns'\nover = 'seed'\n{column}\nat_least = {bound}\n"
        )
    };
    let compare = "compare = { axis = 'write_back', baseline = 'single', candidate = 'ace:n_w=8' }";
    let only = "where = { write_back = 'single' }";
    let text = [
        check("the mean is far above", only, mean * 0.8),
        check("the mean is just above", only, mean * 0.99999),
        check("the ratio is far above", compare, ratio * 0.8),
        check("the ratio is just above", compare, ratio * 0.99999),
    ];
    let folder = Folder::new()
        .with("own.toml", format!("{head}{}", text.concat()))
        .with("alone.toml", format!("{head}{}", check("s", only, 0.0)).replace("[1, 2, 3, 4]", "[1]"));
    let outcome = folder.run("study own.toml");
    for says in ["holds: the mean is far above", "does not hold here: the mean is just above"] {
        assert!(outcome.stdout.contains(&format!("\n{says} (")), "{says}: {}", outcome.stdout);
        let says = says.replace("mean", "ratio");
        assert!(outcome.stdout.contains(&format!("\n{says} (")), "{says}: {}", outcome.stdout);
    }
    assert!(outcome.stdout.contains("95 % confidence, 4 values of seed"), "{}", outcome.stdout);
    // A single value has no confidence interval, so it is refused.
    let alone = folder.run("study alone.toml");
    assert!(alone.code == 2 && alone.stderr.contains("needs at least two rows"), "{}", alone.stderr);
}

/// A run with `--skip` begins in the middle of the workload, with an empty pool.
#[test]
fn skipped_requests_have_no_effect() {
    let again = "R 7\n".repeat(500);
    let others: String = (0..500).map(|page| format!("W {page}\n")).collect();
    let folder = Folder::new().with("t.pages", again + &others);
    for how in ["--device none --frames 10", "--device none --frames 2%", "--device optane --frames 10"] {
        let rows = folder.rows(&format!("pool t.pages {how} --skip 0,500,990"));
        let seen: Vec<(u64, u64)> =
            rows.iter().map(|row| (row["misses"].as_u64().unwrap(), row["hits"].as_u64().unwrap())).collect();
        // Page 7 is not in the pool when the workload writes it, because the skipped reads have no effect.
        assert_eq!(seen, [(500, 500), (500, 0), (10, 0)], "{how}");
        assert_eq!(
            (&rows[0]["skip"], &rows[2]["skip"], &rows[2]["ops"]),
            (&Value::Null, &990.into(), &10.into())
        );
        let refused = folder.run(&format!("pool t.pages {how} --skip 1000"));
        assert!(refused.code == 2 && refused.stderr.contains("0 to 999"), "{how}: {}", refused.stderr);
    }
    let refused = folder.run("pool t.pages --device optane --skip 990 --ops 11");
    assert!(refused.code == 2 && refused.stderr.contains("--skip 990"), "{}", refused.stderr);
}

/// The seed distinguishes the rows of a characterisation, as it does for other runs.
#[test]
fn a_characterisation_has_a_seed_column() {
    let folder = Folder::new();
    for curve in ["", " --curve"] {
        let rows = folder.rows(&format!("profile optane --seed 1,2{curve}"));
        let mut seeds: Vec<u64> = rows.iter().map(|row| row["seed"].as_u64().unwrap()).collect();
        seeds.dedup();
        assert_eq!(seeds, [1, 2], "{curve}");
    }
}

/// A conclusion about one part of a study is not made for the other parts, which may show the opposite.
#[test]
fn a_comparison_within_a_part_names_the_part() {
    let part = |name: &str| format!("[[parts]]\nname = '{name}'\n[parts.grid]\ndevice = '{name}'\n");
    let study = "title = 'T'\nquestion = 'Q'\ncommand = 'pool'\n[grid]\nworkload = ['zipf', 'mixed-skewed']\nops = \
        20000\n\
         write_back = ['single', 'ace']\n[compare]\npart = 'sata'\naxis = 'write_back'\nbaseline = 'single'\n\
         candidate = 'ace'\ncolumn = 'elapsed_ns'\nwhat = 'run time'\n[names]\nsata = 'SATA SSD'\n";
    let folder = Folder::new().with("s.toml", format!("{study}{}{}", part("sata"), part("optane")));
    let outcome = folder.run("study s.toml --out out");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let said = "In the part SATA SSD, with ace instead of single, run time ";
    assert!(outcome.stdout.contains(said), "{}", outcome.stdout);
    // The name of the part occurs once, because all figures in the sentence are from that part.
    assert!(outcome.stdout.contains("(zipf)"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("(sata"), "{}", outcome.stdout);
}
