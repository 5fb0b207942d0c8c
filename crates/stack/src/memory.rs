//! Reads the memory of this process and of the machine, as the system reports it.
//!
//! If a process needs more memory than the machine has, its allocator or the system kills the process. So
//! every command checks the memory that the user asks for before it allocates anything.

use crate::{StackError, Unit};
use fulgurite_base::units::{format_size, whole_size};
use std::fs;

/// Refuses `bytes` of memory if this machine does not have them free. `asked` is the argument with its value,
/// for the error.
pub fn check(asked: &str, bytes: u64) -> Result<(), StackError> {
    let there = match available() {
        Some(there) if bytes <= there => return Ok(()),
        Some(there) => format!(", {}", Unit::Bytes.humane(there as f64)),
        // Systems without `/proc/meminfo` do not report free memory. Their allocators refuse too large a
        // request, so try one.
        None => match usize::try_from(bytes).map(|bytes| Vec::<u8>::new().try_reserve_exact(bytes)) {
            Ok(Ok(())) => return Ok(()),
            _ => String::new(),
        },
    };
    Err(StackError::request(format!(
        "{asked} takes more memory than this machine has free{there}; accepted: less"
    )))
}

/// Returns the error for memory that is too small for the map of pages out of place. `whose` names the store
/// in the error.
pub fn too_little_for_map(whose: &str, given: u64, needed: u64) -> StackError {
    let [given, needed] = [given, whole_size(needed).next_multiple_of(1 << 20)].map(format_size);
    StackError::request(format!(
        "--memory {given} is too little for the map of pages out of place {whose}; accepted: {needed} or more"
    ))
}

/// Returns the peak memory of the process in bytes. `None` if the system does not report it.
pub(crate) fn peak_rss() -> Option<u64> {
    // `VmHWM` is the largest resident set of the process so far.
    kib(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Returns the bytes of memory that are available without swapping. `None` if the system does not report
/// them.
pub(crate) fn available() -> Option<u64> {
    kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable:")
}

/// Returns the bytes in the line of `text` that begins with `name`. The line counts in KiB.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_system_is_read_in_bytes() {
        let text = "MemTotal:       24605312 kB\nMemAvailable:   22605312 kB\n";
        assert_eq!(kib(text, "MemAvailable:"), Some(22_605_312 << 10));
        assert_eq!((kib(text, "MemFree:"), kib("VmHWM: 3 MB", "VmHWM:")), (None, None));
    }

    #[test]
    fn memory_that_no_machine_has_is_refused() {
        assert!(check("--memory 1MiB", 1 << 20).is_ok());
        let refused = check("--memory 1048576TiB", 1 << 60).unwrap_err();
        assert_eq!(refused.exit_code(), 2);
        let sentence = refused.to_string();
        assert!(sentence.starts_with("--memory 1048576TiB takes more memory than "), "{sentence}");
        #[cfg(target_os = "linux")]
        assert!(sentence.contains(" has free, "), "{sentence}");
    }
}
