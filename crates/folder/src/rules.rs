//! The rules of a folder: its size, and what a power cut may lose.

use fulgurite_base::option::{Choice, SIZE, YES_NO, parse_choice};
use fulgurite_base::{Declared, Opt, Spec, SpecError, opt};

/// The order in which changes become durable; the crate's documentation describes both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// As a file system with a journal of metadata and delayed allocation: ext4 in its mode `ordered`, XFS.
    Journaled,
    /// As POSIX allows: only a sync of the folder makes a name durable.
    Strict,
}

impl Choice for Model {
    const NAMES: &'static [(&'static str, Model)] =
        &[("journaled", Model::Journaled), ("strict", Model::Strict)];
}

/// The rules of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The order in which changes become durable.
    pub model: Model,
    /// Whether a rename that replaces a file is kept only with all bytes of the new file, as on ext4 with
    /// `auto_da_alloc`, its default. It concerns [`Model::Journaled`] only.
    pub rename_syncs: bool,
    /// The most bytes of all files, in whole pages of 4,096 bytes.
    pub bytes: u64,
    /// The most bytes of writes that a cut can lose. The folder stores the oldest write if there are more, with the
    /// changes that it needs.
    pub cache_bytes: u64,
    /// A write is torn only at multiples of this number of bytes in its file: a power of two, at most 1 MiB.
    pub tear_bytes: u64,
    /// Whether syncs have no effect, as with a drive that acknowledges flushes and ignores them.
    pub lying: bool,
}

impl Default for Rules {
    /// A journal, 4 GiB, 64 MiB of which are not durable, torn at any sector.
    fn default() -> Rules {
        Rules {
            model: Model::Journaled,
            rename_syncs: false,
            bytes: 4 << 30,
            cache_bytes: 64 << 20,
            tear_bytes: 512,
            lying: false,
        }
    }
}

impl Rules {
    /// Parses a model with options: `strict:tear=4KiB`.
    pub fn parse(text: &str) -> Result<Rules, SpecError> {
        let mut spec = Spec::parse(text)?;
        let rules = Rules { model: parse_choice(spec.name())?, ..Rules::default() };
        let rules = rules.with_options(&mut spec)?;
        spec.finish()?;
        if !rules.tear_bytes.is_power_of_two() {
            return Err(SpecError::new(
                "tear is not a power of two; accepted: 512B, 1KiB, 2KiB, 4KiB and so on",
            ));
        }
        if rules.rename_syncs && rules.model == Model::Strict {
            return Err(SpecError::new(
                "rename_syncs does not go with strict, where no file system helps; accepted: journaled",
            ));
        }
        Ok(rules)
    }
}

impl Declared for Rules {
    const OPTIONS: &'static [Opt<Rules>] = &[
        opt!("size", bytes, SIZE, 1 << 20 => 1 << 40, "bytes of all files, in memory"),
        opt!("cache", cache_bytes, SIZE, 4096 => 1 << 40, "bytes of writes that a cut can lose at most"),
        opt!("tear", tear_bytes, SIZE, 512 => 1 << 20, "bytes at whose multiples a cut tears writes"),
        opt!(
            "rename_syncs",
            rename_syncs,
            YES_NO,
            "whether a rename onto a file waits for the new file's bytes"
        ),
        opt!("lying", lying, YES_NO, "whether syncs are acknowledged and have no effect"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule: every option of the rules can be typed, and those that contradict each other are refused.
    #[test]
    fn options_are_read_and_contradictions_refused() {
        let typed = Rules::parse("strict:size=1MiB,cache=4KiB,tear=1KiB,lying=yes").unwrap();
        let expected = Rules {
            model: Model::Strict,
            rename_syncs: false,
            bytes: 1 << 20,
            cache_bytes: 4096,
            tear_bytes: 1024,
            lying: true,
        };
        assert_eq!(typed, expected);
        assert!(Rules::parse("journaled:rename_syncs=yes").unwrap().rename_syncs);
        for (wrong, word) in [
            ("strict:rename_syncs=yes", "strict"),
            ("journaled:tear=1536B", "power of two"),
            ("posix", "strict"),
        ] {
            let error = Rules::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }
}
