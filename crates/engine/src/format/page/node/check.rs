//! Validates a node that was read from the drive: bounds, order of keys, hints and heap sizes.

use super::read::{HINTS, LARGE, Node, SLOT, SLOTS, head};
use crate::format::page::header::{self, Kind, get_u16, get_u32};

impl Node<'_> {
    /// Checks everything that the methods of a node rely on, so that no page makes them panic. A page is
    /// checked once, when it is read from the drive. The check of a node with a valid checksum can fail only
    /// because of a bug or an attack.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_frame()?;
        let used = self.check_records()?;
        self.check_hints()?;
        if self.level() > 0 {
            self.check_children()?;
        }
        if let Some(last) = self.len().checked_sub(1)
            && !(self.covers(&self.key(0)) && self.covers(&self.key(last)))
        {
            return Err("its keys are not between its fences".to_owned());
        }
        if self.0.len() - self.heap() != used + self.garbage() {
            return Err("its heap sizes do not add up".to_owned());
        }
        Ok(())
    }

    /// Checks that slots, heap and fences do not overlap, that kind and level agree, and that the prefix is
    /// common to both fences.
    fn check_frame(&self) -> Result<(), String> {
        let (slots, size) = (SLOTS + self.len() * SLOT, self.0.len());
        let fences = self.low_len() + self.high_len();
        if slots + fences > size || self.heap() > size - fences || self.heap() < slots {
            return Err("its slots, heap and fences overlap".to_owned());
        }
        if (self.level() == 0) != (header::kind(self.0) == Some(Kind::Leaf)) {
            return Err("its kind and its level do not agree".to_owned());
        }
        if self.high().is_some_and(|high| high <= self.low()) {
            return Err("its fences are out of order".to_owned());
        }
        // If both fences begin with the prefix, so does every key between them.
        let common = |high: &[u8]| high.starts_with(self.low().get(..self.prefix_len()).unwrap_or(&[0; 0]));
        let right = match self.high() {
            Some(high) => self.prefix_len() <= self.low_len() && common(high),
            None => self.prefix_len() == 0,
        };
        if right { Ok(()) } else { Err("its prefix is not the common prefix of its fences".to_owned()) }
    }

    /// Checks each record. Returns the number of bytes of the heap that records and fences use.
    fn check_records(&self) -> Result<usize, String> {
        let size = self.0.len();
        let fences = self.low_len() + self.high_len();
        let (heap, end) = (self.heap(), size - fences);
        let mut used = fences;
        let mut before: Option<(u32, &[u8])> = None;
        // This loop runs for every page that is read, so it takes the slots as one slice. `check_frame` has
        // shown that they are inside the page.
        let slots = self.0[SLOTS..SLOTS + self.len() * SLOT].chunks_exact(SLOT);
        for (index, slot) in slots.enumerate() {
            let at = usize::from(get_u16(slot, 0));
            let key = usize::from(get_u16(slot, 2));
            let record = key + usize::from(get_u16(slot, 4) & !LARGE);
            // A record of no bytes in an otherwise empty node of 64 KiB has offset 65536, which is stored as
            // 0.
            let is_nowhere = at == 0 && record == 0;
            if !is_nowhere && (at < heap || at + record > end) {
                return Err(format!("record {index} is outside the heap"));
            }
            used += record;
            let (own, suffix) = (get_u32(slot, 6), &self.0[at..at + key]);
            if own != head(suffix) {
                return Err(format!("record {index} has the head of another key"));
            }
            // Heads that differ give the order of the keys, so suffixes are compared only if heads are equal.
            let ordered = before.is_none_or(|(least, key)| least < own || (least == own && key < suffix));
            if !ordered {
                return Err(format!("records {} and {index} are out of order", index - 1));
            }
            before = Some((own, suffix));
        }
        Ok(used)
    }

    /// Checks that the hints are correct, because a search with a wrong hint misses records.
    fn check_hints(&self) -> Result<(), String> {
        let step = self.len() / (HINTS + 1);
        let right = |place: usize| get_u32(self.0, 56 + 4 * place) == self.head_at((place + 1) * step);
        if step < 2 || (0..HINTS).all(right) { Ok(()) } else { Err("its hints are wrong".to_owned()) }
    }

    /// Checks that an inner node has children, that the first child starts at the node's low fence, and that
    /// each child is the number of a page.
    fn check_children(&self) -> Result<(), String> {
        if self.is_empty() {
            return Err("it has no children".to_owned());
        }
        if self.key(0) != self.low() {
            return Err("its first child does not begin at its low fence".to_owned());
        }
        match (0..self.len()).find(|index| self.value(*index).bytes.len() != 8 || self.value(*index).large) {
            Some(index) => Err(format!("its child {index} is not a page")),
            None => Ok(()),
        }
    }
}
