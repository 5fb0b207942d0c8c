//! Lists the examples that follow the help of each command. A test executes them.

pub(crate) const ALL: &str = "\
Without a command the quickstart study runs.

Sizes are written 4KiB or 8GB, counts 2M, shares 6%. A list (lru,clock) on any policy means one run each.

Examples:
  fulgurite                                             the quickstart: does batching pay on an SSD?
  fulgurite list                                        every name there is
  fulgurite pool mixed-skewed --write-back single,ace   two policies beside each other
  fulgurite pool --help                                 the options of a command, with examples";

pub(crate) const LIST: &str = "\
Examples:
  fulgurite list devices
  fulgurite list replacement --json";

pub(crate) const PROFILE: &str = "\
Examples:
  fulgurite profile p4510,sata --page 4KiB,8KiB
  fulgurite profile file:drive,size=1GiB                a real drive, through a new file on it";

pub(crate) const POOL: &str = "\
Examples:
  fulgurite pool mixed-skewed --write-back single,ace
  fulgurite pool zipf:theta=0.9,write=30% --replacement lru,arc,sieve --users 1,16
  fulgurite pool trace.csv --device sata --frames 10%   your own trace
  fulgurite pool trace.csv --device none --curve --replacement lru,sieve,belady    misses by size of the pool
  fulgurite pool zipf --device file:drive,size=1GiB     the same on a real drive";

pub(crate) const GC: &str = "\
Examples:
  fulgurite gc zipf --placement none,sepbit,midas --victim cost-benefit
  fulgurite gc mixed-uniform --victim fifo,greedy --logical 930MiB --physical 1GiB --segment 1MiB";

pub(crate) const REPLAY: &str = "\
Examples:
  fulgurite replay trace.csv --device sata --schedule non-preemptive,preemptive
  fulgurite replay synthetic --users 8 --ops 50K        a closed loop
  fulgurite replay synthetic --interval 100ms           a row for each tenth of a second";

pub(crate) const BENCH: &str = "\
Examples:
  fulgurite bench ycsb-a --users 1,16 --durability flush,group,relaxed
  fulgurite bench tpcc --device sata --users 8 --by-type
  fulgurite bench sysbench-read-write --device file:drive,size=1GiB";

pub(crate) const ADVISE: &str = "\
Some seeds of a generated workload, or slices of a trace, choose the settings. Others judge them. \
Gains are counted from the plain settings: lru, write-back single, no prefetching and pages of 4 KiB. \
A setting is changed only where that gains more than the noise. \
A list behind a policy's option (--replacement clock,arc) names what may be chosen; the first is the plain one.

Examples:
  fulgurite advise mixed-skewed
  fulgurite advise tpcc --device sata --memory 16MiB --users 8
  fulgurite advise trace.csv --for p99                  your own trace, and the tail
  fulgurite advise zipf --replacement clock,sieve       what can be changed, and from what
  fulgurite advise zipf --device file:drive,size=1GiB   a real drive: some minutes
  fulgurite advise trace.csv --device pm9a3,p5520 --require p99=2ms,years=5
                                                        which drive meets what I need?
  fulgurite advise tpcc --dry-run                       how long will it take?";

pub(crate) const STUDY: &str = "\
Examples:
  fulgurite study quickstart --quick
  fulgurite study my-study.toml --out results/mine
  fulgurite study my-study.toml --out results/mine --resume   go on after an interrupt
  fulgurite study ace --dry-run                               how long will it take?";

pub(crate) const TRACE: &str = "\
Example:
  fulgurite trace info trace.csv";

pub(crate) const TRACE_INFO: &str = "\
Examples:
  fulgurite trace info trace.csv
  fulgurite trace info trace.csv --page 16KiB --json";

pub(crate) const TRACE_CONVERT: &str = "\
Examples:
  fulgurite trace convert trace.csv out.vscsi.zst --to vscsi
  fulgurite trace convert trace.csv hidden.csv.gz --to msr --anonymise --seed 7035920481957203911";

pub(crate) const TRACE_GENERATE: &str = "\
Example:
  fulgurite trace generate fio-h fio-h.midas.zst --to midas --logical 64MiB";

pub(crate) const DIFF: &str = "\
Runs are joined by what was asked of them. Figures about the machine that ran them are left out.
Exit code 0: nothing changed beyond the tolerance. 1: something did. 2: they cannot be compared.

Examples:
  fulgurite diff results/before results/after --tolerance 2%
  fulgurite diff before.csv after.csv --columns throughput_ops_s,latency_p99_ns --tolerance 5%";

pub(crate) const CALIBRATE: &str = "\
The table tells, for each rate, the figures of the measured drive and of the fitted one. The search never looks at
the rates that are held out.

Examples:
  fulgurite profile file:drive.img --suite latency --csv > measured.csv
  fulgurite calibrate measured.csv -o my-drive.toml
  fulgurite calibrate file:drive.img,size=64GiB -o my-drive.toml --start pm9a3
  fulgurite replay trace.csv --device my-drive.toml,p5520";

pub(crate) const COMPLETIONS: &str = "\
Example:
  fulgurite completions bash > completions.bash         then: source completions.bash";

pub(crate) const MAN: &str = "\
Examples:
  fulgurite man | man -l -
  fulgurite man pool > pool.1";

pub(crate) const SERVE: &str = "\
The simulated drive runs on the wall clock, so a program measures its latencies. Ctrl-C ends it and prints its \
figures; the signal USR1 prints them meanwhile.

Examples:
  fulgurite serve p4510 --nbd unix:drive.sock           then: nbdinfo nbd+unix:///?socket=drive.sock
  fulgurite serve p4510:op=7% --fuse folder             then: mkfs.ext4 folder/drive
  fulgurite serve sata --nbd tcp:127.0.0.1:10809 --power volatile --control ctl.sock";

pub(crate) const CTL: &str = "\
Examples:
  fulgurite ctl ctl.sock power-cut --seed 7             lose a part of what was not flushed
  fulgurite ctl ctl.sock power-cut --at flush:3         at the third flush from now on
  fulgurite ctl ctl.sock fail-reads --offset 4096 --length 512
  fulgurite ctl ctl.sock stats --json";

pub(crate) const CRASHTEST: &str = "\
The program runs in an empty folder, its current one, so it and the checker are named by absolute paths. At a cut it \
is killed, and writes and names that it has not synced may be lost. The checker then runs in the folder and gets as \
its input all that the program has printed until the cut, so a program prints what it relies on. The same seed cuts at \
the same operation and loses in the same way.

Examples:
  fulgurite crashtest --check 'test ! -e file -o -s file' -- sh -c 'echo 1 >n; sync n; mv n file'
  fulgurite crashtest --folder strict --cuts 20 --check \"$PWD/check.sh\" -- \"$PWD/work.sh\"
  fulgurite crashtest --seed 17 --cuts 1 --keep found --check \"$PWD/check.sh\" -- \"$PWD/work.sh\"";
