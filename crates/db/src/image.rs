//! Plain files as the source of a repair and as the target of a backup.

use fulgurite_base::{Lpn, Nanos};
use fulgurite_device::{Failure, Handle, IoError, Operation};
use fulgurite_engine::{Error, Sink, Source, StoreFuture};
use fulgurite_uring::ReadOnlyFile;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The file that a repair reads.
pub struct FileSource(pub ReadOnlyFile);

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.0.bytes()
    }

    fn read<'a>(&'a self, at: u64, into: &'a mut [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.0.read_at(at, into).map_err(|error| {
                // A drive in a file has pages of 4 KiB, even if the pages of its store have another size.
                let pages = into.len().div_ceil(4096) as u32;
                let read = Operation::read(Lpn(at / 4096), pages);
                Error::Io(IoError::System(Failure::of(&read, &error)))
            })
        })
    }
}

/// The most bytes that wait for the thread of a [`FileSink`].
const MOST_WAITING: u64 = 8 << 20;
/// The time after which a waiting task looks again. The thread cannot wake it, because the executor of the store takes
/// wake-ups only between commands.
const PAUSE: Nanos = Nanos::from_micros(200);

/// A thread that writes a new file, which receives a backup. Clones write to the same file; the thread ends when the
/// last one is dropped.
#[derive(Clone)]
pub struct FileWriter {
    work: Sender<Work>,
    state: Arc<Mutex<State>>,
}

/// The target of a backup: hands its writes to a [`FileWriter`], so that the store goes on meanwhile.
pub struct FileSink {
    writer: FileWriter,
    /// The handle of the store's executor, with which the sink waits.
    handle: Handle,
}

enum Work {
    Write(u64, Vec<u8>),
    Sync,
}

#[derive(Default)]
struct State {
    /// The bytes that are not written yet.
    waiting: u64,
    /// The number of syncs that were asked for, and of those that have ended.
    syncs: (u64, u64),
    /// The first error of the system.
    refused: Option<io::Error>,
}

impl FileWriter {
    /// Begins to write `file`, which must read as zeros.
    pub fn new(file: File) -> FileWriter {
        let (work, todo) = channel::<Work>();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for work in todo {
                let outcome = match &work {
                    Work::Write(at, bytes) => file.write_all_at(bytes, *at),
                    Work::Sync => file.sync_data(),
                };
                let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                match work {
                    Work::Write(_, bytes) => state.waiting -= bytes.len() as u64,
                    Work::Sync => state.syncs.1 += 1,
                }
                if let Err(error) = outcome {
                    state.refused.get_or_insert(error);
                }
            }
        });
        FileWriter { work, state }
    }

    /// Returns the target for a backup on the executor of this handle.
    pub fn sink(&self, handle: Handle) -> FileSink {
        FileSink { writer: self.clone(), handle }
    }

    /// Takes the error of the system, which the error of the engine cannot hold; `None` if nothing failed.
    pub fn take_error(&self) -> Option<io::Error> {
        self.with(|state| state.refused.take())
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn send(&self, work: Work) {
        // The thread ends only after the last sender, so the channel is open.
        let _ = self.work.send(work);
    }
}

impl FileSink {
    /// Waits until `is_so` holds for the state. Fails if a write has failed.
    async fn until(&self, is_so: impl Fn(&State) -> bool) -> Result<(), Error> {
        loop {
            let outcome = self.writer.with(|state| match state.refused {
                Some(_) => Some(Err(Error::Io(IoError::Media))),
                None => is_so(state).then_some(Ok(())),
            });
            match outcome {
                Some(outcome) => return outcome,
                None => self.handle.sleep_until(self.handle.now() + PAUSE).await,
            }
        }
    }
}

impl Sink for FileSink {
    fn write<'a>(&'a self, at: u64, bytes: &'a [u8]) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.until(|state| state.waiting < MOST_WAITING).await?;
            self.writer.with(|state| state.waiting += bytes.len() as u64);
            self.writer.send(Work::Write(at, bytes.to_vec()));
            Ok(())
        })
    }

    fn clear(&self, _at: u64, _bytes: u64) -> StoreFuture<'_, ()> {
        // A new file reads as zeros already.
        Box::pin(async move { Ok(()) })
    }

    fn sync(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let sync = self.writer.with(|state| {
                state.syncs.0 += 1;
                state.syncs.0
            });
            self.writer.send(Work::Sync);
            self.until(|state| state.syncs.1 >= sync).await
        })
    }
}
