//! Adapts a replacement policy in Python to the interface of the pool. The policy is notified when frames
//! change, and returns the order in which frames are to be evicted.

use super::own::{Own, is_ending};
use fulgurite_base::{FrameId, PageId, Prng, SpecError};
use fulgurite_pool::replacement::CustomReplacement;
use fulgurite_pool::{Arrival, Cursor, FrameTable, ReplacementConfig, ReplacementPolicy};
use fulgurite_stack::StackError;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyIterator};
use std::cell::RefCell;
use std::sync::Arc;

/// The numbers of frames, of random steps and of rounds in the check of the order law.
const FRAMES: u32 = 12;
const STEPS: u32 = 120;
const ROUNDS: u64 = 4;

#[derive(Debug)]
struct Config(Arc<Own>);

/// Creates the configuration of a pool with the policy.
pub(super) fn config(own: &Arc<Own>) -> ReplacementConfig {
    ReplacementConfig::Custom(Arc::new(Config(Arc::clone(own))))
}

impl CustomReplacement for Config {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn text(&self) -> String {
        self.0.text.clone()
    }

    fn start(&self, frames: u32) -> Result<Box<dyn ReplacementPolicy>, SpecError> {
        Ok(Box::new(Policy::new(&self.0, frames)))
    }
}

/// The policy of a run that is executed.
struct Policy {
    own: Arc<Own>,
    object: Py<PyAny>,
    /// Whether the Python class implements `evict`.
    evicts: bool,
    /// For each frame, whether it contains a page.
    held: Vec<bool>,
    holding: usize,
    order: RefCell<Order>,
}

/// The eviction order since the last change of a frame, as far as it has been read from Python.
#[derive(Default)]
struct Order {
    /// The iterator over the rest of the order; `None` before the first read and after the end.
    rest: Option<Py<PyIterator>>,
    is_begun: bool,
    known: Vec<u32>,
    /// For each frame, the number of the last order that contained it.
    seen: Vec<u64>,
    number: u64,
}

impl Policy {
    fn new(own: &Arc<Own>, frames: u32) -> Policy {
        let (object, evicts) = own.ask(|py| {
            let object = own.make.bind(py).call1((frames,))?;
            let base = py.import("fulgurite.policies")?.getattr("Replacement")?.getattr("evict")?;
            let evicts = !object.get_type().getattr("evict")?.is(&base);
            Ok((object.unbind(), evicts))
        });
        let order = Order { seen: vec![0; frames as usize], ..Order::default() };
        let held = vec![false; frames as usize];
        Policy { own: Arc::clone(own), object, evicts, held, holding: 0, order: RefCell::new(order) }
    }

    /// Notifies the policy of a change. The order that was read before becomes invalid.
    fn tell(&self, method: &str, tell: impl FnOnce(&Bound<'_, PyAny>, &str) -> PyResult<()>) {
        self.order.borrow_mut().forget();
        if !is_ending() {
            self.own.ask(|py| tell(self.object.bind(py), method));
        }
    }

    /// Returns the frame at position `place` of the order, or `None` if the order is shorter.
    fn at(&self, place: usize) -> Option<u32> {
        let mut order = self.order.borrow_mut();
        while order.known.len() <= place {
            if is_ending() {
                return None;
            }
            let frame = self.own.ask(|py| order.pull(py, &self.object, &self.own));
            let Some(frame) = frame else {
                if order.known.len() < self.holding {
                    let known = &order.known;
                    let missing = (0..self.held.len())
                        .find(|frame| self.held[*frame] && !known.contains(&(*frame as u32)));
                    self.own.refuse(&format!(
                        "order() ends before frame {}, which holds a page; accepted: every frame that was \
                         inserted and not removed, once",
                        missing.unwrap_or_default()
                    ));
                }
                return None;
            };
            let number = order.number;
            let is_held = self.held.get(frame as usize).copied().unwrap_or(false);
            if !is_held || order.seen[frame as usize] == number {
                let what = if is_held { "twice" } else { "which holds no page" };
                self.own.refuse(&format!(
                    "order() gives frame {frame} {what}; accepted: every frame that was inserted and not removed, once"
                ));
            }
            order.seen[frame as usize] = number;
            order.known.push(frame);
        }
        Some(order.known[place])
    }

    fn leaves(&mut self, frame: FrameId) {
        if std::mem::take(&mut self.held[frame.index()]) {
            self.holding -= 1;
        }
    }
}

impl Order {
    fn forget(&mut self) {
        self.is_begun = false;
        self.rest = None;
        self.known.clear();
    }

    /// Reads the next frame of the order from Python; `None` at the end of the order.
    fn pull(&mut self, py: Python<'_>, object: &Py<PyAny>, own: &Own) -> PyResult<Option<u32>> {
        if !self.is_begun {
            self.is_begun = true;
            self.number += 1;
            let given = object.bind(py).call_method0("order")?;
            let rest = given
                .try_iter()
                .map_err(|_| own.wrong("order", &given, "frames, as a list or a generator"))?;
            self.rest = Some(rest.unbind());
        }
        let Some(rest) = &self.rest else { return Ok(None) };
        let next = rest.bind(py).clone().next().transpose()?;
        if next.is_none() {
            self.rest = None;
        }
        let wrong = |frame: &Bound<'_, PyAny>| own.wrong("order", frame, "numbers of frames");
        next.map(|frame| frame.extract().map_err(|_| wrong(&frame))).transpose()
    }
}

impl ReplacementPolicy for Policy {
    fn insert(&mut self, frame: FrameId, page: PageId, arrival: Arrival) {
        if !std::mem::replace(&mut self.held[frame.index()], true) {
            self.holding += 1;
        }
        if arrival.prefetched {
            self.tell("insert_prefetched", |object, method| {
                object.call_method1(method, (frame.0, page.0)).map(drop)
            });
        } else {
            self.tell("insert", |object, method| {
                object.call_method1(method, (frame.0, page.0, arrival.write)).map(drop)
            });
        }
    }

    fn access(&mut self, frame: FrameId, write: bool) {
        self.tell("access", |object, method| object.call_method1(method, (frame.0, write)).map(drop));
    }

    fn cleaned(&mut self, frame: FrameId) {
        self.tell("cleaned", |object, method| object.call_method1(method, (frame.0,)).map(drop));
    }

    fn remove(&mut self, frame: FrameId) {
        self.leaves(frame);
        self.tell("remove", |object, method| object.call_method1(method, (frame.0,)).map(drop));
    }

    fn next(&self, frames: &FrameTable, cursor: &mut Cursor) -> Option<FrameId> {
        loop {
            let frame = FrameId(self.at(cursor.step as usize)?);
            cursor.step += 1;
            if !frames.is_pinned(frame) {
                return Some(frame);
            }
        }
    }

    fn evict(&mut self, frames: &FrameTable) -> Option<FrameId> {
        let frame = self.next(frames, &mut Cursor::default())?;
        if !self.evicts || is_ending() {
            self.remove(frame);
            return Some(frame);
        }
        let evicted: u32 = self.own.answer("evict", "the number of a frame", |py| {
            let pinned = (0..self.held.len() as u32).filter(|at| self.held[*at as usize]);
            let pinned: Vec<u32> = pinned.filter(|at| frames.is_pinned(FrameId(*at))).collect();
            self.object.bind(py).call_method1("evict", (PyFrozenSet::new(py, pinned)?,))
        });
        if evicted != frame.0 {
            self.own.refuse(&format!(
                "evict() gives frame {evicted}, and order() gave frame {} first; accepted: the first frame \
                 of the order that is not pinned",
                frame.0
            ));
        }
        self.leaves(frame);
        self.order.borrow_mut().forget();
        Some(frame)
    }
}

/// Performs random operations, and checks that frames are then evicted in the order that the policy gives.
pub(super) fn check_law(own: &Arc<Own>) -> Result<(), StackError> {
    for round in 0..ROUNDS {
        let (mut policy, mut frames) = (Policy::new(own, FRAMES), FrameTable::new(FRAMES));
        let mut prng = Prng::new(round, "order law");
        for step in 0..STEPS {
            use_once(&mut policy, &mut frames, &mut prng, step);
        }
        let mut cursor = Cursor::default();
        let order: Vec<FrameId> = std::iter::from_fn(|| policy.next(&frames, &mut cursor)).collect();
        let drained: Vec<FrameId> = std::iter::from_fn(|| policy.evict(&frames)).collect();
        if order != drained {
            let numbers = |frames: &[FrameId]| {
                let numbers: Vec<String> = frames.iter().map(|frame| frame.0.to_string()).collect();
                numbers.join(" ")
            };
            own.refuse(&format!(
                "the order law is broken: order() gave {}, and frames were evicted in the order {}; accepted: an \
                 order that changes only when a method is called",
                numbers(&order),
                numbers(&drained)
            ));
        }
    }
    Ok(())
}

/// Performs one operation that a pool may perform, on a random frame.
fn use_once(policy: &mut Policy, frames: &mut FrameTable, prng: &mut Prng, step: u32) {
    let frame = FrameId(prng.below(u64::from(FRAMES)) as u32);
    let write = prng.below(3) == 0;
    let is_held = policy.held[frame.index()];
    match prng.below(10) {
        0 if is_held => policy.remove(frame),
        1 if is_held && frames.is_dirty(frame) => {
            frames.set_dirty(frame, false);
            policy.cleaned(frame);
        }
        2 => drop(policy.evict(frames)),
        _ if is_held => {
            frames.set_dirty(frame, frames.is_dirty(frame) || write);
            policy.access(frame, write);
        }
        _ => {
            let page = PageId(u64::from(step % 17));
            let prefetched = step.is_multiple_of(7) && !write;
            frames.load(frame, page);
            frames.set_dirty(frame, write);
            policy.insert(frame, page, Arrival { write, prefetched, ..Arrival::default() });
        }
    }
}
