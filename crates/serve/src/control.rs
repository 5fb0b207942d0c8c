//! The control protocol: lines of JSON over a Unix socket. Each line is an object with a key `do`, and each gets one
//! line in return: an object with `"ok": true` and the results, or with `"ok": false` and an `error` in words. The
//! answer is sent when the command is done. docs/reference/control.md describes every command.

use fulgurite_base::Nanos;
use fulgurite_disk::{CutPoint, Failing};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A command. A command without values has an empty list of them, so that unknown ones are refused.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Control {
    /// Cuts the power, at once or at a point of the run, and switches the drive on again unless it is to stay off.
    PowerCut {
        seed: Option<u64>,
        at: Option<At>,
        #[serde(default)]
        stay_off: bool,
    },
    /// Switches the drive on.
    PowerOn {},
    /// Lets reads of a range fail.
    FailReads(Range),
    /// Lets writes of a range fail.
    FailWrites(Range),
    /// Makes every request take longer, by a time in microseconds.
    Slow { us: u64 },
    /// Fills the drive, so that writes fail, or empties it.
    Fill {
        #[serde(default = "yes")]
        full: bool,
    },
    /// Lets the next writes complete without any effect.
    LoseWrites { times: u64 },
    /// Lets the next writes go elsewhere.
    MisdirectWrites { times: u64 },
    /// Inverts a bit of a byte.
    Rot {
        offset: u64,
        #[serde(default)]
        bit: u8,
    },
    /// Ends all faults.
    Heal {},
    /// Returns the row of statistics so far.
    Stats {},
    /// Keeps the contents under a name.
    Snapshot { name: String },
    /// Brings the contents of a name back.
    Restore { name: String },
    /// Ends the server.
    Stop {},
}

fn yes() -> bool {
    true
}

/// A range of bytes and a number of requests; by default the whole drive, and every request.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Range {
    #[serde(default)]
    offset: u64,
    #[serde(default = "all")]
    length: u64,
    #[serde(default = "all")]
    times: u64,
}

fn all() -> u64 {
    u64::MAX
}

impl From<Range> for Failing {
    fn from(Range { offset, length, times }: Range) -> Failing {
        Failing { offset, length, times }
    }
}

/// A point of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum At {
    /// The nth write from now on.
    Write(u64),
    /// The nth flush from now on.
    Flush(u64),
    /// A write to a range, as offset and length.
    WriteTo { offset: u64, length: u64 },
    /// A flush while so many pages are not durable.
    Unflushed(u64),
}

impl From<At> for CutPoint {
    fn from(at: At) -> CutPoint {
        match at {
            At::Write(nth) => CutPoint::Write(nth),
            At::Flush(nth) => CutPoint::Flush(nth),
            At::WriteTo { offset, length } => CutPoint::WriteTo { offset, length },
            At::Unflushed(pages) => CutPoint::Unflushed(pages),
        }
    }
}

/// The most snapshots that a drive keeps.
pub(crate) const SNAPSHOTS_AT_MOST: usize = 64;

/// The longest line of a command in bytes.
pub(crate) const LINE_AT_MOST: usize = 64 << 10;

/// The longest delay of [`Control::Slow`] in microseconds, an hour.
const SLOW_AT_MOST_US: u64 = 3_600_000_000;

impl Control {
    /// Parses a line.
    pub(crate) fn parse(line: &str) -> Result<Control, String> {
        let command: Control = serde_json::from_str(line).map_err(|error| {
            format!("{error}; accepted: a line such as {{\"do\": \"power-cut\", \"seed\": 7}}")
        })?;
        match command {
            Control::Slow { us } if us > SLOW_AT_MOST_US => {
                Err(format!("us is {us}; accepted: 0 to {SLOW_AT_MOST_US}"))
            }
            Control::Rot { bit, .. } if bit > 7 => Err(format!("bit is {bit}; accepted: 0 to 7")),
            command => Ok(command),
        }
    }
}

/// The time of [`Control::Slow`].
pub(crate) fn delay(us: u64) -> Nanos {
    Nanos(us * 1_000)
}

/// Returns the answer to a command that was done.
pub(crate) fn done(results: Map<String, Value>) -> String {
    let mut answer = Map::from_iter([("ok".to_owned(), Value::Bool(true))]);
    answer.extend(results);
    format!("{}\n", Value::Object(answer))
}

/// Returns the answer to a command that was not done.
pub(crate) fn refused(why: &str) -> String {
    format!("{}\n", json!({ "ok": false, "error": why }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_objects_with_a_name() {
        let cut = |text| Control::parse(text).unwrap();
        assert_eq!(
            cut(r#"{"do":"power-cut","seed":7,"at":{"write-to":{"offset":4096,"length":512}}}"#),
            Control::PowerCut {
                seed: Some(7),
                at: Some(At::WriteTo { offset: 4_096, length: 512 }),
                stay_off: false
            }
        );
        assert_eq!(
            cut(r#"{"do":"fail-reads","times":3}"#),
            Control::FailReads(Range { offset: 0, length: u64::MAX, times: 3 })
        );
        assert_eq!(cut(r#"{"do":"fill"}"#), Control::Fill { full: true });
        for wrong in ["", "7", "{}", r#"{"do":"explode"}"#, r#"{"do":"rot"}"#, r#"{"do":"stats","x":1}"#] {
            assert!(Control::parse(wrong).unwrap_err().contains("accepted: "), "{wrong}");
        }
        assert!(Control::parse(r#"{"do":"slow","us":9000000000}"#).is_err());
        assert!(Control::parse(r#"{"do":"rot","offset":0,"bit":8}"#).is_err());
    }
}
