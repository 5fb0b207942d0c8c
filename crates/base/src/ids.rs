//! Number types that must not be mixed up, such as logical and physical page numbers.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A stream of writes. Pages of one stream are expected to become invalid at about the same time, so they are
/// written to separate segments. The host may name a stream as a placement hint with each write; a placement
/// policy chooses the stream of each page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u16);

/// A point in time, or a duration, in nanoseconds. The clock of a simulated drive starts at zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of virtual time, and the duration zero.
    pub const ZERO: Nanos = Nanos(0);
    /// A time later than any event.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// Returns a duration of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1_000)
    }

    /// Returns the same time in seconds, for printing and for rates.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns `self − earlier`, or zero if `earlier` is later than `self`.
    pub fn saturating_sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, earlier: Nanos) -> Nanos {
        Nanos(self.0 - earlier.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} µs", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.3} ms", self.0 as f64 / 1e6),
            _ => write!(f, "{:.3} s", self.0 as f64 / 1e9),
        }
    }
}

/// A logical page number: an address on a device, in units of the device's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lpn(pub u64);

/// A physical page number inside a simulated drive. It addresses up to 2^32 pages, which are 16 TiB of 4 KiB
/// pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ppn(pub u32);

/// A page number of the buffer pool and of workloads, in units of the pool's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId(pub u64);

impl PageId {
    /// Returns a hash of the page number: 64 bits, of which the upper ones are mixed best. One multiplication
    /// would suffice for random page numbers. Strides, which are common in databases, would then form
    /// clusters, so there are two multiplications.
    #[inline]
    pub fn mixed(self) -> u64 {
        let hash = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// Returns whether a sample of one page in `divisor` has this page. The seed chooses the sample. Seeds that differ
    /// in few bits choose similar samples, so a seed should be mixed.
    #[inline]
    pub fn is_sampled(self, seed: u64, divisor: u32) -> bool {
        // The page is hashed twice, because a table of the sampled pages uses the first hash.
        PageId(self.mixed() ^ seed).mixed() <= u64::MAX / u64::from(divisor)
    }
}

/// The number of a frame of the buffer pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

impl FrameId {
    /// Returns the number as an index into arrays with an element for each frame.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
