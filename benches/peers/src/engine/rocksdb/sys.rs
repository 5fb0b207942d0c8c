//! The part of RocksDB's C API (`rocksdb/c.h` of version 7.8) that is used here.

use std::ffi::{c_char, c_int, c_uchar, c_void};

/// A handle that is opaque to callers of the library.
macro_rules! opaque {
    ($($name:ident)*) => { $(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )* };
}

opaque!(Db Family Options TableOptions FilterPolicy Cache WriteOptions ReadOptions FlushOptions WriteBatch Iter Pinned);

unsafe extern "C" {
    /// Opens column families by name, each with its options, and sets a handle for each.
    pub fn rocksdb_open_column_families(
        options: *const Options,
        name: *const c_char,
        families: c_int,
        names: *const *const c_char,
        own: *const *const Options,
        handles: *mut *mut Family,
        error: *mut *mut c_char,
    ) -> *mut Db;
    pub fn rocksdb_column_family_handle_destroy(family: *mut Family);
    pub fn rocksdb_close(db: *mut Db);
    pub fn rocksdb_free(memory: *mut c_void);

    pub fn rocksdb_options_create() -> *mut Options;
    pub fn rocksdb_options_destroy(options: *mut Options);
    pub fn rocksdb_options_set_create_if_missing(options: *mut Options, on: c_uchar);
    pub fn rocksdb_options_set_compression(options: *mut Options, kind: c_int);
    pub fn rocksdb_options_set_write_buffer_size(options: *mut Options, bytes: usize);
    pub fn rocksdb_options_set_max_background_jobs(options: *mut Options, jobs: c_int);
    pub fn rocksdb_options_set_bytes_per_sync(options: *mut Options, bytes: u64);
    pub fn rocksdb_options_set_level_compaction_dynamic_level_bytes(options: *mut Options, on: c_uchar);
    pub fn rocksdb_options_set_use_direct_reads(options: *mut Options, on: c_uchar);
    pub fn rocksdb_options_set_use_direct_io_for_flush_and_compaction(options: *mut Options, on: c_uchar);
    pub fn rocksdb_options_set_block_based_table_factory(options: *mut Options, table: *mut TableOptions);

    pub fn rocksdb_block_based_options_create() -> *mut TableOptions;
    pub fn rocksdb_block_based_options_destroy(table: *mut TableOptions);
    pub fn rocksdb_block_based_options_set_filter_policy(table: *mut TableOptions, policy: *mut FilterPolicy);
    pub fn rocksdb_block_based_options_set_block_cache(table: *mut TableOptions, cache: *mut Cache);
    pub fn rocksdb_block_based_options_set_format_version(table: *mut TableOptions, version: c_int);
    pub fn rocksdb_block_based_options_set_cache_index_and_filter_blocks(
        table: *mut TableOptions,
        on: c_uchar,
    );
    pub fn rocksdb_block_based_options_set_pin_l0_filter_and_index_blocks_in_cache(
        table: *mut TableOptions,
        on: c_uchar,
    );
    pub fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> *mut FilterPolicy;
    pub fn rocksdb_cache_create_lru(bytes: usize) -> *mut Cache;
    pub fn rocksdb_cache_destroy(cache: *mut Cache);

    pub fn rocksdb_writeoptions_create() -> *mut WriteOptions;
    pub fn rocksdb_writeoptions_destroy(options: *mut WriteOptions);
    pub fn rocksdb_writeoptions_set_sync(options: *mut WriteOptions, on: c_uchar);
    pub fn rocksdb_writeoptions_disable_WAL(options: *mut WriteOptions, disable: c_int);
    pub fn rocksdb_readoptions_create() -> *mut ReadOptions;
    pub fn rocksdb_readoptions_destroy(options: *mut ReadOptions);
    pub fn rocksdb_flushoptions_create() -> *mut FlushOptions;
    pub fn rocksdb_flushoptions_destroy(options: *mut FlushOptions);
    pub fn rocksdb_flush(db: *mut Db, options: *const FlushOptions, error: *mut *mut c_char);
    /// Returns 0 if the property was found.
    pub fn rocksdb_property_int(db: *mut Db, name: *const c_char, value: *mut u64) -> c_int;

    pub fn rocksdb_writebatch_create() -> *mut WriteBatch;
    pub fn rocksdb_writebatch_destroy(batch: *mut WriteBatch);
    pub fn rocksdb_writebatch_clear(batch: *mut WriteBatch);
    pub fn rocksdb_writebatch_put(
        batch: *mut WriteBatch,
        key: *const c_char,
        key_bytes: usize,
        value: *const c_char,
        value_bytes: usize,
    );
    pub fn rocksdb_write(
        db: *mut Db,
        options: *const WriteOptions,
        batch: *mut WriteBatch,
        error: *mut *mut c_char,
    );

    /// Null if the key was not found.
    pub fn rocksdb_get_pinned(
        db: *mut Db,
        options: *const ReadOptions,
        key: *const c_char,
        key_bytes: usize,
        error: *mut *mut c_char,
    ) -> *mut Pinned;
    /// Sets a value or null, and an error or null, for each key. `sorted` promises that the keys are sorted.
    pub fn rocksdb_batched_multi_get_cf(
        db: *mut Db,
        options: *const ReadOptions,
        family: *mut Family,
        count: usize,
        keys: *const *const c_char,
        key_bytes: *const usize,
        values: *mut *mut Pinned,
        errors: *mut *mut c_char,
        sorted: bool,
    );
    pub fn rocksdb_pinnableslice_value(pinned: *const Pinned, bytes: *mut usize) -> *const c_char;
    pub fn rocksdb_pinnableslice_destroy(pinned: *mut Pinned);

    pub fn rocksdb_create_iterator(db: *mut Db, options: *const ReadOptions) -> *mut Iter;
    pub fn rocksdb_iter_destroy(iter: *mut Iter);
    pub fn rocksdb_iter_seek(iter: *mut Iter, key: *const c_char, key_bytes: usize);
    pub fn rocksdb_iter_valid(iter: *const Iter) -> c_uchar;
    pub fn rocksdb_iter_next(iter: *mut Iter);
    pub fn rocksdb_iter_key(iter: *const Iter, bytes: *mut usize) -> *const c_char;
    pub fn rocksdb_iter_value(iter: *const Iter, bytes: *mut usize) -> *const c_char;
    pub fn rocksdb_iter_get_error(iter: *const Iter, error: *mut *mut c_char);
}
