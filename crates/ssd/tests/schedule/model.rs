//! A slow model of semi-preemptive collection on one die, and its comparison with the drive under random
//! arrivals.

use super::*;

/// A slow model of semi-preemptive collection on one die, with FIFO victims, no write buffer and plain lists.
struct Model {
    /// The logical page of every page of every segment, in order of writing.
    segments: Vec<Vec<u64>>,
    /// The segment and the index of the physical page of every logical page.
    places: BTreeMap<u64, (usize, usize)>,
    open: usize,
    free: VecDeque<usize>,
    sealed: VecDeque<usize>,
    victim: Option<usize>,
    /// The next index of the victim to examine; `held` is the page in the copy buffer.
    next: usize,
    held: Option<(u64, usize)>,
    /// Requests by number: reads, writes without a physical page, and writes whose programs wait.
    reads: VecDeque<usize>,
    waiting: VecDeque<usize>,
    programs: VecDeque<(usize, (usize, usize))>,
    /// The physical pages that are not programmed yet, as segment and index.
    unprogrammed: Vec<(usize, usize)>,
}

const PAGES: usize = 8;

impl Model {
    fn append(&mut self, lpn: u64) -> (usize, usize) {
        if self.segments[self.open].len() == PAGES {
            self.sealed.push_back(self.open);
            self.open = self.free.pop_front().unwrap();
        }
        let place = (self.open, self.segments[self.open].len());
        self.places.insert(lpn, place);
        self.segments[self.open].push(lpn);
        place
    }

    fn admit(&mut self, requests: &[(u64, bool, u64)]) {
        while let Some(write) = self.waiting.front().copied() {
            let opens = self.segments[self.open].len() == PAGES;
            if self.free.is_empty() || opens && self.free.len() == 1 {
                return;
            }
            self.waiting.pop_front();
            let place = self.append(requests[write].2);
            self.unprogrammed.push(place);
            self.programs.push_back((write, place));
        }
    }

    /// Performs one operation of collection. Returns its time, and the physical page that it programs, if
    /// any; `None` if there is nothing to collect.
    fn collect(&mut self) -> Option<(u64, Option<(usize, usize)>)> {
        if self.free.len() >= 2 {
            return None;
        }
        if self.victim.is_none() {
            self.victim = self.sealed.pop_front();
            self.next = 0;
        }
        let victim = self.victim?;
        if let Some((lpn, index)) = self.held.take()
            && self.places[&lpn] == (victim, index)
        {
            let place = self.append(lpn);
            self.unprogrammed.push(place);
            return Some((PROGRAM, Some(place)));
        }
        while self.next < self.segments[victim].len() {
            let (lpn, index) = (self.segments[victim][self.next], self.next);
            self.next += 1;
            if self.places[&lpn] == (victim, index) {
                self.held = Some((lpn, index));
                return Some((READ, None));
            }
        }
        Some((ERASE, None))
    }

    /// Returns the end times of the requests (arrival, whether a read, page), performing one flash operation
    /// after another.
    fn run(&mut self, requests: &[(u64, bool, u64)]) -> Vec<u64> {
        let mut ends = vec![0; requests.len()];
        let (mut now, mut arrived, mut burst) = (0, 0, 0);
        while ends.contains(&0) {
            let ends_of_program =
                |model: &mut Model, place| model.unprogrammed.retain(|known| *known != place);
            // The die's next operation: its time, the request that ends with it, and the physical page that
            // it programs.
            let (time, request, place) = if !self.reads.is_empty() && (self.programs.is_empty() || burst < 16)
            {
                burst += 1;
                (READ, self.reads.pop_front(), None)
            } else if let Some((write, place)) = self.programs.pop_front() {
                burst = 0;
                (PROGRAM, Some(write), Some(place))
            } else if let Some((time, place)) = self.collect() {
                burst = 0;
                (time, None, place)
            } else {
                (requests[arrived].0 - now, None, None)
            };
            let end = now + time;
            // A request that arrives at the end of an operation finds the next operation begun.
            let is_idle = request.is_none() && place.is_none() && self.victim.is_none();
            while arrived < requests.len() && requests[arrived].0 < end + u64::from(is_idle) {
                let (at, is_read, lpn) = requests[arrived];
                match (is_read, self.unprogrammed.contains(&self.places[&lpn])) {
                    (true, true) => ends[arrived] = at,
                    (true, false) => self.reads.push_back(arrived),
                    (false, _) => self.waiting.push_back(arrived),
                }
                self.admit(requests);
                arrived += 1;
            }
            now = end;
            if let Some(request) = request {
                ends[request] = end;
            }
            if let Some(place) = place {
                ends_of_program(self, place);
            }
            if time == ERASE {
                let victim = self.victim.take().unwrap();
                self.segments[victim].clear();
                self.free.push_back(victim);
                self.admit(requests);
            }
        }
        ends
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The rule: under any arrivals, every request ends at the time of the slow model; so collection always
    /// ends.
    #[test]
    fn arrivals_end_when_the_slow_model_says(
        gaps in prop::collection::vec((0u64..400, 0u8..10, 0u64..40), 1..250),
    ) {
        let config = SsdConfig {
            blocks: 9,
            pages: PAGES as u32,
            op: Share::percent(80),
            collect: Collect {
                victim: VictimConfig::FIFO,
                urgent: Nanos::from_micros(1_000_000_000),
                ..one_die("semi-preemptive", 0).collect
            },
            wear_leveling: fulgurite_ftl::WearLeveling::None,
            precondition: Precondition::Fill,
            ..one_die("semi-preemptive", 0)
        };
        let mut at = 0;
        // Arrivals are at odd microseconds, so never exactly at the end of an operation.
        let requests: Vec<(u64, bool, u64)> = gaps.iter().map(|(gap, kind, lpn)| {
            at += 2 * gap + 2;
            (at + 1, *kind < 4, *lpn)
        }).collect();
        let mut drive = SimDrive::new(config, 42, false).unwrap();
        prop_assert_eq!(drive.caps().pages, 40);
        let operations: Vec<(u64, Operation)> = requests.iter().map(|(at, is_read, lpn)| {
            (*at, if *is_read { Operation::read(Lpn(*lpn), 1) } else { Operation::write(Lpn(*lpn), 1) })
        }).collect();
        let responses = replay(&mut drive, Nanos::ZERO, &operations);
        drive.drain_events();
        drive.verify(true).unwrap();

        let mut model = Model {
            segments: vec![Vec::new(); 9],
            places: BTreeMap::new(),
            open: 0,
            free: (1..9).collect(),
            sealed: VecDeque::new(),
            victim: None,
            next: 0,
            held: None,
            reads: VecDeque::new(),
            waiting: VecDeque::new(),
            programs: VecDeque::new(),
            unprogrammed: Vec::new(),
        };
        for lpn in 0..40 {
            model.append(lpn);
        }
        let ends = model.run(&requests);
        let expected: Vec<u64> = ends.iter().zip(&requests).map(|(end, request)| end - request.0).collect();
        prop_assert_eq!(responses, expected);
    }

    /// The rule: in any order of host writes and steps of collection, a write waits while collection needs
    /// its own segments. State 2 (writes wait for collection) never uses up free segments, and ends after
    /// finitely many steps.
    #[test]
    fn state_2_never_consumes_a_free_segment(steps in prop::collection::vec((any::<bool>(), 0u32..100), 1..2_000)) {
        let plain = fulgurite_ftl::FtlConfig::plain(100, 24, 8);
        let config = fulgurite_ftl::FtlConfig {
            collect: Collect { reserve: 4, hard: 2, schedule: Schedule::SEMI_PREEMPTIVE, ..Collect::PLAIN },
            ..plain
        };
        let mut ftl = fulgurite_ftl::Ftl::new(config).unwrap();
        let unit = fulgurite_ftl::UnitId(0);
        let mut sink = fulgurite_ftl::CountingSink::default();
        let stream = ftl.stream(0, fulgurite_base::StreamId(0));
        let mut pressed = 0;
        let mut next = 0;
        for (is_host, lpn) in steps {
            let (state, free) = (ftl.state(unit, stream), ftl.free_segments());
            if is_host && ftl.admit(unit, stream) {
                prop_assert!(state != ScheduleState::Pressed);
                ftl.append(lpn, fulgurite_base::StreamId(0), unit, stream, &mut sink);
                prop_assert!(ftl.free_segments() >= 2);
            } else if state.collects() {
                // One step of collection picks a victim, moves a page, or releases the victim.
                match ftl.victim(unit) {
                    None => next = ftl.pick(unit).map_or(0, |victim| victim.0 * 8),
                    Some(victim) => {
                        let end = (victim.0 + 1) * 8;
                        prop_assert_eq!(ftl.segments().state(victim), SegmentState::Victim);
                        match (next..end).map(fulgurite_base::Ppn).find(|ppn| ftl.mapping().is_valid(*ppn)) {
                            Some(ppn) => {
                                next = ppn.0 + 1;
                                ftl.copy(ppn, &mut sink);
                            }
                            None => ftl.release(unit, &mut sink),
                        }
                    }
                }
                if state == ScheduleState::Pressed {
                    // Apart from collection's own two segments, no free segment is used.
                    prop_assert!(ftl.free_segments().saturating_sub(2) >= free.saturating_sub(2));
                }
            }
            pressed = if ftl.state(unit, stream) == ScheduleState::Pressed && !is_host { pressed + 1 } else { 0 };
            prop_assert!(pressed < 24 * 10, "{pressed} steps and still pressed");
        }
        fulgurite_ftl::check::check(&ftl).unwrap();
    }
}
