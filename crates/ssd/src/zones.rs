//! The zones of a zoned drive (NVMe Zoned Namespace command set): the state of each zone, and the rules that
//! the host must keep.
//!
//! A zone is written in order, at its write pointer, up to its end, and is reset as a whole. Zones that have
//! begun and are not full are *active*, and the drive has room for a number of them. Each of these rooms is a
//! stream of the translation layer below. A zone has a whole number of segments and begins with a fresh one,
//! so a segment never has pages of two zones. A reset invalidates whole segments, and collection copies
//! nothing.
//!
//! Commands take effect in the order of submission, so the rules are checked when a command is submitted. A
//! trim of whole zones is their reset. There are no commands to open, close or finish a zone: the first write
//! opens a zone, and a zone that is written to its end is finished. So every active zone is an open zone, and
//! the limits of both are one number.

use fulgurite_base::{Lpn, StreamId};
use fulgurite_device::{IoError, Zone, ZoneCaps, ZoneError};
use fulgurite_ftl::{FlashSink, Ftl, SegmentId};

/// The zones of a drive.
#[derive(Clone, Debug)]
pub struct Zones {
    caps: ZoneCaps,
    /// The number of written pages of each zone, which is its write pointer.
    written: Vec<u32>,
    /// The room of each active zone.
    room: Vec<Option<u16>>,
    is_taken: Vec<bool>,
}

impl Zones {
    /// Returns the number of streams of the translation layer below: one for each room, and one for the
    /// conventional pages.
    pub(crate) fn streams(caps: &ZoneCaps) -> u16 {
        caps.active + u16::from(caps.conventional_pages > 0)
    }

    /// Returns the zones of a drive with the contents of `ftl`. `accepted` returns the stream of a page whose
    /// contents wait for their place on the flash.
    pub fn of(caps: ZoneCaps, ftl: &Ftl, accepted: impl Fn(u32) -> Option<StreamId>) -> Zones {
        let sequential = ftl.config().logical_pages - caps.conventional_pages;
        let count = (sequential / caps.zone_pages) as usize;
        let mut zones = Zones {
            caps,
            written: vec![0; count],
            room: vec![None; count],
            is_taken: vec![false; usize::from(caps.active)],
        };
        let stream =
            |lpn: u32| accepted(lpn).or_else(|| Some(ftl.segments().stream(ftl.segment(ftl.lookup(lpn)?))));
        for zone in 0..count {
            let first = zones.first(zone);
            let written = (first..first + caps.zone_pages)
                .map_while(stream)
                .fold((0, None), |(pages, _), last| (pages + 1, Some(last)));
            zones.written[zone] = written.0;
            // The stream of the last page is that of the zone's room.
            if let (Some(last), true) = (written.1, zones.is_active(zone)) {
                zones.take(zone, last.0 - zones.first_stream());
            }
        }
        zones
    }

    /// Returns the stream of the first room.
    fn first_stream(&self) -> u16 {
        u16::from(self.caps.conventional_pages > 0)
    }

    /// Returns the first page of a zone.
    fn first(&self, zone: usize) -> u32 {
        self.caps.conventional_pages + zone as u32 * self.caps.zone_pages
    }

    /// Returns the zone of a page, and the page's index in it; `None` for a conventional page.
    fn locate(&self, lpn: u32) -> Option<(usize, u32)> {
        let page = lpn.checked_sub(self.caps.conventional_pages)?;
        Some(((page / self.caps.zone_pages) as usize, page % self.caps.zone_pages))
    }

    fn is_active(&self, zone: usize) -> bool {
        (1..self.caps.zone_pages).contains(&self.written[zone])
    }

    fn free_room(&self) -> Option<u16> {
        self.is_taken.iter().position(|taken| !taken).map(|room| room as u16)
    }

    fn take(&mut self, zone: usize, room: u16) {
        self.room[zone] = Some(room);
        self.is_taken[usize::from(room)] = true;
    }

    fn give_back(&mut self, zone: usize) {
        if let Some(room) = self.room[zone].take() {
            self.is_taken[usize::from(room)] = false;
        }
    }

    /// Returns the zone that holds a page; `None` for a conventional page.
    pub fn zone(&self, lpn: u32) -> Option<Zone> {
        let (zone, _) = self.locate(lpn)?;
        Some(Zone { first: Lpn(u64::from(self.first(zone))), written: self.written[zone] })
    }

    /// Returns the stream for a write that keeps the rules, and moves the write pointer.
    pub fn write(&mut self, lpn: u32, pages: u32) -> Result<StreamId, IoError> {
        let Some((zone, at)) = self.locate(lpn) else {
            return match lpn + pages > self.caps.conventional_pages {
                true => Err(IoError::Zone(ZoneError::Boundary)),
                false => Ok(StreamId(0)),
            };
        };
        if at + pages > self.caps.zone_pages {
            return Err(IoError::Zone(ZoneError::Boundary));
        }
        if self.written[zone] == self.caps.zone_pages {
            return Err(IoError::Zone(ZoneError::Full));
        }
        if self.written[zone] != at {
            return Err(IoError::Zone(ZoneError::NotAtWritePointer));
        }
        let room = match self.room[zone] {
            Some(room) => room,
            None => self.free_room().ok_or(IoError::Zone(ZoneError::TooManyActive))?,
        };
        self.take(zone, room);
        self.written[zone] += pages;
        if self.written[zone] == self.caps.zone_pages {
            self.give_back(zone);
        }
        Ok(StreamId(self.first_stream() + room))
    }

    /// Resets the zones of a trim, which has whole zones or conventional pages.
    pub fn trim(&mut self, lpn: u32, pages: u32) -> Result<(), IoError> {
        match self.locate(lpn) {
            None if lpn + pages <= self.caps.conventional_pages => {}
            Some((zone, 0)) if pages.is_multiple_of(self.caps.zone_pages) => {
                for zone in zone..zone + (pages / self.caps.zone_pages) as usize {
                    self.written[zone] = 0;
                    self.give_back(zone);
                }
            }
            _ => return Err(IoError::Zone(ZoneError::PartOfZone)),
        }
        Ok(())
    }

    /// Trims pages on the translation layer, after [`Zones::trim`] has accepted the trim. The open segment of a
    /// zone that was not full is sealed, because the next zone of its room begins with a fresh segment.
    pub(crate) fn reset(caps: &ZoneCaps, ftl: &mut Ftl, lpn: u32, pages: u32) {
        for first in (lpn..lpn + pages).step_by(caps.zone_pages as usize) {
            let end = (first + caps.zone_pages).min(lpn + pages);
            let last = (first..end).rev().find_map(|lpn| ftl.lookup(lpn)).map(|ppn| ftl.segment(ppn));
            ftl.trim_run(first, end - first);
            let is_cut_short = |last: &SegmentId| ftl.segments().written(*last) < ftl.config().segment_pages;
            if let Some(open) = last.filter(|last| first >= caps.conventional_pages && is_cut_short(last)) {
                ftl.seal_early(open);
            }
        }
    }

    /// Trims pages of a translation layer without time, as the drive would.
    pub fn trim_flash(&mut self, ftl: &mut Ftl, lpn: u32, pages: u32) -> Result<(), IoError> {
        self.trim(lpn, pages)?;
        Zones::reset(&self.caps, ftl, lpn, pages);
        Ok(())
    }

    /// Writes pages to a translation layer without time, as the drive would.
    pub fn write_flash(
        &mut self,
        ftl: &mut Ftl,
        lpn: u32,
        pages: u32,
        sink: &mut impl FlashSink,
    ) -> Result<(), IoError> {
        let stream = self.write(lpn, pages)?;
        ftl.write(lpn, pages, stream, sink);
        Ok(())
    }
}
