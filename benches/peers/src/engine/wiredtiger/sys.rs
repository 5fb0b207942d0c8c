//! The part of WiredTiger's C API (`wiredtiger.h` of version 3.2.1, Debian's) that is used here.
//!
//! Its handles are structs of function pointers. Members are in the order of the header; unused ones are `Unused`.
//! Members after the last used one are left out: the library creates the structs, and this program has only pointers.

use std::ffi::{c_char, c_int, c_void};

/// A function that is not used here.
pub type Unused = *const c_void;

#[repr(C)]
pub struct Item {
    pub data: *const c_void,
    pub size: usize,
    pub mem: *mut c_void,
    pub mem_size: usize,
    pub flags: u32,
}

#[repr(C)]
pub struct Connection {
    pub async_flush: Unused,
    pub async_new_op: Unused,
    pub close: unsafe extern "C" fn(*mut Connection, *const c_char) -> c_int,
    pub debug_info: Unused,
    pub reconfigure: Unused,
    pub get_home: Unused,
    pub configure_method: Unused,
    pub is_new: Unused,
    pub open_session:
        unsafe extern "C" fn(*mut Connection, *mut c_void, *const c_char, *mut *mut Session) -> c_int,
}

#[repr(C)]
pub struct Session {
    pub connection: *mut Connection,
    pub app_private: *mut c_void,
    pub close: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    pub reconfigure: Unused,
    pub strerror: Unused,
    pub open_cursor: unsafe extern "C" fn(
        *mut Session,
        *const c_char,
        *mut Cursor,
        *const c_char,
        *mut *mut Cursor,
    ) -> c_int,
    pub alter: Unused,
    pub create: unsafe extern "C" fn(*mut Session, *const c_char, *const c_char) -> c_int,
    pub import: Unused,
    pub compact: Unused,
    pub drop: Unused,
    pub join: Unused,
    pub log_flush: Unused,
    pub log_printf: Unused,
    pub rebalance: Unused,
    pub rename: Unused,
    pub reset: Unused,
    pub salvage: Unused,
    pub truncate: Unused,
    pub upgrade: Unused,
    pub verify: Unused,
    pub begin_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    pub commit_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    pub prepare_transaction: Unused,
    pub rollback_transaction: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
    pub timestamp_transaction: Unused,
    pub query_timestamp: Unused,
    pub checkpoint: unsafe extern "C" fn(*mut Session, *const c_char) -> c_int,
}

#[repr(C)]
pub struct Cursor {
    pub session: *mut Session,
    pub uri: *const c_char,
    pub key_format: *const c_char,
    pub value_format: *const c_char,
    pub get_key: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub get_value: unsafe extern "C" fn(*mut Cursor, ...) -> c_int,
    pub set_key: unsafe extern "C" fn(*mut Cursor, ...),
    pub set_value: unsafe extern "C" fn(*mut Cursor, ...),
    pub compare: Unused,
    pub equals: Unused,
    pub next: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub prev: Unused,
    pub reset: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub search: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub search_near: unsafe extern "C" fn(*mut Cursor, *mut c_int) -> c_int,
    pub insert: unsafe extern "C" fn(*mut Cursor) -> c_int,
    pub modify: Unused,
    pub update: Unused,
    pub remove: Unused,
    pub reserve: Unused,
    pub close: unsafe extern "C" fn(*mut Cursor) -> c_int,
}

/// `WT_ROLLBACK`: the transaction has a conflict and should be repeated.
pub const ROLLBACK: c_int = -31800;
/// `WT_NOTFOUND`.
pub const NOT_FOUND: c_int = -31803;

unsafe extern "C" {
    pub fn wiredtiger_open(
        home: *const c_char,
        event_handler: *mut c_void,
        config: *const c_char,
        connection: *mut *mut Connection,
    ) -> c_int;
    /// A string with static lifetime.
    pub fn wiredtiger_strerror(error: c_int) -> *const c_char;
    pub fn wiredtiger_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> *const c_char;
}
