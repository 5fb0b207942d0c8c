//! One seed: the program runs until the power is cut, and the checker looks at what is left. A checker that changes the
//! folder recovers it, so the power may be cut during that too. A failure is explained by a smallest loss.

use crate::test::{Choice, Ended, Place, Plan, choose, choose_again, shrink};
use fulgurite_folder::{Cut, Folder, Piece};
use fulgurite_stack::StackError;
use serde::Serialize;
use std::path::Path;

/// The most runs of the checker that a violation is made smaller with.
const TRIES: u32 = 200;

/// The most pieces that a violation lists.
const PIECES_AT_MOST: usize = 20;

/// A power cut, and the changes that are guilty of a failure after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GuiltyCut {
    /// The number of the operation at which the power was cut.
    pub operation: u64,
    /// That operation in words.
    pub at: String,
    /// The number of changes, or parts of writes, that could be lost.
    pub unsynced: u64,
    /// The number of these that were lost.
    pub lost: u64,
    /// The changes whose loss suffices for the failure, in words. It is empty if the checker fails although nothing is
    /// lost.
    pub guilty: Vec<String>,
}

/// A failure of the checker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The seed of the cut.
    pub seed: u64,
    /// The cut while the program ran.
    #[serde(flatten)]
    pub cut: GuiltyCut,
    /// The cut while the checker recovered the folder; `None` if it failed without one.
    pub recovery: Option<GuiltyCut>,
    /// The exit code and the last lines of the checker.
    pub failure: String,
    /// Whether the same loss made the checker fail again.
    pub repeats: bool,
}

/// The test of one seed.
pub(crate) struct Case<'a> {
    pub plan: &'a Plan,
    pub place: &'a Place,
    pub seed: u64,
    /// One of so many seeds has a cut during recovery; 0 for none.
    pub recovery_cuts: u64,
    /// The folder for the files of violations.
    pub keep: Option<&'a Path>,
}

/// The result of one test.
pub(crate) struct Done {
    pub is_in_run: bool,
    pub is_recovery_cut: bool,
    pub unsynced: u64,
    pub lost: u64,
    pub violation: Option<Violation>,
}

impl Case<'_> {
    /// Runs the test. `folder` is the one in which the program starts, and `operations` the number of its operations.
    pub(crate) fn run(&self, folder: &Folder, operations: u64) -> Result<Done, StackError> {
        let choice = choose(self.seed, operations);
        let program = &self.plan.program;
        let ended = self.place.run(program, folder.clone(), Some(choice.cut_at), self.plan.time)?;
        if let Some(failure) = &ended.failure {
            return Err(StackError::run(format!(
                "the program fails before its power is cut, with seed {} ({failure})",
                self.seed
            )));
        }
        let mut left = ended.folder.clone();
        let cut = left.power_cut(choice.loss);
        let checked = self.check(left.clone(), None)?;
        let again = choose_again(self.seed, self.recovery_cuts, checked.operations);
        let violation = match (checked.failure, &again) {
            (Some(failure), _) => Some(self.explain(&ended, left, &cut, failure)?),
            (None, Some(again)) => self.cut_recovery(&ended, left, &cut, again)?,
            (None, None) => None,
        };
        Ok(Done {
            is_in_run: ended.cut.is_some(),
            is_recovery_cut: again.is_some(),
            unsynced: cut.pieces.len() as u64,
            lost: cut.lost.len() as u64,
            violation,
        })
    }

    fn check(&self, folder: Folder, cut_at: Option<u64>) -> Result<Ended, StackError> {
        self.place.check(&self.plan.check, folder, cut_at, self.plan.time)
    }

    /// Cuts the power also during the recovery of `left`, and checks what is left then.
    fn cut_recovery(
        &self,
        ended: &Ended,
        left: Folder,
        cut: &Cut,
        choice: &Choice,
    ) -> Result<Option<Violation>, StackError> {
        let recovery = self.check(left.clone(), Some(choice.cut_at))?;
        if let Some(failure) = recovery.failure {
            // It passed in the same folder before.
            return self.explain(ended, left, cut, failure).map(Some);
        }
        let mut left = recovery.folder.clone();
        let second = left.power_cut(choice.loss);
        match self.check(left.clone(), None)?.failure {
            Some(failure) => {
                self.keep(left)?;
                self.explain_both((ended, cut), (&recovery, &second), choice, failure).map(Some)
            }
            None => Ok(None),
        }
    }

    /// Finds the changes whose loss suffices for a failure after one cut.
    fn explain(
        &self,
        ended: &Ended,
        left: Folder,
        cut: &Cut,
        failure: String,
    ) -> Result<Violation, StackError> {
        self.keep(left)?;
        let (repeats, guilty) = smallest(&cut.lost, |lost| self.fails_without(ended, lost))?;
        let cut = guilty_cut(ended, cut, &guilty);
        Ok(Violation { seed: self.seed, cut, recovery: None, failure, repeats })
    }

    /// Finds the changes whose loss suffices for a failure after two cuts: first those of the recovery.
    fn explain_both(
        &self,
        (ended, cut): (&Ended, &Cut),
        (recovery, second): (&Ended, &Cut),
        choice: &Choice,
        failure: String,
    ) -> Result<Violation, StackError> {
        let (repeats, lost_again) = smallest(&second.lost, |lost| self.fails_without(recovery, lost))?;
        let (_, lost) = smallest(&cut.lost, |lost| {
            let mut left = ended.folder.clone();
            left.power_cut_with(lost);
            let recovery = self.check(left, Some(choice.cut_at))?;
            // The numbers of this recovery's changes are others.
            let words: Vec<String> = lost_again.iter().map(Piece::to_string).collect();
            let mut pieces = recovery.folder.pieces();
            pieces.retain(|piece| words.contains(&piece.to_string()));
            Ok(recovery.failure.is_none() && self.fails_without(&recovery, &pieces)?)
        })?;
        let recovery = Some(guilty_cut(recovery, second, &lost_again));
        let cut = guilty_cut(ended, cut, &lost);
        Ok(Violation { seed: self.seed, cut, recovery, failure, repeats })
    }

    /// Whether the checker fails if the power is cut at the end of a run and these pieces are lost.
    fn fails_without(&self, ended: &Ended, lost: &[Piece]) -> Result<bool, StackError> {
        let mut left = ended.folder.clone();
        left.power_cut_with(lost);
        Ok(self.check(left, None)?.failure.is_some())
    }

    /// Keeps the files that a checker failed on, if the user wants them.
    fn keep(&self, left: Folder) -> Result<(), StackError> {
        let Some(keep) = self.keep else { return Ok(()) };
        self.place.keep(left, &keep.join(format!("seed-{}", self.seed)))
    }
}

/// Returns whether losing the pieces again fails again, and a smallest list of them that does; all if they do not.
fn smallest(
    lost: &[Piece],
    mut fails: impl FnMut(&[Piece]) -> Result<bool, StackError>,
) -> Result<(bool, Vec<Piece>), StackError> {
    match fails(lost)? {
        true => Ok((true, shrink(lost, TRIES, fails)?)),
        false => Ok((false, lost.to_vec())),
    }
}

fn guilty_cut(ended: &Ended, cut: &Cut, guilty: &[Piece]) -> GuiltyCut {
    let mut words: Vec<String> = guilty.iter().take(PIECES_AT_MOST).map(Piece::to_string).collect();
    if guilty.len() > PIECES_AT_MOST {
        words.push(format!("and {} more", guilty.len() - PIECES_AT_MOST));
    }
    GuiltyCut {
        operation: ended.operations,
        at: ended.cut.clone().unwrap_or_else(|| "the end of the program".to_owned()),
        unsynced: cut.pieces.len() as u64,
        lost: cut.lost.len() as u64,
        guilty: words,
    }
}
