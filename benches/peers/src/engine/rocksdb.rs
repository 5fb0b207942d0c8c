//! RocksDB, Debian's librocksdb through its C API.
//!
//! From the wiki's "Setup Options and Basic Tuning":
//! - a Bloom filter of 10 bits a key, `format_version` 5;
//! - `cache_index_and_filter_blocks` with those of level 0 pinned, so that the block cache bounds their memory too;
//! - `level_compaction_dynamic_level_bytes`, `bytes_per_sync` of 1 MiB, several background jobs (4).
//!
//! In addition:
//! - Blocks stay at the default of 4 KiB. That page offers 16 KiB to save index memory; rows of 116 bytes that are
//!   read one by one would pay for it with four times the bytes.
//! - Two write buffers of 32 MiB, half the default, since the memory limit is twice the cache.
//! - No compression: the values would not compress anyway.
//! - Direct I/O by `use_direct_reads` and `use_direct_io_for_flush_and_compaction` (wiki, "Direct IO").
//! - Durable: `WriteOptions::sync`. Relaxed: the default, the log is handed to the operating system.
//! - Many keys are read by `MultiGet` for one column family (wiki, "MultiGet Performance"). It reads blocks in
//!   parallel if the library has io_uring. Debian's library has not, so `MultiGet` saves work but does not read
//!   in parallel.
//! - The load bypasses the log, then flushes and waits for compactions.

mod sys;

use super::{Direct, Engine, Kind, Options, Order, Session, Visit, VisitFound, in_groups};
use crate::rows::{KEY_BYTES, Key, Record};
use anyhow::{Result, bail, ensure};
use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

pub const KIND: Kind = Kind { name: "rocksdb", open, direct: Direct::Asked, durable: true, reopens: true };

struct Rocks {
    db: *mut sys::Db,
    /// The only column family. The call for many keys requires one.
    family: *mut sys::Family,
    reads: *mut sys::ReadOptions,
    writes: *mut sys::WriteOptions,
}

// SAFETY: RocksDB may be called by several threads at once; options are only read (rocksdb/c.h).
unsafe impl Send for Rocks {}
// SAFETY: as above.
unsafe impl Sync for Rocks {}

struct Thread<'a> {
    engine: &'a Rocks,
    batch: *mut sys::WriteBatch,
}

fn open(folder: &Path, options: &Options) -> Result<Box<dyn Engine>> {
    let name = CString::new(folder.join("rocksdb").into_os_string().into_encoded_bytes())?;
    // SAFETY: every handle is made by the library just before its use. The table takes over the filter, and shares
    // the cache; the database copies the options.
    unsafe {
        let settings = configure(options);
        let (families, own) = ([c"default".as_ptr()], [settings.cast_const()]);
        let mut family = [null_mut()];
        let result = checked(|error| {
            sys::rocksdb_open_column_families(
                settings,
                name.as_ptr(),
                1,
                families.as_ptr(),
                own.as_ptr(),
                family.as_mut_ptr(),
                error,
            )
        });
        sys::rocksdb_options_destroy(settings);
        let writes = sys::rocksdb_writeoptions_create();
        sys::rocksdb_writeoptions_set_sync(writes, options.durable.into());
        Ok(Box::new(Rocks {
            db: result?,
            family: family[0],
            reads: sys::rocksdb_readoptions_create(),
            writes,
        }))
    }
}

/// # Safety
/// The caller destroys the options.
unsafe fn configure(options: &Options) -> *mut sys::Options {
    unsafe {
        let table = sys::rocksdb_block_based_options_create();
        let filter = sys::rocksdb_filterpolicy_create_bloom_full(10.0);
        sys::rocksdb_block_based_options_set_filter_policy(table, filter);
        let cache = sys::rocksdb_cache_create_lru(options.cache_bytes as usize);
        sys::rocksdb_block_based_options_set_block_cache(table, cache);
        sys::rocksdb_cache_destroy(cache);
        sys::rocksdb_block_based_options_set_format_version(table, 5);
        sys::rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
        sys::rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(table, 1);

        let settings = sys::rocksdb_options_create();
        sys::rocksdb_options_set_block_based_table_factory(settings, table);
        sys::rocksdb_block_based_options_destroy(table);
        sys::rocksdb_options_set_create_if_missing(settings, 1);
        // rocksdb_no_compression
        sys::rocksdb_options_set_compression(settings, 0);
        sys::rocksdb_options_set_write_buffer_size(settings, 32 << 20);
        sys::rocksdb_options_set_max_background_jobs(settings, 4);
        sys::rocksdb_options_set_bytes_per_sync(settings, 1 << 20);
        sys::rocksdb_options_set_level_compaction_dynamic_level_bytes(settings, 1);
        sys::rocksdb_options_set_use_direct_reads(settings, options.direct.into());
        sys::rocksdb_options_set_use_direct_io_for_flush_and_compaction(settings, options.direct.into());
        settings
    }
}

/// Calls the library and turns the message that it leaves into an error.
fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut message: *mut c_char = null_mut();
    let result = call(&mut message);
    if message.is_null() {
        return Ok(result);
    }
    // SAFETY: the library leaves a string that ends with a zero and belongs to the caller.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    // SAFETY: as above, and it is not used again.
    unsafe { sys::rocksdb_free(message.cast()) };
    bail!("RocksDB: {text}")
}

impl Rocks {
    /// Writes `records` as one batch. `batch` is empty afterwards.
    fn write(
        &self,
        batch: *mut sys::WriteBatch,
        writes: *const sys::WriteOptions,
        records: &[Record],
    ) -> Result<()> {
        // SAFETY: all handles live; the batch copies what it is given.
        unsafe {
            for Record { key, value } in records {
                let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
                sys::rocksdb_writebatch_put(batch, k, key.len(), v, value.len());
            }
            let result = checked(|error| sys::rocksdb_write(self.db, writes, batch, error));
            sys::rocksdb_writebatch_clear(batch);
            result
        }
    }

    fn flush(&self) -> Result<()> {
        // SAFETY: the database is open; the options live during the call and wait by default.
        unsafe {
            let options = sys::rocksdb_flushoptions_create();
            let result = checked(|error| sys::rocksdb_flush(self.db, options, error));
            sys::rocksdb_flushoptions_destroy(options);
            result
        }
    }

    fn property(&self, name: &CStr) -> Result<u64> {
        let mut value = 0;
        // SAFETY: the database is open, the name ends with a zero.
        let status = unsafe { sys::rocksdb_property_int(self.db, name.as_ptr(), &mut value) };
        ensure!(status == 0, "RocksDB has no property {name:?}");
        Ok(value)
    }

    fn settle(&self) -> Result<()> {
        while self.property(c"rocksdb.compaction-pending")?
            + self.property(c"rocksdb.num-running-compactions")?
            > 0
        {
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

impl Engine for Rocks {
    fn load(&self, rows: &mut dyn Iterator<Item = Record>, _order: Order) -> Result<()> {
        // SAFETY: made here, used here, destroyed here.
        unsafe {
            let batch = sys::rocksdb_writebatch_create();
            let writes = sys::rocksdb_writeoptions_create();
            sys::rocksdb_writeoptions_disable_WAL(writes, 1);
            let result = in_groups(rows, |group| self.write(batch, writes, group));
            sys::rocksdb_writeoptions_destroy(writes);
            sys::rocksdb_writebatch_destroy(batch);
            result?;
        }
        self.flush()?;
        self.settle()
    }

    fn session(&self) -> Result<Box<dyn Session + '_>> {
        // SAFETY: makes a handle.
        Ok(Box::new(Thread { engine: self, batch: unsafe { sys::rocksdb_writebatch_create() } }))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: sessions borrow the engine, so none is left.
        unsafe {
            sys::rocksdb_column_family_handle_destroy(self.family);
            sys::rocksdb_close(self.db);
            sys::rocksdb_readoptions_destroy(self.reads);
            sys::rocksdb_writeoptions_destroy(self.writes);
        }
    }
}

impl Drop for Thread<'_> {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handle.
        unsafe { sys::rocksdb_writebatch_destroy(self.batch) };
    }
}

/// # Safety
/// `data` points to `bytes` bytes that live as long as the caller's use of the slice, or `bytes` is 0.
unsafe fn slice<'a>(data: *const c_char, bytes: usize) -> &'a [u8] {
    if bytes == 0 {
        return &[];
    }
    unsafe { std::slice::from_raw_parts(data.cast(), bytes) }
}

impl Session for Thread<'_> {
    fn get(&mut self, key: &Key, value: &mut Vec<u8>) -> Result<bool> {
        let Rocks { db, reads, .. } = *self.engine;
        // SAFETY: the slice is copied before its owner is destroyed.
        unsafe {
            let k = key.as_ptr().cast();
            let pinned = checked(|error| sys::rocksdb_get_pinned(db, reads, k, key.len(), error))?;
            if pinned.is_null() {
                return Ok(false);
            }
            let mut bytes = 0;
            let data = sys::rocksdb_pinnableslice_value(pinned, &mut bytes);
            value.clear();
            value.extend_from_slice(slice(data, bytes));
            sys::rocksdb_pinnableslice_destroy(pinned);
        }
        Ok(true)
    }

    fn get_many(&mut self, keys: &[Key], found: VisitFound<'_>) -> Result<()> {
        let Rocks { db, family, reads, .. } = *self.engine;
        let starts: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr().cast()).collect();
        let lengths = vec![KEY_BYTES; keys.len()];
        let mut values = Values(vec![null_mut(); keys.len()]);
        let mut errors = vec![null_mut(); keys.len()];
        // SAFETY: all five arrays have as many elements as there are keys.
        unsafe {
            sys::rocksdb_batched_multi_get_cf(
                db,
                reads,
                family,
                keys.len(),
                starts.as_ptr(),
                lengths.as_ptr(),
                values.0.as_mut_ptr(),
                errors.as_mut_ptr(),
                false,
            );
        }
        for message in errors {
            checked(|error| {
                // SAFETY: this is the place where `checked` expects the message.
                unsafe { *error = message }
            })?;
        }
        for (number, &pinned) in values.0.iter().enumerate() {
            // SAFETY: the bytes live as long as `values`.
            let value = (!pinned.is_null()).then(|| unsafe {
                let mut bytes = 0;
                let data = sys::rocksdb_pinnableslice_value(pinned, &mut bytes);
                slice(data, bytes)
            });
            found(number, value)?;
        }
        Ok(())
    }

    fn commit(&mut self, batch: &[Record]) -> Result<()> {
        self.engine.write(self.batch, self.engine.writes, batch)
    }

    fn scan(&mut self, from: &Key, count: usize, each: Visit<'_>) -> Result<usize> {
        // SAFETY: makes a handle, which `Rows` destroys.
        let iter = Rows(unsafe { sys::rocksdb_create_iterator(self.engine.db, self.engine.reads) });
        let mut found = 0;
        // SAFETY: key and value of a valid iterator live until it moves.
        unsafe {
            sys::rocksdb_iter_seek(iter.0, from.as_ptr().cast(), from.len());
            while found < count && sys::rocksdb_iter_valid(iter.0) != 0 {
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = sys::rocksdb_iter_key(iter.0, &mut key_bytes);
                let value = sys::rocksdb_iter_value(iter.0, &mut value_bytes);
                each(slice(key, key_bytes), slice(value, value_bytes))?;
                found += 1;
                sys::rocksdb_iter_next(iter.0);
            }
            checked(|error| sys::rocksdb_iter_get_error(iter.0, error))?;
        }
        Ok(found)
    }
}

/// An iterator that is destroyed at the end of its scope.
struct Rows(*mut sys::Iter);

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: nobody else has the handle.
        unsafe { sys::rocksdb_iter_destroy(self.0) };
    }
}

/// The values that were found; null for a missing value. They are destroyed at the end of their scope.
struct Values(Vec<*mut sys::Pinned>);

impl Drop for Values {
    fn drop(&mut self) {
        for &pinned in self.0.iter().filter(|pinned| !pinned.is_null()) {
            // SAFETY: nobody else has the handle.
            unsafe { sys::rocksdb_pinnableslice_destroy(pinned) };
        }
    }
}
