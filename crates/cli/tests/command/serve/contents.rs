//! Tests the option `--contents`: a file that holds the drive's contents.

use super::drive::{Served, shell};
use crate::folder::Folder;

const SMALL: &str = "mem:page=8KiB,pages=2K --speed max";

/// The rule: a drive has the contents of its file, which the next server finds: a raw image with holes for pages that
/// were never written or were trimmed. A power cut loses of it what it loses of memory.
#[test]
fn the_next_server_finds_the_contents() {
    let arguments = format!("{SMALL} --power volatile --contents image");
    let mut first = Served::new(&arguments);
    let mut client = first.client();
    client.write(3 * 8_192, &[7; 8_192]).unwrap();
    client.write(100 * 8_192 + 512, &[8; 1_024]).unwrap();
    client.flush();
    client.write(3 * 8_192, &[9; 8_192]).unwrap();
    let cut = first.told("power-cut --seed 1");
    assert_eq!((&cut["pages_unflushed"], &cut["pages_lost"]), (&1.into(), &1.into()), "{cut}");
    let refused = first.folder.run(&format!("serve {arguments} --nbd unix:other"));
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("another server uses this file"), "{}", refused.stderr);
    first.ctl("stop");
    first.outcome();
    let folder = std::mem::replace(&mut first.folder, Folder::new());
    drop(first);
    let room = shell(&folder, "du -k image").stdout;
    assert_eq!(room, "16\timage\n", "the file has room for two pages");
    let second = Served::within(folder, &arguments);
    let mut client = second.client();
    assert_eq!(client.read(3 * 8_192, 8_192).unwrap(), [7; 8_192]);
    assert_eq!(client.read(100 * 8_192 + 512, 1_024).unwrap(), [8; 1_024]);
    assert_eq!(client.read(100 * 8_192, 512).unwrap(), [0; 512]);
    assert_eq!(second.folder.read("image")[100 * 8_192 + 512], 8, "the image is raw");
    let refused = second.ctl("snapshot s");
    assert!(refused.stderr.contains("copy the file"), "{}", refused.stderr);
}

/// The rule: a file that fails ends the server with exit code 1 and one sentence, and no request gets a wrong answer.
#[test]
fn a_file_that_fails_ends_the_server() {
    let folder = Folder::new();
    // Writes beyond the limit of the size of files fail.
    let script = format!(
        "truncate -s 16384000 image; (trap '' XFSZ; ulimit -f 1024; \
         exec timeout 20 {} serve {SMALL} --nbd unix:s --contents image) > out 2> err & \
         until grep -q . err; do sleep 0.01; done; \
         qemu-io -f raw -c 'write 0 4k' -c 'write 2M 4k' nbd+unix:///?socket=s; wait $!",
        env!("CARGO_BIN_EXE_fulgurite")
    );
    let outcome = shell(&folder, &script);
    let said = String::from_utf8(folder.read("err")).unwrap();
    assert_eq!(outcome.code, 1, "{said}");
    assert!(said.contains("--contents: the file failed") && said.contains("File too large"), "{said}");
    assert_eq!(outcome.stdout.matches("wrote").count(), 1, "{}", outcome.stdout);
}
