//! Shows the drive over HTTP: a page (`/`), the state for programs (`/live`) and metrics (`/metrics`).
//!
//! It runs on threads of its own: one that accepts, and one for each of at most sixteen connections, which takes one
//! request and ends after ten seconds at the latest. It only reads. A request must name a host of this machine, unless
//! other machines may connect: otherwise a page of another site could read the drive by a name of its own that leads
//! here.

use crate::live::Described;
use crate::metrics;
use crate::watch::{Bell, Unseen, Watch};
use rustix::event::{PollFd, PollFlags, poll};
use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The most connections at once.
const CONNECTIONS_AT_MOST: usize = 16;

/// The most bytes of a request without its body.
const HEAD_AT_MOST: usize = 8 << 10;

/// The most lines of a request.
const HEADERS_AT_MOST: usize = 64;

/// The time in which a client must send its request, and the time in which it must take the answer.
const PATIENCE: Duration = Duration::from_secs(5);

const PAGE: &str = include_str!("live.html");

/// Allows the page its own script and style and the server that it comes from, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An answer to a request.
struct Answer {
    status: &'static str,
    kind: &'static str,
    body: Cow<'static, str>,
}

impl Answer {
    const fn refused(status: &'static str, why: &'static str) -> Answer {
        Answer { status, kind: "text/plain; charset=utf-8", body: Cow::Borrowed(why) }
    }

    fn found(kind: &'static str, body: impl Into<Cow<'static, str>>) -> Answer {
        Answer { status: "200 OK", kind, body: body.into() }
    }

    /// Returns the answer as it is sent.
    fn bytes(&self) -> Vec<u8> {
        let Answer { status, kind, body } = self;
        let allow = if status.starts_with("405") { "Allow: GET\r\n" } else { "" };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
                Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\n\
                Referrer-Policy: no-referrer\r\n{allow}Connection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// The properties of the server that its connections share.
struct Service {
    watch: Arc<Watch>,
    drive: Described,
    address: SocketAddr,
    is_remote: bool,
    connections: AtomicUsize,
}

/// A server of the page. Dropping it ends it.
pub(crate) struct Http {
    address: SocketAddr,
    watch: Arc<Watch>,
    stop: Bell,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Listens at an address. Port 0 is a free one.
    pub(crate) fn open(
        address: SocketAddr,
        is_remote: bool,
        drive: Described,
        watch: Arc<Watch>,
    ) -> io::Result<Http> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let stop = Bell::new()?;
        let service = Service {
            watch: Arc::clone(&watch),
            drive,
            address,
            is_remote,
            connections: AtomicUsize::new(0),
        };
        let stopped = stop.clone();
        let accept = move || accept(&listener, &stopped, &Arc::new(service));
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(accept)?;
        Ok(Http { address, watch, stop, thread: Some(thread) })
    }

    /// Returns the address of the page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.watch.end();
        self.stop.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Accepts connections until `stop` rings.
fn accept(listener: &TcpListener, stop: &Bell, service: &Arc<Service>) {
    loop {
        let mut waits =
            [PollFd::new(listener, PollFlags::IN), PollFd::from_borrowed_fd(stop.0.as_fd(), PollFlags::IN)];
        if poll(&mut waits, None).is_err_and(|error| error != rustix::io::Errno::INTR) {
            return;
        }
        if !waits[1].revents().is_empty() {
            return;
        }
        match listener.accept() {
            Ok((stream, _)) => welcome(stream, service),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // Out of sockets, for example: the connection stays in the queue of the system.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Serves a connection in a thread of its own, unless there are too many.
fn welcome(stream: TcpStream, service: &Arc<Service>) {
    if service.connections.load(Ordering::SeqCst) >= CONNECTIONS_AT_MOST {
        return;
    }
    service.connections.fetch_add(1, Ordering::SeqCst);
    let inner = Arc::clone(service);
    let work = move || {
        // A client that has gone away needs no answer.
        let _ = converse(stream, &inner);
        inner.connections.fetch_sub(1, Ordering::SeqCst);
    };
    if std::thread::Builder::new().name("http-client".to_owned()).spawn(work).is_err() {
        service.connections.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Reads a request and answers it.
fn converse(mut stream: TcpStream, service: &Service) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let answer = match request(&mut stream, Instant::now() + PATIENCE) {
        Ok(request) => service.answer(&request),
        Err(refused) => refused,
    };
    let until = Instant::now() + PATIENCE;
    let (bytes, mut sent) = (answer.bytes(), 0);
    while sent < bytes.len() {
        stream.set_write_timeout(Some(left(until)?))?;
        match stream.write(&bytes[sent..])? {
            0 => return Ok(()),
            written => sent += written,
        }
    }
    // Closing a socket with unread bytes would take the answer back, so the rest of the request is read.
    stream.shutdown(Shutdown::Write)?;
    let (mut rest, mut read) = ([0; 1024], 0);
    while read < HEAD_AT_MOST {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(&mut rest)? {
            0 => break,
            more => read += more,
        }
    }
    Ok(())
}

/// Returns the time until `until`. It is an error if there is none.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A request, as far as it matters.
struct Request {
    method: String,
    path: String,
    host: Option<String>,
}

/// Reads a request that must be complete at `until`, or returns how it is refused.
fn request(stream: &mut TcpStream, until: Instant) -> Result<Request, Answer> {
    const SLOW: Answer = Answer::refused("408 Request Timeout", "the request took too long\n");
    const BAD: Answer = Answer::refused("400 Bad Request", "this is no request\n");
    const LARGE: Answer = Answer::refused("431 Request Header Fields Too Large", "the request is too long\n");
    let (mut head, mut part) = (Vec::new(), [0; 2048]);
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_AT_MOST];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let mut hosts =
                    parsed.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("host"));
                let host = hosts.next().map(|header| String::from_utf8_lossy(header.value).into_owned());
                let (method, path) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
                // Two hosts could be read in two ways.
                let host = host.filter(|_| hosts.next().is_none());
                return Ok(Request { method: method.to_owned(), path: path.to_owned(), host });
            }
            Ok(httparse::Status::Partial) if head.len() < HEAD_AT_MOST => {}
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Err(LARGE),
            Err(_) => return Err(BAD),
        }
        let time = left(until).map_err(|_| SLOW)?;
        stream.set_read_timeout(Some(time)).map_err(|_| BAD)?;
        let room = part.len().min(HEAD_AT_MOST - head.len());
        match stream.read(&mut part[..room]) {
            Ok(0) => return Err(BAD),
            Ok(read) => head.extend_from_slice(&part[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(SLOW);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(BAD),
        }
    }
}

impl Service {
    fn answer(&self, request: &Request) -> Answer {
        if !self.is_remote && !request.host.as_deref().is_some_and(|host| self.is_here(host)) {
            return Answer::refused("403 Forbidden", "the header Host names another machine\n");
        }
        if request.method != "GET" {
            return Answer::refused("405 Method Not Allowed", "only GET is served\n");
        }
        let path = request.path.split('?').next().unwrap_or_default();
        let look = match path {
            "/" => return Answer::found("text/html; charset=utf-8", PAGE),
            "/live" | "/metrics" => self.watch.look(),
            _ => return Answer::refused("404 Not Found", "there are /, /live and /metrics\n"),
        };
        match look {
            Ok(live) if path == "/live" => {
                Answer::found("application/json", live.json(&self.drive).to_string())
            }
            Ok(live) => {
                Answer::found("text/plain; version=0.0.4; charset=utf-8", metrics::text(&live, &self.drive))
            }
            Err(Unseen::Ended) => Answer::refused("503 Service Unavailable", "the drive has ended\n"),
            Err(Unseen::Busy) => Answer::refused("503 Service Unavailable", "the drive is busy\n"),
        }
    }

    /// Whether the value of a header `Host` names this machine.
    fn is_here(&self, host: &str) -> bool {
        let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let name = match host.rsplit_once(':') {
            Some((name, port)) if is_port(port) && (!name.contains(':') || name.ends_with(']')) => name,
            _ => host,
        };
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_own = |ip: IpAddr| ip.is_loopback() || ip == self.address.ip();
        name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(is_own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_disk::Cache;

    /// The rule: only names and addresses of this machine are accepted as hosts.
    #[test]
    fn hosts_are_loopback_addresses() {
        let service = Service {
            watch: Arc::new(Watch::new(Bell::new().unwrap())),
            drive: Described { device: String::new(), bytes: 0, cache: Cache::Protected },
            address: "127.0.0.1:80".parse().unwrap(),
            is_remote: false,
            connections: AtomicUsize::new(0),
        };
        for host in
            ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8080", "127.9.9.9:1", "[::1]", "[::1]:80"]
        {
            assert!(service.is_here(host), "{host}");
        }
        for host in [
            "",
            ":80",
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "[::2]:80",
            "0.0.0.0",
            "localhost:",
            "127.0.0.1:80:80",
            "localhost:80@evil",
        ] {
            assert!(!service.is_here(host), "{host}");
        }
    }
}
