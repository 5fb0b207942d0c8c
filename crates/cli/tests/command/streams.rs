//! Tests `-`, which stands for standard input or output at every argument whose file is read or written from
//! beginning to end.

use crate::folder::Folder;

const TRACE: &str = "0,0,8192,W,0.5\n0,64,4096,R,0.75\n0,8,512,w,1.0\n";

/// Executes a script, which must succeed, and returns its standard output.
fn said(folder: &Folder, script: &str) -> String {
    let outcome = folder.shell(script);
    assert_eq!(outcome.code, 0, "{script}: {}", outcome.stderr);
    outcome.stdout
}

#[test]
fn a_trace_is_read_from_standard_input_or_a_pipe() {
    let folder = Folder::new().with("t.spc", TRACE);
    for command in [
        "pool - --format spc --frames 2 --csv",
        "pool - --format spc --frames 2 --device none --csv",
        "gc - --format spc --logical 64KiB --physical 1MiB --segment 64KiB --csv",
        "replay - --format spc --csv",
        "trace info - --format spc --csv",
    ] {
        let named = |name: &str| format!("fulgurite {}", command.replacen('-', name, 1));
        // Leave out the name of the trace and the cost of the execution, because only these columns differ.
        let figures = |text: String, name: &str| {
            let costs = ["cpu_ns_per_op", "sim_wall_s", "sim_ops_s", "peak_rss_bytes"];
            let is_cost = |column: &&str| costs.contains(column);
            let costs = text.lines().next().unwrap().split(',').filter(is_cost).count();
            let row = text.lines().nth(1).unwrap().replace(name, "-");
            let cells: Vec<String> = row.split(',').map(str::to_owned).collect();
            cells[..cells.len() - costs].to_vec()
        };
        let of_file = figures(said(&folder, &named("t.spc")), "t.spc");
        for script in [format!("{} < t.spc", named("-")), format!("cat t.spc | {}", named("-"))] {
            let mut streamed = figures(said(&folder, &script), "-");
            // Ignore the run id. The identity of a run that does not read its trace beforehand depends on the
            // bytes and the format of the file.
            streamed[0].clone_from(&of_file[0]);
            assert_eq!(streamed, of_file, "{script}");
        }
        let pipe = said(&folder, &named("<(cat t.spc)"));
        assert_eq!(pipe.lines().count(), 2, "a pipe that the shell makes: {pipe}");
    }
    assert_eq!(folder.names(), ["t.spc"]);
}

#[test]
fn standard_output_holds_one_output() {
    let folder = Folder::new().with("t.spc", TRACE);
    let converted = said(&folder, "fulgurite trace convert t.spc - --to msr");
    assert_eq!(converted.lines().count(), 3);
    assert!(converted.lines().all(|line| line.contains(",fulgurite,0,")), "{converted}");
    assert_eq!(said(&folder, "fulgurite trace convert - - --to msr --format spc < t.spc"), converted);
    let log = folder.shell("fulgurite replay t.spc --requests-out - --csv");
    assert!(log.stdout.starts_with("arrived_ns,op,"), "{}", log.stdout);
    assert_eq!((log.code, log.stdout.lines().count()), (0, 4));
    assert!(log.stderr.starts_with("run_id,"), "the table goes to standard error: {}", log.stderr);
    let timeline = said(&folder, "fulgurite replay t.spc --trace-out -");
    assert!(serde_json::from_str::<serde_json::Value>(&timeline).is_ok(), "{timeline}");
    let piped = said(
        &folder,
        "fulgurite trace generate zipf - --to page-ops --ops 50 | fulgurite trace info - --json",
    );
    assert!(piped.contains("\"requests\":50"), "{piped}");
    assert_eq!(folder.names(), ["t.spc"], "no file is called `-`");
}

#[test]
fn a_study_is_read_from_standard_input() {
    let folder = Folder::new();
    let study = "title = \"T\"\nquestion = \"Q\"\ncommand = \"pool\"\n[grid]\nworkload = \"zipf\"\nops = 2\n";
    said(&folder, &format!("fulgurite study - --out here <<'E'\n{study}E"));
    assert_eq!(folder.read("here/study.toml"), study.as_bytes());
}

#[test]
fn random_access_to_streams_is_refused() {
    let folder = Folder::new().with("t.spc", TRACE);
    for (arguments, argument) in [
        ("load - t", "FILE -"),
        ("check -", "FILE -"),
        ("repair t.spc -", "OUT -"),
        ("backup t.spc -", "OUT -"),
        ("pool zipf --device file:-", "file:-"),
        ("study quickstart --out -", "--out -"),
        ("replay t.spc --requests-out - --trace-out -", "--requests-out -"),
    ] {
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, 2, "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(argument), "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("accepted"), "{arguments}: {}", outcome.stderr);
    }
    let over_itself = folder.shell("fulgurite trace convert - t.spc --to msr --format spc < t.spc");
    assert_eq!((over_itself.code, folder.read("t.spc")), (2, TRACE.as_bytes().to_vec()));
    assert_eq!(folder.names(), ["t.spc"]);
}

/// Commas separate values, but the name of a file may contain one and is still one value.
#[test]
fn the_name_of_a_file_is_one_value() {
    let folder = Folder::new().with("a,b.pages", "R 1\nW 2\nR 1\n");
    let rows = folder.rows("pool a,b.pages --frames 2 --write-back single,ace");
    let workloads: Vec<&str> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    assert_eq!(workloads, ["a,b.pages"; 2]);
}
