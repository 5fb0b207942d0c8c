//! Tests clients that break the rules. Each harms only itself.

use super::client::{Client, PATIENCE, READ, WRITE};
use super::drive::Served;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

/// The most clients at once.
const LIMIT: usize = 64;

/// Whether a client reads what it has written.
fn works(client: &mut Client, byte: u8) -> bool {
    let data = vec![byte; 8_192];
    client.write(4_096, &data) == Ok(()) && client.read(4_096, 8_192) == Ok(data)
}

/// The rule: a client that vanishes in the middle of a write changes nothing, and no other client notices.
#[test]
fn half_a_write_changes_nothing() {
    let served = Served::new("mem:page=4KiB,pages=1000 --speed max");
    let mut other = served.client();
    other.write(0, &[1; 8_192]).unwrap();
    for kept in [1, 27, 28, 29, 4_000, 8_191 + 28] {
        let mut client = served.client();
        let request = client.request(WRITE, 0, 8_192, &[2; 8_192]);
        client.stream.write_all(&request[..kept]).unwrap();
        drop(client);
        assert!(works(&mut other, kept as u8), "{kept}");
    }
    assert_eq!(other.read(0, 4_096), Ok(vec![1; 4_096]));
}

/// The rule: a client that sends rubbish loses its connection, in every phase, and no other client notices.
#[test]
fn rubbish_ends_one_connection() {
    let served = Served::new("mem:page=4KiB,pages=1000 --speed max");
    let mut other = served.client();
    let rubbish: Vec<u8> = (0..100_000_u32).map(|at| (at.wrapping_mul(at) >> 3) as u8 | 0x80).collect();
    let connect = |name| {
        let stream = UnixStream::connect(served.folder.0.join(name)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    };
    let mut greeted = connect("s");
    let negotiated = served.client().stream;
    for stream in [&mut greeted, &mut { negotiated }] {
        // The server may have closed the connection before everything is sent.
        let _ = stream.write_all(&rubbish);
        let mut answer = Vec::new();
        let ended = stream.read_to_end(&mut answer).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(_) | Err(ErrorKind::ConnectionReset)), "{ended:?}");
        assert!(works(&mut other, 3));
    }
    // Rubbish on the control socket is answered in words, and a line without an end is cut off.
    let mut control = connect("c");
    control.write_all(b"\xff\xfe\n{}\n").unwrap();
    let mut answers = vec![0; 4_096];
    let read = control.read(&mut answers).unwrap();
    assert!(String::from_utf8_lossy(&answers[..read]).contains("accepted: "));
    let _ = control.write_all(&vec![b'x'; 1 << 20]);
    assert!(works(&mut other, 4));
    assert_eq!(served.ctl("stats").code, 0);
}

/// The rule: a client that asks for much and never reads the answers costs a bounded amount of memory, and no other
/// client waits for it.
#[test]
fn a_client_that_never_reads_is_not_read_from() {
    let served = Served::new("mem:page=4KiB,pages=16384 --speed max");
    let mut deaf = served.client();
    deaf.stream.set_nonblocking(true).unwrap();
    let mib = 1 << 20;
    // The answers would take 100 GiB. The socket takes requests until the server stops reading.
    let mut asked = 0;
    let mut other = served.client();
    loop {
        let request = deaf.request(READ, 0, mib, &[]);
        if asked == 100_000 || deaf.stream.write_all(&request).is_err() {
            assert!(works(&mut other, 5));
            // Nothing is left to be taken: the server has stopped.
            if asked == 100_000 || deaf.stream.write_all(&request).is_err() {
                break;
            }
        }
        asked += 1;
    }
    assert!(asked < 100_000, "the server has read {asked} requests");
    let resident = served.told("stats")["peak_rss_bytes"].as_u64().unwrap();
    assert!(resident < 200 << 20, "{resident} bytes");
    assert!(works(&mut other, 6));
}

/// The rule: of a thousand connections at once, as many as the limit says are served and go on. Each further one is
/// refused, and told the limit while there are few of them. When they have gone, others are served.
#[test]
fn connections_beyond_the_limit_are_refused() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let served = Served::new("mem:page=4KiB,pages=1000 --speed max");
    let mut clients: Vec<Client> = (0..LIMIT).map(|_| served.client()).collect();
    let refused = served.qemu_io("read 0 4k");
    assert_eq!(refused.code, 1);
    assert!(refused.stdout.contains("64 clients are served, which is the most"), "{}", refused.stdout);
    let path = served.folder.0.join("s");
    let others: Vec<UnixStream> =
        (LIMIT..1_000).map(|_| UnixStream::connect(&path).expect("the server accepts")).collect();
    for (at, client) in clients.iter_mut().enumerate() {
        assert!(works(client, at as u8), "{at}");
    }
    drop((clients, others));
    served.done("nbdinfo --size \"$uri\"");
}
