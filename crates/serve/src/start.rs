//! Starts a server from what a user typed.

use crate::address::{self, Address, Front};
use crate::contents::Contents;
use crate::drive::Drive;
use crate::fuse::FILE;
use crate::http::Http;
use crate::live::Described;
use crate::pace::{Pace, Speed};
use crate::server::{Handle, Server};
use fulgurite_base::SpecError;
use fulgurite_device::Device;
use fulgurite_disk::{Cache, Disk, PowerModel};
use fulgurite_nbd::{BlockSizes, Export};
use fulgurite_ssd::WriteCache;
use fulgurite_stack::serve::Served;
use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Command, Row, Run, StackError};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// The smallest unit of addresses that clients are told, that of most drives.
const SECTOR_BYTES: u32 = 512;

/// The longest request that clients are told, in bytes.
const REQUEST_BYTES: u32 = 32 << 20;

/// A request for a server, as text that a user typed.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    /// The settings of the drive, by name; see `fulgurite_stack::Command::Serve`.
    pub settings: BTreeMap<&'a str, &'a str>,
    /// The addresses at which NBD clients connect.
    pub nbd: Vec<&'a str>,
    /// The folder that is mounted.
    pub fuse: Option<&'a Path>,
    /// The path of the control socket.
    pub control: Option<&'a Path>,
    /// The address at which the drive is seen with a browser.
    pub http: Option<&'a str>,
    /// The speed; `None` for that of a real drive.
    pub speed: Option<&'a str>,
    /// The model of power cuts; `None` for that of the drive's cache.
    pub power: Option<&'a str>,
    /// The file that holds the contents; `None` for memory.
    pub contents: Option<&'a Path>,
    /// Whether other machines may reach the drive, and see it.
    pub remote: bool,
}

/// A drive that is about to be served.
#[derive(Clone, Debug)]
pub struct Started {
    /// The name of the drive.
    pub device: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The cache, as far as power cuts concern it.
    pub cache: Cache,
    /// How it is reached, one address or path each.
    pub places: Vec<String>,
    /// The page that shows it; `None` if nobody asked for one.
    pub page: Option<String>,
}

impl Asked<'_> {
    fn front(&self) -> Result<Front, StackError> {
        let refused = |error: SpecError| StackError::request(format!("--nbd: {error}"));
        let nbd = self.nbd.iter().map(|text| Address::parse(text, self.remote).map_err(refused));
        let front = Front {
            nbd: nbd.collect::<Result<_, _>>()?,
            fuse: self.fuse.map(Path::to_path_buf),
            control: self.control.map(Path::to_path_buf),
            http: self.http()?,
        };
        if front.nbd.is_empty() && front.fuse.is_none() {
            return Err(StackError::request(
                "nothing says how programs reach the drive; accepted: --nbd unix:PATH, --nbd tcp:127.0.0.1:10809 or \
                    --fuse DIR",
            ));
        }
        if self.remote
            && front.http.is_none()
            && !front.nbd.iter().any(|address| matches!(address, Address::Tcp(_)))
        {
            return Err(StackError::request(
                "--remote changes nothing without --nbd tcp:… or --http; leave it out",
            ));
        }
        Ok(front)
    }

    fn http(&self) -> Result<Option<SocketAddr>, StackError> {
        let parsed = self
            .http
            .map(|text| address::host(text, "127.0.0.1:8080", "watch the drive", self.remote))
            .transpose();
        parsed.map_err(|error| StackError::request(format!("--http: {error}")))
    }

    /// Returns the model of power cuts. The frames of a pool before the drive are memory, which loses what was not
    /// flushed.
    fn power(&self, run: &Run) -> Result<PowerModel, StackError> {
        let refused = |error: SpecError| StackError::request(format!("--power: {error}"));
        let asked = self.power.map(PowerModel::parse).transpose().map_err(refused)?;
        match (asked, &run.stack.pool) {
            (Some(PowerModel { cache: Cache::Protected, .. }), Some(pool)) => {
                Err(StackError::request(format!(
                    "--power protected does not go with --frames {}, whose pages are lost unless they were flushed; \
                    accepted: volatile, or lying",
                    pool.frames
                )))
            }
            (Some(model), _) => Ok(model),
            (None, pool) => {
                let write_cache = run.stack.device.simulated().map(|config| config.write_cache);
                let is_volatile = write_cache == Some(WriteCache::Volatile);
                let drive = PowerModel::of(if is_volatile { Cache::Volatile } else { Cache::Protected });
                let Some(pool) = pool else { return Ok(drive) };
                let pool_bytes = u64::from(pool.frames) * u64::from(pool.page_bytes);
                let drive_bytes = if is_volatile { drive.cache_bytes } else { 0 };
                Ok(PowerModel { cache: Cache::Volatile, cache_bytes: pool_bytes + drive_bytes, ..drive })
            }
        }
    }
}

/// Serves a drive until `handle` ends it, and returns its figures. `started` is called when programs can reach it, and
/// `report` gets the figures whenever the handle asks for them.
pub fn serve(
    asked: &Asked<'_>,
    handle: Handle,
    started: impl FnOnce(&Started),
    report: &mut dyn FnMut(Result<Row, StackError>),
) -> Result<Row, StackError> {
    let front = asked.front()?;
    let speed = asked.speed.map_or(Ok(Speed::Times(1.0)), Speed::parse);
    let speed = speed.map_err(|error| StackError::request(format!("--speed: {error}")))?;
    let run = settings::run(Command::Serve, &asked.settings, &mut Workloads::default())?;
    let model = asked.power(&run)?;
    let label = run.stack.device.label.clone();
    let Served { device, statistics } = Served::open(&run)?;
    let caps = device.caps().clone();
    let mut disk = Disk::new(device, model);
    let contents = asked.contents.map(|path| Contents::open(path, disk.bytes())).transpose()?.map(Arc::new);
    if let Some(contents) = &contents {
        let written = contents.written(disk.page_bytes()).map_err(|error| {
            StackError::run(format!("--contents: the file cannot be searched for its holes: {error}"))
        })?;
        disk = disk.backed_by(contents.clone(), written.into_iter());
    }
    let export = Export {
        name: label.clone(),
        description: format!("{label}, simulated by Fulgurite"),
        bytes: disk.bytes(),
        block: BlockSizes {
            minimum: SECTOR_BYTES.min(caps.page_bytes),
            preferred: caps.page_bytes,
            maximum: REQUEST_BYTES,
        },
        read_only: false,
        // All connections share one drive, so a flush on one covers the completed writes of all.
        multi_conn: true,
    };
    export.check().map_err(|error| StackError::request(format!("device {label}: {error}")))?;
    let mut places: Vec<String> = front.nbd.iter().map(Address::nbd_uri).collect();
    places.extend(front.fuse.as_ref().map(|folder| folder.join(FILE).display().to_string()));
    let described = Described { device: label.clone(), bytes: disk.bytes(), cache: disk.model().cache };
    let pace = Pace::new(speed, disk.now());
    let drive = Drive::new(disk, statistics, pace, run.seed);
    let watch = handle.watch();
    let open = |address| {
        Http::open(address, asked.remote, described.clone(), watch).map_err(|error| {
            StackError::request(format!(
                "--http: {address} cannot be listened at: {error}; accepted: a free port"
            ))
        })
    };
    let server = Server::open(drive, export, &front, handle, report)?;
    let http = front.http.map(open).transpose()?;
    contents.iter().for_each(|contents| contents.keep());
    let Described { device, bytes, cache } = described;
    started(&Started { device, bytes, cache, places, page: http.as_ref().map(Http::url) });
    server.run()
}
