//! Holds the contents of the drive: the pages that reads see, the durable pages, and the writes that are not
//! durable yet.

use fulgurite_base::Prng;
use fulgurite_device::ShareRun;
use std::rc::Rc;

/// The unit of tearing in bytes: a power cut keeps or loses a sector as a whole.
pub(super) const SECTOR: usize = 512;

/// The contents of a page; `None` for zeros.
pub(super) type Page = Option<Rc<[u8]>>;

/// A write of one or more pages.
pub(super) struct Unit {
    pub lpn: u64,
    /// The contents of each page; `None` for a page that was made durable with other contents since.
    pub pages: Vec<Option<Page>>,
    /// Whether a power cut keeps the write completely or not at all.
    pub atomic: bool,
    /// The number of the completion of this write, counted over all commands.
    pub completed: u64,
    /// Whether a failed flush has lost the write: the next power cut drops it.
    pub doomed: bool,
}

/// Draws the probability, in per cent, that a write survives a power cut. It is drawn once per power cut,
/// because some power cuts lose everything and some nothing.
pub(super) fn survival(prng: &mut Prng) -> u64 {
    [0, 10, 50, 90, 100][prng.below(5) as usize]
}

pub(super) struct Medium {
    page_bytes: usize,
    /// The contents of each page as a read returns them now.
    current: Vec<Page>,
    /// The contents of each page after a power cut that loses every cached write.
    durable: Vec<Page>,
    /// The contents of each page before its last write since the power came on.
    previous: Vec<Page>,
    /// The number of writes of each page.
    writes: Vec<u64>,
    /// Cached writes that are not durable, in the order of completion.
    cached: Vec<Unit>,
}

impl Medium {
    pub(super) fn new(pages: u64, page_bytes: u32) -> Medium {
        let empty = || vec![None; pages as usize];
        Medium {
            page_bytes: page_bytes as usize,
            current: empty(),
            durable: empty(),
            previous: empty(),
            writes: vec![0; pages as usize],
            cached: Vec::new(),
        }
    }

    pub(super) fn page(&self, lpn: u64) -> &Page {
        &self.current[lpn as usize]
    }

    pub(super) fn previous(&self, lpn: u64) -> &Page {
        &self.previous[lpn as usize]
    }

    /// Returns the number of writes of a page; `None` if it was never written.
    pub(super) fn writes(&self, lpn: u64) -> Option<u64> {
        self.writes.get(lpn as usize).copied().filter(|writes| *writes > 0)
    }

    /// Flips a bit of a page, in the cache and on the medium.
    pub(super) fn rot(&mut self, lpn: u64, prng: &mut Prng) {
        let at = prng.below(self.page_bytes as u64) as usize;
        let bit = 1 << prng.below(8);
        let zeros: Rc<[u8]> = vec![0; self.page_bytes].into();
        let mut bytes: Vec<u8> = self.current[lpn as usize].as_ref().unwrap_or(&zeros).to_vec();
        bytes[at] ^= bit;
        self.set_durable(lpn, Some(bytes.into()));
    }

    fn set(&mut self, lpn: u64, page: Page) {
        let old = std::mem::replace(&mut self.current[lpn as usize], page);
        self.previous[lpn as usize] = old;
        self.writes[lpn as usize] += 1;
    }

    /// Makes new contents of a page durable at once, and removes the page from cached writes.
    fn set_durable(&mut self, lpn: u64, page: Page) {
        self.set(lpn, page);
        self.settle(lpn);
    }

    /// Makes the current contents of a page durable, and removes them from the cache.
    fn settle(&mut self, lpn: u64) {
        for unit in &mut self.cached {
            if let Some(at) = lpn.checked_sub(unit.lpn).filter(|at| (*at as usize) < unit.pages.len()) {
                unit.pages[at as usize] = None;
            }
        }
        self.durable[lpn as usize] = self.current[lpn as usize].clone();
    }

    /// Completes a write. It is durable at once if the cache is protected, or if the write requested it.
    pub(super) fn write(&mut self, unit: Unit, durable: bool) {
        for (lpn, page) in (unit.lpn..).zip(&unit.pages) {
            match page {
                Some(page) if durable => self.set_durable(lpn, page.clone()),
                Some(page) => self.set(lpn, page.clone()),
                None => {}
            }
        }
        if !durable {
            self.cached.push(unit);
        }
    }

    /// Performs a failed write in part.
    pub(super) fn write_in_part(&mut self, unit: &Unit, protected: bool, prng: &mut Prng) {
        let pages: Vec<Option<Page>> = (unit.lpn..)
            .zip(self.surviving(unit, &self.current, 50, prng))
            .map(|(lpn, page)| Some(page.unwrap_or_else(|| self.current[lpn as usize].clone())))
            .collect();
        let Unit { lpn, atomic, completed, doomed, .. } = *unit;
        self.write(Unit { lpn, pages, atomic, completed, doomed }, protected);
    }

    pub(super) fn trim(&mut self, lpn: u64, pages: u64) {
        for lpn in lpn..lpn + pages {
            self.set_durable(lpn, None);
        }
    }

    /// Copies the sources to the destinations, durably and atomically. Earlier writes to the sources become
    /// durable too, and no other writes.
    pub(super) fn share(&mut self, runs: &[ShareRun]) {
        // No destination is a source, so the order of the runs does not matter.
        for run in runs {
            for at in 0..u64::from(run.pages) {
                let page = self.current[(run.source.0 + at) as usize].clone();
                self.settle(run.source.0 + at);
                self.set_durable(run.destination.0 + at, page);
            }
        }
    }

    /// Makes the writes among the first `completed` completions durable, except those that a failed flush has
    /// lost.
    pub(super) fn flush(&mut self, completed: u64) {
        for unit in std::mem::take(&mut self.cached) {
            if unit.completed > completed {
                self.cached.push(unit);
            } else if !unit.doomed {
                for (lpn, page) in (unit.lpn..).zip(unit.pages) {
                    if let Some(page) = page {
                        self.durable[lpn as usize] = page;
                    }
                }
            }
        }
    }

    /// Executes a flush that fails: some writes that are not durable will be lost at the next power cut.
    pub(super) fn fail_flush(&mut self, prng: &mut Prng) {
        for unit in &mut self.cached {
            unit.doomed |= prng.below(2) == 0;
        }
    }

    /// Executes a power cut. Any subset of the cached writes and of `in_flight` survives. If `uneven`, the writes below
    /// a random page and the others survive with different probabilities.
    pub(super) fn cut(&mut self, in_flight: Vec<Unit>, uneven: bool, prng: &mut Prng) {
        let share = survival(prng);
        let (bound, share_above) =
            if uneven { (prng.below(self.current.len() as u64), survival(prng)) } else { (u64::MAX, share) };
        let cached = std::mem::take(&mut self.cached);
        for unit in cached.into_iter().filter(|unit| !unit.doomed).chain(in_flight) {
            let share = if unit.lpn < bound { share } else { share_above };
            let surviving = self.surviving(&unit, &self.durable, share, prng);
            for (lpn, page) in (unit.lpn..).zip(surviving) {
                if let Some(page) = page {
                    self.durable[lpn as usize] = page;
                }
            }
        }
        self.current.clone_from(&self.durable);
        // A stale cache is lost with the power, so there are no older versions any more.
        self.previous.clone_from(&self.durable);
    }

    /// Returns the contents of each page of `unit` that survive a power cut. `below` are the contents before
    /// the write. An entry is `None` if the write of this page is lost.
    fn surviving(&self, unit: &Unit, below: &[Page], share: u64, prng: &mut Prng) -> Vec<Option<Page>> {
        let kept = |prng: &mut Prng| prng.below(100) < share;
        // In a third of the cases the write is kept or lost as a whole, because it is often smaller than the
        // unit that the cache of a drive writes at once.
        let whole = unit.atomic || prng.below(3) == 0;
        if whole {
            return if kept(prng) { unit.pages.clone() } else { vec![None; unit.pages.len()] };
        }
        let pages = (unit.lpn..).zip(&unit.pages);
        pages
            .map(|(lpn, page)| match (page, prng.below(4)) {
                (Some(page), 0) => Some(self.torn(&below[lpn as usize], page, prng)),
                (page, _) => page.clone().filter(|_| kept(prng)),
            })
            .collect()
    }

    /// Returns a mixture of two versions of a page. Each sector is from one of them.
    pub(super) fn torn(&self, old: &Page, new: &Page, prng: &mut Prng) -> Page {
        let sectors = self.page_bytes / SECTOR;
        let at = prng.below(sectors as u64 + 1) as usize;
        let style = prng.below(3);
        let mut bytes = match old {
            Some(old) => old.to_vec(),
            None => vec![0; self.page_bytes],
        };
        for (sector, target) in bytes.chunks_exact_mut(SECTOR).enumerate() {
            let takes_new = match style {
                0 => sector < at,
                1 => sector >= at,
                _ => prng.below(2) == 0,
            };
            match new {
                Some(new) if takes_new => {
                    target.copy_from_slice(&new[sector * SECTOR..(sector + 1) * SECTOR])
                }
                None if takes_new => target.fill(0),
                _ => {}
            }
        }
        Some(bytes.into())
    }
}
