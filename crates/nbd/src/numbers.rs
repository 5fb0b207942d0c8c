//! The numbers of the protocol that several modules need, named as in its document.

/// The first magic number of the greeting: `NBDMAGIC`.
pub(crate) const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// The second magic number of the greeting, and the magic number of each option: `IHAVEOPT`.
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// The magic number of each reply to an option.
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// Handshake flag of server and client: fixed newstyle.
pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
/// Handshake flag of server and client: no 124 zeros after the reply to `NBD_OPT_EXPORT_NAME`.
pub(crate) const NO_ZEROES: u16 = 1 << 1;

/// `NBD_OPT_EXPORT_NAME`.
pub(crate) const OPT_EXPORT_NAME: u32 = 1;
/// `NBD_OPT_ABORT`.
pub(crate) const OPT_ABORT: u32 = 2;
/// `NBD_OPT_LIST`.
pub(crate) const OPT_LIST: u32 = 3;
/// `NBD_OPT_INFO`.
pub(crate) const OPT_INFO: u32 = 6;
/// `NBD_OPT_GO`.
pub(crate) const OPT_GO: u32 = 7;
/// `NBD_OPT_STRUCTURED_REPLY`.
pub(crate) const OPT_STRUCTURED_REPLY: u32 = 8;
/// `NBD_OPT_LIST_META_CONTEXT`.
pub(crate) const OPT_LIST_META_CONTEXT: u32 = 9;
/// `NBD_OPT_SET_META_CONTEXT`.
pub(crate) const OPT_SET_META_CONTEXT: u32 = 10;

/// The maximum length of a string, in bytes: names, queries, descriptions and messages.
pub(crate) const STRING_BYTES_AT_MOST: usize = 4096;
