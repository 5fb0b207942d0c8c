//! The options of MiDAS. The defaults are the paper's.

use fulgurite_base::option::{COUNT, PORTION, SHARE, YES_NO};
use fulgurite_base::{Choice, Declared, Form, Opt, Portion, Share, opt};

/// Where the number and the sizes of groups come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSizes {
    /// They are chosen by the model, again and again.
    Adapt,
    /// There are none, as in MiDA.
    Fixed,
}

impl Choice for GroupSizes {
    const NAMES: &'static [(&'static str, GroupSizes)] =
        &[("adapt", GroupSizes::Adapt), ("fixed", GroupSizes::Fixed)];
}

/// Whom to follow where the authors' program differs from their paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// The paper.
    Paper,
    /// The program.
    Program,
}

impl Choice for Definition {
    const NAMES: &'static [(&'static str, Definition)] =
        &[("paper", Definition::Paper), ("program", Definition::Program)];
}

/// The options of MiDAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MidasConfig {
    /// Whether hot pages are kept apart.
    pub hot: bool,
    /// Whether the number and the sizes of groups are chosen.
    pub groups: GroupSizes,
    /// Whether groups that the model does not describe give up their sizes.
    pub irregular: bool,
    /// Whether a configuration that does worse than what was had before is given up, and errors of the model are
    /// learned from one that does not.
    pub judge: bool,
    /// An epoch, in logical capacities of host writes.
    pub epoch: Share,
    /// At least so many pages are watched, where there are as many.
    pub watch: Portion,
    /// Whether short lifetimes are measured on every page.
    pub short: bool,
    /// Page writes in a bucket of the distribution of lifetimes; 0 stands for a quarter of a segment.
    pub bucket: u32,
    /// Lifetimes that differ by less are not new.
    pub update: Share,
    /// A share of valid pages that is off its prediction by more is irregular.
    pub error: Share,
    /// A split that gains less is no gain.
    pub gain: Share,
    /// After this many such splits in a row no more are tried.
    pub stop: u32,
    /// Whom to follow where the authors' program differs from their paper.
    pub follows: Definition,
}

impl Default for MidasConfig {
    fn default() -> MidasConfig {
        MidasConfig {
            hot: true,
            groups: GroupSizes::Adapt,
            irregular: true,
            judge: true,
            epoch: Share::percent(400),
            watch: Portion::Count(65_536),
            short: true,
            bucket: 0,
            update: Share::percent(5),
            error: Share::percent(10),
            gain: Share::from_ppm(5_000),
            stop: 5,
            follows: Definition::Paper,
        }
    }
}

impl Declared for MidasConfig {
    const OPTIONS: &'static [Opt<MidasConfig>] = &[
        opt!("hot", hot, YES_NO, "keep hot pages apart"),
        opt!(
            "groups",
            groups,
            Form::<GroupSizes>::choice("adapt|fixed"),
            "choose number and sizes of groups"
        ),
        opt!("irregular", irregular, YES_NO, "groups that the model does not describe give up their sizes"),
        opt!(
            "judge",
            judge,
            YES_NO,
            "give up sizes that do worse than what was had, and learn from the others"
        ),
        opt!("epoch", epoch, SHARE, Share::percent(10) => Share::from_ppm(u32::MAX), "an epoch, in logical capacities of host writes"),
        opt!("watch", watch, PORTION, "pages whose lifetimes are measured, at least"),
        opt!("short", short, YES_NO, "measure short lifetimes on every page"),
        opt!("bucket", bucket, COUNT, "page writes in a bucket of lifetimes; 0: a quarter of a segment"),
        opt!("update", update, SHARE, "lifetimes that differ by less are not new"),
        opt!("error", error, SHARE, "a valid share that is off its prediction by more is irregular"),
        opt!("gain", gain, SHARE, "a split that gains less is no gain"),
        opt!("stop", stop, COUNT, 1 => u32::MAX, "stop after this many such splits in a row"),
        opt!(
            "as",
            follows,
            Form::<Definition>::choice("paper|program"),
            "follow the paper or the authors' program"
        ),
    ];
}
