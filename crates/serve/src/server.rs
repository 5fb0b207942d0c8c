//! The server: one thread that waits for sockets, the drive's next completion and commands, and handles all of them.
//!
//! It reads what has arrived, submits the requests at the drive's present time, answers those that have completed, and
//! sleeps until the next of these. So requests of all clients are in one order, and nothing is shared with a lock.

use crate::address::{Address, Front};
use crate::connection::{self, Connection, Drives};
use crate::control::{self, Control, LINE_AT_MOST, SNAPSHOTS_AT_MOST};
use crate::drive::{CutReport, Drive};
use crate::fuse::{self, Mounted, Ticket};
use crate::watch::{Bell, Watch};
use fulgurite_base::Nanos;
use fulgurite_disk::{Completed, Faults, Request};
use fulgurite_nbd::Export;
use fulgurite_stack::{Column, Row, StackError, Value as FigureValue};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno as SystemError;
use rustix::net::{SocketFlags, accept_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use serde_json::{Map, Value, json};
use slab::Slab;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most clients that are served at once.
const CLIENTS_AT_MOST: usize = 64;

/// The most further connections that are told that the server is full.
const REFUSED_AT_MOST: usize = 256;

/// The time in which a client must end its handshake. Afterwards it may be idle for as long as it likes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A completion that is closer than this is awaited without sleeping, because a thread wakes up too late.
const CLOSE: Duration = Duration::from_micros(60);

/// How often connections without requests are looked at.
const ROUND: Duration = Duration::from_secs(1);

/// The program that waits for an answer.
pub(crate) enum Origin {
    /// A connection, by its slot and its number, because a slot may have another connection by now.
    Nbd(usize, u64, connection::Asked),
    Fuse(Ticket),
}

/// Stops a server, or asks it for its figures, from another thread.
#[derive(Clone)]
pub struct Handle {
    bell: Bell,
    watch: Arc<Watch>,
    wants_end: Arc<AtomicBool>,
    wants_row: Arc<AtomicBool>,
}

impl Handle {
    /// Creates a handle, for the server that is started with it.
    pub fn new() -> io::Result<Handle> {
        let bell = Bell::new()?;
        Ok(Handle {
            watch: Arc::new(Watch::new(bell.clone())),
            bell,
            wants_end: Arc::default(),
            wants_row: Arc::default(),
        })
    }

    /// Ends the server.
    pub fn end(&self) {
        self.wants_end.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Lets the server report its figures so far.
    pub fn report(&self) {
        self.wants_row.store(true, Ordering::SeqCst);
        self.bell.ring();
    }

    /// Returns the place at which the server publishes the drive's state.
    pub(crate) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }
}

/// The meaning of an event. The upper half of an event's number is the kind, the lower half an index.
#[derive(Clone, Copy)]
enum Source {
    Timer,
    Bell,
    Fuse,
    Listener(usize),
    Client(usize),
    Control(usize),
}

impl Source {
    fn data(self) -> EventData {
        let (kind, index) = match self {
            Source::Timer => (0, 0),
            Source::Bell => (1, 0),
            Source::Fuse => (2, 0),
            Source::Listener(index) => (3, index),
            Source::Client(index) => (4, index),
            Source::Control(index) => (5, index),
        };
        EventData::new_u64(kind << 32 | index as u64)
    }

    fn of(data: EventData) -> Source {
        let (kind, index) = (data.u64() >> 32, (data.u64() & u64::from(u32::MAX)) as usize);
        match kind {
            0 => Source::Timer,
            1 => Source::Bell,
            2 => Source::Fuse,
            3 => Source::Listener(index),
            4 => Source::Client(index),
            _ => Source::Control(index),
        }
    }
}

/// A socket that accepts connections.
enum Listener {
    Nbd(OwnedFd),
    Control(OwnedFd),
}

/// The paths of the server's sockets, which are removed when it ends.
#[derive(Default)]
struct Paths(Vec<PathBuf>);

impl Drop for Paths {
    fn drop(&mut self) {
        for path in &self.0 {
            // A path that is gone already needs no removal.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A connection of an NBD client.
struct Client {
    connection: Connection,
    /// The number of the connection, which is unique.
    number: u64,
    interest: EventFlags,
    is_refused: bool,
}

/// A connection of the control protocol.
struct Controller {
    socket: OwnedFd,
    input: Vec<u8>,
    number: u64,
}

/// A server.
pub(crate) struct Server<'a> {
    drive: Drive<Origin>,
    export: Arc<Export>,
    handle: Handle,
    epoll: OwnedFd,
    timer: OwnedFd,
    listeners: Vec<Listener>,
    paths: Paths,
    clients: Slab<Client>,
    controllers: Slab<Controller>,
    mounted: Option<Mounted>,
    next_number: u64,
    refused: usize,
    last_round: Instant,
    /// The controller that waits for the cut that is due at a point, and whether the drive is to stay off.
    waiting: Option<(usize, u64, bool)>,
    completed: Vec<Completed<Origin>>,
    is_ending: bool,
    report: &'a mut dyn FnMut(Result<Row, StackError>),
}

/// The requests of one client on their way to the drive.
struct Requests<'a> {
    drive: &'a mut Drive<Origin>,
    slot: usize,
    number: u64,
}

impl Drives for Requests<'_> {
    fn is_open(&self) -> bool {
        !self.drive.disk.is_cut_due()
    }

    fn submit(&mut self, request: Request<'_>, asked: connection::Asked) -> bool {
        self.drive.submit(request, Origin::Nbd(self.slot, self.number, asked)).is_ok()
    }

    fn extent(&self, offset: u64, length: u64) -> (u64, bool) {
        self.drive.disk.extent(offset, length)
    }
}

/// Allows this process as many sockets as the system permits.
fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // With fewer sockets, connections wait in the queue of the system.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Listens at an address. A socket that a killed server has left is replaced.
fn listen(address: &Address) -> io::Result<OwnedFd> {
    match address {
        Address::Unix(path) => {
            let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
            let is_left = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
            if is_socket && UnixStream::connect(path).is_err_and(is_left) {
                std::fs::remove_file(path)?;
            }
            let listener = UnixListener::bind(path)?;
            listener.set_nonblocking(true)?;
            Ok(listener.into())
        }
        Address::Tcp(address) => {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener.into())
        }
    }
}

impl<'a> Server<'a> {
    /// Opens the sockets and mounts the folder. `report` gets the figures whenever the handle asks for them.
    pub(crate) fn open(
        drive: Drive<Origin>,
        export: Export,
        front: &Front,
        handle: Handle,
        report: &'a mut dyn FnMut(Result<Row, StackError>),
    ) -> Result<Server<'a>, StackError> {
        raise_limit();
        let refused =
            |error: io::Error| StackError::run(format!("the system refuses to wait for sockets: {error}"));
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| refused(error.into()))?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
            .map_err(|error| refused(error.into()))?;
        let mut server = Server {
            export: Arc::new(export),
            drive,
            handle,
            epoll,
            timer,
            listeners: Vec::new(),
            paths: Paths::default(),
            clients: Slab::new(),
            controllers: Slab::new(),
            mounted: None,
            next_number: 0,
            refused: 0,
            last_round: Instant::now(),
            waiting: None,
            completed: Vec::new(),
            is_ending: false,
            report,
        };
        server.watch(server.timer.as_fd(), Source::Timer).map_err(refused)?;
        server.watch(server.handle.bell.0.as_fd(), Source::Bell).map_err(refused)?;
        let at = |address: &Address, error: io::Error| match address {
            Address::Unix(path) => StackError::request(format!(
                "{} cannot be a socket: {}; accepted: a new path",
                path.display(),
                fulgurite_files::obstacle(path, &error)
            )),
            Address::Tcp(address) => StackError::request(format!(
                "{address} cannot be listened at: {error}; accepted: a free port"
            )),
        };
        let control = front.control.clone().map(Address::Unix);
        let sockets = front.nbd.iter().map(|address| (address, Listener::Nbd as fn(OwnedFd) -> Listener));
        for (address, listener) in
            sockets.chain(control.iter().map(|address| (address, Listener::Control as _)))
        {
            server.listeners.push(listener(listen(address).map_err(|error| at(address, error))?));
            if let Address::Unix(path) = address {
                server.paths.0.push(path.clone());
            }
        }
        for (index, listener) in server.listeners.iter().enumerate() {
            let (Listener::Nbd(socket) | Listener::Control(socket)) = listener;
            server.watch(socket.as_fd(), Source::Listener(index)).map_err(refused)?;
        }
        if let Some(folder) = &front.fuse {
            let mounted = fuse::mount(folder, server.drive.disk.bytes(), server.drive.disk.page_bytes() as u32)
                .map_err(|error| {
                    StackError::request(format!(
                        "--fuse {}: the folder cannot be mounted: {error}; accepted: an empty folder of yours, with \
                            /dev/fuse and fusermount3 installed",
                        folder.display()
                    ))
                })?;
            server.watch(mounted.bell.0.as_fd(), Source::Fuse).map_err(refused)?;
            server.mounted = Some(mounted);
        }
        Ok(server)
    }

    fn watch(&self, socket: impl AsFd, source: Source) -> io::Result<()> {
        epoll::add(&self.epoll, socket, source.data(), EventFlags::IN).map_err(Into::into)
    }

    /// Serves until the handle ends the server, and returns the figures of the whole run.
    pub(crate) fn run(mut self) -> Result<Row, StackError> {
        let mut events: Vec<Event> = Vec::with_capacity(256);
        while !self.is_ending {
            self.turn()?;
            let is_awaited = self.drive.disk.in_flight() > 0;
            let is_close = is_awaited && self.drive.until_next().is_some_and(|next| next < CLOSE);
            let none = Timespec { tv_sec: 0, tv_nsec: 0 };
            if !is_close {
                self.set_timer();
            }
            match epoll::wait(&self.epoll, spare_capacity(&mut events), is_close.then_some(&none)) {
                Ok(_) | Err(SystemError::INTR) => {}
                Err(error) => return Err(StackError::run(format!("waiting for sockets failed: {error}"))),
            }
            // The requests that have arrived are submitted at the present time.
            self.turn()?;
            for event in events.drain(..) {
                self.handle(Source::of(event.data), event.flags)?;
            }
        }
        self.clients.clear();
        self.mounted = None;
        self.drive.end()
    }

    /// Answers the requests that have completed.
    fn turn(&mut self) -> Result<(), StackError> {
        loop {
            let mut completed = std::mem::take(&mut self.completed);
            self.drive.advance(&mut completed)?;
            if completed.is_empty() {
                self.completed = completed;
                return Ok(());
            }
            let times: Vec<(Nanos, Nanos)> = completed.iter().map(|done| (done.at, done.latency())).collect();
            let mut answered: Vec<(usize, u64)> = Vec::new();
            for done in completed.drain(..) {
                self.answer(done, &mut answered);
            }
            self.completed = completed;
            self.drive.contents_are_right()?;
            for (slot, number) in answered {
                self.send(slot, number);
            }
            self.drive.sent(&times);
            // Requests that a client had to hold back may have been submitted meanwhile.
            self.cut_if_due();
        }
    }

    fn answer(&mut self, done: Completed<Origin>, answered: &mut Vec<(usize, u64)>) {
        match done.token {
            Origin::Nbd(slot, number, asked) => {
                let client = self.clients.get_mut(slot).filter(|client| client.number == number);
                let Some(client) = client else { return };
                let disk = &self.drive.disk;
                let copy = |offset, length, out: &mut Vec<u8>| disk.copy(offset, length, out);
                client.connection.answer(asked, done.status, copy);
                if answered.last() != Some(&(slot, number)) && !answered.contains(&(slot, number)) {
                    answered.push((slot, number));
                }
            }
            Origin::Fuse(ticket) => self.answer_fuse(ticket, done.status),
        }
    }

    fn answer_fuse(&self, ticket: Ticket, status: Result<(), fulgurite_disk::DiskError>) {
        use fulgurite_device::IoError;
        use fulgurite_disk::DiskError;
        match (status, ticket) {
            (Ok(()), Ticket::Read { offset, length, reply }) => {
                let mut bytes = Vec::new();
                self.drive.disk.copy(offset, length as usize, &mut bytes);
                match self.drive.contents_are_right() {
                    Ok(()) => reply.data(&bytes),
                    Err(_) => reply.error(fuser::Errno::EIO),
                }
            }
            (Ok(()), Ticket::Write { bytes, reply }) => reply.written(bytes),
            (Ok(()), Ticket::Empty(reply)) => reply.ok(),
            (Err(DiskError::NoSpace | DiskError::Device(IoError::WornOut)), ticket) => {
                ticket.fail(fuser::Errno::ENOSPC);
            }
            (Err(_), ticket) => ticket.fail(fuser::Errno::EIO),
        }
    }

    /// Sends what a client's socket takes, processes what it had to hold back, and waits for the rest.
    fn send(&mut self, slot: usize, number: u64) {
        let Some(client) = self.clients.get_mut(slot).filter(|client| client.number == number) else {
            return;
        };
        loop {
            client.connection.process(&mut Requests { drive: &mut self.drive, slot, number });
            if !client.connection.send() {
                self.close(slot);
                return;
            }
            let is_open = !self.drive.disk.is_cut_due();
            if client.connection.has_output() || !client.connection.has_input() || !is_open {
                break;
            }
        }
        let mut interest = EventFlags::empty();
        interest.set(EventFlags::IN, client.connection.wants_input());
        interest.set(EventFlags::OUT, client.connection.has_output());
        if interest != client.interest {
            client.interest = interest;
            let data = Source::Client(slot).data();
            if epoll::modify(&self.epoll, &client.connection, data, interest).is_err() {
                self.close(slot);
            }
        }
    }

    fn close(&mut self, slot: usize) {
        if let Some(client) = self.clients.try_remove(slot) {
            self.refused -= usize::from(client.is_refused);
            let _ = epoll::delete(&self.epoll, &client.connection);
        }
    }

    /// Sets the timer to the next completion, and at the latest to the next round.
    fn set_timer(&self) {
        let round = ROUND.saturating_sub(self.last_round.elapsed());
        let until =
            self.drive.until_next().map_or(round, |next| next.min(round)).max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: until.as_secs() as i64, tv_nsec: i64::from(until.subsec_nanos()) };
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        // The arguments are valid, so this cannot fail.
        let _ = timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval: none, it_value: value },
        );
    }

    fn handle(&mut self, source: Source, flags: EventFlags) -> Result<(), StackError> {
        match source {
            Source::Timer => {
                let _ = rustix::io::read(&self.timer, &mut [0u8; 8]);
                if self.last_round.elapsed() >= ROUND {
                    self.last_round = Instant::now();
                    self.close_silent_clients();
                    if self.handle.watch.is_left() {
                        self.drive.look_away();
                    }
                }
            }
            Source::Bell => {
                self.handle.bell.silence();
                self.is_ending |= self.handle.wants_end.load(Ordering::SeqCst);
                if self.handle.wants_row.swap(false, Ordering::SeqCst) {
                    (self.report)(self.drive.row());
                }
                if self.handle.watch.is_wanted() {
                    let live = self.drive.look();
                    self.handle.watch.publish(live);
                }
            }
            Source::Fuse => self.take_fuse(),
            Source::Listener(index) => self.accept(index),
            Source::Client(slot) => self.serve(slot, flags),
            Source::Control(slot) => self.obey(slot),
        }
        self.cut_if_due();
        Ok(())
    }

    /// Cuts the power if the run has reached the point for that, and reports to the controller that waits for it.
    fn cut_if_due(&mut self) {
        let Some(seed) = self.drive.due_cut() else { return };
        let waiting = self.waiting.take();
        let report = self.cut(Some(seed), waiting.is_some_and(|(.., stay_off)| stay_off));
        if let Some((slot, number, _)) = waiting {
            self.tell(slot, number, &control::done(cut_results(&report)));
        }
    }

    /// Tells a controller that waits for the point of a cut that another command has taken its place.
    fn forget_waiting(&mut self) {
        if let Some((slot, number, _)) = self.waiting.take() {
            self.tell(slot, number, &control::refused("another power cut came first"));
        }
    }

    fn close_silent_clients(&mut self) {
        let is_silent = |client: &Client| {
            client.connection.shakes_hands_since().is_some_and(|since| since.elapsed() >= PATIENCE)
        };
        let silent: Vec<usize> =
            self.clients.iter().filter(|(_, client)| is_silent(client)).map(|(slot, _)| slot).collect();
        silent.into_iter().for_each(|slot| self.close(slot));
    }

    /// Accepts the connections that wait.
    fn accept(&mut self, index: usize) {
        loop {
            let (Listener::Nbd(listener) | Listener::Control(listener)) = &self.listeners[index];
            let Ok(socket) = accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) else {
                return;
            };
            match &self.listeners[index] {
                Listener::Nbd(_) => self.welcome(socket),
                Listener::Control(_) => self.listen_to(socket),
            }
        }
    }

    fn welcome(&mut self, socket: OwnedFd) {
        // Answers are small, and a client waits for them. Unix sockets have no such option.
        let _ = rustix::net::sockopt::set_tcp_nodelay(&socket, true);
        let is_full = self.clients.len() - self.refused >= CLIENTS_AT_MOST;
        let is_refused = is_full || !self.drive.is_on();
        if is_refused && self.refused >= REFUSED_AT_MOST {
            return;
        }
        let connection = if is_full {
            Connection::refusing(socket, &format!("{CLIENTS_AT_MOST} clients are served, which is the most"))
        } else if is_refused {
            Connection::refusing(socket, "the power of the drive is off")
        } else {
            Connection::new(socket, &self.export)
        };
        self.refused += usize::from(is_refused);
        let number = self.next_number;
        self.next_number += 1;
        let slot = self.clients.insert(Client { connection, number, interest: EventFlags::IN, is_refused });
        let client = &self.clients[slot].connection;
        if epoll::add(&self.epoll, client, Source::Client(slot).data(), EventFlags::IN).is_err() {
            self.close(slot);
            return;
        }
        self.send(slot, number);
    }

    /// Reads what a client has sent.
    fn serve(&mut self, slot: usize, flags: EventFlags) {
        let Some(client) = self.clients.get_mut(slot) else { return };
        let number = client.number;
        let may_receive = flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR);
        if may_receive && !client.connection.receive() {
            self.close(slot);
            return;
        }
        self.send(slot, number);
    }

    /// Takes the requests of the kernel about the file.
    fn take_fuse(&mut self) {
        let Some(mounted) = &self.mounted else { return };
        mounted.bell.silence();
        while let Ok(asked) = mounted.requests.try_recv() {
            let result = match asked {
                fuse::Asked::Read { offset, length, reply } => self.drive.submit(
                    Request::Read { offset, length: u64::from(length) },
                    Origin::Fuse(Ticket::Read { offset, length, reply }),
                ),
                fuse::Asked::Write { offset, data, durable, reply } => self.drive.submit(
                    Request::Write { offset, data: &data, durable },
                    Origin::Fuse(Ticket::Write { bytes: data.len() as u32, reply }),
                ),
                fuse::Asked::Zero { offset, length, reply } => self.drive.submit(
                    Request::Zero { offset, length, durable: false, trim: true },
                    Origin::Fuse(Ticket::Empty(reply)),
                ),
                fuse::Asked::Flush { reply } => {
                    self.drive.submit(Request::Flush, Origin::Fuse(Ticket::Empty(reply)))
                }
            };
            if let Err(Origin::Fuse(ticket)) = result {
                ticket.fail(fuser::Errno::EIO);
            }
            if self.drive.disk.is_cut_due() {
                return;
            }
        }
    }

    /// Cuts the power. Requests in flight are never answered: connections are closed, and calls of the folder fail.
    fn cut(&mut self, seed: Option<u64>, stay_off: bool) -> CutReport {
        let (report, dropped) = self.drive.cut(seed);
        let slots: Vec<usize> = self.clients.iter().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.close(slot));
        for origin in dropped {
            if let Origin::Fuse(ticket) = origin {
                ticket.fail(fuser::Errno::EIO);
            }
        }
        if !stay_off {
            self.drive.power_on();
        }
        report
    }

    fn listen_to(&mut self, socket: OwnedFd) {
        if self.controllers.len() >= CLIENTS_AT_MOST {
            return;
        }
        let number = self.next_number;
        self.next_number += 1;
        let slot = self.controllers.insert(Controller { socket, input: Vec::new(), number });
        let socket = &self.controllers[slot].socket;
        if epoll::add(&self.epoll, socket, Source::Control(slot).data(), EventFlags::IN).is_err() {
            self.controllers.remove(slot);
        }
    }

    /// Reads and executes the commands of a controller.
    fn obey(&mut self, slot: usize) {
        let Some(controller) = self.controllers.get_mut(slot) else { return };
        let number = controller.number;
        let mut bytes = [0; 4096];
        let read = match rustix::io::read(&controller.socket, &mut bytes) {
            Err(SystemError::AGAIN | SystemError::INTR) => return,
            read => read.unwrap_or(0),
        };
        controller.input.extend_from_slice(&bytes[..read]);
        if read == 0 || controller.input.len() > LINE_AT_MOST {
            self.controllers.remove(slot);
            return;
        }
        while let Some(controller) = self.controllers.get_mut(slot) {
            let Some(end) = controller.input.iter().position(|byte| *byte == b'\n') else { return };
            let line: Vec<u8> = controller.input.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            if line.trim().is_empty() {
                continue;
            }
            let answer =
                match Control::parse(line.trim()).and_then(|command| self.execute(command, slot, number)) {
                    Ok(Some(results)) => control::done(results),
                    Ok(None) => continue,
                    Err(why) => control::refused(&why),
                };
            self.tell(slot, number, &answer);
        }
    }

    /// Sends a line to a controller, which is closed if it does not take it.
    fn tell(&mut self, slot: usize, number: u64, line: &str) {
        let Some(controller) = self.controllers.get(slot).filter(|controller| controller.number == number)
        else {
            return;
        };
        let sent = rustix::net::send(&controller.socket, line.as_bytes(), rustix::net::SendFlags::NOSIGNAL);
        if sent != Ok(line.len()) {
            self.controllers.remove(slot);
        }
    }

    /// Executes a command. Returns its results, or `None` if they follow later.
    fn execute(
        &mut self,
        command: Control,
        slot: usize,
        number: u64,
    ) -> Result<Option<Map<String, Value>>, String> {
        match command {
            Control::PowerCut { .. } if !self.drive.is_on() => {
                return Err("the power is off already; accepted: power-on first".to_owned());
            }
            Control::PowerCut { seed, at: None, stay_off } => {
                self.forget_waiting();
                let report = self.cut(seed, stay_off);
                return Ok(Some(cut_results(&report)));
            }
            Control::PowerCut { seed, at: Some(at), stay_off } => {
                self.forget_waiting();
                self.drive.cut_at(at.into(), seed);
                self.waiting = Some((slot, number, stay_off));
                // The program that asked must know when it can start its workload; the results follow.
                self.tell(slot, number, "{\"armed\":true}\n");
                return Ok(None);
            }
            Control::PowerOn {} => self.drive.power_on(),
            Control::FailReads(range) => self.faults().reads.push(range.into()),
            Control::FailWrites(range) => self.faults().writes.push(range.into()),
            Control::Slow { us } => self.faults().delay = control::delay(us),
            Control::Fill { full } => self.faults().is_full = full,
            Control::LoseWrites { times } => self.faults().lost_writes = times,
            Control::MisdirectWrites { times } => self.faults().misdirected_writes = times,
            Control::Rot { offset, bit } => {
                if !self.drive.disk.rot(offset, bit) {
                    return Err(format!(
                        "nothing was written at offset {offset}; accepted: the offset of a written byte"
                    ));
                }
            }
            Control::Heal {} => *self.faults() = Faults::default(),
            Control::Stats {} => {
                let row = self.drive.row().map_err(|error| error.to_string())?;
                return Ok(Some(stats(&row)));
            }
            Control::Snapshot { name } => {
                let snapshots = &self.drive.snapshots;
                if snapshots.len() >= SNAPSHOTS_AT_MOST && !snapshots.contains_key(&name) {
                    return Err(format!("{SNAPSHOTS_AT_MOST} snapshots are kept, which is the most"));
                }
                let Some(snapshot) = self.drive.disk.snapshot() else {
                    return Err(
                        "the contents are in a file; accepted: copy the file when the server has ended"
                            .to_owned(),
                    );
                };
                self.drive.snapshots.insert(name, snapshot);
            }
            Control::Restore { name } => self.restore(&name)?,
            Control::Stop {} => self.is_ending = true,
        }
        Ok(Some(Map::new()))
    }

    fn faults(&mut self) -> &mut Faults {
        self.drive.disk.faults_mut()
    }

    fn restore(&mut self, name: &str) -> Result<(), String> {
        let Some(snapshot) = self.drive.snapshots.get(name).cloned() else {
            let names: Vec<&str> = self.drive.snapshots.keys().map(String::as_str).collect();
            let accepted = if names.is_empty() { "snapshot first".to_owned() } else { names.join(", ") };
            return Err(format!("there is no snapshot `{name}`; accepted: {accepted}"));
        };
        if !self.drive.disk.restore(&snapshot) {
            return Err(
                "requests are in flight; accepted: restore when no client waits for the drive".to_owned()
            );
        }
        Ok(())
    }
}

fn cut_results(report: &CutReport) -> Map<String, Value> {
    match json!(report) {
        Value::Object(results) => results,
        _ => Map::new(),
    }
}

/// Returns the values of a row by the names of their columns.
fn stats(row: &Row) -> Map<String, Value> {
    let value = |column| match row.get(column)? {
        FigureValue::Text(text) => Some(json!(text)),
        FigureValue::Integer(whole) => Some(json!(whole)),
        FigureValue::Real(real) => Some(json!(real)),
    };
    Column::all().filter_map(|column| Some((column.name().to_owned(), value(column)?))).collect()
}
