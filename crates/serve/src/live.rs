//! The state of a served drive as somebody who watches it sees it: everything at one moment, and what has happened
//! since the look before. A drive without flash has no dies, no segments and no write amplification.

use crate::pace::Lateness;
use fulgurite_base::{Nanos, Summary};
use fulgurite_disk::Cache;
use fulgurite_ssd::DieState;
use fulgurite_stack::serve::{Look, PoolLook, Requests};
use serde_json::{Map, Value, json};

/// The properties of a served drive that do not change.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    /// The name of the drive.
    pub device: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// The cache, as far as power cuts concern it.
    pub cache: Cache,
}

/// A served drive at one moment. Counts are since the start.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// The time since the start, on the drive's clock.
    pub time: Nanos,
    /// The drive and its counts.
    pub look: Look,
    /// The number of requests without an answer.
    pub in_flight: u64,
    /// The number of pages with writes that a power cut may lose.
    pub pages_unflushed: u64,
    /// Whether the drive has power.
    pub is_on: bool,
    /// The number of power cuts.
    pub power_cuts: u64,
    /// The faults that the drive has now, by the commands of ctl that cause them.
    pub faults: Vec<&'static str>,
    /// How late the answers were.
    pub lateness: Lateness,
}

/// A served drive at one moment, and at the look before.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    /// The drive now.
    pub now: Moment,
    /// The drive at the look before; `None` at the first look, which is then compared with the start.
    pub before: Option<Moment>,
}

impl Live {
    /// Returns the time since the look before, on the drive's clock.
    fn interval(&self) -> Nanos {
        self.now.time - self.before.as_ref().map_or(Nanos::ZERO, |before| before.time)
    }

    /// Returns what a count has grown by since the look before.
    fn growth(&self, count: impl Fn(&Moment) -> u64) -> u64 {
        count(&self.now).saturating_sub(self.before.as_ref().map_or(0, count))
    }

    /// Returns the growth of a count in a second of the drive's time.
    fn rate(&self, count: impl Fn(&Moment) -> u64) -> f64 {
        match self.interval() {
            Nanos::ZERO => 0.0,
            interval => self.growth(count) as f64 / interval.as_secs_f64(),
        }
    }

    /// Returns the share of the time since the look before that a time has grown by.
    fn share(&self, time: impl Fn(&Moment) -> Nanos) -> f64 {
        // A layer may have filled the drive before the start.
        let share = (self.rate(|moment| time(moment).0) / 1e9).min(1.0);
        (share * 1e4).round() / 1e4
    }

    /// Returns the write amplification since the look before; `None` if nothing was written or nobody counts.
    fn recent_waf(&self) -> Option<f64> {
        self.now.look.host_pages_written?;
        let written = self.growth(|moment| moment.look.host_pages_written.unwrap_or(0));
        let programmed = self.growth(|moment| moment.look.pages_programmed.unwrap_or(0));
        (written > 0).then(|| programmed as f64 / written as f64)
    }

    /// Returns the share of requests for pages since the look before, or since the start, that found their page in the
    /// pool; `None` without requests.
    fn hit_share(&self, is_recent: bool) -> Option<f64> {
        let count = |of: fn(&PoolLook) -> u64| {
            let of = |moment: &Moment| moment.look.pool.as_ref().map_or(0, of);
            if is_recent { self.growth(of) } else { of(&self.now) }
        };
        let (hits, misses) = (count(|pool| pool.hits), count(|pool| pool.misses));
        (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64)
    }

    /// Returns the state as an object for programs. Parts that the drive lacks are left out.
    pub(crate) fn json(&self, drive: &Described) -> Value {
        let Moment { time, look, in_flight, pages_unflushed, is_on, power_cuts, faults, lateness } =
            &self.now;
        let mut state = json!({
            "device": drive.device,
            "bytes": drive.bytes,
            "cache": drive.cache.to_string(),
            "time_s": time.as_secs_f64(),
            "interval_s": self.interval().as_secs_f64(),
            "power": if *is_on { "on" } else { "off" },
            "power_cuts": power_cuts,
            "faults": faults,
            "in_flight": in_flight,
            "pages_unflushed": pages_unflushed,
            "reads": self.requests_json(|moment| &moment.look.reads),
            "writes": self.requests_json(|moment| &moment.look.writes),
        });
        let Value::Object(fields) = &mut state else { return state };
        if let Some(speed) = lateness.speed {
            fields.insert("speed".to_owned(), json!(speed));
            if lateness.answers > 0 {
                let answers = lateness.answers as f64;
                fields.insert("late_share".to_owned(), json!(lateness.late as f64 / answers));
                fields.insert("lateness_mean_ns".to_owned(), json!(lateness.sum_ns as f64 / answers));
            }
        }
        if let Some(pool) = &look.pool {
            fields.insert(
                "pool".to_owned(),
                json!({
                    "frames": pool.frames,
                    "dirty_pages": pool.dirty_pages,
                    "hits": pool.hits,
                    "misses": pool.misses,
                    "hit_share": { "start": self.hit_share(false), "recent": self.hit_share(true) },
                }),
            );
        }
        if let (Some(written), Some(programmed)) = (look.host_pages_written, look.pages_programmed) {
            fields.insert("host_pages_written".to_owned(), json!(written));
            fields.insert("pages_programmed".to_owned(), json!(programmed));
            let waf = (written > 0).then(|| programmed as f64 / written as f64);
            fields.insert("waf".to_owned(), json!({ "start": waf, "recent": self.recent_waf() }));
        }
        if let Some(flash) = &look.flash {
            fields.insert("flash_pages_read".to_owned(), json!(flash.pages_read));
            fields.insert("gc_pages_copied".to_owned(), json!(flash.pages_copied));
            fields.insert("erases".to_owned(), json!(flash.erases));
        }
        self.add_flash(fields);
        state
    }

    /// Adds the state of a simulated drive.
    fn add_flash(&self, fields: &mut Map<String, Value>) {
        let Some(drive) = &self.now.look.drive else { return };
        let page_bytes = u64::from(self.now.look.page_bytes);
        fields.insert("waiting".to_owned(), json!(drive.waiting));
        fields.insert(
            "buffer".to_owned(),
            json!({
                "bytes": u64::from(drive.buffer_pages) * page_bytes,
                "capacity_bytes": u64::from(drive.buffer_pages_at_most) * page_bytes,
            }),
        );
        if let Some(segments) = &drive.segments {
            fields.insert(
                "segments".to_owned(),
                json!({
                    "all": segments.all,
                    "free": segments.free,
                    "threshold": segments.threshold,
                    "valid_share": segments.valid_pages as f64 / segments.pages as f64,
                }),
            );
            fields.insert("collection".to_owned(), json!(segments.collection()));
        }
        let channels = 0..drive.channels.len();
        let channel = |at: usize| self.share(|moment| channel_time(moment, at));
        fields.insert("channels".to_owned(), channels.map(channel).collect());
        let dies = drive.dies.iter().enumerate();
        fields.insert("dies".to_owned(), dies.map(|(at, die)| self.die_json(at, die)).collect());
    }

    fn die_json(&self, at: usize, die: &DieState) -> Value {
        let kinds = die.busy.by_kind().map(|(kind, _)| kind).into_iter().enumerate();
        let share = |(kind_at, kind): (usize, &str)| {
            let time = |moment: &Moment| {
                let dies = moment.look.drive.as_ref().map(|drive| &drive.dies);
                dies.map_or(Nanos::ZERO, |dies| dies[at].busy.by_kind()[kind_at].1)
            };
            (kind.to_owned(), json!(self.share(time)))
        };
        let busy: Map<String, Value> = kinds.map(share).collect();
        json!({ "channel": die.channel, "waiting": die.waiting, "collects": die.collects, "busy": busy })
    }

    fn requests_json(&self, requests: fn(&Moment) -> &Requests) -> Value {
        let of = requests(&self.now);
        let bytes = f64::from(self.now.look.page_bytes);
        let latency = of.recent.as_ref().map(|recent: &Summary| {
            json!({
                "mean_ns": recent.mean_ns,
                "p50_ns": recent.p50_ns,
                "p99_ns": recent.p99_ns,
                "p999_ns": recent.p999_ns,
            })
        });
        let mut fields = json!({
            "count": of.count,
            "per_s": self.rate(|moment| requests(moment).count),
            "bytes_per_s": self.rate(|moment| requests(moment).pages) * bytes,
        });
        if let (Some(latency), Value::Object(fields)) = (latency, &mut fields) {
            fields.insert("latency".to_owned(), latency);
        }
        fields
    }
}

/// Returns the time that a channel has spent on transfers.
fn channel_time(moment: &Moment, channel: usize) -> Nanos {
    moment.look.drive.as_ref().map_or(Nanos::ZERO, |drive| drive.channels[channel])
}
