//! Cuts a piece out of a trace, and hides its addresses.
//!
//! A cut has the requests of some time, a sample of the pages, or both. A request is divided where a page of it is
//! not in the sample.
//!
//! Hidden addresses are permuted. The addresses of a volume are divided into *classes* of 1 GiB (2^18 pages), and
//! each class into *extents* of 64 KiB (16 pages). The extents of a class change places by a permutation that
//! follows from the seed, the volume and the class (a Feistel network over the bits of the extent's number). So two
//! requests for one page remain requests for one page, positions within an extent remain, and so does the class.
//! A request is divided where it goes on to another extent.

use super::record::{Record, Unit};
use fulgurite_base::{Nanos, PageId};
use std::ops::Range;

/// The size of an extent and of a class, in bytes and in pages.
const EXTENT: (u64, u64) = (64 << 10, 16);
const CLASS: (u64, u64) = (1 << 30, 1 << 18);
/// The bits of an extent's number within its class are two halves of this many bits.
const HALF_BITS: u32 = 7;
const ROUNDS: u64 = 8;

/// What is cut out of a trace, and whether its addresses are hidden.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The time of the first request, and the time before which the last one arrives.
    pub times: Range<Nanos>,
    /// The sample of pages: one page in this number; `None` for all pages.
    pub sample: Option<u32>,
    /// The size of a page of the sample, in the unit of the records.
    pub page: u64,
    /// Whether the addresses are hidden.
    pub hides: bool,
    /// The seed of the sample and of the permutation.
    pub seed: u64,
    /// The unit of the records.
    pub unit: Unit,
}

impl Cut {
    /// Calls `each` with what is left of a record, in the order of its addresses. The times are counted from the
    /// beginning of the cut. Returns false if the record and all later ones are behind the end of the cut.
    pub fn apply(&self, record: &Record, mut each: impl FnMut(Record)) -> bool {
        if record.at >= self.times.end {
            return false;
        }
        if record.at < self.times.start {
            return true;
        }
        let record = Record { at: record.at - self.times.start, ..*record };
        self.sampled(&record, |part| match self.hides {
            true => self.hidden(&part, &mut each),
            false => each(part),
        });
        true
    }

    /// Calls `each` with the runs of pages of a record that are in the sample.
    fn sampled(&self, record: &Record, mut each: impl FnMut(Record)) {
        let Some(divisor) = self.sample else { return each(*record) };
        let end = record.start + record.length;
        let seed = self.key(record.volume, 0);
        let mut run: Option<Range<u64>> = None;
        let mut emit = |run: Range<u64>| {
            each(Record { start: run.start, length: run.end - run.start, ..*record });
        };
        for page in record.start / self.page..=(end - 1) / self.page {
            // The first and the last page may be requested in part.
            let part = (page * self.page).max(record.start)..((page + 1).saturating_mul(self.page)).min(end);
            let is_in = PageId(page).is_sampled(seed, divisor);
            match &mut run {
                Some(run) if is_in => run.end = part.end,
                _ if is_in => run = Some(part),
                _ => run.take().into_iter().for_each(&mut emit),
            }
        }
        run.into_iter().for_each(emit);
    }

    /// Calls `each` with the parts of a record at their hidden addresses.
    fn hidden(&self, record: &Record, mut each: impl FnMut(Record)) {
        let of_unit = |(bytes, pages)| if self.unit == Unit::Bytes { bytes } else { pages };
        let (extent, class) = (of_unit(EXTENT), of_unit(CLASS));
        let (mut at, end) = (record.start, record.start + record.length);
        let mut part: Option<Record> = None;
        while at < end {
            let whole = (end - at) / class * class;
            let (start, next) = if at % class == 0 && whole > 0 {
                // A class changes places within itself, so a whole one stays.
                (at, at + whole)
            } else if at / class == u64::MAX / class {
                // Here an extent might move to the end of all addresses, and its end would have no number.
                (at, end)
            } else {
                let within = (at % class / extent) as u32;
                let moved = u64::from(self.permuted(within, record.volume, at / class));
                (at - at % class + moved * extent + at % extent, (at - at % extent + extent).min(end))
            };
            match &mut part {
                // The permutation may leave two extents beside each other.
                Some(part) if part.start + part.length == start => part.length += next - at,
                _ => {
                    part.into_iter().for_each(&mut each);
                    part = Some(Record { start, length: next - at, ..*record });
                }
            }
            at = next;
        }
        part.into_iter().for_each(each);
    }

    /// Returns the new number of an extent within its class.
    fn permuted(&self, extent: u32, volume: u32, class: u64) -> u32 {
        let mask = (1 << HALF_BITS) - 1;
        let (mut left, mut right) = (extent >> HALF_BITS, extent & mask);
        for round in 0..ROUNDS {
            let key = self.key(volume, PageId(class << 4 | round).mixed());
            let mixed = (PageId(key ^ u64::from(right)).mixed() >> 40) as u32 & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << HALF_BITS | right
    }

    /// Returns a number that follows from the seed, a volume and a tweak.
    fn key(&self, volume: u32, tweak: u64) -> u64 {
        PageId(PageId(!self.seed).mixed() ^ PageId(u64::from(volume)).mixed().rotate_left(32) ^ tweak).mixed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;
    use std::collections::BTreeMap;

    fn cut(hides: bool, sample: Option<u32>) -> Cut {
        Cut { times: Nanos::ZERO..Nanos::MAX, sample, page: 4096, hides, seed: 7, unit: Unit::Bytes }
    }

    fn parts(cut: &Cut, record: Record) -> Vec<Record> {
        let mut parts = Vec::new();
        assert!(cut.apply(&record, |part| parts.push(part)));
        parts
    }

    /// The rule: every extent of a class has another place in the class, each place is taken once, and volumes,
    /// classes and seeds have permutations of their own.
    #[test]
    fn extents_of_a_class_change_places() {
        let places = |cut: &Cut, volume: u32, class: u64| -> Vec<u64> {
            let place = |extent: u64| {
                let start = class * CLASS.0 + extent * EXTENT.0 + 512;
                let record = Record { volume, ..Record::new(Nanos::ZERO, Op::Read, start, 4096) };
                let [part] = parts(cut, record)[..] else { panic!("an extent is not divided") };
                assert_eq!((part.start / CLASS.0, part.start % EXTENT.0, part.length), (class, 512, 4096));
                assert_eq!((part.volume, part.op), (volume, Op::Read));
                part.start % CLASS.0 / EXTENT.0
            };
            (0..CLASS.0 / EXTENT.0).map(place).collect()
        };
        let usual = places(&cut(true, None), 1, 3);
        let mut sorted = usual.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..CLASS.0 / EXTENT.0));
        let stay = |other: &[u64]| usual.iter().zip(other).filter(|(a, b)| a == b).count();
        let plain: Vec<u64> = (0..CLASS.0 / EXTENT.0).collect();
        let others = [
            plain,
            places(&cut(true, None), 2, 3),
            places(&cut(true, None), 1, 4),
            places(&Cut { seed: 8, ..cut(true, None) }, 1, 3),
        ];
        // Of two random permutations, one place on average is equal.
        assert!(
            others.iter().all(|other| stay(other) < 12),
            "{:?}",
            others.each_ref().map(|other| stay(other))
        );
    }

    /// The rule: the parts of a hidden request are its bytes, each once, at the places of the single bytes.
    #[test]
    fn a_hidden_request_is_divided_at_extents() {
        let cut = cut(true, None);
        let place = |byte: u64| parts(&cut, Record::new(Nanos(5), Op::Write, byte, 1))[0].start;
        let (start, length) = (CLASS.0 - 100_000, 300_000);
        let found = parts(&cut, Record::new(Nanos(5), Op::Write, start, length));
        let bytes: Vec<u64> = found.iter().flat_map(|part| part.start..part.start + part.length).collect();
        assert_eq!(bytes.len() as u64, length);
        for at in (0..length).step_by(997) {
            assert_eq!(bytes[at as usize], place(start + at));
        }
        assert!((5..=7).contains(&found.len()) && found.iter().all(|part| part.at == Nanos(5)));
    }

    /// The rule: requests of any length at any address are hidden at once, and keep their length.
    #[test]
    fn requests_of_any_length_are_hidden() {
        for (start, end) in
            [(0, u64::MAX), (CLASS.0 + 1, 1 << 62), (u64::MAX - 1, u64::MAX), (u64::MAX - CLASS.0, u64::MAX)]
        {
            let found = parts(&cut(true, None), Record::new(Nanos::ZERO, Op::Trim, start, end - start));
            assert_eq!(found.iter().map(|part| part.length).sum::<u64>(), end - start);
            assert!(found.len() <= 2 << (2 * HALF_BITS));
        }
    }

    /// The rule: the sample has the same pages whatever requests touch them, about one in `divisor`, and all of the
    /// requested bytes of these pages.
    #[test]
    fn a_sample_has_all_bytes_of_its_pages() {
        let cut = cut(false, Some(4));
        let is_in = |page: u64| !parts(&cut, Record::new(Nanos::ZERO, Op::Read, page * 4096, 1)).is_empty();
        let count = (0..8_000).filter(|page| is_in(*page)).count();
        // The standard deviation is 39.
        assert!((1_850..2_150).contains(&count), "{count}");
        let found = parts(&cut, Record::new(Nanos::ZERO, Op::Read, 4096 - 100, 50 * 4096));
        let mut bytes: BTreeMap<u64, u64> = BTreeMap::new();
        for part in &found {
            (part.start..part.start + part.length)
                .for_each(|byte| *bytes.entry(byte / 4096).or_default() += 1);
        }
        for page in 0..=50 {
            let expected = match (is_in(page), page) {
                (false, _) => None,
                (true, 0) => Some(100),
                (true, 50) => Some(4096 - 100),
                (true, _) => Some(4096),
            };
            assert_eq!(bytes.get(&page).copied(), expected, "page {page}");
        }
        assert!(
            found.windows(2).all(|pair| pair[0].start + pair[0].length < pair[1].start),
            "runs are whole"
        );
    }

    /// The rule: a cut in time has the requests from its beginning on and before its end, and its times begin at
    /// zero.
    #[test]
    fn a_cut_in_time_begins_at_zero() {
        let cut = Cut { times: Nanos(10)..Nanos(20), ..cut(false, None) };
        let mut times = Vec::new();
        let mut goes_on = Vec::new();
        for at in [9, 10, 19, 20, 21] {
            let record = Record::new(Nanos(at), Op::Read, 0, 1);
            goes_on.push(cut.apply(&record, |part| times.push(part.at.0)));
        }
        assert_eq!(times, [0, 9]);
        assert_eq!(goes_on, [true, true, true, false, false]);
    }
}
