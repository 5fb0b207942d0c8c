//! Write-back policies: decide which dirty pages are written when a miss needs a frame, and whether the miss
//! waits for the write. Each policy has a file. [`WriteBackConfig`] names a policy with its options and lists
//! all policies. [`WriteBack`] holds the parameters of a policy for one drive.
//!
//! All policies are settings of one mechanism. A miss in a full pool asks the replacement policy for the
//! victim frame. If the victim is dirty, the first `n_w` dirty frames of the eviction order are written
//! together. Without spare frames (write buffers), the miss waits for the batch, evicts the victim frame and
//! reads. With spare frames, the victim frame is evicted at once, and a spare frame takes the read; the
//! victim's page can still be found until its write has ended. A cleaner, if there is one, writes dirty
//! frames before a miss needs them. With a lock, no other miss evicts while one waits for its write.

mod number;
mod policy;
mod ace;
mod background;
mod raw;
mod ace_raw;
mod auto;
mod single;

pub use policy::{Curve, MeasuredDrive, WriteBack};
pub(crate) use policy::{Order, Plan};

use ace::AceConfig;
use ace_raw::AceRawConfig;
use background::BackgroundConfig;
use fulgurite_base::{NoOptions, SpecError, config_enum};
use raw::RawConfig;
use single::SingleConfig;

macro_rules! policies {
    ($($name:literal $variant:ident($config:ty, $resolve:path) $about:literal)*) => {
        config_enum! {
            /// The write-back policies by name, each with its options.
            pub enum WriteBackConfig: "write-back";
            $($name $variant($config) $about)*
        }

        impl WriteBackConfig {
            /// Returns the policy's parameters for `drive`. Parameters that the options do not set follow
            /// from measurements of the drive. A closure that returns the write concurrency serves as the
            /// drive for every policy except `auto`.
            pub fn resolve(&self, mut drive: impl MeasuredDrive) -> Result<WriteBack, SpecError> {
                match self {
                    $(WriteBackConfig::$variant(config) => $resolve(config, &mut drive),)*
                }
            }
        }
    };
}

// A new policy is a file and a line here.
policies! {
    "single" Single(SingleConfig, single::resolve) "write the one dirty victim frame, wait, evict it"
    "background" Background(BackgroundConfig, background::resolve)
        "a cleaner writes ahead of the evictions; a miss with a dirty victim writes it as in single"
    "ace" Ace(AceConfig, ace::resolve) "write n_w dirty frames together in eviction order, wait, evict one"
    "raw" Raw(RawConfig, raw::resolve) "read at once, write the dirty victim frame behind it"
    "ace+raw" AceRaw(AceRawConfig, ace_raw::resolve) "batches as in ace, for which no read waits"
    "auto" Auto(NoOptions, auto::resolve) "ace+raw, or raw, with n_w, n_e and buffers from the drive's measured curves"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<WriteBack, SpecError> {
        text.parse::<WriteBackConfig>()?.resolve(|| Ok(6))
    }

    #[test]
    fn a_default_written_out_changes_no_text_and_another_value_does() {
        WriteBackConfig::registry().check_texts().unwrap();
    }

    #[test]
    fn unset_numbers_follow_from_the_drive() {
        let numbers = |text: &str| {
            let WriteBack { n_w, n_e, buffers, buffers_least, under_way, ahead, cleaner_n_w, .. } =
                resolve(text).unwrap();
            [n_w, n_e, buffers, buffers_least, under_way, ahead, cleaner_n_w]
        };
        const NO_BOUND: u32 = u32::MAX;
        assert_eq!(numbers("single"), [1, 1, 0, 0, NO_BOUND, 0, 0]);
        assert_eq!(numbers("ace"), [6, 6, 0, 0, 12, 0, 0]);
        assert_eq!(numbers("ace:n_w=k_w,n_e=2,under_way=7"), [6, 2, 0, 0, 7, 0, 0]);
        assert_eq!(numbers("ace+raw:n_w=3"), [3, 3, 6, 1, 6, 0, 0]);
        assert_eq!(numbers("ace+raw:n_w=3,buffers=8,least=8"), [3, 3, 8, 8, 8, 0, 0]);
        assert_eq!(numbers("raw"), [1, 1, 12, 1, NO_BOUND, 0, 0]);
        assert_eq!(numbers("background:n_w=4"), [1, 1, 0, 0, NO_BOUND, 64, 4]);
        assert_eq!(resolve("background:n_w=4").unwrap().batch_pages(), 4);
        assert_eq!(["single", "single:lock=yes"].map(|text| resolve(text).unwrap().lock), [false, true]);
    }

    #[test]
    fn the_drive_is_not_measured_for_numbers_that_are_set() {
        let unasked = || -> Result<u32, SpecError> { panic!("the drive was asked") };
        for text in ["single", "single:lock=yes", "background", "ace:n_w=8", "raw:buffers=3", "ace+raw:n_w=2"]
        {
            text.parse::<WriteBackConfig>().unwrap().resolve(unasked).unwrap();
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_accepted_ones() {
        let sentence = |text: &str| resolve(text).unwrap_err().to_string();
        for text in ["ace:n_w=4294967295", "ace:n_w=99999999999999", "background:n_w=65537", "ace:n_w=0"] {
            assert!(sentence(text).ends_with("is out of range; accepted: 1 to 65536"), "{}", sentence(text));
        }
        assert!(sentence("ace:n_e=7").starts_with("n_e=7 is more than n_w=6"));
        assert!(sentence("ace:under_way=5").starts_with("under_way=5 is less than n_w=6"));
        assert!(sentence("raw:buffers=3,least=4").starts_with("least=4 is more than buffers=3"));
        assert!(sentence("raw:lock=yes").contains("unknown option of raw `lock`"));
        assert!(sentence("raw:n_w=7").contains("unknown option of raw `n_w`"));
        assert!(sentence("auto").contains("needs the drive's curves"));
        assert!(sentence("aec").contains("did you mean `ace`?"));
    }
}
