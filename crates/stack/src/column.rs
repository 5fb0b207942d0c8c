//! Declares each column of result rows once. A declaration has the name, the unit, the marks and the meaning
//! of a column. A mark says, for example, that the column tells runs apart. Rows, CSV, reports and findings
//! all use this table.

use crate::Command;
use crate::value::Unit;
use fulgurite_base::SpecError;
use std::cmp::Ordering;

/// The declaration of a column.
struct Declared {
    column: Column,
    name: &'static str,
    unit: Unit,
    marks: &'static [Mark],
    /// The meaning of the column, as the reference prints it.
    meaning: &'static str,
}

/// A property of a column.
#[allow(non_camel_case_types)] // the words of the table below
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// The column tells the runs of a grid apart.
    axis,
    /// An empty cell tells runs apart too, because it means that the run was not asked for this value.
    absent,
    /// The column is a cost of the execution itself, which differs at each execution.
    cost,
    /// Larger values are better.
    more,
    /// Smaller values are better.
    less,
    /// The column is a main column of `pool`, which tables for people show by default. The marks below say
    /// the same for other commands and for lists of names.
    pool,
    gc,
    replay,
    bench,
    profile,
    serve,
    list,
}

macro_rules! columns {
    ($($column:ident $name:literal $unit:ident [$($mark:ident)*] $meaning:literal;)*) => {
        /// A column of result rows. The order is that of tables.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Column {
            $(#[doc = $meaning] $column,)*
        }

        const DECLARED: &[Declared] = &[
            $(Declared {
                column: Column::$column,
                name: $name,
                unit: Unit::$unit,
                marks: &[$(Mark::$mark),*],
                meaning: $meaning,
            },)*
        ];
    };
}

columns! {
    RunId "run_id" Name [] "hash of the run's description: equal runs have equal ids";
    Part "part" Name [axis] "part of the study";
    // These columns describe the run.
    Workload "workload" Name [axis pool gc replay] "workload or trace";
    Benchmark "benchmark" Name [axis bench] "benchmark, with options";
    Transaction "transaction" Name [axis absent bench] "type of transaction, with --by-type";
    Scale "scale" Number [axis] "size of the benchmark's data, in multiples of its default";
    Device "device" Name [axis pool replay bench profile serve] "device, with options";
    Channels "channels" Number [] "channels of the simulated drive";
    Replacement "replacement" Name [axis pool] "replacement policy";
    WriteBack "write_back" Name [axis pool] "write-back policy, as it was asked for";
    NW "n_w" Number [pool] "pages that one write-back writes together";
    NE "n_e" Number [] "frames that one write-back frees";
    Buffers "buffers" Number [] "spare frames for pages that are being written";
    Ahead "ahead" Number [] "clean frames that a cleaner keeps ahead of the misses";
    Prefetch "prefetch" Name [axis] "prefetch policy";
    Pattern "pattern" Name [axis absent profile] "pattern of writes, with --suite overwrite and the like";
    Layer "layer" Name [axis absent pool replay serve] "layer above the drive";
    Placement "placement" Name [axis gc replay] "placement policy";
    Victim "victim" Name [axis gc] "policy that chooses the segment to collect";
    Schedule "schedule" Name [axis replay serve] "schedule of garbage collection";
    Place "place" Name [axis] "place of pages: in place, or out of place in segments";
    TornPages "torn_pages" Name [axis] "protection of pages from torn writes";
    Degree "degree" Number [axis] "rows that an index scan reads at once";
    Durability "durability" Name [axis] "durability of commits";
    MemoryBytes "memory_bytes" Bytes [axis] "memory of the engine";
    LogBytes "log_bytes" Bytes [axis] "size of the log's area on the drive";
    RecordShare "record_share" Number [axis] "share of the engine's memory that holds single records";
    Sample "sample" Number [axis absent] "share of the pages from which a curve was made, if not all of them";
    Frames "frames" Number [axis] "frames of the pool";
    Pages "pages" Number [axis] "pages that the workload ranges over";
    PageBytes "page_bytes" Bytes [axis profile] "page size, or size of a request";
    Segments "segments" Number [axis] "segments of the physical space";
    SegmentPages "segment_pages" Number [axis] "pages of a segment";
    GcReserve "gc_reserve" Number [axis] "free segments below which garbage is collected";
    Users "users" Number [axis absent bench] "users in a closed loop, each with one request outstanding";
    Speed "speed" Number [axis absent]
        "speed at which the workload's arrival times are replayed, relative to the original";
    CpuPerRequestNs "cpu_per_request_ns" Nanoseconds [axis] "CPU time that is charged for a request";
    Cores "cores" Number [axis absent]
        "simulated cores that users or shards are spread over, if there is more than one";
    Shards "shards" Number [axis absent] "shards of the store, if there is more than one";
    CpuPerOpNs "cpu_per_op_ns" Nanoseconds [axis] "CPU time that is charged for an operation of the engine";
    Seed "seed" Number [axis] "seed of all randomness";
    Skip "skip" Number [axis absent] "requests of the workload that are left out before the first";
    Group "group" Name [axis absent gc] "group of segments, with --groups";
    TimePages "time_pages" Number [axis absent gc] "beginning of the interval, in page writes";
    TimeLimitNs "time_limit_ns" Nanoseconds [axis] "time that a benchmark was asked to run for, with --time";
    // These columns are the result of the run.
    TimeRequests "time_requests" Number [] "beginning of the interval, in requests";
    TimeNs "time_ns" Nanoseconds [absent replay bench] "beginning of the interval, in time";
    IntervalNs "interval_ns" Nanoseconds [] "length of the interval";
    Ops "ops" Number [] "requests or transactions in the row";
    ElapsedNs "elapsed_ns" Nanoseconds [pool less] "time that they took, on the device's clock";
    Rounds "rounds" Number [replay]
        "rounds until the run was steady, with --until-steady; the row is about the last one";
    RoundWafChange "round_waf_change" Number [replay]
        "change of waf from the round before to the last, as a share";
    RoundP99Change "round_p99_change" Number [replay]
        "change of the p99 from the round before to the last, as a share";
    OfferedOpsS "offered_ops_s" Number [replay] "requests that arrived per second, in an open loop";
    DoneOpsS "done_ops_s" Number [profile more]
        "requests of the load that ended per second, without the probe's, with --suite latency";
    LoadLatencyP50Ns "load_latency_p50_ns" Nanoseconds [less]
        "response time of the load beside the probe: median";
    LoadLatencyP99Ns "load_latency_p99_ns" Nanoseconds [less]
        "response time of the load beside the probe: 99th percentile";
    ThroughputOpsS "throughput_ops_s" Number [pool replay bench profile serve more]
        "requests or transactions per second";
    Retries "retries" Number [less] "transactions that were tried again";
    Rollbacks "rollbacks" Number [] "transactions that the benchmark rolled back on purpose";
    CommitsAcross "commits_across" Number []
        "transactions that were committed in several shards, if the store has several";
    Deadlocks "deadlocks" Number [less] "transactions that were ended because of a deadlock";
    Hits "hits" Number [more] "requests that found their page in the pool";
    Misses "misses" Number [less] "requests that did not find their page in the pool";
    HitRatio "hit_ratio" Number [pool bench more] "hits over requests";
    MissRatio "miss_ratio" Number [pool less] "misses over requests, with --curve";
    MissRatioError "miss_ratio_error" Number [pool]
        "with a sample: half the width of an interval around miss_ratio that should have the exact one in 95 of 100 \
         cases";
    ReadIos "read_ios" Number [] "read requests to the device";
    WriteIos "write_ios" Number [pool less]
        "write requests to the device: a batch of pages is one request";
    PagesRead "pages_read" Number [pool less] "pages read from the device";
    PagesWritten "pages_written" Number [pool less]
        "pages written to the device, without the flush at the end";
    PagesMoved "pages_moved" Number [less] "pages that the store's own collection has moved, out of place";
    DeltasWritten "deltas_written" Number [] "deltas that the store has written: merges without a read of the leaf";
    DeltasRead "deltas_read" Number [less] "deltas that the store has read with their pages";
    PagesConsolidated "pages_consolidated" Number [] "pages with deltas that the store has written as a whole";
    PagesFlushed "pages_flushed" Number [] "dirty pages written by the flush at the end";
    Prefetched "prefetched" Number [] "pages that prefetching read";
    PrefetchHits "prefetch_hits" Number [more] "prefetched pages that were used";
    PrefetchWasted "prefetch_wasted" Number [] "prefetched pages that left the pool unused";
    WriteWaits "write_waits" Number [less] "misses that waited for a write";
    Rescued "rescued" Number [] "pages that were asked for between their eviction and the end of their write";
    PagesChecked "pages_checked" Number [] "pages whose content was checked";
    LatencyMeanNs "latency_mean_ns" Nanoseconds [replay serve less] "response time: mean";
    LatencyStddevNs "latency_stddev_ns" Nanoseconds [replay] "response time: standard deviation";
    LatencyP50Ns "latency_p50_ns" Nanoseconds [bench less] "response time: median";
    LatencyP95Ns "latency_p95_ns" Nanoseconds [less] "response time: 95th percentile";
    LatencyP99Ns "latency_p99_ns" Nanoseconds [pool replay bench serve less] "response time: 99th percentile";
    LatencyP99SliceMaxNs "latency_p99_slice_max_ns" Nanoseconds [less]
        "response time: 99th percentile in the worst of eight slices of the workload, with --until-steady";
    LatencyP999Ns "latency_p999_ns" Nanoseconds [replay less] "response time: 99.9th percentile";
    LatencyMaxNs "latency_max_ns" Nanoseconds [replay serve less] "response time: maximum";
    LatencyVarianceNs2 "latency_variance_ns2" Number [] "response time: variance";
    BandwidthBytesS "bandwidth_bytes_s" BytesPerSecond [replay more] "bytes read and written per second";
    ReadBandwidthBytesS "read_bandwidth_bytes_s" BytesPerSecond [more] "bytes read per second";
    WriteBandwidthBytesS "write_bandwidth_bytes_s" BytesPerSecond [more] "bytes written per second";
    ReadLatencyMeanNs "read_latency_mean_ns" Nanoseconds [replay serve less] "response time of reads: mean";
    ReadLatencyStddevNs "read_latency_stddev_ns" Nanoseconds [] "response time of reads: standard deviation";
    ReadLatencyP50Ns "read_latency_p50_ns" Nanoseconds [profile less] "response time of reads: median";
    ReadLatencyP95Ns "read_latency_p95_ns" Nanoseconds [less] "response time of reads: 95th percentile";
    ReadLatencyP90Ns "read_latency_p90_ns" Nanoseconds [less] "response time of reads: 90th percentile";
    ReadLatencyP99Ns "read_latency_p99_ns" Nanoseconds [profile less] "response time of reads: 99th percentile";
    ReadLatencyP99SliceMaxNs "read_latency_p99_slice_max_ns" Nanoseconds [less]
        "response time of reads: 99th percentile in the worst of eight slices of the workload, with --until-steady";
    ReadLatencyP999Ns "read_latency_p999_ns" Nanoseconds [less] "response time of reads: 99.9th percentile";
    ReadLatencyMaxNs "read_latency_max_ns" Nanoseconds [less] "response time of reads: maximum";
    ReadMissLatencyMeanNs "read_miss_latency_mean_ns" Nanoseconds [less]
        "response time of reads that had to wait, mostly for the drive: mean";
    ReadMissLatencyStddevNs "read_miss_latency_stddev_ns" Nanoseconds []
        "response time of reads that had to wait, mostly for the drive: standard deviation";
    ReadMissLatencyP50Ns "read_miss_latency_p50_ns" Nanoseconds [less]
        "response time of reads that had to wait, mostly for the drive: median";
    ReadMissLatencyP95Ns "read_miss_latency_p95_ns" Nanoseconds [less]
        "response time of reads that had to wait, mostly for the drive: 95th percentile";
    ReadMissLatencyP99Ns "read_miss_latency_p99_ns" Nanoseconds [less]
        "response time of reads that had to wait, mostly for the drive: 99th percentile";
    ReadMissLatencyP999Ns "read_miss_latency_p999_ns" Nanoseconds [less]
        "response time of reads that had to wait, mostly for the drive: 99.9th percentile";
    ReadMissLatencyMaxNs "read_miss_latency_max_ns" Nanoseconds [less]
        "response time of reads that had to wait, mostly for the drive: maximum";
    WriteLatencyMeanNs "write_latency_mean_ns" Nanoseconds [replay serve less] "response time of writes: mean";
    WriteLatencyStddevNs "write_latency_stddev_ns" Nanoseconds []
        "response time of writes: standard deviation";
    WriteLatencyP50Ns "write_latency_p50_ns" Nanoseconds [profile less] "response time of writes: median";
    WriteLatencyP95Ns "write_latency_p95_ns" Nanoseconds [less] "response time of writes: 95th percentile";
    WriteLatencyP90Ns "write_latency_p90_ns" Nanoseconds [less] "response time of writes: 90th percentile";
    WriteLatencyP99Ns "write_latency_p99_ns" Nanoseconds [profile less] "response time of writes: 99th percentile";
    WriteLatencyP99SliceMaxNs "write_latency_p99_slice_max_ns" Nanoseconds [less]
        "response time of writes: 99th percentile in the worst of eight slices of the workload, with --until-steady";
    WriteLatencyP999Ns "write_latency_p999_ns" Nanoseconds [less]
        "response time of writes: 99.9th percentile";
    WriteLatencyMaxNs "write_latency_max_ns" Nanoseconds [less] "response time of writes: maximum";
    CommitLatencyMeanNs "commit_latency_mean_ns" Nanoseconds [less] "time of a commit: mean";
    CommitLatencyStddevNs "commit_latency_stddev_ns" Nanoseconds [] "time of a commit: standard deviation";
    CommitLatencyP50Ns "commit_latency_p50_ns" Nanoseconds [less] "time of a commit: median";
    CommitLatencyP95Ns "commit_latency_p95_ns" Nanoseconds [less] "time of a commit: 95th percentile";
    CommitLatencyP99Ns "commit_latency_p99_ns" Nanoseconds [bench less] "time of a commit: 99th percentile";
    CommitLatencyP999Ns "commit_latency_p999_ns" Nanoseconds [less] "time of a commit: 99.9th percentile";
    CommitLatencyMaxNs "commit_latency_max_ns" Nanoseconds [less] "time of a commit: maximum";
    WaitQueueMeanNs "wait_queue_mean_ns" Nanoseconds [less] "mean wait in front of a full queue";
    WaitGcMeanNs "wait_gc_mean_ns" Nanoseconds [replay serve less] "mean wait for garbage collection";
    WaitDieMeanNs "wait_die_mean_ns" Nanoseconds [replay less]
        "mean wait for a die that another request of the host uses";
    WaitChannelMeanNs "wait_channel_mean_ns" Nanoseconds [replay less] "mean wait for a channel";
    WaitBufferMeanNs "wait_buffer_mean_ns" Nanoseconds [less] "mean wait for room in the write buffer";
    WaitGcMaxNs "wait_gc_max_ns" Nanoseconds [less] "longest wait for garbage collection";
    ReadWaitGcMeanNs "read_wait_gc_mean_ns" Nanoseconds [less] "mean wait of reads for garbage collection";
    ReadWaitDieMeanNs "read_wait_die_mean_ns" Nanoseconds [less] "mean wait of reads for a die";
    ReadWaitChannelMeanNs "read_wait_channel_mean_ns" Nanoseconds [less] "mean wait of reads for a channel";
    WriteWaitGcMeanNs "write_wait_gc_mean_ns" Nanoseconds [less] "mean wait of writes for garbage collection";
    WriteWaitDieMeanNs "write_wait_die_mean_ns" Nanoseconds [less] "mean wait of writes for a die";
    WriteWaitChannelMeanNs "write_wait_channel_mean_ns" Nanoseconds [less]
        "mean wait of writes for a channel";
    LateShare "late_share" Number [serve less]
        "answers of a served drive that were late by more than a tenth of their own latency, over all answers";
    LatenessMeanNs "lateness_mean_ns" Nanoseconds [less]
        "lateness of the answers of a served drive, against the drive's own clock: mean";
    LatenessP99Ns "lateness_p99_ns" Nanoseconds [serve less]
        "lateness of the answers of a served drive, against the drive's own clock: 99th percentile";
    LatenessMaxNs "lateness_max_ns" Nanoseconds [less]
        "lateness of the answers of a served drive, against the drive's own clock: maximum";
    PowerCuts "power_cuts" Number [] "power cuts of a served drive";
    UserBytesWritten "user_bytes_written" Number [] "bytes of keys and values that transactions wrote";
    SpaceBytes "space_bytes" Bytes [bench less] "bytes that the store occupies on the drive";
    LogBytesWritten "log_bytes_written" Number [] "bytes written to the log";
    RecordHits "record_hits" Number [more] "reads answered from single records in memory";
    RecordsMerged "records_merged" Number [] "single records that were put into their leaves";
    RecordMerges "record_merges" Number [] "leaves that single records were put into";
    RecordsCarried "records_carried" Number [] "single records that a checkpoint wrote to the log once more";
    LogFlushes "log_flushes" Number [] "flushes of the log";
    Flushes "flushes" Number [] "flush commands to the drive";
    Checkpoints "checkpoints" Number [] "checkpoints";
    RowsVerified "rows_verified" Number [] "rows whose content was compared with the expected content";
    HostPagesWritten "host_pages_written" Number [gc bench less] "pages that the host wrote to the drive";
    DriveWrites "drive_writes" Number [replay bench]
        "times that the host wrote the drive's logical space; below 1, waf and lifetime belong mostly to what \
         the drive held before";
    FlashPagesRead "flash_pages_read" Number [] "pages read from the flash";
    FlashPagesProgrammed "flash_pages_programmed" Number [less] "pages programmed into the flash";
    GcPagesCopied "gc_pages_copied" Number [gc less] "pages that garbage collection moved";
    Erases "erases" Number [gc replay less] "erased blocks or segments";
    ReclaimUnitsReallocated "reclaim_units_reallocated" Number [less]
        "reclaim units whose valid pages garbage collection moved, on a drive with FDP";
    InvalidPlacementIds "invalid_placement_ids" Number [less]
        "writes with a placement identifier that the drive does not have, on a drive with FDP";
    Waf "waf" Number [pool gc replay bench profile serve less]
        "write amplification: flash programs over the host's page writes";
    WafSteady "waf_steady" Number [gc less] "write amplification over the last half of the writes";
    WafClosedForm "waf_closed_form" Number [gc]
        "write amplification by the closed form, if one applies to the run";
    SpareEffective "spare_effective" Number [gc]
        "spare space less the segments in reserve, over the logical space (ρ of the models)";
    LayerPagesCopied "layer_pages_copied" Number [less] "pages that the layer's garbage collection moved";
    LayerPagesPadded "layer_pages_padded" Number [] "pages that the layer wrote to fill a segment";
    LayerSegmentsFreed "layer_segments_freed" Number [] "segments that the layer freed";
    LayerWaf "layer_waf" Number [pool replay less] "write amplification of the layer";
    DriveWaf "drive_waf" Number [pool replay less] "write amplification of the drive below the layer";
    MergedPages "merged_pages" Number [] "host reads that served a page of garbage collection too";
    Overlaps "overlaps" Number [] "operations that overlapped with one of garbage collection";
    Suspensions "suspensions" Number [] "programs and erases that were suspended for a read";
    EnergyJ "energy_j" Number [less] "energy of all flash operations and transfers, in joule";
    EnergyPerPageWrittenUj "energy_per_page_written_uj" Number [less]
        "energy per page that the host wrote, in microjoule";
    WearMin "wear_min" Number [] "erases of the block with the fewest";
    WearMean "wear_mean" Number [] "erases of a block: mean";
    WearMax "wear_max" Number [less] "erases of the block with the most";
    MappingBytes "mapping_bytes" Bytes [less] "memory of the drive's mapping table";
    LayerMappingBytes "layer_mapping_bytes" Bytes [less] "memory of the layer's mapping table";
    PlacementBytes "placement_bytes" Bytes [less] "memory of the placement policy";
    ValidShareError "valid_share_error" Number []
        "mean error of the placement policy's prediction of valid pages in a victim segment";
    Groups "groups" Number [gc] "groups of segments";
    GroupsSized "groups_sized" Number [] "groups whose size the placement policy has chosen";
    HotSegments "hot_segments" Number [gc] "segments of the group for pages that are overwritten soonest";
    LastSegments "last_segments" Number [gc] "segments of the last group";
    GroupSegments "group_segments" Number [gc] "segments of the group";
    SegmentsCollected "segments_collected" Number [] "segments that were collected";
    ValidShare "valid_share" Number [gc] "valid pages in a collected segment, as a share of its pages";
    ShareC1 "share_c1" Number [gc]
        "share of the group's pages in class 1 of 6 by lifetime: those that die soonest";
    ShareC2 "share_c2" Number [gc] "share of the group's pages in class 2 of 6 by lifetime";
    ShareC3 "share_c3" Number [gc] "share of the group's pages in class 3 of 6 by lifetime";
    ShareC4 "share_c4" Number [gc] "share of the group's pages in class 4 of 6 by lifetime";
    ShareC5 "share_c5" Number [gc] "share of the group's pages in class 5 of 6 by lifetime";
    ShareC6 "share_c6" Number [gc]
        "share of the group's pages in class 6 of 6 by lifetime: those that live longest";
    LifetimeBytesWritten "lifetime_bytes_written" Number [more]
        "bytes that the host can write before the flash of a drive with the label's capacity (nominal=) is worn out; \
         blank if that capacity is not known";
    LifetimeDwpd5y "lifetime_dwpd_5y" Number [more]
        "drive writes per day that the flash endures for five years";
    LifetimeYearsAtThisRate "lifetime_years_at_this_rate" Number [more]
        "years until the flash of a drive with the label's capacity (nominal=) is worn out at the rate of the run";
    RatedBytesWritten "rated_bytes_written" Number [more]
        "bytes that the maker rates the drive for (TBW, rated=); blank if they are not known";
    RatedDwpd5y "rated_dwpd_5y" Number [more] "the same as drive writes per day for five years";
    RatedYearsAtThisRate "rated_years_at_this_rate" Number [more]
        "years until the host has written what the maker rates the drive for, at the rate of the run";
    // These columns characterise a device.
    Alpha "alpha" Number [profile] "asymmetry: most reads over most writes per second";
    AlphaTarget "alpha_target" Number [profile] "published alpha, to which the preset is fitted";
    KR "k_r" Number [profile] "least number of users that reach 95 % of the most reads per second";
    KRTarget "k_r_target" Name [profile] "published k_r, to which the preset is fitted";
    KW "k_w" Number [profile] "least number of users that reach 95 % of the most writes per second";
    KWTarget "k_w_target" Name [profile] "published k_w, to which the preset is fitted";
    KR90 "k_r_90" Number [] "the same as k_r for 90 %";
    KW90 "k_w_90" Number [] "the same as k_w for 90 %";
    ReadIopsMax "read_iops_max" Number [profile] "most reads per second";
    WriteIopsMax "write_iops_max" Number [profile] "most writes per second";
    ReadIops "read_iops" Number [profile more] "reads per second of so many users, with --curve";
    WriteIops "write_iops" Number [profile more] "writes per second of so many users, with --curve";
    Verdict "verdict" Name [profile]
        "ok if alpha is within 5 % and k_r and k_w within 15 % of the published, otherwise miss";
    // These columns compare a twin with a measured drive.
    Figure "figure" Name [axis absent] "figure of a measured drive";
    Measured "measured" Number [] "the figure of the measured drive, in the unit that its name ends with";
    Simulated "simulated" Number [] "the figure of the twin";
    Deviation "deviation" Number [] "the twin's figure over the measured one, less 1";
    // These columns describe a trace.
    File "file" Name [] "the file";
    Format "format" Name [] "trace format";
    Requests "requests" Number [] "requests in the trace";
    Reads "reads" Number [] "reads in the trace";
    Writes "writes" Number [] "writes in the trace";
    Trims "trims" Number [] "trims in the trace";
    ReadShare "read_share" Number [] "reads over requests";
    ReadSizeMin "read_size_min" Number [] "smallest read, in size_unit";
    ReadSizeMean "read_size_mean" Number [] "mean read, in size_unit";
    ReadSizeMax "read_size_max" Number [] "largest read, in size_unit";
    WriteSizeMin "write_size_min" Number [] "smallest write, in size_unit";
    WriteSizeMean "write_size_mean" Number [] "mean write, in size_unit";
    WriteSizeMax "write_size_max" Number [] "largest write, in size_unit";
    SizeUnit "size_unit" Name [] "unit of the format's sizes: bytes or pages";
    FootprintPages "footprint_pages" Number [] "different pages that were requested";
    FootprintPagesError "footprint_pages_error" Number []
        "half the width of an interval around footprint_pages that should have the exact number in 95 of 100 cases; \
        empty if all footprints are exact";
    FootprintReadPages "footprint_read_pages" Number [] "different pages that were read";
    FootprintWrittenPages "footprint_written_pages" Number [] "different pages that were written";
    DurationNs "duration_ns" Nanoseconds [] "time from the first request to the last";
    RateRequestsS "rate_requests_s" Number [axis absent profile] "requests per second of a trace, or offered ones";
    PeakRequestsS "peak_requests_s" Number [] "most requests within a second; empty if all arrived within one";
    Burstiness "burstiness" Number []
        "squared coefficient of variation of the times between requests: 1 for random arrivals, more for bursts";
    Dispersion "dispersion" Number []
        "index of dispersion: variance of the requests in a second over their mean; 1 for random arrivals, more for \
         bursts";
    WorkingSetPages "working_set_pages" Number []
        "different pages that are requested in a minute, on average; with --interval, those of the interval";
    NewPages "new_pages" Number [] "pages of the interval's working set that were not requested before";
    Volume "volume" Name [] "name of the disk, device or unit, as after volume= of the format";
    Volumes "volumes" Number [] "address spaces: disks, devices or units";
    SequentialShare "sequential_share" Number [] "share of requests that begin at the end of the previous one";
    ReuseShare "reuse_share" Number [] "share of requests for a page that was requested before";
    ReuseDistanceP50 "reuse_distance_p50" Number []
        "other pages that were requested since the request before for a page, in half of the repeated requests at \
         most; LRU with more frames hits them";
    ReuseDistanceP90 "reuse_distance_p90" Number [] "the same for 90 % of the repeated requests";
    ReuseDistanceP99 "reuse_distance_p99" Number [] "the same for 99 % of the repeated requests";
    ReuseSample "reuse_sample" Number []
        "share of the pages from which the columns around this one and the working sets of intervals are estimated, if \
         not all of them";
    ReadAfterReadShare "read_after_read_share" Number [] "share of the repeated requests that read a page after a read";
    ReadAfterWriteShare "read_after_write_share" Number []
        "share of the repeated requests that read a page after a write";
    WriteAfterReadShare "write_after_read_share" Number []
        "share of the repeated requests that write a page after a read";
    WriteAfterWriteShare "write_after_write_share" Number []
        "share of the repeated requests that write a page after a write";
    Skipped "skipped" Number [] "records of the file that are no requests";
    SkippedWhy "skipped_why" Name [] "why they were skipped";
    Decided "decided" Name [] "what the reader decided because the trace does not say it";
    RequestsLeftOut "requests_left_out" Number [] "requests that the other format cannot hold";
    Loses "loses" Name [] "parts of requests that the other format cannot hold";
    TimesClamped "times_clamped" Number []
        "times that the other format cannot hold and that were set to its limit";
    // These columns describe a store in a file.
    Out "out" Name [] "the new file";
    Table "table" Name [] "table of the store";
    Tables "tables" Number [] "tables of the store";
    Index "index" Name [] "index of the table, or `(large values)`";
    Levels "levels" Number [] "levels of the tree: 1 if its root is a leaf";
    InnerPages "inner_pages" Number [] "nodes above the leaves";
    Leaves "leaves" Number [] "leaves of the tree";
    LeafFill "leaf_fill" Number [] "share of the leaves' room that records take";
    Records "records" Number [] "records";
    RecordBytes "record_bytes" Bytes [] "bytes of keys and values";
    RecordsS "records_s" Number [more] "records per second";
    FileBytes "file_bytes" Bytes [] "length of the file";
    PagesUsed "pages_used" Number [] "pages in use";
    PagesFree "pages_free" Number [] "pages that are free";
    PagesUnused "pages_unused" Number [] "pages that are marked as used but not referenced";
    PiecesUnused "pieces_unused" Number [] "pieces of large values that belong to no record";
    PagesCopied "pages_copied" Number [] "pages that a backup copied";
    CopiedBytes "copied_bytes" Bytes [] "bytes that a backup copied, the log included";
    PagesReleased "pages_released" Number [] "pages that a compaction freed";
    PiecesDeleted "pieces_deleted" Number [] "pieces of large values that belonged to no record and were deleted";
    DiskBytes "disk_bytes" Bytes [] "bytes that the file takes on the disk";
    LogUsedBytes "log_used_bytes" Bytes [] "bytes of the log that recovery would read now";
    Problems "problems" Number [] "number of problems";
    Page "page" Number [] "page that is damaged";
    Problem "problem" Name [] "description of the damage";
    Lost "lost" Name [] "data lost by the damage";
    LostRanges "lost_ranges" Number [] "ranges of keys that are lost";
    LostValues "lost_values" Number [] "values that are lost";
    LostFrom "lost_from" Name [] "first key of a lost range";
    LostTo "lost_to" Name [] "key before which the lost range ends";
    LostExcept "lost_except" Number [] "records of the lost range that the log has";
    RecordsWaiting "records_waiting" Number [] "records in the log that no page could take";
    // These columns are those of a list of names.
    Kind "kind" Name [list] "kind of the name";
    Name "name" Name [list] "the name";
    About "about" Name [list] "description";
    Options "options" Name [] "its options with their defaults";
    Default "default" Name [list] "default";
    Targets "targets" Name [list] "published figures that the preset aims at";
    Source "source" Name [] "source of the figures";
    // These columns compare two results.
    Metric "metric" Name [] "column that is compared";
    A "a" Number [] "value in the first result";
    B "b" Number [] "value in the second result";
    Change "change" Number [] "change from the first to the second, relative to the first";
    // These columns give advice. Changes are relative to the plain settings.
    Goal "goal" Name [] "objective of the advice";
    Plain "plain" Name [] "the plain value of a setting";
    Advised "advised" Name [] "the advised value of a setting";
    ThroughputChange "throughput_change" Number [more]
        "change of throughput, as a share, mean of the parts that judge";
    ThroughputChangeMin "throughput_change_min" Number [] "the least of these changes";
    ThroughputChangeMax "throughput_change_max" Number [] "the greatest of these changes";
    ThroughputChangeWithout "throughput_change_without" Number []
        "change of throughput if only this setting is plain again";
    LatencyP99Change "latency_p99_change" Number [less]
        "change of the p99, as a share, mean of the parts that judge";
    LatencyP99ChangeMin "latency_p99_change_min" Number [] "the least of these changes";
    LatencyP99ChangeMax "latency_p99_change_max" Number [] "the greatest of these changes";
    LatencyP99ChangeWithout "latency_p99_change_without" Number []
        "change of the p99 if only this setting is plain again";
    Require "require" Name [] "requirements on a drive";
    Meets "meets" Name []
        "whether the drive meets them: yes, also within the bounds of its twin's errors; likely, as simulated; \
         unlikely, only if the drive is better than its twin; no";
    Times "times" Number [] "multiple of the workload's own rate";
    SustainedOpsS "sustained_ops_s" Number [more] "requests per second that the drive sustains, in a closed loop";
    Headroom "headroom" Number [more]
        "greatest multiple of the workload's own rate at which the requirements hold";
    HeadroomLimit "headroom_limit" Name []
        "figure that breaks its requirement above that: a response time, or the rate";
    HeldOut "held_out" Number [] "seeds or slices that judge the choice and took no part in it";
    HeldOutBetter "held_out_better" Number [] "those of them in which the advice is better";
    Repeat "repeat" Name [] "command that repeats the figures";
    // These columns are remarks for people.
    Note "note" Name [] "remark on the row";
    Explanation "explanation" Name []
        "measurements, predictions and changes of the placement policy, with --explain";
    // These columns are the cost of the execution.
    CpuNsPerOp "cpu_ns_per_op" Number [cost less]
        "CPU time of this machine for a transaction, or in gc for a host page write with its copies, in nanoseconds";
    SimWallS "sim_wall_s" Number [cost] "time on this machine's clock that the run took, in seconds";
    SimOpsS "sim_ops_s" Number [cost] "requests simulated per second on this machine";
    PeakRssBytes "peak_rss_bytes" Bytes [cost] "most memory of the process";
    // These columns are the estimated needs of runs.
    Runs "runs" Number [] "runs of the grid";
    RunsAtOnce "runs_at_once" Number [] "runs at the same time";
    NeededBytes "needed_bytes" Bytes [] "memory that the runs need";
    AvailableBytes "available_bytes" Bytes [] "memory that the machine has free";
    EstimateS "estimate_s" Number [] "estimated time, in seconds: the middle of the next two";
    EstimateLeastS "estimate_least_s" Number [] "estimated time at the least, in seconds";
    EstimateMostS "estimate_most_s" Number [] "estimated time at the most, in seconds";
}

impl Column {
    /// Returns all columns in the order of tables.
    pub fn all() -> impl DoubleEndedIterator<Item = Column> + Clone {
        DECLARED.iter().map(|declared| declared.column)
    }

    /// Returns the column called `name`. The error offers the nearest name.
    pub fn from_name(name: &str) -> Result<Column, SpecError> {
        Column::all().find(|column| column.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Column::all().map(Column::name).collect();
            SpecError::unknown_of_many("column", name, &names, "fulgurite list columns")
        })
    }

    /// Returns the name of the column in CSV and JSON.
    pub fn name(self) -> &'static str {
        self.declared().name
    }

    /// Returns the unit of the column's values.
    pub fn unit(self) -> Unit {
        self.declared().unit
    }

    /// Returns the meaning of the column, as the reference prints it.
    pub fn meaning(self) -> &'static str {
        self.declared().meaning
    }

    fn declared(self) -> &'static Declared {
        &DECLARED[self as usize]
    }

    fn has(self, mark: Mark) -> bool {
        self.declared().marks.contains(&mark)
    }

    /// Whether the column tells the runs of a grid apart.
    pub fn is_axis(self) -> bool {
        self.has(Mark::axis)
    }

    /// Whether an empty cell of the column tells runs apart too.
    pub fn tells_when_absent(self) -> bool {
        self.has(Mark::absent)
    }

    /// Whether the column is a cost of the execution itself, such as CPU time, which differs at each
    /// execution.
    pub fn is_cost(self) -> bool {
        self.has(Mark::cost)
    }

    /// Returns which of two values is the better one: the greater, the lesser, or neither.
    pub fn better(self) -> Option<Ordering> {
        match (self.has(Mark::more), self.has(Mark::less)) {
            (true, _) => Some(Ordering::Greater),
            (_, true) => Some(Ordering::Less),
            _ => None,
        }
    }

    /// Whether the column is a main column of `command`, which tables for people show by default.
    pub fn is_shown_by(self, command: Command) -> bool {
        self.has(match command {
            Command::Pool => Mark::pool,
            Command::Gc => Mark::gc,
            Command::Replay => Mark::replay,
            Command::Bench => Mark::bench,
            Command::Profile => Mark::profile,
            Command::Serve => Mark::serve,
        })
    }

    /// Whether the column is a main column of lists of names, which tables for people show by default.
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
        for (at, Declared { column, name, .. }) in DECLARED.iter().enumerate() {
            assert_eq!(*column as usize, at, "{name}");
            assert_eq!(Column::from_name(name), Ok(*column), "{name} is declared twice");
        }
    }

    #[test]
    fn a_name_ends_with_its_unit() {
        for column in Column::all() {
            let suffix = match column.unit() {
                Unit::BytesPerSecond => "_bytes_s",
                Unit::Bytes => "_bytes",
                Unit::Nanoseconds => "_ns",
                Unit::Name | Unit::Number => continue,
            };
            assert!(column.name().ends_with(suffix), "{column}");
        }
        // Conversely, a name that ends with a unit has that unit.
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
