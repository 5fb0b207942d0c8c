//! Tests of the parameters of a drive: each parameter has an effect, and impossible values are refused.

use super::*;

#[test]
fn every_parameter_changes_something() {
    let base = SsdConfig {
        channels: 4,
        chips: 2,
        dies: 2,
        planes: 2,
        blocks: 24,
        pages: 16,
        op: Share::percent(50),
        read_command: Nanos(500),
        read_page: Nanos(500),
        read_latency: Nanos(3_000),
        write_command: Nanos(500),
        write_page: Nanos(500),
        write_latency: Nanos(3_000),
        write_buffer: 512 << 10,
        queue_depth: 64,
        ..preset::reference_e()
    };
    let configure = |options: &str| {
        let spec = Spec::parse(&format!("x:{options}")).unwrap();
        base.clone().changed_by(spec).unwrap_or_else(|error| panic!("{options}: {error}"))
    };
    assert_eq!(observe(base.clone()), observe(base.clone()), "a run repeats exactly");
    // Skips parameters that tests/features tests: effects of wear take longer to appear, and this load shares
    // no pages. The figures on the label change only the lifetime that `stack` reports. tests/zones.rs writes
    // zones in order.
    let elsewhere = |key: &str| {
        let tested = ["share_pages", "nominal", "rated", "zones", "active_zones", "conventional"];
        key.starts_with("wear_") || tested.contains(&key)
    };
    for param in SsdConfig::OPTIONS.iter().filter(|param| !elsewhere(param.key)) {
        // For each parameter: the changed value, the value to compare with, and further options of both
        // drives.
        let (changed, before, beside) = match param.key {
            "op" => ("65%", "", ""),
            "flash_page" => ("16KiB", "", ""),
            "cell_bits" => ("4", "cell_bits=2", "read_spread=50%"),
            "one_shot" => ("yes", "", "cell_bits=2"),
            "read_spread" | "program_spread" => ("50%", "", "cell_bits=2"),
            "parity" => ("4", "", ""),
            "suspensions" => ("1", "", "schedule=preemptive"),
            "resume_us" => ("100", "", "schedule=preemptive"),
            "suspend_points" => ("3", "", "schedule=preemptive"),
            "page" => ("8KiB", "", ""),
            "write_buffer" => ("64KiB", "", ""),
            "write_cache" => ("off", "", ""),
            "victim" => ("fifo", "", ""),
            "gc_unit" => ("die", "", ""),
            "stripe" => ("address", "", "gc_unit=channel"),
            "gc_overlap" => ("yes", "", "gc_reserve=7,gc_unit=channel,schedule=semi-preemptive"),
            "schedule" => ("non-preemptive", "", ""),
            "precondition" => ("fill", "", ""),
            "gc_reserve" => ("5", "", ""),
            "gc_hard" => ("2", "", "schedule=semi-preemptive"),
            "gc_background" => ("6", "", ""),
            "gc_idle_us" => ("40000", "gc_idle_us=1000", "gc_background=6"),
            "urgent_us" => ("1", "", "schedule=semi-preemptive"),
            "suspend_us" => ("100", "", "schedule=preemptive"),
            "streams" => ("3", "", "gc_reserve=4,gc_hard=3"),
            "fdp" => ("handles:3:persistently", "", "gc_reserve=4,gc_hard=3"),
            "ru" => ("1MiB", "", ""),
            "placement" => ("sep-gc", "", ""),
            "endurance" => ("1", "", ""),
            "bad_blocks" => ("3%", "", ""),
            // Media overwritten in place have no multi-plane programs, so the comparison is with one plane.
            "in_place" => ("yes", "", "planes=1"),
            "queue_depth" | "slots" => ("8", "", ""),
            "channels" | "chips" | "dies" | "planes" => ("1", "", ""),
            "blocks" => ("32", "", ""),
            "pages" => ("24", "", ""),
            "read_mw" | "program_mw" | "erase_mw" | "transfer_mw" => ("40", "", ""),
            _ => ("77.7", "", ""),
        };
        assert_ne!((param.show)(&base), changed);
        let options = |parts: [&str; 2]| {
            parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
        };
        let before = options([beside, before]);
        let before = if before.is_empty() { base.clone() } else { configure(&before) };
        let after = configure(&options([beside, &format!("{}={changed}", param.key)]));
        assert_ne!(observe(after), observe(before), "{} changes nothing", param.key);
    }
    assert_ne!(
        observe(configure("write_cache=volatile")),
        observe(base.clone()),
        "a volatile buffer delays erases"
    );
}

#[test]
fn absurd_parameters_are_refused_with_their_name() {
    for (options, named) in [
        ("channels=0", "channels=0 of p4510 is out of range"),
        ("planes=9", "planes=9 of p4510 is out of range; accepted: 1 to 8"),
        ("blocks=4G", "blocks=4G of p4510 is out of range"),
        ("blocks=16M", "2^32"),
        ("op=0%", "op=0% cannot collect"),
        ("blocks=3", "blocks=3 pages=128"),
        ("gc_reserve=1", "gc_reserve=1"),
        ("page=5KiB", "page"),
        ("write_buffer=4KiB", "write_buffer=4KiB"),
        ("victim=gredy", "did you mean `greedy`"),
        ("schedule=x", "known: non-preemptive semi-preemptive preemptive paced"),
        ("schedule=paced+merge", "accepted: semi-preemptive and preemptive"),
        ("gc_reserve=2,gc_hard=2", "accepted: at least 3"),
        ("gc_background=1K", "gc_background=1000 can never be reached"),
        ("gc_idle_us=5", "gc_idle_us changes nothing without gc_background"),
        ("suspend_us=5", "suspend_us changes nothing unless the schedule suspends"),
        (
            "schedule=paced+suspend-erases,suspend_points=3",
            "suspend_points changes nothing with +suspend-erases",
        ),
        ("flash_page=2KiB", "flash_page=2KiB is smaller than page=4KiB; accepted: page"),
        ("flash_page=64KiB,cell_bits=3,one_shot=yes,pages=129", "a program writes 192 pages"),
        ("cell_bits=3,one_shot=yes", "pages=128 does not go with cell_bits=3 and one_shot=yes"),
        ("one_shot=yes", "one_shot changes nothing with cell_bits=1"),
        ("cell_bits=2,one_shot=yes,program_spread=5%", "program_spread changes nothing with one_shot=yes"),
        ("flash_page=16KiB,write_cache=off", "accepted: write_cache=protected"),
        ("in_place=yes,planes=1,flash_page=16KiB", "in_place=yes has no flash pages"),
        ("parity=1", "parity=1 leaves no row for data"),
        ("in_place=yes,planes=1,parity=3", "in_place=yes has no parity"),
        ("wear_gap=5", "wear_gap changes nothing unless wear_leveling=static"),
        ("schedule=non-preemptive,urgent_us=5", "urgent_us changes nothing"),
        ("in_place=yes,planes=1,victim=fifo", "victim changes nothing with in_place=yes"),
        ("bad_blocks=60%", "bad_blocks=60% of p4510 is out of range"),
        ("bad_blocks=45%", "cannot collect their own garbage"),
        ("placement=sepbit,streams=4", "4 streams do not go with placement=sepbit"),
        ("streams=300", "accepted: 1 to 256"),
        ("write_cache=on", "known: protected volatile off"),
        ("wear_leveling=yes", "known: none dynamic static"),
        ("in_place=maybe", "neither yes nor no"),
        ("precondition=full", "known: none fill steady"),
        ("stripe=address", "stripe changes nothing where the drive is collected as one unit"),
        ("gc_unit=channel,write_cache=volatile", "accepted: stripe=address, or write_cache=protected or off"),
        ("gc_unit=die,gc_overlap=yes", "gc_overlap changes nothing in units of one die"),
        ("gc_unit=block", "known: drive channel chip die plane"),
        ("gc_unit=die,placement=sepbit,blocks=20", "in each of 32 units"),
        ("in_place=yes,planes=1,gc_unit=die", "gc_unit changes nothing with in_place=yes"),
        ("in_place=yes,planes=1,share_pages=8", "share_pages changes nothing with in_place=yes"),
        ("gc_unit=channel,stripe=address,share_pages=8", "share_pages changes nothing with stripe=address"),
        ("share_pages=2M", "share_pages=2M of p4510 is out of range"),
        ("chanels=3", "did you mean `channels`"),
    ] {
        let sentence =
            preset::configure(Spec::parse(&format!("p4510:{options}")).unwrap()).unwrap_err().to_string();
        assert!(sentence.contains(named), "{options}: {sentence}");
    }
}

/// The rule: a value at the bound is accepted, and one beyond it is refused.
#[test]
fn values_at_the_bounds_are_accepted_and_beyond_refused() {
    let fits = |change: fn(SsdConfig) -> SsdConfig| change(one_die()).validate().is_ok();
    // A drive may have 65,536 dies, but not twice as many.
    assert!(fits(|drive| SsdConfig { channels: 256, chips: 16, dies: 16, ..drive }));
    assert!(!fits(|drive| SsdConfig { channels: 256, chips: 16, dies: 32, ..drive }));
    assert!(!fits(|drive| SsdConfig { channels: 32, chips: 256, dies: 16, ..drive }));
    // Pages of the drive are numbered in 32 bits: 2^16 dies of 2^8 blocks of 2^8 pages are one page too many.
    let dies = |drive| SsdConfig { channels: 256, chips: 16, dies: 16, ..drive };
    let refused =
        SsdConfig { blocks: 256, pages: 256, ..dies(one_die()) }.validate().unwrap_err().to_string();
    assert!(refused.contains("4294967296 pages; accepted: fewer than 2^32"), "{refused}");
    // The write buffer has at least sixteen pages.
    assert!(fits(|drive| SsdConfig { write_buffer: 16 * 4096, ..drive }));
    assert!(!fits(|drive| SsdConfig { write_buffer: 15 * 4096, ..drive }));
    let refused = SsdConfig { write_buffer: 4096, ..one_die() }.validate().unwrap_err().to_string();
    assert!(refused.contains("accepted: at least 64KiB"), "{refused}");
    let in_place = |planes| SsdConfig { in_place: true, planes, ..one_die() };
    assert!(in_place(1).validate().is_ok() && in_place(2).validate().is_err());
    // The unit of erases for sequential writes is one segment of every unit.
    let erased = |gc_unit| {
        SsdConfig { channels: 4, planes: 2, blocks: 40, gc_unit, ..one_die() }.caps(false).erase_pages
    };
    assert_eq!([GcUnit::Drive, GcUnit::Channel, GcUnit::Plane].map(erased), [512; 3]);
}
