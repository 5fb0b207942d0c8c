//! Tests the examples in the help texts of `serve` and `ctl`.

use super::drive::Served;
use crate::folder::Folder;
use crate::help::examples;
use std::net::TcpListener;

/// The rule: each example of `serve` starts a server, which the remark beside it reaches, and Ctrl-C ends it.
#[test]
fn the_examples_of_serve_work() {
    let help = Folder::new().run("serve --help").stdout;
    let examples = examples(&help);
    assert_eq!(examples.len(), 3, "{help}");
    for (example, remark) in examples {
        let folder = Folder::new();
        std::fs::create_dir(folder.0.join("folder")).unwrap();
        // Another program may have the usual port.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments = example.strip_prefix("fulgurite ").unwrap().replace("10809", &port.to_string());
        let mut served = Served::started(folder, &arguments);
        match remark.strip_prefix("then: ") {
            Some(command) => served.done(command),
            None => served.done(&format!("nbdinfo --size nbd://127.0.0.1:{port}")),
        };
        if arguments.contains("--control ctl.sock") {
            assert_eq!(served.folder.run("ctl ctl.sock stats").code, 0, "{example}");
        }
        served.signal("-INT");
        // A remark about late answers is possible.
        assert_eq!(served.outcome().code, 0, "{example}");
    }
}

/// The rule: each example of `ctl` does its work on a served drive.
#[test]
fn the_examples_of_ctl_work() {
    let served = Served::new("mem:page=4KiB,pages=1000 --speed max --power volatile");
    let help = served.folder.run("ctl --help").stdout;
    let examples = examples(&help);
    assert_eq!(examples.len(), 4, "{help}");
    for (example, _) in examples {
        let example = example.replace("ctl.sock", "c").replace("fulgurite", env!("CARGO_BIN_EXE_fulgurite"));
        // A cut at a point waits for the flushes of a client, which it disconnects.
        let flush = "qemu-io -f raw -c flush \"$uri\" || true";
        served.done(&format!("{example} & while kill -0 $! 2> /dev/null; do {flush}; done; wait $!"));
    }
}
