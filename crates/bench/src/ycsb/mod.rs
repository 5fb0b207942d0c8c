//! Implements the YCSB benchmark with its core workloads A to F (Cooper et al., "Benchmarking Cloud Serving
//! Systems with YCSB", SoCC 2010). The defaults are those of the YCSB program: 10 fields of 100 bytes, a Zipf
//! exponent of 0.99, updates of one field, and scans of 1 to 100 records.
//!
//! The key of record n is n scrambled by a bijection of 64 bits, so popular and new records are scattered
//! over the table (`insertorder=hashed`). Every field begins with a stamp, the number of its updates. The
//! other bytes of the field are a function of the key, the field and the stamp, so [`Ycsb::verify`] detects
//! every wrong byte.
//!
//! *Differences from YCSB.* Ranks are drawn from the exact Zipf distribution, not from YCSB's approximation.
//! Reads and scans read a snapshot. An update reads the record first, because the store has no partial update
//! (`write_all=yes` writes all fields without reading).

mod config;
mod record;
mod inserts;

pub(crate) use config::{Letter, ReadsConfig, ScansConfig, UpdatesConfig};

use crate::benchmark::{Benchmark, Ending, Verified};
use crate::codec::{Key, KeyRange, Reader};
use crate::data::{Data, load_table};
use crate::draw::between_u32;
use crate::error::Error;
use crate::recipe::{Recipe, data_text, scaled, stored};
use crate::session::Session;
use config::{RECORDS, Records};
use fulgurite_base::{Prng, SpecError};
use fulgurite_engine::Direction;
use fulgurite_engine::sharded::{Store, Table};
use fulgurite_workload::generate::zipf::ZipfLaw;
use inserts::Inserts;
use record::{TABLE, bump, fill, scrambled, stamp, value};

/// A core workload of YCSB over a loaded store.
pub struct Ycsb {
    letter: Letter,
    records: Records,
    write_all: bool,
    /// The most records that a scan returns.
    scan: u32,
    popularity: ZipfLaw,
    inserts: Inserts,
    seed: u64,
    table: Table,
}

/// One operation of YCSB. A record is given by its number, counted from zero.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Request {
    Read { record: u64 },
    Update { record: u64, field: u32, stamp: u32 },
    Insert { record: u64 },
    Scan { record: u64, most: u32 },
}

/// Fills the table. All keys are in memory during the load, at 8 bytes each.
pub(crate) async fn load(records: &Records, store: &Store, seed: u64) -> Result<(), Error> {
    let mut keys: Vec<u64> = (0..records.records).map(scrambled).collect();
    keys.sort_unstable();
    let rows = keys.into_iter().map(|key| (key.to_be_bytes().to_vec(), value(records, seed, key, 0)));
    load_table(store, TABLE, rows).await?;
    Ok(())
}

impl Ycsb {
    pub(crate) async fn open(
        store: &Store,
        records: &Records,
        seed: u64,
        letter: Letter,
        write_all: bool,
        scan: u32,
    ) -> Result<Ycsb, Error> {
        let table = store.table(TABLE).await?;
        let inserts = Inserts::find(store, table, records.records).await?;
        let popularity = ZipfLaw::new(records.records, records.theta);
        Ok(Ycsb { letter, records: *records, write_all, scan, popularity, inserts, seed, table })
    }

    /// Checks that every record exists and that each of its bytes is right.
    pub async fn verify(&self, store: &Store) -> Result<Verified, Error> {
        let snapshot = store.snapshot().await;
        let mut scan = snapshot.scan(self.table, KeyRange::ALL.bounds(), Direction::Forward);
        let mut verified = Verified::default();
        while let Some((key, found)) = scan.next().await? {
            let number = Reader::new(&key)
                .key_u64()
                .ok_or_else(|| Error::row(TABLE, "has a key of a wrong length"))?;
            verified.rows += 1;
            verified.changes += self.check(number, &found)?;
        }
        // A record that is being inserted may exist or not, so the number of records has two bounds.
        let (least, most) = self.inserts.bounds();
        match (least..=most).contains(&verified.rows) {
            true => Ok(verified),
            false => {
                Err(Error::Broken(format!("`{TABLE}` has {} rows and should have {least}", verified.rows)))
            }
        }
    }

    /// Checks every byte of one record. Returns the number of its updates.
    fn check(&self, key: u64, found: &[u8]) -> Result<u64, Error> {
        let field_bytes = self.records.field_bytes as usize;
        if found.len() != field_bytes * self.records.fields as usize {
            return Err(Error::row(TABLE, format!("has {} bytes (key {key:016x})", found.len())));
        }
        let mut changes = 0;
        for (index, field) in found.chunks_exact(field_bytes).enumerate() {
            let stamp = stamp(field);
            let mut expected = vec![0; field_bytes];
            fill(&mut expected, self.seed, key, index as u32, stamp);
            if field != expected {
                return Err(Error::row(
                    TABLE,
                    format!("has other bytes than were written (key {key:016x}, field {index})"),
                ));
            }
            changes += u64::from(stamp);
        }
        Ok(changes)
    }

    /// Draws the number of a record by popularity. Record 0 is the most popular one.
    fn popular(&self, prng: &mut Prng) -> u64 {
        self.popularity.rank(prng) - 1
    }

    /// Draws the number of a record by age. The latest record is the most popular one.
    fn latest(&self, prng: &mut Prng) -> u64 {
        // The table never has fewer records than after the load, so the difference is not negative.
        self.inserts.complete() - self.popularity.rank(prng)
    }

    async fn update(&self, session: &Session, key: u64, field: u32, stamp: u32) -> Result<(), Error> {
        let (work, place) = (session.begin(), Key::new().u64(key));
        // The workload F reads the record in any case, so only the other workloads skip the read.
        if self.write_all && self.letter != Letter::F {
            work.put(self.table, &place, &value(&self.records, self.seed, key, stamp)).await?;
            return work.commit().await;
        }
        let found = work.get_for_update(self.table, &place).await?;
        let mut found = found.ok_or_else(|| Error::row(TABLE, format!("is missing (key {key:016x})")))?;
        if self.write_all {
            found = value(&self.records, self.seed, key, stamp);
        } else {
            bump(&mut found, &self.records, self.seed, key, field)?;
        }
        work.put(self.table, &place, &found).await?;
        work.commit().await
    }
}

impl Benchmark for Ycsb {
    type Request = Request;

    fn kinds(&self) -> &[&'static str] {
        match self.letter {
            Letter::A | Letter::B => &["read", "update"],
            Letter::C => &["read"],
            Letter::D => &["read", "insert"],
            Letter::E => &["scan", "insert"],
            Letter::F => &["read", "read-modify-write"],
        }
    }

    fn kind(&self, request: &Request) -> usize {
        usize::from(matches!(request, Request::Update { .. } | Request::Insert { .. }))
    }

    fn draw(&self, prng: &mut Prng) -> Request {
        let drawn = prng.below(100);
        match self.letter {
            Letter::A | Letter::F if drawn < 50 => self.draw_update(prng),
            Letter::B if drawn < 5 => self.draw_update(prng),
            Letter::D | Letter::E if drawn < 5 => Request::Insert { record: self.inserts.begin() },
            Letter::D => Request::Read { record: self.latest(prng) },
            Letter::E => Request::Scan { record: self.popular(prng), most: between_u32(prng, 1, self.scan) },
            _ => Request::Read { record: self.popular(prng) },
        }
    }

    async fn execute(&self, request: &Request, session: &Session) -> Result<Ending, Error> {
        match *request {
            Request::Read { record } => {
                let key = Key::new().u64(scrambled(record));
                if session.get(self.table, &key).await?.is_none() {
                    return Err(Error::row(TABLE, format!("is missing (record {record})")));
                }
            }
            Request::Update { record, field, stamp } => {
                self.update(session, scrambled(record), field, stamp).await?;
            }
            Request::Insert { record } => {
                let (work, key) = (session.begin(), scrambled(record));
                let value = value(&self.records, self.seed, key, 0);
                work.put(self.table, &Key::new().u64(key), &value).await?;
                work.commit().await?;
                self.inserts.end(record);
            }
            Request::Scan { record, most } => {
                let range = KeyRange::from(Key::new().u64(scrambled(record)));
                session.view().await.scan(self.table, &range, Direction::Forward, most as usize).await?;
            }
        }
        Ok(Ending::Committed)
    }
}

impl Ycsb {
    fn draw_update(&self, prng: &mut Prng) -> Request {
        let record = self.popular(prng);
        // The drawn stamp is used only if all fields are written. An update of a single field increments the
        // field's stamp.
        Request::Update {
            record,
            field: between_u32(prng, 0, self.records.fields - 1),
            stamp: prng.next_u64() as u32,
        }
    }
}

/// Implements [`Recipe`] for a type of options, given the workload's letter, whether updates write all
/// fields, and the most records of a scan.
macro_rules! recipe {
    ($config:ty, $own:ident => ($letter:expr, $write_all:expr, $scan:expr)) => {
        impl Recipe for $config {
            type Benchmark = Ycsb;

            fn data(&self) -> String {
                let Records { records, fields, field_bytes, .. } = self.table;
                let sizes = [("fields", fields.into()), ("field_bytes", field_bytes.into())];
                data_text("ycsb", &[("records", records), sizes[0], sizes[1]])
            }

            fn bytes(&self) -> u64 {
                let Records { records, fields, field_bytes, .. } = self.table;
                // Besides the fields, a record takes the key and the overhead of the page.
                stored(records, u64::from(fields) * u64::from(field_bytes) + 24)
            }

            fn scale(&mut self, scale: u64) -> Result<(), SpecError> {
                self.table.records = scaled(scale, RECORDS)?;
                Ok(())
            }

            async fn load(&self, store: &Store, seed: u64) -> Result<(), Error> {
                load(&self.table, store, seed).await
            }

            async fn open(&self, store: &Store, data: &Data) -> Result<Ycsb, Error> {
                let $own = self;
                Ycsb::open(store, &self.table, data.seed, $letter, $write_all, $scan).await
            }
        }
    };
}

recipe!(UpdatesConfig, own => (own.letter, own.write_all, 0));
recipe!(ReadsConfig, own => (own.letter, false, 0));
recipe!(ScansConfig, own => (Letter::E, false, own.scan));
