//! The power of a mounted folder: it counts what a program does, and stops answering when the power is cut.
//!
//! Each change and each sync is an operation with a number. At the operation of the cut, a change takes effect and is
//! never answered, and a sync has no effect. From then on no request is answered, so the program cannot do anything
//! that a computer without power could not. Requests get an error when the program has been killed.

use fulgurite_folder::{Folder, FolderError};
use std::any::Any;
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of a mounted folder.
pub(crate) struct State {
    pub folder: Folder,
    /// The number of operations so far.
    pub operations: u64,
    /// The operation at which the power is cut; `None` for no cut.
    cut_at: Option<u64>,
    /// The operation of the cut in words, once it has come.
    pub cut: Option<String>,
    /// The requests that are not answered.
    held: Vec<Box<dyn Any + Send>>,
    /// Whether the program was killed, so that its requests need not be held.
    is_dead: bool,
    /// Learns of the cut.
    notify: SyncSender<()>,
}

/// A mounted folder, shared by the thread that serves it and the one that watches the program.
pub(crate) struct Power(Mutex<State>);

impl Power {
    /// Switches a folder on. `notify` gets a message when the power is cut.
    pub(crate) fn new(folder: Folder, cut_at: Option<u64>, notify: SyncSender<()>) -> Power {
        Power(Mutex::new(State {
            folder,
            operations: 0,
            cut_at,
            cut: None,
            held: Vec::new(),
            is_dead: false,
            notify,
        }))
    }

    /// Locks the state.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request that changes nothing, by `answer`, unless the power is off.
    pub(crate) fn look<R: Send + 'static>(&self, reply: R, answer: impl FnOnce(&mut Folder, R)) {
        let mut state = self.state();
        match state.cut {
            Some(_) => state.hold(reply),
            None => answer(&mut state.folder, reply),
        }
    }

    /// Performs an operation and answers it by `answer`, unless the power is off or is cut by it. `words` describes
    /// the operation.
    pub(crate) fn change<R: Send + 'static, T>(
        &self,
        words: impl FnOnce() -> String,
        reply: R,
        perform: impl FnOnce(&mut Folder) -> Result<T, FolderError>,
        answer: impl FnOnce(R, Result<T, FolderError>),
    ) {
        let mut state = self.state();
        if state.cut.is_some() {
            return state.hold(reply);
        }
        if !state.count(words) {
            return answer(reply, perform(&mut state.folder));
        }
        // The change was in flight, so it may have taken effect.
        let _ = perform(&mut state.folder);
        state.hold(reply);
    }

    /// Performs a write of pages of a mapping, which the kernel stores by itself, and returns its result. It is never
    /// held: no program learns of it, and a program that is killed cannot die before the answer. A look at
    /// such a process under `/proc` may have to wait with it. Without power it has no effect.
    pub(crate) fn write_back(
        &self,
        words: impl FnOnce() -> String,
        perform: impl FnOnce(&mut Folder) -> Result<(), FolderError>,
    ) -> Result<(), FolderError> {
        let mut state = self.state();
        if state.cut.is_some() {
            return Ok(());
        }
        state.count(words);
        perform(&mut state.folder)
    }

    /// Syncs an inode and answers by `answer`, unless the power is off or is cut before the sync has an effect.
    pub(crate) fn sync<R: Send + 'static>(
        &self,
        words: impl FnOnce() -> String,
        reply: R,
        inode: u64,
        answer: impl FnOnce(R, Result<(), FolderError>),
    ) {
        let mut state = self.state();
        if state.cut.is_some() || state.count(words) {
            return state.hold(reply);
        }
        let result = state.folder.sync(inode);
        answer(reply, result);
    }

    /// Answers all requests that were held, and all further ones, with an error. The program that made them must have
    /// been killed: it does not see the error, and cannot die before.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        state.is_dead = true;
        state.held.clear();
    }

    /// Cuts the power now, if it is on.
    pub(crate) fn cut(&self, words: &str) {
        self.state().cut.get_or_insert_with(|| words.to_owned());
    }
}

impl State {
    /// Leaves a request without an answer. A reply that is dropped tells the kernel that the request has failed.
    fn hold(&mut self, reply: impl Send + 'static) {
        if !self.is_dead {
            self.held.push(Box::new(reply));
        }
    }

    /// Counts an operation. Returns whether it is the one of the cut.
    fn count(&mut self, words: impl FnOnce() -> String) -> bool {
        self.operations += 1;
        let is_cut = self.cut_at == Some(self.operations);
        if is_cut {
            self.cut = Some(words());
            // The watcher has left if its time is over, and then needs no message.
            let _ = self.notify.try_send(());
        }
        is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulgurite_folder::Rules;
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;

    /// The rule: from the cut on, a request waits, and gets no error before the program has been killed. A reply that
    /// is dropped is an error.
    #[test]
    fn requests_wait_from_the_cut_until_the_program_is_dead() {
        let (notify, cut) = sync_channel(1);
        let power = Power::new(Folder::new(Rules::default()), Some(2), notify);
        let replies = [(); 4].map(Arc::new);
        let held = || replies.each_ref().map(|reply| Arc::strong_count(reply) - 1);
        let change = |reply: &Arc<()>| {
            power.change(|| "change".to_owned(), Arc::clone(reply), |_| Ok(()), |_, _| ());
        };
        change(&replies[0]);
        assert!(held() == [0; 4] && cut.try_recv().is_err(), "the power is on");
        change(&replies[1]);
        power.look(Arc::clone(&replies[2]), |_, _| ());
        power.sync(|| "sync".to_owned(), Arc::clone(&replies[3]), 1, |_, _| ());
        assert_eq!((held(), cut.try_recv()), ([0, 1, 1, 1], Ok(())));
        let stored = power.write_back(String::new, |_| Err(FolderError::NoSpace));
        assert_eq!(stored, Ok(()), "pages of a mapping are stored by the kernel, which does not wait");
        power.release();
        change(&replies[0]);
        assert_eq!(held(), [0; 4]);
    }
}
