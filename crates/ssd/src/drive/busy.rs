//! The state of a die for display, and the time that it has spent on each kind of flash operation. A moment counts
//! once, even if two operations overlap.

use fulgurite_base::Nanos;

/// The state of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DieState {
    /// The number of its channel.
    pub channel: u32,
    /// The time that it has spent on operations.
    pub busy: Busy,
    /// Whether it performs an operation of collection.
    pub collects: bool,
    /// The number of operations that wait for it.
    pub waiting: u32,
}

/// The time of a die by kind of operation, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Reads for the host.
    pub read: u64,
    /// Programs with host pages, and of parity.
    pub program: u64,
    /// Reads of collection.
    pub move_read: u64,
    /// Programs of copies alone.
    pub move_program: u64,
    /// Erases.
    pub erase: u64,
}

impl Busy {
    /// Returns the times with the names of their kinds.
    pub fn by_kind(&self) -> [(&'static str, Nanos); 5] {
        [
            ("read", Nanos(self.read)),
            ("program", Nanos(self.program)),
            ("move_read", Nanos(self.move_read)),
            ("move_program", Nanos(self.move_program)),
            ("erase", Nanos(self.erase)),
        ]
    }
}
