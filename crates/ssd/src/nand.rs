//! Checks the rules of NAND on every operation of the dies: a page is programmed once after an erase, the
//! pages of an erase block are programmed in order, and only programmed pages are read.

use thiserror::Error;

/// A violation of the rules of NAND.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // each message names the fields
pub enum NandError {
    /// A program skipped a page, repeated one, or went beyond the end of the erase block.
    #[error("program of page {page} of erase block {block}, whose next free page is {next}")]
    ProgramOrder { block: u32, page: u32, next: u32 },
    /// A read of a page that is not programmed.
    #[error("read of page {page} of erase block {block}, which has {programmed} programmed pages")]
    ReadOfErased { block: u32, page: u32, programmed: u32 },
}

/// The number of programmed pages of every erase block.
#[derive(Clone, Debug)]
pub(crate) struct Nand {
    pages_per_block: u32,
    /// The number of pages programmed since the last erase, for each erase block.
    programmed: Vec<u16>,
}

impl Nand {
    /// Creates a table of erase blocks with these numbers of programmed pages.
    pub(crate) fn new(pages_per_block: u32, programmed: Vec<u16>) -> Nand {
        Nand { pages_per_block, programmed }
    }

    /// Returns whether the page at this place has been programmed; otherwise its program is still pending.
    #[inline]
    pub(crate) fn is_programmed(&self, block: u32, page: u32) -> bool {
        page < u32::from(self.programmed[block as usize])
    }

    #[inline]
    pub(crate) fn program(&mut self, block: u32, page: u32) -> Result<(), NandError> {
        let next = u32::from(self.programmed[block as usize]);
        if page != next || page >= self.pages_per_block {
            return Err(NandError::ProgramOrder { block, page, next });
        }
        self.programmed[block as usize] += 1;
        Ok(())
    }

    /// Skips `page` after a power cut. The page holds no data.
    pub(crate) fn pad(&mut self, block: u32, page: u32) {
        let programmed = &mut self.programmed[block as usize];
        *programmed = (*programmed).max(page as u16 + 1);
    }

    #[inline]
    pub(crate) fn read(&self, block: u32, page: u32) -> Result<(), NandError> {
        let programmed = u32::from(self.programmed[block as usize]);
        if page < programmed { Ok(()) } else { Err(NandError::ReadOfErased { block, page, programmed }) }
    }

    pub(crate) fn erase(&mut self, block: u32) {
        self.programmed[block as usize] = 0;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.programmed.len() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_programmed_once_and_in_order() {
        let mut nand = Nand::new(2, vec![0, 0]);
        assert_eq!(nand.program(1, 1), Err(NandError::ProgramOrder { block: 1, page: 1, next: 0 }));
        assert_eq!(nand.program(1, 0), Ok(()));
        assert_eq!(nand.program(1, 0), Err(NandError::ProgramOrder { block: 1, page: 0, next: 1 }));
        assert_eq!(nand.program(1, 1), Ok(()));
        assert_eq!(nand.program(1, 2), Err(NandError::ProgramOrder { block: 1, page: 2, next: 2 }));
        nand.erase(1);
        assert_eq!(nand.program(1, 0), Ok(()));
    }

    #[test]
    fn an_erased_page_is_not_read() {
        let nand = Nand::new(2, vec![1]);
        assert_eq!(nand.read(0, 0), Ok(()));
        assert_eq!(nand.read(0, 1), Err(NandError::ReadOfErased { block: 0, page: 1, programmed: 1 }));
    }
}
