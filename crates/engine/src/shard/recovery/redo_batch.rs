//! A batch of logged operations that recovery redoes together.

use super::deleted_values::DeletedValues;
use crate::Lsn;
use crate::format::log_record::OpRef;
use fulgurite_base::{advise_huge_pages, prefetch};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

/// A batch of operations. They are in log order until [`RedoBatch::keep_last_by_key`], and afterwards in the
/// order of keys.
pub(crate) struct RedoBatch {
    /// The keys and values of the operations, concatenated in log order.
    bytes: Vec<u8>,
    trees: BTreeMap<u32, OfTree>,
    ops: usize,
    /// The least LSN of the records in the batch.
    since: Lsn,
    /// For each log record, the offset of its operations in `bytes` and its LSN. If several records are close
    /// together, only the first is listed.
    starts: Vec<(u32, Lsn)>,
    /// The distance of records that counts as close, in log bytes.
    close: u64,
    /// The offset in `bytes` at which the operations of the last record begin.
    last_record: usize,
    most: usize,
    /// The additional bytes of memory that the batch takes when the first ones are used up; 0 once it has
    /// taken them.
    more: usize,
    /// The number of bytes to reserve for `bytes`.
    reserved: usize,
    /// The large values that the whole log deletes, also behind the batch.
    pub(super) deleted: DeletedValues,
}

/// The operations on one tree.
#[derive(Default)]
struct OfTree {
    places: Vec<Place>,
    /// The number of operations at the beginning of `places` that are sorted and have a valid `head`.
    sorted: usize,
    /// The common prefix of the keys of the sorted operations.
    shared: Vec<u8>,
}

/// An operation of a batch.
#[derive(Clone, Copy)]
struct Place {
    /// The eight bytes of the key behind the common prefix, as a number; valid once the operation is sorted.
    head: u64,
    /// The offset of the key in the bytes of the batch; the value follows the key.
    from: u32,
    key: u16,
    /// The length of the value in bytes, with the bit [`LARGE`] for a reference to a large value; [`NONE`]
    /// for a deletion.
    value: u16,
}

/// The bit of `Place::value` that marks a reference to a large value.
const LARGE: u16 = 1 << 15;
/// The value of `Place::value` that marks a deletion.
const NONE: u16 = u16::MAX;

/// The memory for an operation in addition to its key and value: its place, as much again while the list of
/// places grows, and a pointer to it while the places are sorted.
const PLACE_BYTES: usize = 2 * size_of::<Place>() + size_of::<&Place>();

/// The size of a cache line of the processor in bytes.
const CACHE_LINE: usize = 64;
/// The number of bytes of an operation that are prefetched; the processor prefetches the rest of a long
/// operation by itself.
const PREFETCHED: usize = 4 * CACHE_LINE;

/// The approximate number of records whose positions are kept: few enough that a lookup touches few cache
/// lines.
const STARTS: u64 = 1 << 12;

impl RedoBatch {
    /// Creates an empty batch for operations from a log of `log_bytes`. It takes up to `most` bytes of
    /// memory, and then up to `more` additional bytes.
    pub(crate) fn new((most, more): (u64, u64), log_bytes: u64) -> RedoBatch {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX).min(1 << 31);
        let (bytes, trees) = (Vec::new(), BTreeMap::new());
        let reserved = size(most.min(log_bytes));
        let (most, more) = (size(most), size(more));
        let (starts, close) = (Vec::new(), log_bytes / STARTS);
        RedoBatch {
            bytes,
            trees,
            ops: 0,
            since: Lsn(0),
            starts,
            close,
            last_record: 0,
            most,
            more,
            reserved,
            deleted: DeletedValues::default(),
        }
    }

    /// Begins the operations of the log record whose LSN is `at`. They come behind the operations of the batch, even if
    /// the record was before them in the log, as one that prepares a transaction may be.
    pub(crate) fn begin_record(&mut self, at: Lsn) {
        self.since = if self.ops == 0 { at } else { self.since.min(at) };
        if self.ops == 0 {
            // Reserving everything now costs nothing, because untouched memory is not backed by physical
            // memory, and a buffer that never grows is never copied.
            self.bytes.reserve(self.reserved);
            advise_huge_pages(self.bytes.spare_capacity_mut());
        }
        let is_close = |last: Lsn| (last.0..last.0 + self.close.max(1)).contains(&at.0);
        if !self.starts.last().is_some_and(|(_, last)| is_close(*last)) {
            self.starts.push((self.bytes.len() as u32, at));
        }
        self.last_record = self.bytes.len();
    }

    /// Adds an operation of the current record. Its key and value must fit into a leaf.
    pub(crate) fn add(&mut self, op: OpRef<'_>) {
        let from = self.bytes.len() as u32;
        self.bytes.extend_from_slice(op.key);
        self.bytes.extend_from_slice(op.value.unwrap_or_default());
        if self.bytes.len() == from as usize {
            // The places are ordered by their offsets, so each offset must be unique.
            self.bytes.push(0);
        }
        let value = match op.value {
            Some(value) => value.len() as u16 | if op.large { LARGE } else { 0 },
            None => NONE,
        };
        let place = Place { head: 0, from, key: op.key.len() as u16, value };
        self.trees.entry(op.tree).or_default().places.push(place);
        self.ops += 1;
    }

    /// Returns whether there is space for another record. A full batch drops operations on keys that have
    /// later ones. If that frees less than an eighth of the memory, the batch takes its additional memory.
    pub(crate) fn make_room(&mut self) -> bool {
        let uses = |batch: &RedoBatch| batch.bytes.len() + batch.ops * PLACE_BYTES;
        if uses(self) <= self.most {
            return true;
        }
        self.drop_replaced();
        if uses(self) <= self.most / 8 * 7 {
            return true;
        }
        let is_extended = self.is_extended();
        self.most = (self.most + self.more).min(1 << 31);
        self.more = 0;
        !is_extended
    }

    /// Drops operations on keys that have later ones. The other operations stay in log order.
    fn drop_replaced(&mut self) {
        self.keep_last_by_key();
        let mut places: Vec<&mut Place> =
            self.trees.values_mut().flat_map(|tree| tree.places.iter_mut()).collect();
        places.sort_unstable_by_key(|place| place.from);
        let (mut end, mut starts) = (0, self.starts.iter_mut().peekable());
        for place in places {
            while let Some((from, _)) = starts.next_if(|(from, _)| *from <= place.from) {
                *from = end as u32;
            }
            let from = place.from as usize;
            self.bytes.copy_within(from..from + place.bytes(), end);
            place.from = end as u32;
            end += place.bytes();
        }
        starts.for_each(|(from, _)| *from = end as u32);
        self.bytes.truncate(end);
        self.last_record = end;
    }

    /// Whether the batch has taken its additional memory.
    pub(crate) fn is_extended(&self) -> bool {
        self.more == 0
    }

    /// Returns the least LSN of the records in the batch.
    pub(crate) fn since(&self) -> Lsn {
        self.since
    }

    /// Returns an LSN that is at or a little before the record of an operation on a tree.
    pub(crate) fn since_of(&self, tree: u32, index: usize) -> Lsn {
        let from = self.trees[&tree].places[index].from;
        let behind = self.starts.partition_point(|(start, _)| *start <= from);
        behind.checked_sub(1).map_or(self.since, |last| self.starts[last].1)
    }

    /// Drops all operations.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        self.trees.values_mut().for_each(|tree| {
            tree.places.clear();
            tree.sorted = 0;
        });
        self.ops = 0;
    }

    /// Drops the operations of the last record: an injected fault.
    pub(crate) fn forget_last_record(&mut self) {
        for tree in self.trees.values_mut() {
            tree.places.retain(|place| (place.from as usize) < self.last_record);
            tree.sorted = tree.sorted.min(tree.places.len());
        }
        self.ops = self.trees.values().map(|tree| tree.places.len()).sum();
    }

    /// Returns the number of operations.
    pub(crate) fn len(&self) -> usize {
        self.ops
    }

    /// Returns the number of bytes of keys and values, including those of dropped operations.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of operations on a tree.
    pub(crate) fn len_of(&self, tree: u32) -> usize {
        self.trees.get(&tree).map_or(0, |tree| tree.places.len())
    }

    /// Returns the numbers of the trees with operations.
    pub(crate) fn trees(&self) -> impl Iterator<Item = u32> {
        self.trees.iter().filter(|(_, tree)| !tree.places.is_empty()).map(|(tree, _)| *tree)
    }

    /// Returns an operation on a tree. Panics if `index` is out of range.
    #[inline]
    pub(crate) fn get(&self, tree: u32, index: usize) -> OpRef<'_> {
        self.op(tree, &self.trees[&tree].places[index])
    }

    /// Returns a range of operations on a tree. Panics if the range ends behind the last operation.
    pub(crate) fn run(&self, tree: u32, places: Range<usize>) -> impl Iterator<Item = OpRef<'_>> {
        self.trees[&tree].places[places].iter().map(move |place| self.op(tree, place))
    }

    /// Prefetches the bytes of an operation on a tree; does nothing if `index` is out of range.
    #[inline]
    pub(crate) fn prefetch(&self, tree: u32, index: usize) {
        if let Some(place) = self.trees[&tree].places.get(index) {
            let bytes = &self.bytes[place.from as usize..];
            (0..place.bytes().min(PREFETCHED)).step_by(CACHE_LINE).for_each(|at| prefetch(bytes, at));
        }
    }

    #[inline]
    fn op(&self, tree: u32, place: &Place) -> OpRef<'_> {
        let (key, rest) = self.bytes[place.from as usize..].split_at(usize::from(place.key));
        let (value, large) = match place.value {
            NONE => (None, false),
            value => (Some(&rest[..usize::from(value & !LARGE)]), value & LARGE != 0),
        };
        OpRef { tree, key, value, large }
    }

    /// Keeps the last operation on each key, and sorts them by key.
    pub(crate) fn keep_last_by_key(&mut self) {
        let bytes = &self.bytes;
        for tree in self.trees.values_mut() {
            tree.sort(bytes);
        }
        self.ops = self.trees.values().map(|tree| tree.places.len()).sum();
    }

    /// Returns the index behind the last operation on a tree, from index `from` on, whose key is below
    /// `high`. If `high` is `None`, this is the number of operations on the tree.
    pub(crate) fn end_below(&self, tree: u32, from: usize, high: Option<&[u8]>) -> usize {
        let Some(OfTree { places, shared, .. }) = self.trees.get(&tree) else { return from };
        let Some(high) = high else { return places.len() };
        let behind = high.strip_prefix(&shared[..]);
        let is_below = |place: &Place| match behind {
            // The heads decide most comparisons, and lie close together in memory.
            Some(behind) => match place.head.cmp(&head(behind)) {
                Ordering::Equal => key(&self.bytes, place) < high,
                order => order == Ordering::Less,
            },
            None => key(&self.bytes, place) < high,
        };
        // The end is mostly near, so the search takes growing steps from `from` before it bisects.
        let (mut low, mut step) = (from, 1);
        while low + step <= places.len() && is_below(&places[low + step - 1]) {
            low += step;
            step *= 2;
        }
        let high = (low + step).min(places.len());
        low + places[low..high].partition_point(is_below)
    }
}

impl Place {
    /// Returns the number of bytes of key and value, but at least one.
    fn bytes(&self) -> usize {
        let value = if self.value == NONE { 0 } else { self.value & !LARGE };
        (usize::from(self.key) + usize::from(value)).max(1)
    }
}

impl OfTree {
    fn sort(&mut self, bytes: &[u8]) {
        let Some(first) = self.places.first() else { return };
        let first = key(bytes, first);
        // Sorted operations keep their heads if possible, because their keys are scattered in memory and slow
        // to read.
        let before = if self.sorted == 0 { first.len() } else { self.shared.len() };
        let unsorted = self.places[self.sorted..].iter();
        let shared = unsorted.map(|place| shared_bytes(first, key(bytes, place))).min().unwrap_or(before);
        let shared = shared.min(before);
        let with_heads = if shared == before { self.sorted } else { 0 };
        self.shared = first[..shared].to_vec();
        for place in &mut self.places[with_heads..] {
            place.head = head(&key(bytes, place)[shared..]);
        }
        // Most comparisons use only the heads, because the keys are scattered in memory. If both heads
        // contain all key bytes behind the common prefix and are equal, the keys differ at most in zeros at
        // the end, so their lengths decide.
        let is_whole = |place: &Place| usize::from(place.key) <= shared + size_of::<u64>();
        let order = |one: &Place, other: &Place| match one.head.cmp(&other.head) {
            Ordering::Equal if is_whole(one) && is_whole(other) => one.key.cmp(&other.key),
            Ordering::Equal => key(bytes, one).cmp(key(bytes, other)),
            order => order,
        };
        // The last operation on a key comes first, so that `dedup_by` keeps it. The stable sort is fast where
        // operations are already in order.
        self.places.sort_by(|one, other| order(one, other).then(other.from.cmp(&one.from)));
        self.places.dedup_by(|later, kept| order(later, kept).is_eq());
        self.sorted = self.places.len();
    }
}

fn key<'a>(bytes: &'a [u8], place: &Place) -> &'a [u8] {
    &bytes[place.from as usize..][..usize::from(place.key)]
}

fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    std::iter::zip(one, other).take_while(|(one, other)| one == other).count()
}

/// Returns the first eight bytes of a key as a number. If the numbers of two keys differ, they order as the
/// keys do.
fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = key.len().min(8);
    head[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::log_record::Op;
    use fulgurite_base::Prng;

    fn random_key(prng: &mut Prng, shared: &str) -> Box<[u8]> {
        // Keys that are prefixes of each other, that end in zeros, and that are longer than a head.
        let len = prng.below(12);
        shared.bytes().chain((0..len).map(|_| prng.below(3) as u8)).collect()
    }

    #[test]
    fn the_last_operation_on_each_key_is_left_in_order() {
        let mut prng = Prng::new(1, "batch");
        for round in 0..300 {
            // The batch has little memory, so that it must drop operations again and again.
            let close = 1 + prng.below(8);
            let mut batch = RedoBatch::new((prng.below(5_000), 3_000), close * STARTS);
            let mut expected = BTreeMap::new();
            let shared = if round % 2 == 0 { "the same for all" } else { "" };
            for number in 0..prng.below(200) {
                let value =
                    (prng.below(4) > 0).then(|| Box::from(&number.to_le_bytes()[..prng.below(9) as usize]));
                let large = value.is_some() && prng.below(3) == 0;
                let op = Op { tree: prng.below(2) as u32, key: random_key(&mut prng, shared), value, large };
                if !batch.make_room() {
                    break;
                }
                expected.insert((op.tree, op.key.clone()), (op.clone(), number));
                batch.begin_record(Lsn(number));
                batch.add(op.as_ref());
            }
            batch.keep_last_by_key();
            let (expected, numbers): (Vec<Op>, Vec<u64>) = expected.into_values().unzip();
            let trees: Vec<u32> = batch.trees().collect();
            let places = trees.iter().flat_map(|tree| (0..batch.len_of(*tree)).map(|index| (*tree, index)));
            let places: Vec<(u32, usize)> = places.collect();
            let found: Vec<Op> = places.iter().map(|at| batch.get(at.0, at.1).to_op()).collect();
            assert_eq!(found, expected);
            for ((tree, index), number) in std::iter::zip(places, numbers) {
                let since = batch.since_of(tree, index).0;
                assert!(since <= number && number - since < close, "{since} for {number}");
            }
            ends_are_right(&batch, &mut prng, shared);
            batch.clear();
            assert_eq!((batch.len(), batch.trees().count()), (0, 0));
        }
    }

    /// The rule: [`RedoBatch::end_below`] finds the same end as a linear count.
    fn ends_are_right(batch: &RedoBatch, prng: &mut Prng, shared: &str) {
        for tree in batch.trees() {
            let len = batch.len_of(tree);
            assert_eq!(batch.end_below(tree, 0, None), len);
            for _ in 0..20 {
                let from = prng.below(len as u64) as usize;
                let shared = if prng.below(3) == 0 { "the last" } else { shared };
                let high = random_key(prng, shared);
                let below = (from..len).take_while(|index| *batch.get(tree, *index).key < *high).count();
                assert_eq!(batch.end_below(tree, from, Some(&high)), from + below);
            }
        }
    }

    /// Adds a record with one operation on the same key in each of two trees.
    fn add_record(batch: &mut RedoBatch, number: u64, key: u8) {
        let op = OpRef { tree: 3, key: &[b'k', key], value: Some(&[0; 98]), large: false };
        batch.begin_record(Lsn(100 + number));
        batch.add(op);
        batch.add(OpRef { tree: 4, ..op });
    }

    #[test]
    fn a_batch_is_full_with_its_memory_and_forgets_its_last_record() {
        let mut batch = RedoBatch::new((6_000, 4_000), 1 << 20);
        assert!(!batch.is_extended());
        let mut records = 0;
        while batch.make_room() {
            add_record(&mut batch, records, records as u8);
            records += 1;
        }
        assert!(batch.is_extended());
        assert_eq!((records, batch.since(), batch.len()), (10_000 / 280 + 1, Lsn(100), 2 * 36));
        add_record(&mut batch, 200, 200);
        batch.forget_last_record();
        assert_eq!((batch.len(), batch.len_of(3)), (2 * 36, 36));
    }

    #[test]
    fn a_full_batch_first_lets_go_of_what_was_replaced() {
        let mut batch = RedoBatch::new((6_000, 4_000), 1 << 20);
        for number in 0..1_000 {
            assert!(batch.make_room());
            add_record(&mut batch, number, (number % 18) as u8);
        }
        // 18 keys take 5,040 of 6,000 bytes, so the batch needs no additional memory.
        assert!(!batch.is_extended());
        assert_eq!(batch.since(), Lsn(100));
        batch.keep_last_by_key();
        assert_eq!(batch.len(), 36);
    }
}
