//! Decides how options are answered, and keeps the results of the negotiation.
//!
//! The name of the export and the empty name mean the same export everywhere.

use crate::export::Export;
use crate::numbers::{
    OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, OPT_LIST_META_CONTEXT, OPT_SET_META_CONTEXT,
    OPT_STRUCTURED_REPLY,
};
use crate::option::{
    ContextQuery, INFO_BLOCK_SIZE, INFO_DESCRIPTION, INFO_NAME, InfoQuery, Refusal, Replies, put_export,
};
use crate::reply::ALLOCATION_ID;
use crate::request::Rules;
use std::sync::Arc;

/// The only metadata context.
const ALLOCATION: &str = "base:allocation";
/// The query for all contexts of the namespace. It only lists; it selects nothing.
const ALL_OF_BASE: &str = "base:";

/// The text of a refusal of data that do not have the form of the option.
const MALFORMED: &str = "the option's data are malformed";
/// The text of a refusal of another export.
const NO_SUCH_EXPORT: &str = "no export has this name";

/// The state of a connection after an option.
pub(crate) enum Outcome {
    /// More options follow.
    Continue,
    /// Requests follow.
    Transmit(Rules),
    /// The client ends the connection.
    Abort,
    /// The session ends the connection, for a reason in words.
    Fault(&'static str),
}

/// An option of a client.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// The number of the option.
    pub(crate) option: u32,
    /// The length of its data, in bytes.
    pub(crate) length: u32,
    /// The data, unless they were too long to be held.
    pub(crate) data: Option<&'a [u8]>,
}

/// The server's side of the negotiation.
pub(crate) enum Negotiation {
    /// The server exports something.
    Serving {
        export: Arc<Export>,
        /// Whether the client understands structured replies.
        is_structured: bool,
        /// Whether the client selected the context `base:allocation`.
        has_allocation: bool,
    },
    /// The server refuses every option, with this message.
    Refusing(String),
}

impl Negotiation {
    /// Answers an option. `has_zeros` says whether 124 zeros follow the reply to `NBD_OPT_EXPORT_NAME`.
    pub(crate) fn answer(&mut self, asked: Asked<'_>, has_zeros: bool, out: &mut Vec<u8>) -> Outcome {
        let mut replies = Replies { option: asked.option, out };
        if asked.option == OPT_ABORT {
            replies.ack();
            return Outcome::Abort;
        }
        match self {
            Negotiation::Refusing(_) if asked.option == OPT_EXPORT_NAME => {
                Outcome::Fault("the server refuses the connection")
            }
            Negotiation::Refusing(message) => {
                replies.refuse(Refusal::Policy, message);
                Outcome::Continue
            }
            Negotiation::Serving { export, is_structured, has_allocation } => {
                Serving { export, is_structured, has_allocation }.answer(asked, has_zeros, &mut replies)
            }
        }
    }
}

/// The fields of [`Negotiation::Serving`].
struct Serving<'a> {
    export: &'a Export,
    is_structured: &'a mut bool,
    has_allocation: &'a mut bool,
}

impl Serving<'_> {
    fn answer(&mut self, asked: Asked<'_>, has_zeros: bool, replies: &mut Replies<'_>) -> Outcome {
        if asked.option == OPT_SET_META_CONTEXT {
            // The option replaces the selection even if it fails.
            *self.has_allocation = false;
        }
        match (asked.option, asked.data) {
            (OPT_EXPORT_NAME, Some(name)) => return self.export_name(name, has_zeros, replies.out),
            (OPT_INFO | OPT_GO, Some(data)) => return self.info(data, replies),
            (OPT_LIST_META_CONTEXT | OPT_SET_META_CONTEXT, Some(data)) => self.contexts(data, replies),
            (OPT_INFO | OPT_GO | OPT_LIST_META_CONTEXT | OPT_SET_META_CONTEXT, None) => {
                replies.refuse(Refusal::TooBig, "the option's data are too long");
            }
            (OPT_LIST | OPT_STRUCTURED_REPLY, _) if asked.length != 0 => {
                replies.refuse(Refusal::Invalid, "the option has no data");
            }
            (OPT_LIST, _) => {
                replies.server(&self.export.name, &self.export.description);
                replies.ack();
            }
            (OPT_STRUCTURED_REPLY, _) => {
                *self.is_structured = true;
                replies.ack();
            }
            _ => replies.refuse(Refusal::Unsupported, "the server does not know the option"),
        }
        Outcome::Continue
    }

    fn rules(&self, is_told: bool) -> Rules {
        Rules::new(self.export, *self.is_structured, *self.has_allocation, is_told)
    }

    /// Answers `NBD_OPT_EXPORT_NAME`, which knows no error but the end of the connection.
    fn export_name(&self, name: &[u8], has_zeros: bool, out: &mut Vec<u8>) -> Outcome {
        if !self.export.has_name(name) {
            return Outcome::Fault("the client asks for an export that does not exist");
        }
        put_export(out, self.export.bytes, self.export.flags(*self.is_structured), has_zeros);
        Outcome::Transmit(self.rules(false))
    }

    /// Answers `NBD_OPT_INFO` and `NBD_OPT_GO`.
    fn info(&self, data: &[u8], replies: &mut Replies<'_>) -> Outcome {
        let export = self.export;
        let Some(query) = InfoQuery::read(data) else {
            replies.refuse(Refusal::Invalid, MALFORMED);
            return Outcome::Continue;
        };
        if !export.has_name(query.name) {
            replies.refuse(Refusal::Unknown, NO_SUCH_EXPORT);
            return Outcome::Continue;
        }
        replies.info_export(export.bytes, export.flags(*self.is_structured));
        if query.asks_for(INFO_NAME) {
            replies.info_text(INFO_NAME, &export.name);
        }
        if query.asks_for(INFO_DESCRIPTION) {
            replies.info_text(INFO_DESCRIPTION, &export.description);
        }
        let is_told = query.asks_for(INFO_BLOCK_SIZE);
        if is_told {
            let block = export.block;
            replies.info_block_size([block.minimum, block.preferred, block.maximum]);
        }
        replies.ack();
        if replies.option == OPT_GO { Outcome::Transmit(self.rules(is_told)) } else { Outcome::Continue }
    }

    /// Answers `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
    fn contexts(&mut self, data: &[u8], replies: &mut Replies<'_>) {
        if !*self.is_structured {
            return replies.refuse(Refusal::Invalid, "metadata contexts need structured replies");
        }
        let Some(query) = ContextQuery::read(data) else {
            return replies.refuse(Refusal::Invalid, MALFORMED);
        };
        if !self.export.has_name(query.name) {
            return replies.refuse(Refusal::Unknown, NO_SUCH_EXPORT);
        }
        if replies.option == OPT_SET_META_CONTEXT {
            if query.asks_for(ALLOCATION) {
                *self.has_allocation = true;
                replies.meta_context(ALLOCATION_ID, ALLOCATION);
            }
        } else if query.count == 0 || query.asks_for(ALLOCATION) || query.asks_for(ALL_OF_BASE) {
            replies.meta_context(0, ALLOCATION);
        }
        replies.ack();
    }
}
