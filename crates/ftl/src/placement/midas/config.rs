//! The options of MiDAS. The defaults are those of the paper (Oh et al., FAST 2024).

use fulgurite_base::option::{COUNT, PORTION, SHARE, YES_NO};
use fulgurite_base::{Choice, Declared, Form, Opt, Portion, Share, opt};

/// The stream of HOT, the group of hot pages. The groups G1, G2 and so on have the following streams.
pub(super) const HOT: u16 = 0;
/// The most groups besides HOT.
pub(super) const GROUPS: u16 = 16;

/// How the number and the sizes of groups are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSizes {
    /// The model chooses number and sizes repeatedly.
    Adapt,
    /// Groups have no sizes, as in MiDA.
    Fixed,
}

impl Choice for GroupSizes {
    const NAMES: &'static [(&'static str, GroupSizes)] =
        &[("adapt", GroupSizes::Adapt), ("fixed", GroupSizes::Fixed)];
}

/// The definition to follow where the authors' program and their paper differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// The paper's definition.
    Paper,
    /// The program's definition.
    Program,
}

impl Choice for Definition {
    const NAMES: &'static [(&'static str, Definition)] =
        &[("paper", Definition::Paper), ("program", Definition::Program)];
}

/// The options of MiDAS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MidasConfig {
    /// Whether there is a group for hot pages.
    pub hot: bool,
    /// How the number and the sizes of groups are set.
    pub groups: GroupSizes,
    /// Whether groups that deviate from the model give up their sizes.
    pub irregular: bool,
    /// Whether configurations are evaluated at work: the model learns its errors from them, and a
    /// configuration that is worse than the previous one is given up.
    pub judge: bool,
    /// The length of an epoch, in logical capacities of host writes.
    pub epoch: Share,
    /// The least number of watched pages, the sample on which lifetimes are measured. A smaller drive watches
    /// all pages.
    pub watch: Portion,
    /// Whether short lifetimes are measured on every page.
    pub short: bool,
    /// The number of page writes in a bucket of the distribution of lifetimes; 0 for a quarter of a segment.
    pub bucket: u32,
    /// The least difference at which measured lifetimes count as new.
    pub update: Share,
    /// The largest deviation of a group's valid share from its prediction that counts as regular.
    pub error: Share,
    /// The least relative decrease of write amplification that counts as a gain.
    pub gain: Share,
    /// The number of splits in a row without a gain after which the search ends.
    pub stop: u32,
    /// The definition to follow where the authors' program and their paper differ.
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
        opt!("hot", hot, YES_NO, "keep hot pages in a group of their own"),
        opt!(
            "groups",
            groups,
            Form::<GroupSizes>::choice("adapt|fixed"),
            "choose number and sizes of groups"
        ),
        opt!("irregular", irregular, YES_NO, "groups that deviate from the model give up their sizes"),
        opt!(
            "judge",
            judge,
            YES_NO,
            "give up sizes that are worse than the previous ones, and correct the model"
        ),
        opt!("epoch", epoch, SHARE, Share::percent(10) => Share::from_ppm(u32::MAX),
            "an epoch, in logical capacities of host writes"),
        opt!("watch", watch, PORTION, "the least number of watched pages"),
        opt!("short", short, YES_NO, "measure short lifetimes on every page"),
        opt!("bucket", bucket, COUNT, "page writes in a bucket of lifetimes; 0: a quarter of a segment"),
        opt!("update", update, SHARE, "lifetimes must differ by more than this to count as new"),
        opt!("error", error, SHARE, "the largest regular deviation of a valid share from its prediction"),
        opt!("gain", gain, SHARE, "the least gain of a split that counts"),
        opt!("stop", stop, COUNT, 1 => u32::MAX, "stop after this many splits in a row without such a gain"),
        opt!(
            "as",
            follows,
            Form::<Definition>::choice("paper|program"),
            "follow the paper or the authors' program"
        ),
    ];
}
