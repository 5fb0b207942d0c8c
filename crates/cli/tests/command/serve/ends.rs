//! Tests the ends of a server, and its figures on request.

use super::drive::{Served, shell};
use crate::folder::Folder;

const SMALL: &str = "mem:page=4KiB,pages=100";

/// The rule: Ctrl-C prints the figures and ends the server with exit code 0. It leaves neither sockets nor a mounted
/// folder behind.
#[test]
fn an_interrupt_prints_the_figures_and_removes_the_sockets() {
    for signal in ["-INT", "-TERM"] {
        let mut served = Served::mounted(SMALL);
        served.client().write(0, &[1; 4_096]).unwrap();
        assert_eq!(served.done("stat -c %s d/drive"), "409600\n");
        served.signal(signal);
        let outcome = served.outcome();
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{signal}");
        let figures: Vec<Vec<&str>> =
            outcome.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
        for expected in [["device", "mem:page=4KiB,pages=100"], ["ops", "1"], ["writes", "1"]] {
            assert!(figures.iter().any(|line| line == &expected), "{signal}: {}", outcome.stdout);
        }
        assert_eq!(served.folder.names(), ["d"], "{signal}");
        assert_eq!(served.folder.0.join("d").read_dir().unwrap().count(), 0, "{signal}");
    }
}

/// The rule: the signal USR1 prints the figures so far, and the server goes on.
#[test]
fn a_signal_prints_the_figures_so_far() {
    let folder = Folder::new();
    let script = format!(
        "{} serve {SMALL} --speed max --columns ops,writes --nbd unix:s > out 2> err & \
         until grep -q serving err; do sleep 0.01; done; \
         qemu-io -f raw -c 'write 0 4k' nbd+unix:///?socket=s > /dev/null; \
         kill -USR1 $!; until grep -q writes out; do sleep 0.01; done; \
         qemu-io -f raw -c 'write 0 4k' nbd+unix:///?socket=s > /dev/null; \
         kill $!; wait $!",
        env!("CARGO_BIN_EXE_fulgurite")
    );
    let outcome = shell(&folder, &script);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let said = String::from_utf8(folder.read("out")).unwrap();
    let writes: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix("writes")).map(str::trim).collect();
    assert_eq!(writes, ["1", "2"], "{said}");
}

/// The rule: `ctl stop` ends the server as Ctrl-C does.
#[test]
fn stop_ends_the_server() {
    let mut served = Served::mounted(SMALL);
    assert_eq!(served.ctl("stop").stdout, "");
    let outcome = served.outcome();
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert_eq!(served.folder.names(), ["d"]);
    assert!(!served.folder.0.join("d/drive").exists());
}
