//! Recorded workloads: readers that stream [`Record`]s out of trace files, plain or packed with gzip
//! or zstd, in bounded memory. Invariants: times start at zero and never run backwards; every record
//! is at least one unit long and ends inside 64 bits; a trace holds at least one request. Lines that are
//! left out and times that are clamped for this are counted. A line that cannot be understood is an error
//! that names file and line.
//!
//! [`open`] streams; [`Trace::load`] keeps the records, for page requests and for a summary. What can be
//! read is listed in [`Format`].

mod alibaba;
mod blkparse;
mod changes;
mod cloudphysics;
mod disksim;
mod error;
mod field;
mod fio2;
mod fio3;
mod format;
mod input;
mod load;
mod midas;
mod mqsim;
mod msr;
mod oracle_general;
mod page_ops;
mod page_set;
mod paging;
mod reader;
mod record;
mod row;
mod spc;
mod state;
mod summary;
mod systor;
mod tencent;
mod vscsi;
mod writer;

pub use changes::PageChanges;
pub use error::TraceError;
pub use format::Format;
pub use load::{PageTrace, Trace};
pub use oracle_general::write_oracle_general;
pub use reader::{PageStream, Skipped, TraceReader, open};
pub use record::{Line, Record, Unit};
pub use row::{FormatRow, Loss, PlainLines, Shape, Writer};
pub use state::{ReaderState, TimeUnit, TraceOptions};
pub use summary::{OpSummary, Sizes, Summary};
pub use writer::TraceWriter;
