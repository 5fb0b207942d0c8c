//! A log server in turmoil's deterministic simulation, with a simulated SSD in place of `thread::sleep`. Four clients
//! send records over the simulated network. The server writes each to its disk, flushes, and acknowledges it. The power
//! fails at a time that the seed chooses; the server starts again, and no acknowledged record may be missing.
//!
//! `cargo run --release --manifest-path examples/turmoil/Cargo.toml [-- no-flush]`; without the flush, records are lost.
//!
//! The timers of tokio have a resolution of a millisecond, and a flash drive reads in less. So one second of the
//! simulation is a millisecond of its world: the drive's times and those of the network are a thousand times as long.

use fulgurite_base::Nanos;
use fulgurite_disk::{Cache, Completed, PowerModel, Request, Ssd};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;
use turmoil::net::{TcpListener, TcpStream};

/// The time of the simulation in which one nanosecond passes for the drive.
const STRETCH: u32 = 1_000;
const RECORD: usize = 4_096;
const CLIENTS: u64 = 4;
/// The seeds, and so the power cuts.
const SEEDS: u64 = 50;

/// A disk that several tasks use at once. It outlives the server, as a real one does.
#[derive(Clone)]
struct Drive {
    disk: Rc<RefCell<Ssd<u64>>>,
    /// The requests that have completed, until their tasks look.
    done: Rc<RefCell<BTreeMap<u64, Completed<u64>>>>,
    next: Rc<Cell<u64>>,
    /// The time on the drive's clock when the simulation begins.
    start: Nanos,
}

impl Drive {
    fn new(seed: u64) -> Drive {
        let model = PowerModel::of(Cache::Volatile);
        let disk = Ssd::simulated("p4510:blocks=64", model, seed).expect("the preset exists");
        let start = disk.now();
        Drive { disk: Rc::new(RefCell::new(disk)), done: Rc::default(), next: Rc::default(), start }
    }

    /// Advances the drive to the present of the simulation, which it returns.
    fn catch_up(&self) -> Nanos {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default() / STRETCH;
        let now = self.start + Nanos(elapsed.as_nanos() as u64);
        let mut completed = Vec::new();
        self.disk.borrow_mut().advance(now, &mut completed);
        self.done.borrow_mut().extend(completed.into_iter().map(|done| (done.token, done)));
        now
    }

    /// Submits a request, and waits until it has completed.
    async fn execute(&self, request: Request<'_>) -> Completed<u64> {
        let token = self.next.replace(self.next.get() + 1);
        self.catch_up();
        self.disk.borrow_mut().submit(request, token);
        loop {
            let now = self.catch_up();
            if let Some(done) = self.done.borrow_mut().remove(&token) {
                return done;
            }
            let next = self.disk.borrow().next_event().expect("a request is in flight");
            // At least one tick, or the simulation stands still.
            let wait = Duration::from_nanos(next.0.saturating_sub(now.0)) * STRETCH;
            sleep(wait.max(Duration::from_millis(1))).await;
        }
    }
}

/// Accepts records, and acknowledges each when it is durable.
async fn serve(drive: Drive, tail: Rc<Cell<u64>>, flushes: bool) -> turmoil::Result {
    let listener = TcpListener::bind("0.0.0.0:1000").await?;
    loop {
        let (mut client, _) = listener.accept().await?;
        let (drive, tail) = (drive.clone(), tail.clone());
        tokio::task::spawn_local(async move {
            while let Ok(record) = client.read_u64().await {
                let offset = tail.replace(tail.get() + RECORD as u64);
                let data = [record.to_le_bytes(); RECORD / 8].concat();
                drive.execute(Request::Write { offset, data: &data, durable: false }).await;
                if flushes {
                    drive.execute(Request::Flush).await;
                }
                if client.write_u64(record).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// The records that clients know to be durable, and the longest wait for one, in the drive's time.
#[derive(Default)]
struct Told {
    acknowledged: Vec<u64>,
    slowest: Duration,
}

/// Sends records until the server fails.
async fn send(first: u64, told: Rc<RefCell<Told>>) -> turmoil::Result {
    let mut server = TcpStream::connect("server:1000").await?;
    for record in (first..).step_by(CLIENTS as usize) {
        let sent = turmoil::elapsed();
        // The server is gone when the power has failed.
        if server.write_u64(record).await.is_err() || server.read_u64().await.is_err() {
            break;
        }
        let mut told = told.borrow_mut();
        told.acknowledged.push(record);
        told.slowest = told.slowest.max((turmoil::elapsed() - sent) / STRETCH);
    }
    Ok(())
}

/// Runs one simulation up to its power cut. Returns the numbers of acknowledged and of missing records, and the longest
/// wait.
fn simulate(seed: u64, flushes: bool) -> turmoil::Result<(usize, usize, Duration)> {
    let mut simulation = turmoil::Builder::new()
        .rng_seed(seed)
        .simulation_duration(Duration::from_secs(3_600))
        .min_message_latency(Duration::from_millis(20))
        .max_message_latency(Duration::from_millis(60))
        .build();
    let drive = Drive::new(seed);
    let told = Rc::new(RefCell::new(Told::default()));
    let (served, tail) = (drive.clone(), Rc::new(Cell::new(0)));
    let server_tail = tail.clone();
    simulation.host("server", move || serve(served.clone(), server_tail.clone(), flushes));
    for client in 0..CLIENTS {
        simulation.client(format!("client-{client}"), send(client + 1, told.clone()));
    }
    // Between 5 and 20 milliseconds of the drive.
    let power_fails = Duration::from_millis(5_000 + seed * 7_919 % 15_000);
    while simulation.elapsed() < power_fails {
        simulation.step()?;
    }
    simulation.crash("server");
    drive.disk.borrow_mut().power_cut(seed);
    let found: Vec<u64> = (0..tail.get()).step_by(RECORD).map(|offset| read(&drive, offset)).collect();
    let told = told.borrow();
    let missing = told.acknowledged.iter().filter(|record| !found.contains(record)).count();
    Ok((told.acknowledged.len(), missing, told.slowest))
}

/// Returns the record at `offset`; 0 if it is torn or was never written.
fn read(drive: &Drive, offset: u64) -> u64 {
    let mut bytes = Vec::new();
    drive.disk.borrow().copy(offset, RECORD, &mut bytes);
    let first: [u8; 8] = bytes[..8].try_into().expect("a record has 8 bytes and more");
    if bytes.chunks(8).all(|word| word == first) { u64::from_le_bytes(first) } else { 0 }
}

fn main() -> turmoil::Result {
    let flushes = std::env::args().nth(1).as_deref() != Some("no-flush");
    let (mut acknowledged, mut missing, mut slowest) = (0, 0, Duration::ZERO);
    for seed in 0..SEEDS {
        let of_seed = simulate(seed, flushes)?;
        acknowledged += of_seed.0;
        missing += of_seed.1;
        slowest = slowest.max(of_seed.2);
    }
    println!(
        "{SEEDS} power cuts: {acknowledged} records acknowledged, {missing} of them missing; slowest {slowest:.0?}"
    );
    if missing > 0 && flushes {
        return Err("an acknowledged record is missing".into());
    }
    Ok(())
}
