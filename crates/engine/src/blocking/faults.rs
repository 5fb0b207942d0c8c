//! Faults of the driving protocol that tests plant.

/// Faults that the model checker must find.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    /// A driver whose job has ended hands the role to nobody.
    NoHandOver,
    /// A thread whose job has ended is not woken.
    NoWake,
    /// A parked driver is not woken when its job has ended.
    NoUnpark,
    /// A parked driver is not woken for a timer that is due earlier than its wait ends.
    LateTimer,
    /// A thread that was handed the role keeps it although its job has ended meanwhile.
    RoleLost,
    /// A thread that was unparked in place of another does not pass the wake-up on.
    KeptForItself,
    /// A driver that goes on an errand or is asked does not hand over the role.
    GoneFirst,
    /// A driver is never asked.
    DriverNotAsked,
    /// Nobody is woken for a command that several jobs wait for.
    LeftToNobody,
    /// A thread that releases the lock ignores the completions of errands.
    ReturnedUnseen,
}

/// A fault for the model checker; `()` in other builds.
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
