//! Power cuts against a slow, obvious model: each sector has a list of versions.

use fulgurite_base::{Nanos, Prng};
use fulgurite_device::MemDevice;
use fulgurite_disk::{Cache, Disk, PowerModel, Request};

const SECTOR: u64 = 512;
const PAGE: u64 = 2_048;
const SECTORS: usize = 64;

/// One write of a sector in the model.
#[derive(Clone, Copy)]
struct Version {
    value: u8,
    request: u64,
    is_durable: bool,
}

/// The model: the versions of each sector, and the requests that have completed.
struct Model {
    sectors: Vec<Vec<Version>>,
    completed: Vec<u64>,
}

impl Model {
    fn new() -> Model {
        let never = Version { value: 0, request: u64::MAX, is_durable: true };
        Model { sectors: vec![vec![never]; SECTORS], completed: Vec::new() }
    }

    fn write(&mut self, sector: usize, value: u8, request: u64) {
        self.sectors[sector].push(Version { value, request, is_durable: false });
    }

    fn store(&mut self, requests: &[u64]) {
        let versions = self.sectors.iter_mut().flatten();
        for version in versions.filter(|version| requests.contains(&version.request)) {
            version.is_durable = true;
        }
    }

    /// The values that a sector may have after a cut: its last durable version, and all later ones.
    fn allowed(&self, sector: usize) -> Vec<u8> {
        let versions = &self.sectors[sector];
        let durable = versions.iter().rposition(|version| version.is_durable).unwrap();
        versions[durable..].iter().map(|version| version.value).collect()
    }
}

/// Counts of what the cuts of a test did, to show that all of it occurs.
#[derive(Default)]
struct Seen {
    newest: u64,
    oldest: u64,
    between: u64,
    torn: u64,
}

/// Runs random requests and cuts with `cache`, and checks each cut against the model.
fn cuts(cache: Cache, tear_bytes: u64, seed: u64, seen: &mut Seen) {
    let mut random = Prng::new(seed, "cuts");
    let device = MemDevice::new(SECTORS as u64 * SECTOR / PAGE, PAGE as u32, 1_000, Nanos(10));
    // The device never tears a page, and this test wants to see that pages are torn if nothing promises otherwise.
    let model = PowerModel { tear_bytes, ..PowerModel::of(cache) };
    let mut disk: Disk<Untorn, (u64, Option<Vec<u64>>)> = Disk::new(Untorn::new(device), model);
    let mut model = Model::new();
    let mut completed = Vec::new();
    for request in 0..400 {
        let first = random.below(SECTORS as u64);
        let sectors = 1 + random.below(9.min(SECTORS as u64 - first));
        let (offset, length) = (first * SECTOR, sectors * SECTOR);
        let value = 1 + (request % 251) as u8;
        let durable = random.below(8) == 0;
        match random.below(10) {
            0..=5 => {
                let data = vec![value; length as usize];
                disk.submit(
                    Request::Write { offset, data: &data, durable },
                    (request, durable.then(|| vec![request])),
                );
                (first..first + sectors).for_each(|sector| model.write(sector as usize, value, request));
            }
            6 => {
                let zero = Request::Zero { offset, length, durable, trim: random.below(2) == 0 };
                disk.submit(zero, (request, durable.then(|| vec![request])));
                (first..first + sectors).for_each(|sector| model.write(sector as usize, 0, request));
            }
            7 => disk.submit(Request::Flush, (request, Some(model.completed.clone()))),
            _ => disk.advance(disk.now() + Nanos(random.below(15)), &mut completed),
        }
        for done in completed.drain(..) {
            let (request, stores) = done.token;
            model.completed.push(request);
            match cache {
                Cache::Protected => model.store(&[request]),
                Cache::Volatile => model.store(&stores.unwrap_or_default()),
                Cache::Lying => {}
            }
        }
        if random.below(40) == 0 {
            let cut = disk.power_cut(random.next_u64());
            seen.torn += cut.loss.pages_torn;
            let mut bytes = Vec::new();
            disk.copy(0, SECTORS * SECTOR as usize, &mut bytes);
            let before = std::mem::replace(&mut model, Model::new());
            for (sector, bytes) in bytes.chunks(SECTOR as usize).enumerate() {
                let value = bytes[0];
                assert!(bytes.iter().all(|byte| *byte == value), "sector {sector} is torn, seed {seed}");
                let allowed = before.allowed(sector);
                assert!(
                    allowed.contains(&value),
                    "sector {sector} is {value}, not of {allowed:?}, seed {seed}"
                );
                if allowed.len() > 2 {
                    seen.newest += u64::from(value == allowed[allowed.len() - 1]);
                    seen.oldest += u64::from(value == allowed[0]);
                    seen.between += u64::from(allowed[1..allowed.len() - 1].contains(&value));
                }
                model.sectors[sector][0].value = value;
            }
        }
    }
}

/// A device like another, that promises nothing about torn writes.
struct Untorn(MemDevice, fulgurite_device::Caps);

impl Untorn {
    fn new(device: MemDevice) -> Untorn {
        let caps =
            fulgurite_device::Caps { atomic_bytes: 0, ..fulgurite_device::Device::caps(&device).clone() };
        Untorn(device, caps)
    }
}

impl fulgurite_device::Device for Untorn {
    fn caps(&self) -> &fulgurite_device::Caps {
        &self.1
    }

    fn now(&self) -> Nanos {
        self.0.now()
    }

    fn submit(&mut self, command: fulgurite_device::Command) -> Result<(), fulgurite_device::QueueFull> {
        self.0.submit(command)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<fulgurite_device::Completion>) {
        self.0.wait(deadline, completions);
    }
}

/// The rule: after a power cut a sector has its last durable contents or any later ones. A volatile cache makes a
/// write durable by a later flush or by the write itself, a protected one by its completion, a lying one never. All
/// allowed outcomes occur.
#[test]
fn a_cut_loses_any_subset_of_what_is_not_durable_and_nothing_else() {
    for cache in [Cache::Protected, Cache::Volatile, Cache::Lying] {
        let mut seen = Seen::default();
        (0..300).for_each(|seed| cuts(cache, 512, seed, &mut seen));
        let Seen { newest, oldest, between, torn } = seen;
        let least = [newest, oldest, between, torn].into_iter().min();
        assert!(least > Some(20), "{cache:?}: {newest} {oldest} {between} {torn}");
    }
}

/// The rule: a cut tears no write inside a unit of `tear_bytes`. With a unit of a page, and writes of whole pages, no
/// page is torn.
#[test]
fn a_cut_tears_writes_only_at_multiples_of_the_unit() {
    for (tear, expect_torn) in [(512, true), (PAGE, false), (4 * PAGE, false)] {
        let mut torn = 0;
        let mut halves = 0;
        for seed in 0..200 {
            let device = Untorn::new(MemDevice::new(64, PAGE as u32, 1_000, Nanos(10)));
            let mut disk: Disk<Untorn, ()> =
                Disk::new(device, PowerModel { tear_bytes: tear, ..PowerModel::of(Cache::Volatile) });
            let data = vec![7; 8 * PAGE as usize];
            disk.submit(Request::Write { offset: 4 * PAGE, data: &data, durable: false }, ());
            disk.finish(&mut Vec::new());
            torn += disk.power_cut(seed).loss.pages_torn;
            let mut bytes = Vec::new();
            disk.copy(4 * PAGE, 8 * PAGE as usize, &mut bytes);
            // Four pages share their fate if the unit has four pages.
            halves += usize::from(
                bytes.chunks(4 * PAGE as usize).any(|unit| unit.iter().any(|byte| *byte != unit[0])),
            );
        }
        assert_eq!(torn > 0, expect_torn, "{tear}: {torn}");
        assert_eq!(halves > 0, tear < 4 * PAGE, "{tear}: {halves}");
    }
}

/// The rule: a full cache stores its oldest write, so no more than its size can be lost.
#[test]
fn a_cut_loses_no_more_than_the_cache_holds() {
    let device = MemDevice::new(64, PAGE as u32, 1_000, Nanos(10));
    let mut disk: Disk<MemDevice, ()> =
        Disk::new(device, PowerModel { cache_bytes: 4 * PAGE, ..PowerModel::of(Cache::Volatile) });
    for lpn in 0..32 {
        disk.submit(Request::Write { offset: lpn * PAGE, data: &[1; PAGE as usize], durable: false }, ());
        disk.finish(&mut Vec::new());
    }
    assert_eq!(disk.pages_unflushed(), 4);
    let writes: Vec<u64> = disk.pieces().iter().map(|piece| piece.write).collect();
    assert_eq!(writes, [28, 29, 30, 31]);
}

/// The rule: a seed cuts the same way again, the pieces that a cut lost lose the same when they are named, and other
/// seeds cut in other ways.
#[test]
fn a_cut_is_a_function_of_its_seed() {
    let written = |seed: Option<u64>, lost: Option<Vec<fulgurite_disk::Piece>>| {
        let mut disk: Disk<MemDevice, ()> =
            Disk::new(MemDevice::new(64, PAGE as u32, 1_000, Nanos(10)), PowerModel::of(Cache::Volatile));
        for lpn in 0..32 {
            disk.submit(Request::Write { offset: lpn * PAGE, data: &[1; PAGE as usize], durable: false }, ());
        }
        let cut = match (seed, lost) {
            (Some(seed), _) => disk.power_cut(seed),
            (None, lost) => disk.power_cut_with(lost.unwrap_or_default()),
        };
        let mut bytes = Vec::new();
        disk.copy(0, 64 * PAGE as usize, &mut bytes);
        (cut.lost, bytes)
    };
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let (lost, bytes) = written(Some(seed), None);
        assert_eq!(written(Some(seed), None), (lost.clone(), bytes.clone()));
        assert_eq!(written(None, Some(lost)).1, bytes);
        outcomes.insert(bytes);
    }
    assert!(outcomes.len() > 10, "{}", outcomes.len());
}
