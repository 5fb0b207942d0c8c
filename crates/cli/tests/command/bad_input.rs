//! Tests wrong arguments. Exit code 2 and one sentence that names the argument and the accepted values are
//! expected, with nothing on standard output and no files.

use crate::folder::Folder;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::process::Command;

/// Executes each command and checks that it is refused. Its sentence must contain all of the words.
fn refused(folder: &Folder, cases: &[(&str, &[&str])]) {
    let before = folder.names();
    for (arguments, words) in cases {
        let outcome = folder.run(arguments);
        assert_eq!(outcome.code, 2, "{arguments}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.stdout, "", "{arguments}");
        assert_eq!(outcome.stderr.trim_end().lines().count(), 1, "{arguments}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("os error"), "{arguments}: {}", outcome.stderr);
        for word in *words {
            assert!(outcome.stderr.contains(word), "{arguments}: no `{word}` in: {}", outcome.stderr);
        }
        assert_eq!(folder.names(), before, "{arguments} left something behind");
    }
}

#[test]
fn unknown_names_are_offered_the_nearest() {
    refused(
        &Folder::new(),
        &[
            ("pol mixed-skewed", &["unknown command `pol`; did you mean `pool`?"]),
            // The command `reference` is not offered, since only the book uses it.
            ("man nosuch", &["unknown command `nosuch`", "completions man help)"]),
            ("warehouse s.db", &["unknown command `warehouse`", "accepted: what fulgurite --help lists"]),
            // Two names are equally near, so both are offered.
            ("profil p4510", &["unknown command `profil`; did you mean `pool` or `profile`?"]),
            ("trace t.csv", &["unknown command `t.csv`", "accepted: what fulgurite trace --help lists"]),
            ("replay synthetic --qd 8", &["unknown option `--qd`", "what fulgurite replay --help lists"]),
            ("profile /dev/nosuch", &["unknown device `/dev/nosuch`; did you mean `file:/dev/nosuch`?"]),
            ("profile p4510 --page 4K", &["--page", "`4K` is not a size; did you mean `4KiB`?"]),
            ("completions tcsh", &["'tcsh'", "accepted: bash, elvish, fish, powershell, zsh;"]),
            ("pool mixed-skewd", &["mixed-skewd", "did you mean `mixed-skewed`"]),
            ("pool mixed-skewed --device p4511", &["device", "did you mean `p4510`"]),
            ("pool mixed-skewed --device fle:d", &["unknown device `fle`", "file:PATH"]),
            ("profile p4511:channels", &["unknown device `p4511`", "did you mean `p4510`"]),
            ("pool mixed-skewed --device p4510:chanels=4", &["chanels", "did you mean `channels`"]),
            ("pool mixed-skewed --replacement lur", &["replacement", "did you mean `lru`"]),
            ("pool mixed-skewed --write-back singel", &["write-back", "did you mean `single`"]),
            ("pool mixed-skewed --write-back ace:n=4", &["ace", "`n`", "n_w"]),
            ("pool mixed-skewed --prefetch non", &["prefetch", "did you mean `none`"]),
            ("pool mixed-skewed --frmes 3", &["unknown option `--frmes`; did you mean `--frames`?"]),
            ("pool zipf:theta=", &["`theta` in `zipf:theta=` has no value", "accepted: theta=VALUE"]),
            ("pool zipf --ops=", &["--ops: no value", "leave the option out"]),
            ("pool zipf mixed-skewed", &["`mixed-skewed` is one argument too many", "fulgurite pool"]),
            ("pool zipf --json --csv", &["--json", "--csv", "accepted: one of them"]),
            ("pool zipf --ops 5 --ops 6", &["--ops", "given twice"]),
            ("pool", &["<WORKLOAD> is missing", "fulgurite pool", "--help"]),
            ("pool zipf:teta=1", &["teta", "did you mean `theta`"]),
            ("gc mixed-uniform --victim greedi", &["victim", "did you mean `greedy`"]),
            ("gc mixed-uniform --placement nnoe", &["placement", "none"]),
            ("gc fio-h --interval 0", &["--interval", "0", "a count, or a larger share"]),
            (
                "gc fio-h --interval 1 --ops 10M",
                &["--interval 1", "more than 65536 intervals", "from 153 on"],
            ),
            ("gc fio-h --interval 1 --ops 10M --dry-run", &["--interval 1", "more than 65536 intervals"]),
            ("gc fio-h --interval 5 --groups", &["--interval", "--groups", "one of them"]),
            ("gc fio-h --groups --explain", &["--explain", "without --interval and --groups"]),
            ("gc fio-h --placement oracle:sizes=100%", &["sizes=100%", "less than 100%"]),
            ("trace generate fio-g t.midas --to midas", &["fio-g", "did you mean `fio-h`"]),
            ("trace generate fio-h t.midas --to mida", &["format", "did you mean `midas`"]),
            ("trace generate fio-h t.csv --to midas --logical 1KiB", &["--logical", "4096", "more space"]),
            ("trace generate fio-h t --to oracle-general", &["oracle-general", "accepted"]),
            ("bench ycsb", &["ycsb", "did you mean `ycsb-a`"]),
            ("bench tpcc:warehouse=2", &["warehouse", "did you mean `warehouses`"]),
            ("bench ycsb-a --torn-pages double", &["--torn-pages", "double-write"]),
            ("bench ycsb-a --durability flsh", &["--durability", "did you mean `flush`"]),
            ("bench ycsb-a --device p4511", &["did you mean `p4510`"]),
            ("bench ycsb-a --device none", &["none", "accepted", "a preset"]),
            (
                "bench ycsb-a --device optane --torn-pages share",
                &["--torn-pages share", "optane", "accepted"],
            ),
            ("bench ycsb-a --ops 5 --time 1s", &["--ops", "--time", "one of them"]),
            ("bench ycsb-a:records=1K --interval 1us --time 1s", &["--interval", "too short", "65536"]),
            // The interval is refused before the data are loaded.
            (
                "bench ycsb-a --interval 1us --time 1s --dry-run",
                &["--interval 1us", "65536", "from 15.259us on"],
            ),
            ("bench ycsb-a:records=5 --scale 2", &["--scale 2", "one of them"]),
            ("bench ycsb-a --degree 4", &["--degree 4", "index-scan"]),
            ("bench index-scan --degree 257", &["--degree", "257", "1 to 256, or auto"]),
            ("bench ycsb-a --page 2KiB", &["--page", "whole pages"]),
            ("bench ycsb-a --page 128KiB", &["--page", "4 KiB to 64 KiB"]),
            ("bench ycsb-a --memory 1KiB", &["--memory 1KiB", "accepted: from"]),
            ("bench ycsb-a:records=1K --memory 16777216TiB", &["--memory", "16777216TiB"]),
            (
                "bench ycsb-a:records=1K --memory 1048576TiB",
                &["--memory 1048576TiB takes more memory", "accepted: less"],
            ),
            (
                "pool zipf --pages 4G --frames 4G --page 1MiB --device file:d,engine=psync",
                &["d cannot have", "has room for", "accepted"],
            ),
            ("bench ycsb-a --memory 5", &["--memory", "4KiB"]),
            ("bench ycsb-a --log-size 4KiB", &["--log-size", "64 pages"]),
            ("bench tpcc --scale 500", &["MiB", "--scale", "p4510:blocks=1248"]),
            ("bench ycsb-a --reuse", &["--reuse", "p4510", "a file"]),
            ("bench ycsb-a --reuse --write-back ace --device file:d", &["--reuse", "ace", "ace:n_w=8"]),
            ("bench ycsb-a --cpu-per-op 2 --device file:d,engine=psync", &["--cpu-per-op", "leave it out"]),
            (
                "bench ycsb-c:records=1K --memory 16MiB --time 1s --cpu-per-op 0 --device mem",
                &["would not end", "charge CPU"],
            ),
            ("bench ycsb-a --users 1,0", &["--users", "0"]),
            ("bench ycsb-a --write-back stor", &["--write-back", "did you mean `store`"]),
            ("bench ycsb-a --write-back store:n_w=2", &["--write-back", "store"]),
            ("bench", &["BENCHMARK"]),
            ("profile p451", &["device", "did you mean `p4510`"]),
            ("study quikstart", &["did you mean `quickstart`", ".toml"]),
            ("list polices", &["polices", "write-back"]),
            ("trace info traces --format page-op", &["did you mean `page-ops`"]),
        ],
    );
}

#[test]
fn impossible_replays_and_conversions() {
    refused(
        &Folder::new().with("t.pages", "R 1\nW 2\n"),
        &[
            ("replay mixed-uniform", &["no arrival times", "--rate", "--users"]),
            ("replay t.pages --speed 2x", &["no arrival times"]),
            ("replay synthetic --users 2 --speed 2x", &["one of them"]),
            ("replay synthetic --speed fast", &["--speed", "2x"]),
            ("replay synthetic --interval 5", &["--interval", "100ms"]),
            ("replay synthetic --schedule semi-premptive", &["did you mean `semi-preemptive`"]),
            ("replay synthetic --schedule paced+merge", &["accepted: semi-preemptive and preemptive"]),
            ("replay synthetic --device optane --schedule preemptive", &["collects no garbage"]),
            ("replay synthetic --trace-out a.json --schedule paced,preemptive", &["a single run"]),
            ("replay synthetic --trace-out no/such/folder.json", &["--trace-out", "no/such"]),
            ("replay synthetic --addresses scal", &["did you mean `scale`"]),
            ("replay t.pages --rate 9 --format disksim:time_unit=h", &["known: ps ns us ms s"]),
            ("trace convert t.pages t.pages --to spc", &["OUT", "FILE", "same file"]),
            ("trace convert t.pages x --to oracle-general", &["convert to another format first"]),
            ("trace convert t.pages x.xz --to spc", &["OUT", ".xz", "accepted: .gz, .zst"]),
            ("trace convert t.pages x --to scp", &["did you mean `spc`"]),
            ("trace convert t.pages no/such/x --to spc", &["no/such/x"]),
        ],
    );
}

#[test]
fn zero_and_absurd_sizes() {
    refused(
        &Folder::new(),
        &[
            ("pool mixed-skewed --frames 0", &["--frames", "accepted: 1 to"]),
            (
                "profile p4510:blocks=16,pages=16,channels=1,chips=1,dies=1,planes=1 --page 1MiB",
                &["--page 1MiB", "larger than the drive"],
            ),
            ("pool mixed-skewed --frames 102401", &["--frames", "never be used", "102400"]),
            ("pool mixed-skewed --frames 600%", &["--frames", "600%"]),
            ("pool mixed-skewed --frames -3", &["-3"]),
            ("pool mixed-skewed --pages 0", &["--pages", "accepted: 1 to"]),
            ("pool mixed-skewed --pages 1", &["pages", "at least 10"]),
            ("pool mixed-uniform --pages 1 --frames 2", &["--frames", "1 pages"]),
            ("pool mixed-skewed --pages 1G", &["pages", "p4510", "fewer --pages"]),
            ("pool mixed-skewed --ops 0", &["--ops", "accepted: 1 to"]),
            ("pool mixed-skewed --ops 99999999999999999999999", &["--ops"]),
            ("pool mixed-skewed --users 0", &["--users", "accepted: 1 to"]),
            ("pool mixed-skewed --page 5KiB", &["--page", "power of two"]),
            ("pool mixed-skewed --page 512B", &["--page", "4096"]),
            ("pool mixed-skewed --cpu-per-request -1", &["-1"]),
            ("pool mixed-skewed --write-back ace:n_w=0", &["n_w=0", "ace", "accepted: 1 to 65536"]),
            ("pool mixed-skewed --seed x", &["--seed", "x"]),
            ("pool mixed-skewed --threads 0", &["--threads"]),
            ("pool zipf:write=120%", &["write", "120%"]),
            ("pool mixed-skewed --device p4510:channels=0", &["channels", "0"]),
            ("pool mixed-skewed --device p4510:blocks=4000000000", &["blocks"]),
            (
                "pool mixed-skewed --device p4510:op=0%",
                &["op=0%", "garbage", "accepted: at least 84 segments"],
            ),
            ("pool mixed-skewed --device p4510:blocks=2", &["blocks"]),
            ("gc mixed-uniform --logical 8GiB --physical 8GiB", &["--logical", "--physical", "accepted"]),
            ("gc mixed-uniform --logical 9GiB --physical 8GiB", &["--logical", "--physical", "accepted"]),
            ("gc mixed-uniform --logical 7MiB --physical 8MiB --segment 4MiB", &["segments"]),
            ("gc mixed-uniform --logical 0B", &["--logical", "at least"]),
            ("gc mixed-uniform --segment 1KiB", &["--segment", "at least"]),
            ("gc mixed-uniform --gc-reserve 0", &["--gc-reserve", "accepted: 1 to"]),
            ("profile p4510 --page 1000B", &["--page", "power of two"]),
            ("profile p4510 --page 4Kib", &["--page", "4Kib"]),
        ],
    );
}

#[test]
fn settings_of_a_pool_that_conflict() {
    refused(
        &Folder::new().with("precious", [1; 10_000]).with("short", [1; 4_095]),
        &[
            (
                "pool mixed-skewed --device none --write-back raw:buffers=2",
                &["raw:buffers=2", "only in time"],
            ),
            ("pool mixed-skewed --device none --write-back background", &["only in time"]),
            ("pool mixed-skewed --device none --write-back single:lock=yes", &["lock=yes", "only in time"]),
            ("pool mixed-skewed --write-back raw:lock=yes", &["unknown option of raw `lock`"]),
            ("pool journaling:checkpoint=share --pages 2K", &["shares pages", "a pool does not"]),
            (
                "replay journaling:checkpoint=share --device mem:pages=10K --users 8",
                &["shares pages", "checkpoint=copy"],
            ),
            (
                "gc journaling:checkpoint=share --placement oracle --logical 60MiB --physical 64MiB --segment 256KiB",
                &["shares pages", "look ahead"],
            ),
            ("pool mixed-skewed --device none --prefetch sequential", &["--prefetch", "only in time"]),
            ("pool mixed-skewed --device none --users 2", &["--users", "only in time"]),
            ("pool mixed-skewed --device none --write-back ace", &["n_w", "accepted: ace:n_w=8"]),
            ("pool mixed-skewed --device none --write-back auto", &["auto", "measured on the drive"]),
            ("pool mixed-skewed --device none --replacement cflru-e", &["erased", "none", "p4510"]),
            ("pool mixed-skewed --device optane --replacement dl-cflru-e", &["erased", "optane"]),
            ("pool mixed-skewed --frames 9 --write-back raw:buffers=9", &["9 of 9 frames", "buffers="]),
            ("pool mixed-skewed --write-back ace:n_w=2,n_e=3", &["n_e=3", "n_w=2", "accepted: 1 to 2"]),
            ("pool mixed-skewed --write-back raw:buffers=0", &["buffers=0", "accepted: 1 to"]),
            ("pool mixed-skewed --prefetch sequential:n=0", &["n=0", "accepted: 1 to 1024"]),
            ("pool mixed-skewed --prefetch history:table=1000", &["table=1000", "power of two"]),
            ("pool mixed-skewed --replacement clock:max=0", &["max=0", "accepted"]),
            ("pool mixed-skewed --replacement lru-wsr:passed=go", &["passed", "stay", "move"]),
            ("replay synthetic --device none", &["none is no drive"]),
            ("profile none", &["none"]),
            ("pool mixed-skewed --device file:", &["no path", "file:PATH"]),
            ("pool mixed-skewed --device file:x:size=99TiB", &["after a comma", "file:x,size=99TiB"]),
            ("pool mixed-skewed --layer lob", &["lob", "did you mean `log`"]),
            ("pool mixed-skewed --layer log:sement=1MiB", &["sement", "did you mean `segment`"]),
            ("pool mixed-skewed --layer log --placement oracle", &["--layer log", "oracle", "gc alone"]),
            ("pool mixed-skewed --layer log:fill=no", &["fill=no", "precondition"]),
            (
                "pool mixed-skewed --layer log --device p4510:precondition=sprandom",
                &["precondition=sprandom", "accepted here: precondition=none, fill or steady"],
            ),
            ("pool mixed-skewed --layer log:op=0%", &["op=0%", "accepted"]),
            ("pool mixed-skewed --layer log:segment=1TiB", &["segment=1TiB", "larger than the drive"]),
            (
                "replay fio-u --users 1 --layer log:gc_hard=3 --schedule non-preemptive",
                &["gc_hard", "leave it out"],
            ),
            ("pool mixed-skewed --device none --layer log", &["--layer log", "none"]),
            ("pool mixed-skewed --device optane --victim fifo", &["--victim fifo", "no garbage"]),
            ("replay fio-u --users 1 --layer log --schedule preemptive", &["preemptive", "semi-preemptive"]),
            ("pool mixed-skewed --device file:d,engine=urin", &["did you mean `uring`"]),
            ("pool mixed-skewed --device file:d,sise=3", &["did you mean `size`"]),
            (
                "pool mixed-skewed --device file:precious",
                &["device file:precious was not made by Fulgurite", "--destroy-contents"],
            ),
            ("profile file:precious", &["--destroy-contents"]),
            ("profile file:short,size=64MiB", &["--destroy-contents"]),
            ("replay synthetic --device file:precious", &["--destroy-contents"]),
            ("profile file:.", &["device file:. is neither a file nor a block device"]),
            ("profile file:no/such/folder/d", &["no/such/folder"]),
        ],
    );
}

#[test]
fn options_that_conflict() {
    let folder = Folder::new().with("t.pages", "R 1\nW 2\nR 3\n");
    refused(
        &folder,
        &[
            ("pool t.pages --pages 10", &["--pages", "3 distinct pages"]),
            ("pool t.pages --ops 4", &["--ops", "accepted: 1 to 3"]),
            ("pool t.pages --frames 4", &["--frames", "accepted: 1 to 3"]),
            ("trace info t.pages --page 4KiB", &["--page", "page-ops"]),
            ("pool mixed-skewed --json --csv", &["--json", "--csv"]),
            ("pool", &["WORKLOAD", "accepted: fulgurite pool <WORKLOAD>, as --help explains"]),
            ("trace generate zipf", &["--to <NAME>", "accepted: fulgurite trace generate --to <NAME>"]),
            ("pool none.pages", &["no file none.pages", "accepted: the path of a trace"]),
            ("pool no/such:x", &["no file no/such:x", "accepted: the path of a trace"]),
            ("trace info none.pages", &["none.pages: cannot be opened", "accepted: the path of a trace"]),
        ],
    );
}

/// The error for a missing name or file says which kind of name it should be, and lists the accepted values.
#[test]
fn missing_arguments_are_named() {
    let folder = Folder::new().with("rows.csv", "k,v\n");
    fs::create_dir(folder.0.join("folder")).unwrap();
    let no_workload = "and no workload of that name; accepted: the path of a trace, or a workload (`fulgurite list \
        workloads` shows all)";
    let no_trace = "cannot be opened: there is no such file; accepted: the path of a trace";
    let no_study = "there is no such file; accepted: a TOML file that describes a study, or a name that `fulgurite \
        list studies` shows";
    let no_store = "does not exist; accepted: a file or block device that holds a store";
    let mut cases = vec![
        ("pool none.csv", ["there is no file none.csv", no_workload]),
        ("pool ./none", ["there is no file ./none", no_workload]),
        ("replay none.spc", ["there is no file none.spc", no_workload]),
        ("gc none.msr", ["there is no file none.msr", no_workload]),
        ("advise none.csv", ["there is no file none.csv", no_workload]),
        (
            "pool nonesuch",
            [
                "unknown workload `nonesuch` (known: mixed-skewed",
                "there is no trace file of that name either",
            ],
        ),
        (
            "replay zipff",
            ["unknown workload `zipff`; did you mean `zipf`?", "there is no trace file of that name either"],
        ),
        ("pool folder", ["folder stands for no file", "accepted: a trace, a folder with traces"]),
        ("trace info none.csv", ["none.csv: ", no_trace]),
        ("trace info folder", ["folder stands for no file", "accepted: a trace, a folder with traces"]),
        ("trace convert none.csv x --to msr", ["none.csv: ", no_trace]),
        ("study none.toml", ["study none.toml cannot be read: ", no_study]),
        (
            "study no/such.toml",
            ["study no/such.toml cannot be read: ", "there is no folder no; accepted: a TOML file"],
        ),
        (
            "study nonesuch",
            [
                "unknown study `nonesuch` (known: quickstart",
                "a study of your own is a path that ends in .toml",
            ],
        ),
        (
            "study quickstrat",
            ["unknown study `quickstrat`; did you mean `quickstart`?", "a path that ends in .toml"],
        ),
        (
            "diff none.csv folder",
            ["A none.csv: cannot be read: there is no such file", "accepted: the folder of a study"],
        ),
        ("diff folder folder", ["A folder: has no table.csv", "accepted: the folder of a study"]),
        (
            "load x t --from none.csv",
            ["--from none.csv: there is no such file", "accepted: a file of key,value rows, or -"],
        ),
    ];
    let on_stores =
        ["check none", "stat none", "get none t k", "scan none t", "backup none x", "repair none x"];
    cases.extend(on_stores.map(|command| (command, ["FILE none ", no_store])));
    let fault = |(typed, words): &(&str, [&str; 2])| {
        let outcome = folder.run(typed);
        let is_so = outcome.code == 2 && words.iter().all(|word| outcome.stderr.contains(word));
        (!is_so).then(|| format!("{typed}: {}", outcome.stderr))
    };
    let faults: Vec<String> = cases.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.concat());
    assert_eq!(folder.names(), ["folder", "rows.csv"]);
}

/// An option that the command or the workload does not use is refused and not ignored.
#[test]
fn no_typed_option_is_ignored() {
    refused(
        &Folder::new(),
        &[
            (
                "pool zipf --format msr",
                &["--format msr", "zipf, which is not read from a file", "accepted: a trace file"],
            ),
            ("gc fio-h --format msr --dry-run", &["--format msr", "fio-h, which is not read from a file"]),
            ("replay synthetic --format spc", &["--format spc", "synthetic, which is not read"]),
            ("pool postgres-pgbench --format msr", &["--format msr", "which is not read from a file"]),
            ("advise zipf --format msr --dry-run", &["--format msr", "zipf, which is not read"]),
            ("--seed -1 list", &["--seed", "`-1`", "a whole number"]),
            ("list devices --seed 1,x", &["--seed", "`x`", "a whole number"]),
            ("completions bash --seed 1.5", &["--seed", "`1.5`", "a whole number"]),
        ],
    );
    // A generated workload in the same grid does not prevent the options of a trace.
    let trace: String = (0..100).map(|page| format!("R {page}\n")).collect();
    let beside = Folder::new().with("t", trace).run("pool zipf,t --format page-ops --frames 10 --ops 100");
    assert_eq!(beside.code, 0, "{}", beside.stderr);
}

#[test]
fn broken_traces() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all("R 1\nW 2\n".repeat(10_000).as_bytes()).unwrap();
    let mut packed = packed.finish().unwrap();
    packed.truncate(packed.len() / 2);
    let folder = Folder::new()
        .with("cut.pages.gz", packed)
        .with("binary.pages", [0u8, 159, 146, 150, 10, 0, 1])
        .with("binary", [0u8, 159, 146, 150, 10, 0, 1])
        .with("empty.pages", "")
        .with("wrong.pages", "R 1\nX 2\n")
        .with("huge.pages", "R 99999999999999999999999999\n")
        .with("cut.csv", "version,time,op,size,lbn\n1,2,28,512\n");
    refused(
        &folder,
        &[
            ("trace info cut.pages.gz", &["cut.pages.gz"]),
            ("pool cut.pages.gz", &["cut.pages.gz"]),
            ("trace info binary.pages", &["binary.pages", "line 1"]),
            ("trace info binary", &["binary", "text"]),
            ("pool empty.pages", &["empty.pages"]),
            ("pool wrong.pages", &["wrong.pages", "line 2", "X"]),
            ("gc wrong.pages", &["wrong.pages", "line 2"]),
            ("pool huge.pages", &["huge.pages", "line 1"]),
            ("trace info cut.csv --format cloudphysics", &["cut.csv", "line 2"]),
            ("trace info nowhere.pages", &["nowhere.pages"]),
            ("trace info .", &["binary", "a trace is text"]),
        ],
    );
}

#[test]
fn studies() {
    let study = |body: &str| format!("title = \"t\"\nquestion = \"q\"\ncommand = \"pool\"\n{body}");
    let grid = "[grid]\nworkload = \"mixed-skewed\"\nops = 1000\npages = 1000\n";
    let folder = Folder::new()
        .with("key.toml", study(&format!("colums = []\n{grid}")))
        .with("setting.toml", study("[grid]\nworkload = \"mixed-skewed\"\nframe = 3\n"))
        .with("column.toml", study(&format!("columns = [\"elapsed\"]\n{grid}")))
        .with("name.toml", study("[grid]\nworkload = \"mixed-skewed\"\nreplacement = [\"lru\", \"lur\"]\n"))
        .with("kind.toml", study(grid).replace("pool", "pol"))
        .with(
            "compare.toml",
            study(&format!(
                "{grid}[compare]\naxis = \"write_back\"\nbaseline = \
            \"single\"\ncandidate = \"ace\"\ncolumn = \"elapsed_ns\"\nwhat = \"run time\"\n"
            )),
        )
        .with("check.toml", study(&format!("{grid}[[checks]]\nsays = \"s\"\ncolumn = \"hits\"\n")))
        .with(
            "sides.toml",
            study(&format!(
                "{grid}[[checks]]\nsays = \"s\"\ncolumn = \"hits\"\nat_least = \
            1\ncompare = {{ baseline = {{ users = \"1\" }}, candidate = {{ frames = \"3\" }} }}\n"
            )),
        )
        .with(
            "over.toml",
            study(&format!(
                "{grid}[[checks]]\nsays = \"s\"\ncolumn = \"hits\"\nfalls_with = \
            \"frames\"\nover = \"seed\"\n"
            )),
        )
        .with(
            "published.toml",
            study(&format!(
                "{grid}[[plots]]\ntitle = \"t\"\ncaption = \"c\"\nkind = \"bar\"\nx \
            = \"workload\"\ny = \"hits\"\nseries = \"write_back\"\ny_label = \
            \"hits\"\npublished.sinlge.mixed-skewed = 1\n"
            )),
        )
        .with("broken.toml", "title = \n")
        .with("good.toml", study(grid))
        .with("file", "not a folder");
    refused(
        &folder,
        &[
            ("study key.toml", &["key.toml", "line 4", "colums"]),
            ("study setting.toml", &["frame", "did you mean `frames`"]),
            ("study column.toml", &["column.toml", "elapsed", "elapsed_ns"]),
            ("study name.toml", &["name", "did you mean `lru`"]),
            ("study kind.toml", &["kind.toml", "line 3", "pol", "pool"]),
            ("study broken.toml", &["broken.toml", "line 1"]),
            ("study compare.toml", &["[compare]", "write_back", "[grid]"]),
            ("study check.toml", &["check `s`", "at_least", "falls_with"]),
            ("study sides.toml", &["check `s`", "same columns on both sides"]),
            ("study over.toml", &["check `s`", "either bounds", "over"]),
            (
                "study nowhere.toml",
                &["study nowhere.toml cannot be read", "accepted: a TOML file", "list studies"],
            ),
            ("study good.toml --out file/results", &["--out", "file/results"]),
            ("study good.toml --out file", &["--out", "file"]),
            ("study good.toml --out /proc/fulgurite", &["--out", "/proc/fulgurite"]),
        ],
    );
    // The wrong name is found when all runs have ended, and the finished runs are kept.
    let published = folder.run("study published.toml");
    assert_eq!(published.code, 2);
    for words in ["published", "did you mean `single`", "1 finished runs of 1 are kept in results/published"]
    {
        assert!(published.stderr.contains(words), "no `{words}` in: {}", published.stderr);
    }
    assert_eq!(folder.run("study good.toml").code, 0, "the study that the others are made from is sound");
}

/// The file behind standard output is empty until a run prints. Even an empty output file is not used as a
/// drive.
#[test]
fn its_own_output_is_not_a_drive() {
    let folder = Folder::new();
    for device in ["file:/dev/stdout,size=1MiB", "file:out,size=1MiB"] {
        let out = fs::File::create(folder.0.join("out")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fulgurite"));
        let run = command.args(["profile", device, "--destroy-contents"]).current_dir(&folder.0).stdout(out);
        let output = run.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{device}: {said}");
        assert!(said.contains("own input or output"), "{device}: {said}");
        assert_eq!(folder.read("out"), b"", "{device}");
    }
}
