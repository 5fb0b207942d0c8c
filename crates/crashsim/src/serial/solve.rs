//! Determines the order of versions: first by inference, then by trial.
//!
//! A *constraint* concerns one read and one other writer of the same key. The other writer precedes the
//! writer whose version was read, or it follows the reader. The constraint is decided as soon as one of these
//! two alternatives would close a cycle.

use super::anomaly::{Anomaly, Verdict};
use super::cycle;
use super::graph::{Graph, Why};
use super::observe::{Node, Observed, Read, Seen};
use crate::history::{History, Kind, Outcome};

/// The maximum number of trials. A history in which each write follows a read of the same key needs none.
const TRIALS: u32 = 300;

/// A constraint: `other` precedes `writer` or follows `reader`.
#[derive(Clone, Copy)]
struct Constraint {
    reader: Node,
    /// The writer of the version that was read. `None` is the initial version, which no writer precedes.
    writer: Option<Node>,
    other: Node,
    item: u32,
    scan: bool,
}

/// A read that found no record, so that it may have seen the initial state or any of several deletions.
#[derive(Clone)]
struct OpenRead {
    read: Read,
    /// The possible writers of the state that was read. `None` is the initial state.
    candidates: Vec<Option<Node>>,
}

#[derive(Clone)]
struct State<'a> {
    observed: &'a Observed,
    graph: Graph,
    pending: Vec<Constraint>,
    open: Vec<OpenRead>,
}

enum End<'a> {
    Fits,
    Contradiction(Box<State<'a>>),
    GaveUp,
}

/// Searches an order of versions without a cycle. Real-time edges are added last, so that an anomaly that
/// exists without them is reported as such.
pub(super) fn solve(history: &History, observed: &Observed) -> Result<Verdict, Anomaly> {
    let mut state = State::new(observed);
    state.propagate();
    if !state.graph.cyclic {
        add_real_time(history, observed, &mut state.graph);
        state.propagate();
    }
    let mut trials = TRIALS;
    match search(state, &mut trials) {
        End::Fits => Ok(Verdict::Serialisable),
        End::GaveUp => Ok(Verdict::Undecided),
        End::Contradiction(state) => Err(cycle::explain(history, observed, &state.graph.edges)),
    }
}

fn search<'a>(mut state: State<'a>, trials: &mut u32) -> End<'a> {
    state.propagate();
    if state.graph.cyclic {
        return End::Contradiction(Box::new(state));
    }
    let choices = state.choices();
    if choices.is_empty() {
        return End::Fits;
    }
    let mut first = None;
    for choice in choices {
        if *trials == 0 {
            return End::GaveUp;
        }
        *trials -= 1;
        let mut trial = state.clone();
        trial.choose(choice);
        match search(trial, trials) {
            End::Contradiction(state) => first = first.or(Some(state)),
            end => return end,
        }
    }
    first.map_or(End::Fits, End::Contradiction)
}

/// One of the alternatives that a trial chooses.
#[derive(Clone, Copy)]
enum Choice {
    /// The first open read saw the deletion of this writer.
    Saw(Option<Node>),
    /// For the first constraint, the other writer precedes the writer.
    Before,
    /// For the first constraint, the other writer follows the reader.
    After,
}

impl<'a> State<'a> {
    fn new(observed: &'a Observed) -> State<'a> {
        let graph = Graph::new(observed.nodes.len());
        let mut state = State { observed, graph, pending: Vec::new(), open: Vec::new() };
        for read in &observed.reads {
            match read.seen {
                Seen::Initial => state.saw(read, None),
                Seen::Writer(writer) => state.saw(read, Some(writer)),
                Seen::Absent => {
                    let item = &observed.items[read.item as usize];
                    let deleters =
                        item.writers.iter().filter(|(node, deletes)| *deletes && *node != read.node);
                    let mut candidates: Vec<Option<Node>> =
                        if item.initially { Vec::new() } else { vec![None] };
                    candidates.extend(deleters.map(|(node, _)| Some(*node)));
                    state.open.push(OpenRead { read: *read, candidates });
                }
            }
        }
        state
    }

    /// Records that `read` saw the version of `writer`.
    fn saw(&mut self, read: &Read, writer: Option<Node>) {
        let Read { node: reader, item, scan, .. } = *read;
        let writers = &self.observed.items[item as usize].writers;
        if let Some(writer) = writer {
            self.graph.add(writer, reader, Why::Wr(item));
            if writers.iter().any(|(node, _)| *node == reader) {
                self.graph.add(writer, reader, Why::Ww(item));
            }
        }
        for (other, _) in writers {
            if *other != reader && Some(*other) != writer {
                self.pending.push(Constraint { reader, writer, other: *other, item, scan });
            }
        }
    }

    /// Infers dependencies until nothing more follows or a cycle exists.
    fn propagate(&mut self) {
        loop {
            let before = (self.pending.len(), self.open.len());
            self.settle_constraints();
            self.settle_open_reads();
            if self.graph.cyclic || before == (self.pending.len(), self.open.len()) {
                return;
            }
        }
    }

    fn settle_constraints(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|constraint| {
            let Constraint { reader, writer, other, item, scan } = *constraint;
            if self.graph.cyclic {
                return true;
            }
            let before = writer.is_some_and(|writer| !self.graph.reaches(writer, other));
            if !before {
                // If this alternative is impossible too, its edge closes a cycle, which is the contradiction.
                self.graph.add(reader, other, Why::Rw(item, scan));
            } else if self.graph.reaches(other, reader) {
                self.graph.add(other, writer.unwrap_or(other), Why::Ww(item));
            } else {
                return true;
            }
            false
        });
        self.pending = pending;
    }

    fn settle_open_reads(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        open.retain_mut(|open| {
            if self.graph.cyclic {
                return true;
            }
            let one = open.candidates.first().copied();
            open.candidates.retain(|candidate| self.possible(&open.read, *candidate));
            match (open.candidates.as_slice(), &one) {
                // If no candidate is possible, any of them closes a cycle, which is reported.
                ([], Some(candidate)) | ([candidate], _) => {
                    self.saw(&open.read, *candidate);
                    false
                }
                // Only a later deletion by the reader itself would explain the read, so nothing does. An edge
                // from the reader to itself reports the contradiction.
                ([], None) => {
                    self.graph.add(open.read.node, open.read.node, Why::Rw(open.read.item, open.read.scan));
                    false
                }
                _ => true,
            }
        });
        self.open = open;
    }

    /// Whether `read` can have seen the deletion by `candidate`.
    fn possible(&self, read: &Read, candidate: Option<Node>) -> bool {
        if candidate.is_some_and(|writer| self.graph.reaches(read.node, writer)) {
            return false;
        }
        // A writer that must be ordered between the candidate and the reader would hide the deletion.
        let writers = &self.observed.items[read.item as usize].writers;
        !writers.iter().any(|(other, _)| {
            *other != read.node
                && Some(*other) != candidate
                && self.graph.reaches(*other, read.node)
                && candidate.is_none_or(|writer| self.graph.reaches(writer, *other))
        })
    }

    /// Returns the alternatives for the first undecided read or constraint.
    fn choices(&self) -> Vec<Choice> {
        if let Some(open) = self.open.first() {
            // The latest deletion is tried first, because it is the most likely.
            return open.candidates.iter().rev().map(|candidate| Choice::Saw(*candidate)).collect();
        }
        if self.pending.is_empty() { Vec::new() } else { vec![Choice::After, Choice::Before] }
    }

    fn choose(&mut self, choice: Choice) {
        match choice {
            Choice::Saw(candidate) => {
                let open = self.open.remove(0);
                self.saw(&open.read, candidate);
            }
            Choice::Before => {
                let Constraint { writer, other, item, .. } = self.pending.remove(0);
                self.graph.add(other, writer.unwrap_or(other), Why::Ww(item));
            }
            Choice::After => {
                let Constraint { reader, other, item, scan, .. } = self.pending.remove(0);
                self.graph.add(reader, other, Why::Rw(item, scan));
            }
        }
    }
}

/// Adds edges from transactions that ended to transactions that began later. Edges that follow from others
/// are left out.
fn add_real_time(history: &History, observed: &Observed, graph: &mut Graph) {
    let txn = |node: Node| &history.txns[observed.nodes[node as usize]];
    let relaxed = history.txns.iter().any(|txn| txn.relaxed);
    let mut by_end: Vec<Node> = (0..observed.nodes.len() as Node).collect();
    // A commit that returned an error of the drive is left out, because it may take effect as late as the
    // next opening.
    by_end.retain(|node| txn(*node).outcome == Outcome::Committed && txn(*node).ended.is_some());
    by_end.sort_by_key(|node| std::cmp::Reverse(txn(*node).ended));
    let mut by_start: Vec<Node> = (0..observed.nodes.len() as Node).collect();
    by_start.sort_by_key(|node| txn(*node).invoked);
    let mut times = Graph::new(observed.nodes.len());
    for to in by_start {
        for from in by_end.iter().copied() {
            let [a, b] = [from, to].map(txn);
            let ended = a.ended.is_some_and(|ended| ended < b.invoked);
            // A snapshot may miss the writes of a relaxed commit, and the commits of transactions that read
            // these writes. So only transactions that are known to be durable precede a snapshot.
            let durable = !relaxed || (a.writes() && !a.relaxed) || a.kind == Kind::Snapshot;
            if ended && (b.kind == Kind::Locking || durable) && !times.reaches(from, to) {
                times.add(from, to, Why::Rt);
                graph.add(from, to, Why::Rt);
            }
        }
    }
}
