//! The options of MiDAS. The defaults are the paper's.

use fulgurite_base::option::{COUNT, SHARE, YES_NO};
use fulgurite_base::{Choice, Declared, Form, Opt, Share, opt};

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
    /// An epoch, in logical capacities of host writes.
    pub epoch: Share,
    /// One of this many pages is watched.
    pub sample: u32,
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
            epoch: Share::percent(400),
            sample: 100,
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
        opt!("epoch", epoch, SHARE, Share::percent(10) => Share::from_ppm(u32::MAX), "an epoch, in logical capacities of host writes"),
        opt!("sample", sample, COUNT, 1 => u32::MAX, "one of this many pages is watched"),
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
