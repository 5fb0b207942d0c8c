//! Declares each column of the results once: its name, its unit, whether it tells runs apart, and which command shows it
//! first. Rows, CSV, the axes of reports and findings all come from this table.

use crate::{Command, Value};
use fulgurite_base::{SpecError, units};
use std::cmp::Ordering;

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Names.
    Name,
    /// Pure numbers.
    Number,
    /// Nanoseconds, shown as ns, µs, ms or s.
    Nanoseconds,
    /// Bytes, shown as B, KiB, MiB, GiB or TiB.
    Bytes,
    /// Bytes per second, shown in powers of ten.
    BytesPerSecond,
}

impl Unit {
    /// A value as people read it, in a scale that suits it: a number to four significant digits, all else to three.
    pub fn humane(self, value: f64) -> String {
        match self.scales() {
            [] => Value::Real(value).readable(),
            scales => units::humane(value, scales),
        }
    }

    /// The scales in which values are written, and the name of each, the largest first. Pure numbers have none.
    pub fn scales(self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::Name | Unit::Number => &[],
            Unit::Nanoseconds => &[(1e9, " s"), (1e6, " ms"), (1e3, " µs"), (1.0, " ns")],
            Unit::Bytes => &units::HUMANE_SIZES,
            Unit::BytesPerSecond => &[(1e9, " GB/s"), (1e6, " MB/s"), (1e3, " kB/s"), (1.0, " B/s")],
        }
    }
}

/// What a column is for, besides holding values.
#[allow(non_camel_case_types)] // the words of the table below
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// It tells one run of a grid from another.
    axis,
    /// A run that was not asked for it has none: that tells too.
    absent,
    /// It is about the execution itself, and differs from one to the next.
    cost,
    /// More of it is better.
    more,
    /// Less of it is better.
    less,
    /// A command shows it first.
    pool,
    gc,
    replay,
    bench,
    profile,
    list,
}

macro_rules! columns {
    ($($column:ident $name:literal $unit:ident [$($mark:ident)*];)*) => {
        /// A column, in the order in which tables have them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)] // the names are those of the field, and the table below has their units
        pub enum Column {
            $($column,)*
        }

        const DECLARED: &[(Column, &str, Unit, &[Mark])] = &[
            $((Column::$column, $name, Unit::$unit, &[$(Mark::$mark),*]),)*
        ];
    };
}

columns! {
RunId "run_id" Name [];
Part "part" Name [axis];
// What was run.
Workload "workload" Name [axis pool gc replay];
Benchmark "benchmark" Name [axis bench];
Transaction "transaction" Name [axis absent bench];
Scale "scale" Number [axis];
Device "device" Name [axis pool replay bench profile];
Channels "channels" Number [];
Replacement "replacement" Name [axis pool];
WriteBack "write_back" Name [axis pool];
NW "n_w" Number [pool];
NE "n_e" Number [];
Buffers "buffers" Number [];
Ahead "ahead" Number [];
Prefetch "prefetch" Name [axis];
Layer "layer" Name [axis absent pool replay];
Placement "placement" Name [axis gc replay];
Victim "victim" Name [axis gc];
Schedule "schedule" Name [axis replay];
Place "place" Name [axis];
TornPages "torn_pages" Name [axis];
Degree "degree" Number [axis];
Durability "durability" Name [axis];
MemoryBytes "memory_bytes" Bytes [axis];
LogBytes "log_bytes" Bytes [axis];
RecordShare "record_share" Number [axis];
Frames "frames" Number [axis];
Pages "pages" Number [axis];
PageBytes "page_bytes" Bytes [axis profile];
Segments "segments" Number [axis];
SegmentPages "segment_pages" Number [axis];
GcReserve "gc_reserve" Number [axis];
Users "users" Number [axis absent bench];
Speed "speed" Number [axis absent];
CpuPerRequestNs "cpu_per_request_ns" Nanoseconds [axis];
Cores "cores" Number [axis absent];
CpuPerOpNs "cpu_per_op_ns" Nanoseconds [axis];
Seed "seed" Number [axis];
Skip "skip" Number [axis absent];
Group "group" Name [axis absent gc];
TimePages "time_pages" Number [axis absent gc];
TimeLimitNs "time_limit_ns" Nanoseconds [axis];
// What came of it.
TimeNs "time_ns" Nanoseconds [absent replay bench];
IntervalNs "interval_ns" Nanoseconds [];
Ops "ops" Number [];
ElapsedNs "elapsed_ns" Nanoseconds [pool less];
ThroughputOpsS "throughput_ops_s" Number [pool replay bench more];
Retries "retries" Number [less];
Rollbacks "rollbacks" Number [];
Deadlocks "deadlocks" Number [less];
Hits "hits" Number [more];
Misses "misses" Number [less];
HitRatio "hit_ratio" Number [pool bench more];
ReadIos "read_ios" Number [];
WriteIos "write_ios" Number [pool less];
PagesRead "pages_read" Number [pool less];
PagesWritten "pages_written" Number [pool less];
PagesMoved "pages_moved" Number [less];
PagesFlushed "pages_flushed" Number [];
Prefetched "prefetched" Number [];
PrefetchHits "prefetch_hits" Number [more];
PrefetchWasted "prefetch_wasted" Number [];
WriteWaits "write_waits" Number [less];
Rescued "rescued" Number [];
PagesChecked "pages_checked" Number [];
LatencyMeanNs "latency_mean_ns" Nanoseconds [replay less];
LatencyStddevNs "latency_stddev_ns" Nanoseconds [replay];
LatencyP50Ns "latency_p50_ns" Nanoseconds [bench less];
LatencyP95Ns "latency_p95_ns" Nanoseconds [less];
LatencyP99Ns "latency_p99_ns" Nanoseconds [pool replay bench less];
LatencyP999Ns "latency_p999_ns" Nanoseconds [replay less];
LatencyMaxNs "latency_max_ns" Nanoseconds [replay less];
LatencyVarianceNs2 "latency_variance_ns2" Number [];
BandwidthBytesS "bandwidth_bytes_s" BytesPerSecond [replay more];
ReadBandwidthBytesS "read_bandwidth_bytes_s" BytesPerSecond [more];
WriteBandwidthBytesS "write_bandwidth_bytes_s" BytesPerSecond [more];
ReadLatencyMeanNs "read_latency_mean_ns" Nanoseconds [replay less];
ReadLatencyStddevNs "read_latency_stddev_ns" Nanoseconds [];
ReadLatencyP50Ns "read_latency_p50_ns" Nanoseconds [less];
ReadLatencyP95Ns "read_latency_p95_ns" Nanoseconds [less];
ReadLatencyP99Ns "read_latency_p99_ns" Nanoseconds [less];
ReadLatencyP999Ns "read_latency_p999_ns" Nanoseconds [less];
ReadLatencyMaxNs "read_latency_max_ns" Nanoseconds [less];
ReadMissLatencyMeanNs "read_miss_latency_mean_ns" Nanoseconds [less];
ReadMissLatencyStddevNs "read_miss_latency_stddev_ns" Nanoseconds [];
ReadMissLatencyP50Ns "read_miss_latency_p50_ns" Nanoseconds [less];
ReadMissLatencyP95Ns "read_miss_latency_p95_ns" Nanoseconds [less];
ReadMissLatencyP99Ns "read_miss_latency_p99_ns" Nanoseconds [less];
ReadMissLatencyP999Ns "read_miss_latency_p999_ns" Nanoseconds [less];
ReadMissLatencyMaxNs "read_miss_latency_max_ns" Nanoseconds [less];
WriteLatencyMeanNs "write_latency_mean_ns" Nanoseconds [replay less];
WriteLatencyStddevNs "write_latency_stddev_ns" Nanoseconds [];
WriteLatencyP50Ns "write_latency_p50_ns" Nanoseconds [less];
WriteLatencyP95Ns "write_latency_p95_ns" Nanoseconds [less];
WriteLatencyP99Ns "write_latency_p99_ns" Nanoseconds [less];
WriteLatencyP999Ns "write_latency_p999_ns" Nanoseconds [less];
WriteLatencyMaxNs "write_latency_max_ns" Nanoseconds [less];
CommitLatencyMeanNs "commit_latency_mean_ns" Nanoseconds [less];
CommitLatencyStddevNs "commit_latency_stddev_ns" Nanoseconds [];
CommitLatencyP50Ns "commit_latency_p50_ns" Nanoseconds [less];
CommitLatencyP95Ns "commit_latency_p95_ns" Nanoseconds [less];
CommitLatencyP99Ns "commit_latency_p99_ns" Nanoseconds [bench less];
CommitLatencyP999Ns "commit_latency_p999_ns" Nanoseconds [less];
CommitLatencyMaxNs "commit_latency_max_ns" Nanoseconds [less];
WaitQueueMeanNs "wait_queue_mean_ns" Nanoseconds [less];
WaitGcMeanNs "wait_gc_mean_ns" Nanoseconds [replay less];
WaitDieMeanNs "wait_die_mean_ns" Nanoseconds [replay less];
WaitChannelMeanNs "wait_channel_mean_ns" Nanoseconds [replay less];
WaitBufferMeanNs "wait_buffer_mean_ns" Nanoseconds [less];
WaitGcMaxNs "wait_gc_max_ns" Nanoseconds [less];
ReadWaitGcMeanNs "read_wait_gc_mean_ns" Nanoseconds [less];
ReadWaitDieMeanNs "read_wait_die_mean_ns" Nanoseconds [less];
ReadWaitChannelMeanNs "read_wait_channel_mean_ns" Nanoseconds [less];
WriteWaitGcMeanNs "write_wait_gc_mean_ns" Nanoseconds [less];
WriteWaitDieMeanNs "write_wait_die_mean_ns" Nanoseconds [less];
WriteWaitChannelMeanNs "write_wait_channel_mean_ns" Nanoseconds [less];
UserBytesWritten "user_bytes_written" Number [];
SpaceBytes "space_bytes" Bytes [bench less];
LogBytesWritten "log_bytes_written" Number [];
RecordHits "record_hits" Number [more];
RecordsMerged "records_merged" Number [];
RecordMerges "record_merges" Number [];
RecordsCarried "records_carried" Number [];
LogFlushes "log_flushes" Number [];
Flushes "flushes" Number [];
Checkpoints "checkpoints" Number [];
RowsVerified "rows_verified" Number [];
HostPagesWritten "host_pages_written" Number [gc bench less];
FlashPagesRead "flash_pages_read" Number [];
FlashPagesProgrammed "flash_pages_programmed" Number [less];
GcPagesCopied "gc_pages_copied" Number [gc less];
Erases "erases" Number [gc less];
Waf "waf" Number [pool gc replay bench less];
WafSteady "waf_steady" Number [gc less];
WafClosedForm "waf_closed_form" Number [gc];
SpareEffective "spare_effective" Number [gc];
LayerPagesCopied "layer_pages_copied" Number [less];
LayerPagesPadded "layer_pages_padded" Number [];
LayerSegmentsFreed "layer_segments_freed" Number [];
LayerWaf "layer_waf" Number [pool replay less];
DriveWaf "drive_waf" Number [pool replay less];
MergedPages "merged_pages" Number [];
Overlaps "overlaps" Number [];
Suspensions "suspensions" Number [];
EnergyJ "energy_j" Number [less];
EnergyPerPageWrittenUj "energy_per_page_written_uj" Number [less];
WearMin "wear_min" Number [];
WearMean "wear_mean" Number [];
WearMax "wear_max" Number [less];
MappingBytes "mapping_bytes" Bytes [less];
LayerMappingBytes "layer_mapping_bytes" Bytes [less];
PlacementBytes "placement_bytes" Bytes [less];
ValidShareError "valid_share_error" Number [];
Groups "groups" Number [gc];
GroupsSized "groups_sized" Number [];
HotSegments "hot_segments" Number [gc];
LastSegments "last_segments" Number [gc];
GroupSegments "group_segments" Number [gc];
SegmentsCollected "segments_collected" Number [];
ValidShare "valid_share" Number [gc];
ShareC1 "share_c1" Number [gc];
ShareC2 "share_c2" Number [gc];
ShareC3 "share_c3" Number [gc];
ShareC4 "share_c4" Number [gc];
ShareC5 "share_c5" Number [gc];
ShareC6 "share_c6" Number [gc];
LifetimeBytesWritten "lifetime_bytes_written" Number [more];
LifetimeDwpd5y "lifetime_dwpd_5y" Number [more];
LifetimeYearsAtThisRate "lifetime_years_at_this_rate" Number [more];
// Of a device.
Alpha "alpha" Number [profile];
AlphaTarget "alpha_target" Number [profile];
KR "k_r" Number [profile];
KRTarget "k_r_target" Name [profile];
KW "k_w" Number [profile];
KWTarget "k_w_target" Name [profile];
KR90 "k_r_90" Number [];
KW90 "k_w_90" Number [];
ReadIopsMax "read_iops_max" Number [profile];
WriteIopsMax "write_iops_max" Number [profile];
ReadIops "read_iops" Number [profile more];
WriteIops "write_iops" Number [profile more];
Verdict "verdict" Name [profile];
// Of a trace.
File "file" Name [];
Format "format" Name [];
Requests "requests" Number [];
Reads "reads" Number [];
Writes "writes" Number [];
Trims "trims" Number [];
ReadShare "read_share" Number [];
ReadSizeMin "read_size_min" Number [];
ReadSizeMean "read_size_mean" Number [];
ReadSizeMax "read_size_max" Number [];
WriteSizeMin "write_size_min" Number [];
WriteSizeMean "write_size_mean" Number [];
WriteSizeMax "write_size_max" Number [];
SizeUnit "size_unit" Name [];
FootprintPages "footprint_pages" Number [];
FootprintReadPages "footprint_read_pages" Number [];
FootprintWrittenPages "footprint_written_pages" Number [];
DurationNs "duration_ns" Nanoseconds [];
RateRequestsS "rate_requests_s" Number [axis absent];
PeakRequestsS "peak_requests_s" Number [];
Burstiness "burstiness" Number [];
Volumes "volumes" Number [];
SequentialShare "sequential_share" Number [];
ReuseShare "reuse_share" Number [];
Skipped "skipped" Number [];
SkippedWhy "skipped_why" Name [];
RequestsLeftOut "requests_left_out" Number [];
Loses "loses" Name [];
TimesClamped "times_clamped" Number [];
// Of a store in a file.
Out "out" Name [];
Table "table" Name [];
Tables "tables" Number [];
Index "index" Name [];
Levels "levels" Number [];
InnerPages "inner_pages" Number [];
Leaves "leaves" Number [];
LeafFill "leaf_fill" Number [];
Records "records" Number [];
RecordBytes "record_bytes" Bytes [];
RecordsS "records_s" Number [more];
FileBytes "file_bytes" Bytes [];
PagesUsed "pages_used" Number [];
PagesFree "pages_free" Number [];
PagesUnused "pages_unused" Number [];
PagesCopied "pages_copied" Number [];
CopiedBytes "copied_bytes" Bytes [];
LogUsedBytes "log_used_bytes" Bytes [];
Problems "problems" Number [];
Page "page" Number [];
Problem "problem" Name [];
Lost "lost" Name [];
LostRanges "lost_ranges" Number [];
LostValues "lost_values" Number [];
LostFrom "lost_from" Name [];
LostTo "lost_to" Name [];
LostExcept "lost_except" Number [];
RecordsWaiting "records_waiting" Number [];
// Of a list.
Kind "kind" Name [list];
Name "name" Name [list];
About "about" Name [list];
Options "options" Name [];
Default "default" Name [list];
Targets "targets" Name [list];
Source "source" Name [];
// Of two results beside each other.
Metric "metric" Name [];
A "a" Number [];
B "b" Number [];
Change "change" Number [];
// Of advice: what was compared, and what it changes as a share of what was there before.
Goal "goal" Name [];
Plain "plain" Name [];
Advised "advised" Name [];
ThroughputChange "throughput_change" Number [more];
ThroughputChangeMin "throughput_change_min" Number [];
ThroughputChangeMax "throughput_change_max" Number [];
ThroughputChangeWithout "throughput_change_without" Number [];
LatencyP99Change "latency_p99_change" Number [less];
LatencyP99ChangeMin "latency_p99_change_min" Number [];
LatencyP99ChangeMax "latency_p99_change_max" Number [];
LatencyP99ChangeWithout "latency_p99_change_without" Number [];
HeldOut "held_out" Number [];
HeldOutBetter "held_out_better" Number [];
Repeat "repeat" Name [];
// For people.
Note "note" Name [];
Explanation "explanation" Name [];
// Of the machine that ran it, and of the simulator itself.
CpuNsPerOp "cpu_ns_per_op" Number [cost less];
SimWallS "sim_wall_s" Number [cost];
SimOpsS "sim_ops_s" Number [cost];
PeakRssBytes "peak_rss_bytes" Bytes [cost];
// What runs will need.
Runs "runs" Number [];
RunsAtOnce "runs_at_once" Number [];
NeededBytes "needed_bytes" Bytes [];
AvailableBytes "available_bytes" Bytes [];
EstimateS "estimate_s" Number [];
EstimateLeastS "estimate_least_s" Number [];
EstimateMostS "estimate_most_s" Number [];
}

impl Column {
    /// Every column, in order.
    pub fn all() -> impl DoubleEndedIterator<Item = Column> + Clone {
        DECLARED.iter().map(|(column, ..)| *column)
    }

    /// The column called `name`; the error offers the nearest name.
    pub fn from_name(name: &str) -> Result<Column, SpecError> {
        let found = DECLARED.iter().find(|(_, known, ..)| *known == name);
        found.map(|(column, ..)| *column).ok_or_else(|| {
            let names: Vec<&str> = Column::all().map(Column::name).collect();
            SpecError::unknown_of_many("column", name, &names, "fulgurite list columns")
        })
    }

    /// Its name, as CSV and JSON have it.
    pub fn name(self) -> &'static str {
        DECLARED[self as usize].1
    }

    /// What its values are.
    pub fn unit(self) -> Unit {
        DECLARED[self as usize].2
    }

    fn has(self, mark: Mark) -> bool {
        DECLARED[self as usize].3.contains(&mark)
    }

    /// Whether it tells one run of a grid from another.
    pub fn is_axis(self) -> bool {
        self.has(Mark::axis)
    }

    /// Whether a run that has no value in it was asked for something else than one that has.
    pub fn tells_when_absent(self) -> bool {
        self.has(Mark::absent)
    }

    /// Whether it is about the cost of the execution itself, such as CPU time, which differs from one to the next.
    pub fn is_cost(self) -> bool {
        self.has(Mark::cost)
    }

    /// Which of two values is the better one: the greater, the lesser, or neither.
    pub fn better(self) -> Option<Ordering> {
        match (self.has(Mark::more), self.has(Mark::less)) {
            (true, _) => Some(Ordering::Greater),
            (_, true) => Some(Ordering::Less),
            _ => None,
        }
    }

    /// Whether `command` shows it first.
    pub fn is_shown_by(self, command: Command) -> bool {
        self.has(match command {
            Command::Pool => Mark::pool,
            Command::Gc => Mark::gc,
            Command::Replay => Mark::replay,
            Command::Bench => Mark::bench,
            Command::Profile => Mark::profile,
        })
    }

    /// Whether a list of names shows it first.
    pub fn is_shown_by_lists(self) -> bool {
        self.has(Mark::list)
    }
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_columns_and_names_are_unique() {
        for (at, (column, name, ..)) in DECLARED.iter().enumerate() {
            assert_eq!(*column as usize, at, "{name}");
            assert_eq!(Column::from_name(name), Ok(*column), "{name} stands twice");
        }
    }

    #[test]
    fn a_unit_stands_last_in_a_name() {
        for column in Column::all() {
            let suffix = match column.unit() {
                Unit::BytesPerSecond => "_bytes_s",
                Unit::Bytes => "_bytes",
                Unit::Nanoseconds => "_ns",
                Unit::Name | Unit::Number => continue,
            };
            assert!(column.name().ends_with(suffix), "{column}");
        }
        // The other way round: a name that ends with a unit has it.
        let bare = |column: &Column| matches!(column.unit(), Unit::Name | Unit::Number);
        let wrong = Column::all().filter(bare).find(|column| {
            ["_ns", "_bytes", "_bytes_s"].iter().any(|suffix| column.name().ends_with(suffix))
        });
        assert_eq!(wrong, None);
    }

    #[test]
    fn an_unknown_column_is_named_with_the_nearest() {
        let sentence = Column::from_name("waf_stedy").unwrap_err().to_string();
        assert!(sentence.contains("did you mean `waf_steady`?"), "{sentence}");
    }
}
