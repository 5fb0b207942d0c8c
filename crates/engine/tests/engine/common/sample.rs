//! A small store with all kinds of content (inner nodes on two levels, an index, large values, a log), and
//! the contents that it should have.

use super::patched::{PAGE, Patched};
use super::{all, run};
use fulgurite_device::Executor;
use fulgurite_engine::{Direction, Durability, Error, Extract, Options, Store};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

/// The records of a table, by key.
pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;
/// The records of all tables, by the name of the table.
pub(crate) type State = BTreeMap<&'static str, Model>;

/// The number of pages of the drive.
pub(crate) const PAGES: usize = 520;
/// The first pages of the log, the double-write area and the data.
pub(crate) const LOG: usize = 32;
pub(crate) const DOUBLE_WRITE: usize = LOG + 96;
pub(crate) const DATA: usize = DOUBLE_WRITE + 128;
/// The names of the tables.
pub(crate) const TABLES: [&str; 3] = ["deep", "empty", "flat"];

/// Returns options with little memory and a log of 96 pages.
pub(crate) fn options() -> Options {
    Options { memory_bytes: 130 << 10, log_bytes: 96 * PAGE as u64, ..Options::default() }
}

/// Returns the extraction function of the index of `flat`: the first byte of each value.
pub(crate) fn extract() -> Extract {
    Rc::new(|_, value, keys| keys.extend(value.first().map(|byte| vec![*byte])))
}

/// The contents of a drive with a store, and the expected contents of the store.
pub(crate) struct Sample {
    /// The bytes of the drive.
    pub image: Rc<Vec<u8>>,
    /// The state after each acknowledged commit since the store was last closed; the last one is the expected
    /// state.
    pub states: Vec<State>,
}

impl Sample {
    /// Returns the expected state.
    pub(crate) fn state(&self) -> &State {
        self.states.last().unwrap()
    }
}

/// Returns a long key. Keys are in groups with long common prefixes, so that separators are long and inner
/// nodes have few children.
fn deep_key(number: u32) -> Vec<u8> {
    let group = number / 4;
    let mut key = format!("{group:04}").into_bytes();
    key.resize(400, b'a' + (group % 20) as u8);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

fn value(number: u32, len: usize) -> Vec<u8> {
    (0..len).map(|at| (number as usize * 31 + at) as u8).collect()
}

type Change = (&'static str, Vec<u8>, Option<Vec<u8>>);

/// Returns the commits that fill the store.
fn filling() -> Vec<Vec<Change>> {
    let deep = (0..170).map(|number| vec![("deep", deep_key(number), Some(value(number, 800)))]);
    let flat =
        (0..40u32).map(|number| vec![("flat", number.to_be_bytes().to_vec(), Some(value(number, 90)))]);
    let large = (0..3u32).map(|number| vec![("flat", vec![9, number as u8], Some(value(number, 7000)))]);
    deep.chain(flat).chain(large).collect()
}

/// Returns the commits of the last session: puts, deletes, splits, a large value that is deleted and one that
/// is inserted.
fn later() -> Vec<Vec<Change>> {
    let deep = (170..178).map(|number| vec![("deep", deep_key(number), Some(value(number, 800)))]);
    let both = (0..6u32).map(|number| {
        let gone = ("deep", deep_key(number * 9), None);
        vec![gone, ("flat", number.to_be_bytes().to_vec(), Some(value(number + 99, 60)))]
    });
    let large = vec![("flat", vec![9, 0], None), ("flat", vec![9, 7], Some(value(7, 5000)))];
    deep.chain(both).chain([large]).collect()
}

async fn commit(store: &Store, changes: &[Change], state: &mut State) {
    let transaction = store.begin();
    for (table, key, value) in changes {
        let handle = store.table(table).await.unwrap();
        let model = state.entry(table).or_default();
        match value {
            Some(value) => {
                transaction.put(handle, key, value).await.unwrap();
                model.insert(key.clone(), value.clone());
            }
            None => {
                transaction.delete(handle, key).await.unwrap();
                model.remove(key);
            }
        }
    }
    transaction.commit_with(Durability::Flush).await.unwrap();
}

fn session(image: &Rc<Vec<u8>>, commits: Vec<Vec<Change>>, mut state: State, close: bool) -> Sample {
    let executor = Executor::new(Patched::new(image));
    let states = run(&executor, move |handle| async move {
        let store = Store::open(handle, options()).await.unwrap();
        for table in TABLES {
            store.create_table(table).await.unwrap();
            state.entry(table).or_default();
        }
        let flat = store.table("flat").await.unwrap();
        store.create_index(flat, "flat by first", extract()).await.unwrap();
        let mut states = vec![state.clone()];
        for changes in commits {
            commit(&store, &changes, &mut state).await;
            states.push(state.clone());
        }
        if close {
            store.close().await.unwrap();
            states.drain(..states.len() - 1);
        }
        states
    });
    Sample { image: Rc::new(executor.with_device(|device| device.contents())), states }
}

/// Returns a store that was created with these options on a drive of `pages` pages, filled, and closed.
fn filled(options: Options, pages: usize) -> Sample {
    let empty = Rc::new(vec![0; pages * PAGE]);
    let executor = Executor::new(Patched::new(&empty));
    run(
        &executor,
        |handle| async move { Store::create(handle, options).await.unwrap().close().await.unwrap() },
    );
    let image = Rc::new(executor.with_device(|device| device.contents()));
    session(&image, filling(), State::new(), true)
}

/// Returns a store that was filled and closed.
pub(crate) fn closed() -> Sample {
    filled(options(), PAGES)
}

/// Returns the store of [`closed`] after a further session and a power cut: the commits of this session are
/// in the log.
pub(crate) fn crashed() -> Sample {
    let Sample { image, states } = closed();
    session(&image, later(), states[0].clone(), false)
}

/// Returns the store of [`closed`] after a further session, closed again.
pub(crate) fn closed_later() -> Sample {
    later_than(closed())
}

/// Returns the store of [`closed_later`], but with pages out of place.
pub(crate) fn closed_later_out_of_place() -> Sample {
    // Segments need over-provisioning, so the drive is twice as large.
    later_than(filled(Options { place: "out-of-place".parse().unwrap(), ..options() }, 2 * PAGES))
}

fn later_than(Sample { image, states }: Sample) -> Sample {
    session(&image, later(), states[0].clone(), true)
}

/// The answers of the store on a drive.
pub(crate) struct Answer {
    /// The records of each table, or an error, which must report damage.
    pub tables: Vec<(&'static str, Result<Model, Error>)>,
    /// The findings of `check`.
    pub check: Result<fulgurite_engine::CheckReport, Error>,
}

/// Opens the store on a drive and reads all of it, including the index.
pub(crate) fn ask(device: Patched) -> Result<Answer, Error> {
    let executor = Executor::new(device);
    run(&executor, |handle| async move {
        let store = Store::open(handle, options()).await?;
        let mut tables = Vec::new();
        for table in TABLES {
            let records = all(&store, table).await;
            tables.push((table, records.map(|records| records.into_iter().collect())));
        }
        if let Ok(flat) = store.table("flat").await
            && let Ok(index) = store.create_index(flat, "flat by first", extract()).await
        {
            let snapshot = store.snapshot();
            let scan = snapshot.index_scan(index, (Bound::Unbounded, Bound::Unbounded), Direction::Backward);
            let rows =
                scan.all().await.map(|rows| rows.into_iter().map(|row| (row.key, row.value)).collect());
            tables.push(("flat", rows));
        }
        Ok(Answer { tables, check: store.check().await })
    })
}

/// Whether an error reports damage, and nothing else.
pub(crate) fn is_clear(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt { .. } | Error::LogCorrupt { .. } | Error::NotAStore | Error::Version { .. }
    )
}
