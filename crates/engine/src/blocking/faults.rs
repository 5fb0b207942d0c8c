//! Injected faults of the driving protocol, for its tests.

/// The faults that the model checker must find.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// A driver whose job has ended does not hand over the role.
    NoHandOver,
    /// A thread whose job has ended is not woken.
    NoWake,
    /// A parked driver is not unparked when its job has ended.
    NoUnpark,
    /// A parked driver is not unparked for a timer that is due before its park ends.
    LateTimer,
    /// A thread that was handed the role keeps it although its job has ended in the meantime.
    RoleLost,
    /// A thread that was unparked in place of another does not pass the wake-up on.
    KeptForItself,
    /// A driver that goes on an errand or is asked does not hand over the role first.
    GoneFirst,
    /// A driver is never asked.
    DriverNotAsked,
    /// No thread is woken for a command that several jobs wait for.
    LeftToNobody,
    /// A thread that releases the lock ignores the completions of errands.
    ReturnedUnseen,
    /// A thread that releases the lock does not submit the commands of its turn.
    NotSubmitted,
}

/// Names a fault for the model checker; expands to `()` in other builds.
#[cfg(test)]
macro_rules! fault {
    ($fault:ident) => {
        $crate::blocking::faults::Planted::$fault
    };
}
#[cfg(not(test))]
macro_rules! fault {
    ($fault:ident) => {
        ()
    };
}

pub(super) use fault;
