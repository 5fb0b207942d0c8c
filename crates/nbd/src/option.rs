//! The data of options and the replies to options, as bytes. This module decides nothing.

use crate::fields::{Fields, put_u16, put_u32, put_u64};
use crate::numbers::{OPTION_REPLY_MAGIC, STRING_BYTES_AT_MOST};

/// Reply type: the option is done.
const REP_ACK: u32 = 1;
/// Reply type: an export.
const REP_SERVER: u32 = 2;
/// Reply type: one item of information about an export.
const REP_INFO: u32 = 3;
/// Reply type: a metadata context.
const REP_META_CONTEXT: u32 = 4;

/// Information request: size and flags.
const INFO_EXPORT: u16 = 0;
/// Information request: the canonical name.
pub(crate) const INFO_NAME: u16 = 1;
/// Information request: the text for people.
pub(crate) const INFO_DESCRIPTION: u16 = 2;
/// Information request: the block sizes.
pub(crate) const INFO_BLOCK_SIZE: u16 = 3;

/// The reasons for which a server refuses an option, with the low bits of their reply types.
#[derive(Clone, Copy)]
pub(crate) enum Refusal {
    Unsupported = 1,
    Policy = 2,
    Invalid = 3,
    Unknown = 6,
    TooBig = 9,
}

impl Refusal {
    fn reply_type(self) -> u32 {
        1 << 31 | self as u32
    }
}

/// The data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
pub(crate) struct InfoQuery<'a> {
    pub(crate) name: &'a [u8],
    /// The numbers of the information requests, 16 bits each.
    requests: &'a [u8],
}

impl<'a> InfoQuery<'a> {
    /// Reads the data. They are malformed if the result is `None`.
    pub(crate) fn read(data: &'a [u8]) -> Option<InfoQuery<'a>> {
        let mut fields = Fields(data);
        let name = string(&mut fields)?;
        let count = fields.u16()?;
        let requests = fields.bytes(2 * usize::from(count))?;
        fields.0.is_empty().then_some(InfoQuery { name, requests })
    }

    /// Whether the client asks for this item.
    pub(crate) fn asks_for(&self, item: u16) -> bool {
        self.requests.chunks_exact(2).any(|request| request == item.to_be_bytes())
    }
}

/// The data of `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
pub(crate) struct ContextQuery<'a> {
    pub(crate) name: &'a [u8],
    /// The number of queries.
    pub(crate) count: u32,
    /// The queries, whose form was checked.
    queries: Fields<'a>,
}

impl<'a> ContextQuery<'a> {
    /// Reads the data. They are malformed if the result is `None`.
    pub(crate) fn read(data: &'a [u8]) -> Option<ContextQuery<'a>> {
        let mut fields = Fields(data);
        let name = string(&mut fields)?;
        let count = fields.u32()?;
        let queries = fields;
        // Each query takes at least four bytes, so this ends with the data, whatever the number is.
        for _ in 0..count {
            string(&mut fields)?;
        }
        fields.0.is_empty().then_some(ContextQuery { name, count, queries })
    }

    /// Whether the client asks for `query`, by exactly these bytes.
    pub(crate) fn asks_for(&self, query: &str) -> bool {
        let mut queries = self.queries;
        std::iter::from_fn(|| string(&mut queries)).any(|asked| asked == query.as_bytes())
    }
}

/// Takes a string behind its length, if it is one that the protocol allows.
fn string<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let length = fields.u32()? as usize;
    fields.bytes(length).filter(|bytes| is_string(bytes))
}

/// Whether the protocol allows these bytes as a string.
fn is_string(bytes: &[u8]) -> bool {
    bytes.len() <= STRING_BYTES_AT_MOST && !bytes.contains(&0) && str::from_utf8(bytes).is_ok()
}

/// The replies to one option.
pub(crate) struct Replies<'a> {
    /// The number of the option.
    pub(crate) option: u32,
    pub(crate) out: &'a mut Vec<u8>,
}

impl Replies<'_> {
    fn put(&mut self, kind: u32, payload: &[&[u8]]) {
        put_u64(self.out, OPTION_REPLY_MAGIC);
        put_u32(self.out, self.option);
        put_u32(self.out, kind);
        put_u32(self.out, payload.iter().map(|part| part.len() as u32).sum());
        payload.iter().for_each(|part| self.out.extend_from_slice(part));
    }

    /// Appends the final reply of an option that is done.
    pub(crate) fn ack(&mut self) {
        self.put(REP_ACK, &[]);
    }

    /// Appends the final reply of an option that is refused, with a message for people.
    pub(crate) fn refuse(&mut self, refusal: Refusal, message: &str) {
        self.put(refusal.reply_type(), &[message.as_bytes()]);
    }

    /// Appends an export of the list.
    pub(crate) fn server(&mut self, name: &str, description: &str) {
        let length = (name.len() as u32).to_be_bytes();
        self.put(REP_SERVER, &[&length, name.as_bytes(), description.as_bytes()]);
    }

    /// Appends the size and the flags of the export.
    pub(crate) fn info_export(&mut self, bytes: u64, flags: u16) {
        let kind = INFO_EXPORT.to_be_bytes();
        self.put(REP_INFO, &[&kind, &bytes.to_be_bytes(), &flags.to_be_bytes()]);
    }

    /// Appends a name or a description.
    pub(crate) fn info_text(&mut self, item: u16, text: &str) {
        self.put(REP_INFO, &[&item.to_be_bytes(), text.as_bytes()]);
    }

    /// Appends the block sizes: minimum, preferred and maximum.
    pub(crate) fn info_block_size(&mut self, sizes: [u32; 3]) {
        let [minimum, preferred, maximum] = sizes.map(u32::to_be_bytes);
        self.put(REP_INFO, &[&INFO_BLOCK_SIZE.to_be_bytes(), &minimum, &preferred, &maximum]);
    }

    /// Appends a metadata context.
    pub(crate) fn meta_context(&mut self, id: u32, name: &str) {
        self.put(REP_META_CONTEXT, &[&id.to_be_bytes(), name.as_bytes()]);
    }
}

/// Appends the reply to `NBD_OPT_EXPORT_NAME`, which has a form of its own.
pub(crate) fn put_export(out: &mut Vec<u8>, bytes: u64, flags: u16, has_zeros: bool) {
    put_u64(out, bytes);
    put_u16(out, flags);
    if has_zeros {
        out.extend_from_slice(&[0; 124]);
    }
}
