//! Prints a plan in a form that people can read.

use super::{Ending, Generation, Memory, Plan, Step, StorePlan, Work};
use crate::device::{Fault, Stalls};
use fulgurite_base::option::name_of;
use std::fmt;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = &self.device;
        let cache = if device.protected { "protected" } else { "volatile" };
        writeln!(
            f,
            "drive: {} pages of {} bytes, {cache} cache, queue of {}, {} pages a command, atomic up to {} bytes, {}",
            device.pages,
            device.page_bytes,
            device.queue_depth,
            device.pages_per_command,
            device.atomic_bytes,
            match device.share_pages {
                0 => "does not share".to_owned(),
                pages => format!("shares up to {pages} pages at once"),
            },
        )?;
        if device.stalls != Stalls::FEW {
            let Stalls { one_in, times, flush_times } = device.stalls;
            writeln!(
                f,
                "one command in {one_in} takes {times} times as long, and each flush {flush_times} times"
            )?;
        }
        if device.uneven {
            writeln!(f, "a power cut keeps more in one part of the drive than in the other")?;
        }
        self.store.fmt(f)?;
        self.write_contents(f)?;
        for (at, generation) in self.generations.iter().enumerate() {
            writeln!(f, "generation {}:", at + 1)?;
            generation.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for StorePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = self;
        writeln!(
            f,
            "store: pages of {} bytes, {} frames, a log of {} pages, torn pages {}, {}, {}, prefetch {}, \
             group window {}, relaxed window {}",
            store.page_bytes,
            store.frames,
            store.log_pages,
            name_of(store.torn_pages),
            store.replacement,
            store.write_back,
            store.prefetch,
            store.group_window,
            store.relaxed_window,
        )?;
        if store.shards > 1 {
            writeln!(f, "it has {} shards with as much each", store.shards)?;
        }
        if store.place != "in-place" {
            writeln!(f, "pages are written {}", store.place)?;
        }
        if store.verify_writes {
            writeln!(f, "written pages are read back")?;
        }
        if store.records > 0 {
            writeln!(f, "records have {} per cent of the memory", store.records)?;
        }
        if let Some(bug) = store.planted {
            writeln!(f, "planted: {}", name_of(bug))?;
        }
        Ok(())
    }
}

impl Plan {
    fn write_contents(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(events) = self.cut_in_create {
            writeln!(
                f,
                "creating and filling the store: the power is cut after {events} events, and the store is created again"
            )?;
        }
        let how = if self.bulk_load { ", loaded in bulk" } else { "" };
        writeln!(
            f,
            "at first: {} accounts, {} registers, {} rows of {} bytes{how}",
            self.accounts, self.registers, self.rows, self.row_bytes
        )?;
        if self.rounds > 0 {
            writeln!(f, "then every third row is updated, {} times", self.rounds)?;
        }
        Ok(())
    }
}

fn write_faults(f: &mut fmt::Formatter<'_>, faults: &[Fault]) -> fmt::Result {
    for Fault { kind, nth } in faults {
        let counted = format!("{:?}", kind.counted()).to_lowercase();
        writeln!(f, "  fault: {} at number {nth} of the {counted}", name_of(*kind))?;
    }
    Ok(())
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (client, steps) in self.clients.iter().enumerate().filter(|(_, steps)| !steps.is_empty()) {
            writeln!(f, "  client {}:", client + 1)?;
            for step in steps {
                writeln!(f, "    {step}")?;
            }
        }
        write_faults(f, &self.faults)?;
        match self.ending {
            Ending::Cut(events) => writeln!(f, "  the power is cut after {events} events, or at the end")?,
            Ending::Close => writeln!(f, "  the store is closed")?,
        }
        for events in &self.recovery_cuts {
            writeln!(f, "  it is opened, and the power is cut after {events} events")?;
        }
        if let Some(Memory { frames, records }) = self.memory {
            writeln!(
                f,
                "  from here on it has {frames} frames, and {records} per cent of the memory are for records"
            )?;
        }
        if !self.recovery_faults.is_empty() {
            writeln!(f, "  it is opened for the next generation, with faults:")?;
            write_faults(f, &self.recovery_faults)?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wait.0 > 0 {
            write!(f, "after {}: ", self.wait)?;
        }
        self.work.fmt(f)?;
        if self.rolls_back {
            write!(f, "; roll back")?;
        } else {
            write!(f, "; commit {}", name_of(self.durability))?;
        }
        self.patience.map_or(Ok(()), |patience| write!(f, "; cancel after {patience}"))
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |keys: &[crate::value::Key]| {
            keys.iter().map(|key| key.to_string()).collect::<Vec<String>>().join(", ")
        };
        let from = |snapshot: &bool| if *snapshot { " in a snapshot" } else { "" };
        let lock = |for_update: &bool| if *for_update { " with exclusive locks" } else { "" };
        match self {
            Work::Transfer { from, to, amount, for_update } => {
                write!(f, "move {amount} from account {from} to {to}{}", lock(for_update))
            }
            Work::Update { keys, len, for_update } => {
                write!(f, "read and write {} ({len} bytes){}", list(keys), lock(for_update))
            }
            Work::Put { keys, len } => write!(f, "write {} ({len} bytes) without reading", list(keys)),
            Work::Delete { first, last } => write!(f, "delete rows {first} to {last}"),
            Work::ScanAndPut { first, last, put, len } => {
                write!(f, "scan rows {first} to {last} and write row {put} ({len} bytes)")
            }
            Work::Scan { first, last, backward, limit, snapshot } => {
                let direction = if *backward { " backward" } else { "" };
                let limit =
                    if *limit == usize::MAX { String::new() } else { format!(", at most {limit} rows") };
                write!(f, "scan {first} to {last}{direction}{limit}{}", from(snapshot))
            }
            Work::Sum { snapshot } => write!(f, "sum all accounts{}", from(snapshot)),
            Work::GetMany { keys, snapshot } => write!(f, "read {} at once{}", list(keys), from(snapshot)),
            Work::IndexScan { group, snapshot } => {
                write!(f, "read group {group} of the rows by index{}", from(snapshot))
            }
            Work::Checkpoint => write!(f, "checkpoint"),
            Work::Compact => write!(f, "compact"),
            Work::Backup => write!(f, "make a backup"),
            Work::MakeTable { rows, len, drops } => {
                let end = if *drops { ", and drop it" } else { "" };
                write!(f, "make a table with {rows} values of {len} bytes{end}")
            }
        }
    }
}
