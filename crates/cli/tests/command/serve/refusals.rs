//! Tests what `serve` refuses: with exit code 2, in one sentence, without touching anything.

use super::drive::{Served, shell};
use crate::folder::Folder;
use std::os::unix::net::UnixListener;

/// The rule: whatever is wrong is refused with exit code 2 and one sentence that says what would be accepted, and no
/// file is made, changed or removed.
#[test]
fn wrong_arguments_are_refused_in_one_sentence() {
    let folder = Folder::new().with("file", "mine").with("d.txt", "");
    std::fs::create_dir_all(folder.0.join("full/inner")).unwrap();
    let before = folder.names();
    for (arguments, words) in [
        ("mem", "--nbd unix:PATH"),
        ("mem --control c", "--nbd unix:PATH"),
        ("mem --nbd unix:file", "file cannot be a socket"),
        ("mem --nbd unix:s --control file", "file cannot be a socket"),
        ("mem --nbd unix:s --control s", "s cannot be a socket"),
        ("mem --nbd unix:no/s", "there is no folder"),
        ("mem --nbd s", "unix:PATH"),
        ("mem --nbd tcp:0.0.0.0:10809", "--remote"),
        ("mem --nbd tcp:[::]:10809", "--remote"),
        ("mem --nbd tcp:127.0.0.1", "tcp:127.0.0.1:10809"),
        ("mem --nbd unix:s --remote", "--remote changes nothing"),
        ("mem --http 127.0.0.1:0", "--nbd unix:PATH"),
        ("mem --nbd unix:s --http 8080", "--http: `8080` is no host and port; accepted: 127.0.0.1:"),
        ("mem --nbd unix:s --http 0.0.0.0:0", "--http: 0.0.0.0:0 can be reached from other machines"),
        ("mem --nbd unix:s --http [::]:0", "--remote to allow it"),
        ("none --nbd unix:s", "accepted: a preset"),
        ("file:file --nbd unix:s", "accepted: a preset"),
        ("p4511 --nbd unix:s", "p4510"),
        ("p4510:blocks=0 --nbd unix:s", "blocks"),
        ("mem --nbd unix:s --speed fast", "--speed: `fast` is no speed"),
        ("mem --nbd unix:s --speed 0x", "--speed: `0x` is no speed"),
        ("mem --nbd unix:s --power weak", "protected volatile lying"),
        ("mem --nbd unix:s --power volatile:tear=600B", "tear"),
        ("mem:page=4KiB,pages=100 --nbd unix:s --fuse no", "the folder cannot be mounted"),
        ("mem:page=4KiB,pages=100 --nbd unix:s --fuse file", "an empty folder"),
        ("mem:page=4KiB,pages=100 --nbd unix:s --fuse full", "an empty folder"),
        ("mem --nbd unix:s --contents file", "the file has 4 bytes"),
        ("mem --nbd unix:s --contents full", "cannot be used"),
        ("mem --nbd unix:s --contents no/image", "there is no folder"),
        ("mem:page=4KiB,pages=100 --nbd unix:file --contents image", "file cannot be a socket"),
        ("mem --nbd unix:s --dry-run", "--dry-run"),
    ] {
        let outcome =
            shell(&folder, &format!("timeout 10 {} serve {arguments}", env!("CARGO_BIN_EXE_fulgurite")));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments}: {}", outcome.stderr);
        assert_eq!(outcome.stderr.lines().count(), 1, "{arguments}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{arguments}: {}", outcome.stderr);
        assert_eq!(folder.names(), before, "{arguments}");
    }
    assert_eq!(folder.read("file"), b"mine");
}

/// The rule: the socket of a server that was killed is replaced. That of a living one is not.
#[test]
fn only_the_socket_of_a_dead_server_is_replaced() {
    let serve = "mem:page=4KiB,pages=100 --speed max";
    let mut killed = Served::new(serve);
    let refused = killed.folder.run(&format!("serve {serve} --nbd unix:s"));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("s cannot be a socket: address already in use"), "{}", refused.stderr);
    assert!(killed.client().read(0, 4_096).is_ok(), "the living server goes on");
    killed.signal("-KILL");
    killed.outcome();
    assert_eq!(killed.folder.names(), ["c", "s"]);
    let folder = std::mem::replace(&mut killed.folder, Folder::new());
    let next = Served::within(folder, serve);
    assert!(next.client().read(0, 4_096).is_ok());
}

/// The rule: `ctl` at a path that is no control socket is refused in one sentence with exit code 2.
#[test]
fn ctl_needs_a_control_socket() {
    let served = Served::new("mem:page=4KiB,pages=100 --speed max");
    served.folder.write("file", "mine");
    let left = UnixListener::bind(served.folder.0.join("left")).unwrap();
    drop(left);
    for path in ["nothing", "file", ".", "left"] {
        let outcome = served.folder.run(&format!("ctl {path} stats"));
        assert_eq!((outcome.code, outcome.stderr.lines().count()), (2, 1), "{path}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("is no control socket of a served drive"), "{}", outcome.stderr);
    }
    let wrong = served.folder.run("ctl s stats");
    assert_eq!((wrong.code, wrong.stderr.lines().count()), (2, 1), "{}", wrong.stderr);
    assert_eq!(served.folder.read("file"), b"mine");
}
