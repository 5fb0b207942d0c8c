//! WiredTiger, Debian's libwiredtiger through its C API.
//!
//! - A checkpoint every 60 s or 2 GB of log, as MongoDB, its owner, sets. So a short run has no checkpoint, only
//!   eviction. One to four eviction threads; MongoDB sets four, the library's default is one to eight.
//! - The isolation is the library's default, read-committed. With snapshot isolation two concurrent transactions
//!   that write the same row conflict, and the later one is repeated. Nearly every commit of 32 rows contains the
//!   hottest row, so snapshot isolation is 30 times slower here.
//! - Leaf pages of 4 KiB instead of 32: "Tuning page size and compression" in its manual ties the leaf page to the I/O
//!   of the application, and these read single rows at random from a store larger than the cache.
//! - Durable: the log with `transaction_sync=(enabled=true,method=fsync)`. Relaxed: the same log, not synchronised at
//!   commit (manual, "Commit-level durability").
//! - Direct I/O by `direct_io=[data]`, which the manual allows where the cache is the only one wanted.
//! - Each thread has its own session and cursor, and resets the cursor after each operation, so that it pins no page.
//! - The sorted load uses a bulk cursor (manual, "Bulk-load").

mod sys;

use super::{Direct, Engine, Kind, Options, Order, Session, Visit, VisitFound, in_groups};
use crate::rows::{Key, Record};
use anyhow::{Result, bail, ensure};
use std::ffi::{CStr, CString, c_int, c_void};
use std::mem::zeroed;
use std::path::Path;
use std::ptr::{null, null_mut};

pub const KIND: Kind = Kind { name: "wiredtiger", open, direct: Direct::Asked, durable: true, reopens: true };

const TABLE: &CStr = c"table:t";

struct Tiger {
    connection: *mut sys::Connection,
}

// SAFETY: a connection may be used by several threads at once (wiredtiger.h); sessions may not, and are not.
unsafe impl Send for Tiger {}
// SAFETY: as above.
unsafe impl Sync for Tiger {}

/// A session with its cursor.
struct Thread {
    session: *mut sys::Session,
    cursor: *mut sys::Cursor,
}

fn open(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    version_is_declared()?;
    let home = CString::new(folder.as_os_str().as_encoded_bytes())?;
    let config = CString::new(format!(
        "create,cache_size={},eviction=(threads_min=1,threads_max=4),checkpoint=(wait=60,log_size=2GB),\
         log=(enabled=true,archive=true),transaction_sync=(enabled={},method=fsync){}",
        options.cache_bytes,
        options.durable,
        if options.direct { ",direct_io=[data],mmap=false" } else { "" },
    ))?;
    let mut connection = null_mut();
    // SAFETY: both strings end with a zero; the library sets the connection where it returns 0.
    check(unsafe { sys::wiredtiger_open(home.as_ptr(), null_mut(), config.as_ptr(), &mut connection) })?;
    let engine = Tiger { connection };
    let table = c"key_format=u,value_format=u,leaf_page_max=4KB";
    engine.with_session(|session| {
        // SAFETY: the session is open. An existing table is left as it is.
        check(unsafe { ((*session).create)(session, TABLE.as_ptr(), table.as_ptr()) })
    })?;
    Ok(Box::new(engine))
}

/// Checks the library's version, because the structs in `sys` are those of one release.
fn version_is_declared() -> Result<()> {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three integers to write to.
    unsafe { sys::wiredtiger_version(&mut major, &mut minor, &mut patch) };
    ensure!((major, minor) == (3, 2), "WiredTiger {major}.{minor}: the bindings here are those of 3.2");
    Ok(())
}

fn check(status: c_int) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the library returns a string for every number.
    let text = unsafe { CStr::from_ptr(sys::wiredtiger_strerror(status)) };
    bail!("WiredTiger: {}", text.to_string_lossy())
}

impl Tiger {
    fn open_session(&self) -> Result<*mut sys::Session> {
        let mut session = null_mut();
        // SAFETY: the connection is open.
        check(unsafe {
            ((*self.connection).open_session)(self.connection, null_mut(), null(), &mut session)
        })?;
        Ok(session)
    }

    fn with_session(&self, work: impl FnOnce(*mut sys::Session) -> Result<()>) -> Result<()> {
        let session = self.open_session()?;
        let result = work(session);
        // SAFETY: the session is open, and not used again.
        check(unsafe { ((*session).close)(session, null()) })?;
        result
    }

    fn thread(&self, cursor_config: Option<&CStr>) -> Result<Thread> {
        let session = self.open_session()?;
        let config = cursor_config.map_or(null(), CStr::as_ptr);
        let mut cursor = null_mut();
        // SAFETY: the session is open.
        check(unsafe { ((*session).open_cursor)(session, TABLE.as_ptr(), null_mut(), config, &mut cursor) })?;
        Ok(Thread { session, cursor })
    }
}

impl Engine for Tiger {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, order: Order) -> Result<()> {
        if order == Order::Sorted {
            let bulk = self.thread(Some(c"bulk"))?;
            for record in rows {
                check(bulk.insert(&record))?;
            }
        } else {
            let mut thread = self.thread(None)?;
            in_groups(rows, |group| thread.commit(group))?;
        }
        // SAFETY: the session is open.
        self.with_session(|session| check(unsafe { ((*session).checkpoint)(session, null()) }))
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        Ok(Box::new(self.thread(None)?))
    }

    fn close(self: Box<Self>) -> Result<()> {
        // SAFETY: all sessions are closed, since each borrows the engine; the connection is not used again.
        check(unsafe { ((*self.connection).close)(self.connection, null()) })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: closes the cursor too; nobody else has the session. There is nobody to tell of an error.
        unsafe { ((*self.session).close)(self.session, null()) };
    }
}

fn item(bytes: &[u8]) -> sys::Item {
    sys::Item { data: bytes.as_ptr().cast(), size: bytes.len(), mem: null_mut(), mem_size: 0, flags: 0 }
}

/// # Safety
/// `item` was filled by the library; the bytes live until the cursor moves.
unsafe fn bytes<'a>(item: &sys::Item) -> &'a [u8] {
    if item.size == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(item.data.cast(), item.size) }
}

impl Thread {
    /// Inserts or overwrites a record; returns WiredTiger's status.
    fn insert(&self, record: &Record) -> c_int {
        let (mut key, mut value) = (item(&record.key), item(&record.value));
        // SAFETY: the cursor copies key and value during `insert`, while both live.
        unsafe {
            ((*self.cursor).set_key)(self.cursor, &raw mut key);
            ((*self.cursor).set_value)(self.cursor, &raw mut value);
            ((*self.cursor).insert)(self.cursor)
        }
    }

    fn reset(&self) -> Result<()> {
        // SAFETY: the cursor is open.
        check(unsafe { ((*self.cursor).reset)(self.cursor) })
    }

    /// Tries to commit once. Returns false if the transaction was rolled back, which WiredTiger may require
    /// when its cache is full.
    fn try_commit(&self, batch: &[Record]) -> Result<bool> {
        let session = self.session;
        // SAFETY: the session is open and has no transaction.
        check(unsafe { ((*session).begin_transaction)(session, null()) })?;
        let failed = batch.iter().map(|record| self.insert(record)).find(|&status| status != 0);
        let status = match failed {
            // SAFETY: the transaction is open. It ends here, also where this fails.
            None => unsafe { ((*session).commit_transaction)(session, null()) },
            Some(status) => {
                // SAFETY: the transaction is open.
                check(unsafe { ((*session).rollback_transaction)(session, null()) })?;
                status
            }
        };
        self.reset()?;
        if status == sys::ROLLBACK {
            return Ok(false);
        }
        check(status)?;
        Ok(true)
    }

    fn seek(&self, key: &Key) {
        let mut key = item(key);
        // SAFETY: the cursor keeps the pointer until the search, during which the caller's key lives.
        unsafe { ((*self.cursor).set_key)(self.cursor, &raw mut key) };
    }

    /// Positions the cursor on `key`. Returns false if the key does not exist.
    fn search(&self, key: &Key) -> Result<bool> {
        self.seek(key);
        // SAFETY: the cursor has a key that lives.
        let status = unsafe { ((*self.cursor).search)(self.cursor) };
        if status == sys::NOT_FOUND {
            return Ok(false);
        }
        check(status)?;
        Ok(true)
    }

    fn value(&self) -> Result<&[u8]> {
        // SAFETY: an item of zeros is an empty one; the library fills it. The bytes live until the cursor moves.
        unsafe {
            let mut value: sys::Item = zeroed();
            check(((*self.cursor).get_value)(self.cursor, &raw mut value as *mut c_void))?;
            Ok(bytes(&value))
        }
    }

    fn key(&self) -> Result<&[u8]> {
        // SAFETY: as for the value.
        unsafe {
            let mut key: sys::Item = zeroed();
            check(((*self.cursor).get_key)(self.cursor, &raw mut key as *mut c_void))?;
            Ok(bytes(&key))
        }
    }
}

impl Session for Thread {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        if !self.search(key)? {
            return Ok(false);
        }
        value.clear();
        value.extend_from_slice(self.value()?);
        self.reset()?;
        Ok(true)
    }

    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        for (number, key) in keys.iter().enumerate() {
            let there = self.search(key)?;
            found(number, if there { Some(self.value()?) } else { None })?;
        }
        // One reset is enough: each search releases the page of the previous one.
        self.reset()
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        while !self.try_commit(batch)? {}
        Ok(())
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        self.seek(from);
        let mut side: c_int = 0;
        // SAFETY: the cursor has a key that lives.
        let mut status = unsafe { ((*self.cursor).search_near)(self.cursor, &mut side) };
        if status == 0 && side < 0 {
            // The cursor is on the last key below the requested one. SAFETY: the cursor is positioned.
            status = unsafe { ((*self.cursor).next)(self.cursor) };
        }
        let mut found = 0;
        while found < count && status == 0 {
            each(self.key()?, self.value()?)?;
            found += 1;
            if found < count {
                // SAFETY: the cursor is positioned.
                status = unsafe { ((*self.cursor).next)(self.cursor) };
            }
        }
        self.reset()?;
        if status != sys::NOT_FOUND {
            check(status)?;
        }
        Ok(found)
    }
}
