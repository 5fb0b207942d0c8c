//! Recorded workloads: readers that stream [`Record`]s from trace files, plain or packed with gzip,
//! zstd, xz or lz4, in bounded memory.
//!
//! Invariants: times start at zero and never decrease; every record is at least one unit long and ends within
//! 64 bits; a trace has at least one request. The readers enforce them: they skip and count lines without a
//! valid record, and clamp and count times that decrease, or sort the records by time. A line that cannot be
//! parsed is an error that names the file and the line.
//!
//! [`open`] streams a trace. [`Trace::load`] keeps its records in memory, for page requests and for a
//! summary. [`Format`] lists the formats.

mod error;
mod page_set;
mod footprint;
mod record;
mod skipped;
mod cut;
mod field;
mod unpack;
mod utf16;
mod input;
mod sort;
mod space;
mod paging;
mod state;
mod row;
mod alibaba;
mod blkparse;
mod blktrace;
mod cloudphysics;
mod disksim;
mod fio2;
mod columns;
mod fio3;
mod fiu;
mod ftrace;
mod binary_ids;
mod ids;
mod lcs;
mod ycsb;
mod format;
mod midas;
mod mqsim;
mod msr;
mod oracle_general;
mod page_ops;
mod join;
mod reader;
mod changes;
mod load;
mod spc;
mod summary;
mod systor;
mod tencent;
mod vscsi;
mod writer;

pub use changes::{ChangeCounts, PageChanges};
pub use cut::Cut;
pub use error::TraceError;
pub use format::Format;
pub use join::{FILES_AT_MOST, Join};
pub use load::{PageTrace, Trace};
pub use oracle_general::write_oracle_general;
pub use reader::{PageStream, TraceReader, open};
pub use record::{Line, Record, Unit};
pub use row::{FormatRow, Frame, Loss, PlainLines, Shape, VolumeColumn, Writer};
pub use skipped::Skipped;
pub use sort::{OpenScratch, Scratch};
pub use state::{Columns, IdForm, Long, ReaderState, TimeUnit, TraceOptions, volume_text};
pub use summary::{Added, OpSummary, Sizes, Summary, Summing};
pub use writer::TraceWriter;
