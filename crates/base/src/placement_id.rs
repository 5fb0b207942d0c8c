//! The placement identifier of flexible data placement, FDP (NVMe technical proposal 4146).

use crate::StreamId;
use crate::option::Choice;

/// A placement identifier: the reclaim group and the reclaim-unit handle that a host names for a write. As a
/// [`StreamId`] the handle has the lower 8 bits, and the number of the group plus one the upper 8. So the
/// stream 0, that of a write without an identifier, is handle 0 in a group that the drive chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlacementId {
    /// The reclaim group; `None` if the drive chooses it.
    pub group: Option<u8>,
    /// The reclaim-unit handle.
    pub handle: u8,
}

impl PlacementId {
    /// The most reclaim-unit handles of a drive.
    pub const HANDLES_AT_MOST: u16 = 128;

    /// The most reclaim groups of a drive.
    pub const GROUPS_AT_MOST: u32 = 255;

    /// Returns the identifier that a stream stands for.
    #[inline]
    pub fn of(stream: StreamId) -> PlacementId {
        let [group, handle] = stream.0.to_be_bytes();
        PlacementId { group: group.checked_sub(1), handle }
    }

    /// Returns the stream that stands for the identifier.
    #[inline]
    pub fn stream(self) -> StreamId {
        StreamId(u16::from_be_bytes([self.group.map_or(0, |group| group + 1), self.handle]))
    }
}

/// The isolation of the data of a reclaim-unit handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// Pages that the host writes by different handles never share a reclaim unit. Pages that garbage
    /// collection has moved may share one, whatever their handles were.
    Initially,
    /// Pages of different handles never share a reclaim unit.
    Persistently,
}

impl Choice for Isolation {
    const NAMES: &'static [(&'static str, Isolation)] =
        &[("initially", Isolation::Initially), ("persistently", Isolation::Persistently)];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: identifiers and streams correspond one to one, and the stream 0 names handle 0 and no group.
    #[test]
    fn identifiers_are_streams() {
        for stream in (0..=u16::MAX).map(StreamId) {
            assert_eq!(PlacementId::of(stream).stream(), stream);
        }
        assert_eq!(PlacementId::of(StreamId(0)), PlacementId { group: None, handle: 0 });
        assert_eq!(PlacementId { group: Some(1), handle: 7 }.stream(), StreamId(0x207));
    }
}
