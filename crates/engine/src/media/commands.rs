//! Creates the write commands for buffers of device pages.

use fulgurite_base::{Lpn, StreamId};
use fulgurite_device::{Buffer, Device, Handle, Operation};

/// Returns the commands that write a buffer of whole device pages from `first` on, as few as the drive
/// allows.
pub(crate) fn writes<D: Device + ?Sized>(
    handle: &Handle<D>,
    first: Lpn,
    bytes: &Buffer,
) -> impl Iterator<Item = Operation> {
    let caps = handle.caps();
    let page = caps.page_bytes as usize;
    let step = caps.pages_per_command as usize * page;
    (0..bytes.len()).step_by(step).map(move |from| {
        let len = step.min(bytes.len() - from);
        write(Lpn(first.0 + (from / page) as u64), (len / page) as u32, bytes.part(from, len))
    })
}

/// Creates a command that writes device pages.
pub(crate) fn write(lpn: Lpn, pages: u32, from: Buffer) -> Operation {
    Operation::Write { lpn, pages, from: Some(from), stream: StreamId::default(), durable: false }
}
