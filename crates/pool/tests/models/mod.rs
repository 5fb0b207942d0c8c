//! Simple, slow models of replacement policies: lists of pages, oldest first, searched from end to end. Each
//! model follows its paper and shares no code with the policy that it checks.

/// A model of a policy. It serves a request for a page and returns whether the request was a miss.
pub(crate) type Model = Box<dyn FnMut(u64) -> bool>;

/// Removes `page` from a list. Returns whether the page was in the list.
fn take(list: &mut Vec<u64>, page: u64) -> bool {
    list.iter().position(|held| *held == page).map(|at| list.remove(at)).is_some()
}

pub(crate) fn fifo(frames: usize) -> Model {
    let mut queue: Vec<u64> = Vec::new();
    Box::new(move |page| {
        if queue.contains(&page) {
            return false;
        }
        if queue.len() == frames {
            queue.remove(0);
        }
        queue.push(page);
        true
    })
}

pub(crate) fn lru(frames: usize) -> Model {
    let mut queue: Vec<u64> = Vec::new();
    Box::new(move |page| {
        let hit = take(&mut queue, page);
        if !hit && queue.len() == frames {
            queue.remove(0);
        }
        queue.push(page);
        !hit
    })
}

pub(crate) fn lfu(frames: usize) -> Model {
    // Each entry has the page, its uses, and the time of its last use.
    let mut pool: Vec<(u64, u64, u64)> = Vec::new();
    let mut now = 0;
    Box::new(move |page| {
        now += 1;
        if let Some(entry) = pool.iter_mut().find(|entry| entry.0 == page) {
            (entry.1, entry.2) = (entry.1 + 1, now);
            return false;
        }
        if pool.len() == frames {
            let at = (0..frames).min_by_key(|at| (pool[*at].1, pool[*at].2)).unwrap();
            pool.remove(at);
        }
        pool.push((page, 1, now));
        true
    })
}

pub(crate) fn second_chance(frames: usize) -> Model {
    let mut queue: Vec<(u64, bool)> = Vec::new();
    Box::new(move |page| {
        if let Some(entry) = queue.iter_mut().find(|entry| entry.0 == page) {
            entry.1 = true;
            return false;
        }
        if queue.len() == frames {
            while queue[0].1 {
                let (spared, _) = queue.remove(0);
                queue.push((spared, false));
            }
            queue.remove(0);
        }
        queue.push((page, false));
        true
    })
}

pub(crate) fn sieve(frames: usize) -> Model {
    let mut queue: Vec<(u64, bool)> = Vec::new();
    let mut hand = 0;
    Box::new(move |page| {
        if let Some(entry) = queue.iter_mut().find(|entry| entry.0 == page) {
            entry.1 = true;
            return false;
        }
        if queue.len() == frames {
            while std::mem::take(&mut queue[hand].1) {
                hand = (hand + 1) % frames;
            }
            queue.remove(hand);
            // After the newest page, the hand goes to the oldest page, not to the page that is inserted now.
            hand %= frames - 1;
        }
        queue.push((page, false));
        true
    })
}

pub(crate) fn two_q(frames: usize) -> Model {
    let [mut a1_in, mut a1_out, mut main]: [Vec<u64>; 3] = Default::default();
    let (in_most, out_most) = (frames / 4, frames / 2);
    Box::new(move |page| {
        if a1_in.contains(&page) {
            return false;
        }
        if take(&mut main, page) {
            main.push(page);
            return false;
        }
        let remembered = take(&mut a1_out, page);
        if a1_in.len() + main.len() == frames {
            if a1_in.len() > in_most || main.is_empty() {
                if a1_out.len() == out_most {
                    a1_out.remove(0);
                }
                a1_out.push(a1_in.remove(0));
            } else {
                main.remove(0);
            }
        }
        if remembered { &mut main } else { &mut a1_in }.push(page);
        true
    })
}

/// Models figure 4 of the ARC paper (Megiddo and Modha, FAST 2003); p is a real number.
pub(crate) fn arc(frames: usize) -> Model {
    let [mut t1, mut t2, mut b1, mut b2]: [Vec<u64>; 4] = Default::default();
    let (c, mut p) = (frames as f64, 0.0f64);
    Box::new(move |page| {
        if take(&mut t1, page) || take(&mut t2, page) {
            t2.push(page);
            return false;
        }
        let (len_b1, len_b2) = (b1.len() as f64, b2.len() as f64);
        let (in_b1, in_b2) = (take(&mut b1, page), take(&mut b2, page));
        let mut replace = true;
        if in_b1 {
            p = c.min(p + (len_b2 / len_b1).max(1.0));
        } else if in_b2 {
            p = 0f64.max(p - (len_b1 / len_b2).max(1.0));
        } else if t1.len() + b1.len() == frames {
            if t1.len() < frames {
                b1.remove(0);
            } else {
                t1.remove(0);
                replace = false;
            }
        } else {
            let all = t1.len() + t2.len() + b1.len() + b2.len();
            if all == 2 * frames {
                b2.remove(0);
            }
            replace = all >= frames;
        }
        if replace && t1.len() + t2.len() == frames {
            let t1_len = t1.len() as f64;
            if !t1.is_empty() && (t1_len > p || in_b2 && t1_len == p) {
                b1.push(t1.remove(0));
            } else {
                b2.push(t2.remove(0));
            }
        }
        if in_b1 || in_b2 { &mut t2 } else { &mut t1 }.push(page);
        true
    })
}

pub(crate) fn s3_fifo(frames: usize) -> Model {
    // Each entry of the two queues has the page and its uses.
    let [mut small, mut main]: [Vec<(u64, u32)>; 2] = Default::default();
    let mut ghosts: Vec<u64> = Vec::new();
    let (main_most, ghosts_most) = (frames - frames / 10, frames * 9 / 10);
    Box::new(move |page| {
        if let Some(entry) = small.iter_mut().chain(&mut main).find(|entry| entry.0 == page) {
            entry.1 += 1;
            return false;
        }
        let remembered = take(&mut ghosts, page);
        let mut full = small.len() + main.len() == frames;
        let mut from_main = main.len() > main_most || small.is_empty();
        while full {
            from_main |= small.is_empty();
            let (oldest, uses) = if from_main { main.remove(0) } else { small.remove(0) };
            match (from_main, uses) {
                (true, 0) => full = false,
                (true, uses) => main.push((oldest, uses.min(3) - 1)),
                (false, 0..=1) => {
                    if ghosts.len() == ghosts_most {
                        ghosts.remove(0);
                    }
                    ghosts.push(oldest);
                    full = false;
                }
                (false, _) => main.push((oldest, 0)),
            }
        }
        if remembered { &mut main } else { &mut small }.push((page, 0));
        true
    })
}

/// A policy's name, and the function that makes its model for a number of frames.
pub(crate) type Named = (&'static str, fn(usize) -> Model);

/// The models of all policies that have one.
pub(crate) const MODELS: [Named; 8] = [
    ("fifo", fifo),
    ("lru", lru),
    ("second-chance", second_chance),
    ("arc", arc),
    ("2q", two_q),
    ("s3-fifo", s3_fifo),
    ("sieve", sieve),
    ("lfu", lfu),
];
