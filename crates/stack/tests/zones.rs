//! Tests layers and stores above zoned drives, and drives with reclaim-unit handles below generated workloads.

use fulgurite_stack::settings::{self, Workloads};
use fulgurite_stack::{Column, Command, Progress, Row, StackError};

/// A drive with 120 segments of 1 MiB, which are its zones.
const ZONED: &str =
    "reference-e:channels=4,planes=2,blocks=120,pages=8,op=30%,zones=1MiB,active_zones=17,write_buffer=2MiB";

fn run(command: Command, values: &[(&str, &str)]) -> Result<Row, StackError> {
    let run = settings::run(command, &values.iter().copied().collect(), &mut Workloads::default())?;
    Ok(run.execute(&Progress::default())?.remove(0))
}

fn refusal(command: Command, values: &[(&str, &str)]) -> String {
    run(command, values).unwrap_err().to_string()
}

/// The rule: a layer whose segments are the zones of the drive keeps the rules of zones under every placement
/// policy, and the drive copies nothing. So the write amplification is that of the layer.
#[test]
fn a_layer_writes_zones_in_order() {
    for placement in ["none", "sep-gc", "sepbit", "midas"] {
        let layer = format!("log:segment=1MiB,op=50%,gc_reserve=3,placement={placement}");
        let values = [
            ("workload", "zipf"),
            ("device", ZONED),
            ("layer", layer.as_str()),
            ("ops", "30K"),
            ("users", "8"),
        ];
        let row = run(Command::Replay, &values).unwrap();
        let number = |column| row.number(column).unwrap();
        assert_eq!(number(Column::DriveWaf), 1.0, "{placement}");
        assert!(number(Column::LayerWaf) > 1.2, "{placement}");
        assert_eq!(number(Column::Waf), number(Column::LayerWaf), "{placement}");
        assert!(number(Column::Erases) > 20.0, "{placement}");
    }
}

/// The rule: a store and a pool work above a layer on a zoned drive, and are refused without the layer. A layer
/// is refused if it could not keep the rules of zones.
#[test]
fn what_cannot_work_on_zones_is_refused() {
    let layer = "log:segment=1MiB,op=40%";
    let bench = [
        ("benchmark", "ycsb-a:records=4K"),
        ("device", ZONED),
        ("ops", "2K"),
        ("users", "4"),
        ("log_size", "8MiB"),
    ];
    let above = |layer: &'static str| [&bench[..], &[("layer", layer)]].concat();
    assert_eq!(run(Command::Bench, &above(layer)).unwrap().number(Column::DriveWaf), Some(1.0));
    assert!(refusal(Command::Bench, &bench).contains("accepted: a layer, like --layer log:segment=SIZE"));
    let pool = [("workload", "mixed-skewed"), ("device", ZONED), ("ops", "2K")];
    assert!(refusal(Command::Pool, &pool).contains("accepted: a layer"));
    for (layer, why) in [
        ("log:segment=2MiB,op=40%", "accepted: segment=1MiB"),
        ("log:segment=1MiB,op=40%,trim=no", "trim=no never resets a zone"),
        ("log:segment=1MiB,op=40%,placement=\"hints:streams=20\"", "accepted: active_zones=20 or more"),
    ] {
        let refused = refusal(Command::Bench, &above(layer));
        assert!(refused.contains(why), "{layer}: {refused}");
    }
    // A workload reaches the drive as it is, and the drive refuses the first write that is not in order.
    let bare = [("workload", "zipf"), ("device", ZONED), ("ops", "2K"), ("users", "2")];
    let refused = refusal(Command::Replay, &bare);
    assert!(refused.contains("zone"), "{refused}");
}

/// The rule: only a drive with FDP has columns about it. The handles of a cache on flash leave the drive hardly
/// anything to move.
#[test]
fn events_of_placement_are_columns() {
    let of = |options: &str| {
        let device =
            format!("reference-e:channels=4,planes=2,blocks=96,pages=32,op=15%,write_buffer=2MiB{options}");
        let values =
            [("workload", "cachelib-like"), ("device", device.as_str()), ("ops", "40K"), ("users", "8")];
        let row = run(Command::Replay, &values).unwrap();
        (row.number(Column::ReclaimUnitsReallocated), row.number(Column::InvalidPlacementIds))
    };
    // Above a layer too, the columns are those of the drive.
    let device = "reference-e:channels=4,planes=2,blocks=96,pages=32,op=15%,write_buffer=2MiB,fdp=handles:8";
    let layer = "log:segment=4MiB,op=30%,placement=sepbit";
    let values = [("workload", "zipf"), ("device", device), ("layer", layer), ("ops", "4K"), ("users", "8")];
    assert_eq!(run(Command::Replay, &values).unwrap().number(Column::InvalidPlacementIds), Some(0.0));
    assert_eq!(of(""), (None, None));
    assert_eq!(of(",streams=2"), (None, None));
    let (moved, invalid) = of(",fdp=handles:3");
    assert!(moved.is_some() && invalid == Some(0.0), "{moved:?}, {invalid:?}");
    // Large objects have handle 2, which this drive does not have.
    assert!(of(",fdp=handles:2").1.unwrap() > 1_000.0);
}
