//! Decides about a request for a lock. The request is granted, queued or refused; a queued request is later
//! granted or withdrawn.
//!
//! The documentation of the parent module gives the rules, and proves that they detect every deadlock.

use super::mode::{Conflicts, Mode, TxnId};
use super::slab::Slot;
use super::waits::Target;
use super::{Locks, Outcome};

impl Locks {
    /// Returns the refusal for a transaction that was chosen as a victim; `None` if the transaction may
    /// request a lock.
    pub(super) fn refusal(&self, requester: Slot) -> Option<Outcome> {
        let transaction = self.waits.get(requester);
        assert!(self.waits.waiting(requester).is_none(), "a transaction has at most one waiting request");
        transaction.doomed.then(|| Outcome::Deadlock { victims: vec![transaction.id] })
    }

    /// Grants, queues or refuses a request whose conflicts are in `self.conflicts`.
    pub(super) fn decide(&mut self, requester: Slot, target: Target, mode: Mode) -> Outcome {
        if self.conflicts.held.is_empty() && self.conflicts.waiting.is_empty() {
            self.grant(requester, target, mode);
            return Outcome::Granted;
        }
        let mut conflicts = std::mem::take(&mut self.conflicts);
        conflicts.held.sort_unstable();
        conflicts.held.dedup();
        let outcome = self.decide_conflict(requester, target, mode, &conflicts);
        self.conflicts = conflicts;
        outcome
    }

    fn decide_conflict(
        &mut self,
        requester: Slot,
        target: Target,
        mode: Mode,
        conflicts: &Conflicts,
    ) -> Outcome {
        // Only a waiting transaction can wait for the requester. Usually no conflicting transaction waits,
        // and the search is skipped.
        let mut others = conflicts.held.iter().chain(&conflicts.waiting);
        if others.all(|slot| self.waits.waiting(*slot).is_none()) {
            self.waits.mark_nobody();
        } else {
            self.waits.mark_waiting_for(requester, true);
            if conflicts.held.iter().any(|slot| self.waits.is_marked(*slot)) {
                self.drop_target(target);
                return Outcome::Deadlock { victims: vec![self.waits.get(requester).id] };
            }
            self.waits.mark_waiting_for(requester, false);
        }
        if conflicts.held.is_empty() && conflicts.waiting.iter().all(|slot| self.waits.is_marked(*slot)) {
            self.grant(requester, target, mode);
            conflicts.waiting.iter().for_each(|overtaken| self.waits.add(*overtaken, requester, false));
            return Outcome::Granted;
        }
        // Enqueue the request before a victim loses its own request, because that loss could free the record
        // of the key.
        self.enqueue(requester, target, mode);
        let victims = self.break_cycles(requester, conflicts);
        conflicts.held.iter().for_each(|holder| self.waits.add(requester, *holder, false));
        for other in &conflicts.waiting {
            if self.waits.is_marked(*other) {
                self.waits.add(*other, requester, true);
            } else if self.waits.waiting(*other).is_some() {
                self.waits.add(requester, *other, true);
            }
        }
        if victims.is_empty() { Outcome::Waiting } else { Outcome::Deadlock { victims } }
    }

    /// Withdraws the request of the youngest transaction of a cycle, until no cycle is left. The requester is
    /// not the youngest of any of these cycles. On return, the transactions that wait for the requester are
    /// marked. Returns the victims.
    fn break_cycles(&mut self, requester: Slot, conflicts: &Conflicts) -> Vec<TxnId> {
        let mut victims = Vec::new();
        while let Some(closing) = conflicts.held.iter().find(|slot| self.waits.is_marked(**slot)) {
            let victim = self.waits.youngest_from(*closing);
            self.withdraw(victim);
            self.waits.get_mut(victim).doomed = true;
            victims.push(self.waits.get(victim).id);
            self.waits.mark_waiting_for(requester, false);
        }
        victims
    }

    /// Turns a request without conflicts into a lock.
    fn grant(&mut self, requester: Slot, target: Target, mode: Mode) {
        let transaction = self.waits.get_mut(requester);
        match target {
            Target::Point(point) => {
                if !self.points.grant(point, requester, mode) {
                    return;
                }
                transaction.points.push(point);
            }
            Target::Range(range) => {
                transaction.ranges.push(range);
                self.ranges.link(range, false);
            }
        }
        self.held += 1;
    }

    fn enqueue(&mut self, requester: Slot, target: Target, mode: Mode) {
        self.waits.start(requester, target, mode);
        match target {
            Target::Point(point) => self.points.wait(point, requester, mode),
            Target::Range(range) => self.ranges.link(range, true),
        }
    }

    /// Withdraws the waiting request of a transaction, if it has one.
    pub(super) fn withdraw(&mut self, slot: Slot) {
        let Some(request) = self.waits.stop(slot) else { return };
        match request.target {
            Target::Point(point) => {
                self.points.stop_waiting(point, slot);
                self.points.drop_unused(point);
            }
            Target::Range(range) => self.ranges.remove(range),
        }
    }

    /// Frees the record of a request that is neither granted nor queued.
    fn drop_target(&mut self, target: Target) {
        match target {
            Target::Point(point) => self.points.drop_unused(point),
            Target::Range(range) => self.ranges.discard(range),
        }
    }

    /// Grants the requests in `self.ready`, which no longer wait for any transaction, and appends their
    /// transactions to `granted`.
    pub(super) fn grant_ready(&mut self, granted: &mut Vec<TxnId>) {
        let mut ready = std::mem::take(&mut self.ready);
        ready.sort_unstable();
        for (_, slot) in ready.drain(..) {
            let Some(request) = self.waits.stop(slot) else { continue };
            self.waits.hold(slot);
            match request.target {
                Target::Point(point) => {
                    self.points.stop_waiting(point, slot);
                    self.grant(slot, request.target, request.mode);
                }
                Target::Range(range) => {
                    self.ranges.grant(range);
                    self.waits.get_mut(slot).ranges.push(range);
                    self.held += 1;
                }
            }
            granted.push(self.waits.get(slot).id);
        }
        self.ready = ready;
    }
}
