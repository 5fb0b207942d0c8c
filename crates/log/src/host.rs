//! Serves the host's commands: reads go to the physical addresses of their pages, and written pages get new
//! addresses.

use crate::LogDevice;
use crate::command::{Arriving, Part};
use crate::run::Run;
use fulgurite_base::{Lpn, Ppn, StreamId};
use fulgurite_device::{Buffer, Device, IoError, Operation};
use fulgurite_ftl::Unplaced;

impl<D: Device> LogDevice<D> {
    /// Reads every page of a command at its physical address.
    pub(crate) fn read(&mut self, command: u32) {
        let Operation::Read { lpn, pages, ref into } = self.commands[command as usize].operation else {
            unreachable!("writes take the other path")
        };
        // Clones the buffer to end the borrow of the command, whose `parts` change in this method.
        let into = into.clone();
        let segment_pages = self.ftl.config().segment_pages;
        let mut run: Option<Run> = None;
        for at in 0..pages {
            let Some(ppn) = self.ftl.lookup(lpn.0 as u32 + at) else {
                if let Some(page) = self.slice(&into, at, 1) {
                    // SAFETY: the buffer belongs to the device until completion.
                    unsafe { page.bytes_mut() }.fill(0);
                }
                continue;
            };
            let from = match self.arriving.get_mut(&ppn.0) {
                None => ppn,
                Some(Arriving::Moved { from }) => *from,
                Some(Arriving::Written { readers }) => {
                    readers.push((command, at));
                    self.commands[command as usize].parts += 1;
                    let segment = self.ftl.segment(ppn);
                    // Keeps the segment from being freed until the page is stored and read.
                    self.in_use[segment.0 as usize] += 1;
                    continue;
                }
                Some(Arriving::Lost(error)) => {
                    self.commands[command as usize].status = Err(*error);
                    continue;
                }
            };
            if let Some(full) = Run::extend(&mut run, Run::page(from, at), segment_pages) {
                self.read_run(command, full, &into);
            }
        }
        if let Some(run) = run {
            self.read_run(command, run, &into);
        }
        // Ends the event that kept the command from completing during this pass over its pages.
        self.part_done(command, Ok(()));
    }

    fn read_run(&mut self, command: u32, Run { first, pages, at }: Run, into: &Option<Buffer>) {
        self.commands[command as usize].parts += 1;
        self.in_use[self.ftl.segment(first).0 as usize] += 1;
        let into = self.slice(into, at, pages);
        let lpn = Lpn(u64::from(first.0));
        self.send(Part::Read { command, first }, Operation::Read { lpn, pages, into });
    }

    pub(crate) fn read_done(&mut self, command: u32, first: Ppn, status: Result<(), IoError>) {
        self.in_use[self.ftl.segment(first).0 as usize] -= 1;
        self.part_done(command, status);
    }

    /// Admits stalled commands in order, while the schedule serves writes.
    pub(crate) fn admit(&mut self) {
        while let Some(command) = self.gate.first() {
            match self.commands[command as usize].operation.clone() {
                Operation::Write { lpn, pages, from, stream, .. } => {
                    if let Some(error) = self.collection.failure {
                        self.commands[command as usize].status = Err(error);
                    } else if !self.write(command, lpn.0 as u32, pages, &from, stream) {
                        self.look_at_schedule();
                        // Collection may have freed a segment without a command to the drive below, so the
                        // write is tried again.
                        if self.gate.state().serves_writes() {
                            continue;
                        }
                        return;
                    }
                }
                Operation::Trim { lpn, pages } => {
                    self.ftl.trim_run(lpn.0 as u32, pages);
                }
                Operation::Share { runs } => {
                    for run in runs {
                        self.ftl.share_run(run.destination.0 as u32, run.source.0 as u32, run.pages);
                    }
                }
                Operation::Flush => {
                    self.commands[command as usize].parts += 1;
                    self.send(Part::Flush { command }, Operation::Flush);
                }
                Operation::Read { .. } => unreachable!("reads take the other path"),
            }
            self.gate.pass_first();
            self.gate.end_urgency();
            self.part_done(command, Ok(()));
            self.look_at_schedule();
        }
    }

    /// Gives as many pages of a write physical addresses as the schedule admits now, and writes them there.
    /// Returns true if all pages have addresses.
    fn write(&mut self, command: u32, lpn: u32, pages: u32, from: &Option<Buffer>, hint: StreamId) -> bool {
        let segment_pages = self.ftl.config().segment_pages;
        let before = self.commands[command as usize].placed;
        let unplaced = Unplaced { first: lpn + before, pages: pages - before, hint };
        // Collects all addresses before it sends commands, so that consecutive pages share one command.
        let (now, mut places) = (self.below.now(), std::mem::take(&mut self.places));
        self.gate.place(&mut self.ftl, unplaced, now, &mut self.emitted, |_, _, ppn, _| places.push(ppn));
        let mut run: Option<Run> = None;
        for (at, ppn) in (before..).zip(places.drain(..)) {
            self.arriving.insert(ppn.0, Arriving::Written { readers: Vec::new() });
            if let Some(full) = Run::extend(&mut run, Run::page(ppn, at), segment_pages) {
                self.write_run(command, full, from);
            }
            self.commands[command as usize].placed = at + 1;
        }
        self.places = places;
        if let Some(run) = run {
            self.write_run(command, run, from);
        }
        self.commands[command as usize].placed == pages
    }

    fn write_run(&mut self, command: u32, Run { first, pages, at }: Run, from: &Option<Buffer>) {
        self.commands[command as usize].parts += 1;
        self.in_use[self.ftl.segment(first).0 as usize] += 1;
        let (lpn, from) = (Lpn(u64::from(first.0)), self.slice(from, at, pages));
        let stream = self.stream_below(first, pages);
        self.send(
            Part::Write { command, first, pages },
            Operation::Write { lpn, pages, from, stream, durable: false },
        );
    }

    pub(crate) fn write_done(&mut self, command: u32, first: Ppn, pages: u32, status: Result<(), IoError>) {
        let segment = self.ftl.segment(first);
        for ppn in first.0..first.0 + pages {
            let Some(Arriving::Written { readers }) = self.arriving.remove(&ppn) else {
                unreachable!("a page arrives once")
            };
            if let Err(error) = status {
                // The map has the new address already, so reads of the page must fail until it is written
                // again.
                self.arriving.insert(ppn, Arriving::Lost(error));
                self.lost += 1;
            }
            for (reader, at) in readers {
                self.in_use[segment.0 as usize] -= 1;
                if status.is_ok() {
                    let Operation::Read { into, .. } = &self.commands[reader as usize].operation else {
                        unreachable!("only reads wait for pages")
                    };
                    // Adds the read command before it ends the wait for the page, so that the host command
                    // cannot complete in between.
                    self.read_run(reader, Run::page(Ppn(ppn), at), &into.clone());
                }
                self.part_done(reader, status);
            }
        }
        self.in_use[segment.0 as usize] -= 1;
        self.part_done(command, status);
    }
}
