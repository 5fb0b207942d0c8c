//! The flash pages of a row: how many an operation touches, and how long their word line makes it take.
//!
//! A cell of n bits belongs to n flash pages of its word line. They differ: the first bit is read with the
//! fewest senses and programmed fastest, the last one slowest. Times of the flash pages of a word line are
//! spread evenly around the mean.

use crate::SsdConfig;
use fulgurite_base::{Nanos, Share};

/// The most flash pages of a word line.
const MAX_BITS: usize = 5;

/// How flash pages share word lines and rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordLine {
    /// The number of flash pages of a word line.
    bits: u32,
    /// Whether a row has all flash pages of its word lines; otherwise it has one of each plane.
    one_shot: bool,
    /// The number of drive pages in a flash page, and of those that a row has of one flash page of each plane.
    per_flash_page: u32,
    per_bit: u32,
    /// The array times of the flash pages of a word line, in nanoseconds.
    reads: [u64; MAX_BITS],
    programs: [u64; MAX_BITS],
}

impl WordLine {
    pub(super) fn new(config: &SsdConfig) -> WordLine {
        let bits = config.cell_bits;
        let spread = |mean: Nanos, spread: Share| {
            std::array::from_fn(|bit| {
                // Runs from −1 for the first flash page of the word line to 1 for the last.
                let side = if bits == 1 { 0.0 } else { 2.0 * bit as f64 / f64::from(bits - 1) - 1.0 };
                (mean.0 as f64 * (1.0 + side * spread.as_f64())) as u64
            })
        };
        let is_alone = config.one_shot || bits == 1;
        WordLine {
            bits,
            one_shot: config.one_shot,
            per_flash_page: config.pages_per_flash_page(),
            per_bit: config.row_pages() / config.programmed_bits(),
            reads: spread(config.read, config.read_spread),
            programs: if is_alone {
                [config.program.0; MAX_BITS]
            } else {
                spread(config.program, config.program_spread)
            },
        }
    }

    /// Returns the array time to read the pages `in_row` of the row with this number in its erase block. Planes
    /// are read at the same time, flash pages of a word line one after the other.
    #[inline]
    pub(super) fn read(&self, row: u32, in_row: u64) -> u64 {
        if self.bits == 1 {
            return self.reads[0];
        }
        if !self.one_shot {
            return self.reads[(row % self.bits) as usize];
        }
        let mask = u64::MAX >> (64 - self.per_bit);
        let is_read = |bit: &u32| in_row >> (bit * self.per_bit) & mask != 0;
        (0..self.bits).filter(is_read).map(|bit| self.reads[bit as usize]).sum()
    }

    /// Returns the array time to program the row with this number in its erase block.
    #[inline]
    pub(super) fn program(&self, row: u32) -> u64 {
        if self.bits == 1 { self.programs[0] } else { self.programs[(row % self.bits) as usize] }
    }

    /// Returns the number of flash pages with a page in `in_row`.
    #[inline]
    pub(super) fn flash_pages(&self, in_row: u64) -> u64 {
        if self.per_flash_page == 1 {
            return u64::from(in_row.count_ones());
        }
        let mask = u64::MAX >> (64 - self.per_flash_page);
        let starts = (0..64).step_by(self.per_flash_page as usize);
        starts.filter(|start| in_row >> start & mask != 0).count() as u64
    }

    /// Returns the number of erase blocks that the rows with `pages` pages belong to.
    pub(super) fn erase_blocks(&self, pages: u64) -> u64 {
        let bits = if self.one_shot { self.bits } else { 1 };
        pages / u64::from(self.per_flash_page * bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    /// Returns the word lines of a die with two planes, TLC cells, four pages in a flash page, and array times
    /// of 100 µs to read and 300 µs to program, with a spread of a half.
    fn tlc(one_shot: bool) -> WordLine {
        WordLine::new(&SsdConfig {
            planes: 2,
            flash_page_bytes: 16 << 10,
            cell_bits: 3,
            one_shot,
            read: Nanos::from_micros(100),
            read_spread: Share::percent(50),
            program: Nanos::from_micros(300),
            program_spread: Share::percent(50),
            ..preset::reference_e()
        })
    }

    /// The rule: the flash pages of a word line are read one after the other, each in its own time; planes are
    /// read together.
    #[test]
    fn a_read_takes_the_time_of_its_flash_pages() {
        let row = tlc(true);
        let read = |in_row| row.read(7, in_row);
        assert_eq!([0b1, 0b1 << 8, 0b1 << 16].map(read), [50_000, 100_000, 150_000]);
        assert_eq!(read(0b1111_1111), 50_000, "both planes at once");
        assert_eq!(read(0b1 << 8 | 0b1 << 23), 250_000, "the second and the third flash page");
        let by_page = tlc(false);
        assert_eq!(
            [0, 1, 2, 3].map(|row| by_page.read(row, 0b1111_1111)),
            [50_000, 100_000, 150_000, 50_000]
        );
    }

    /// The rule: a program of a whole word line takes the program time; programs of its flash pages differ by
    /// the spread.
    #[test]
    fn a_program_takes_the_time_of_its_flash_page() {
        assert_eq!([0, 1, 2].map(|row| tlc(true).program(row)), [300_000; 3]);
        assert_eq!([0, 1, 2, 3].map(|row| tlc(false).program(row)), [150_000, 300_000, 450_000, 150_000]);
    }

    /// The rule: a flash page counts once, however many of its pages take part.
    #[test]
    fn flash_pages_are_counted_once() {
        let row = tlc(true);
        let counts = [0b1, 0b1111, 0b1_1111, u64::MAX >> 40].map(|in_row| row.flash_pages(in_row));
        assert_eq!(counts, [1, 1, 2, 6]);
        assert_eq!(row.erase_blocks(24), 2, "one of each plane");
        assert_eq!(tlc(false).erase_blocks(8), 2);
    }
}
