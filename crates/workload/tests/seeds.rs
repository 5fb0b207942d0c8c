//! The valid samples with which fuzzing begins (`fuzz/seeds`).

use fulgurite_base::Prng;
use fulgurite_workload::trace::{Format, TraceError, TraceOptions, TraceReader};
use std::fs;
use std::io::Cursor;
use std::path::Path;

/// Returns the name and the bytes of each sample.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let seed = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
    };
    let mut seeds: Vec<(String, Vec<u8>)> = fs::read_dir(folder).unwrap().map(seed).collect();
    seeds.sort();
    seeds
}

/// Returns the format of a sample, whose name begins with that of the format; packed samples are of `page-ops`.
fn format_of(name: &str) -> Format {
    let is_of = |format: &&Format| name == format.name() || name.starts_with(&format!("{}-", format.name()));
    if name.starts_with("packed.") { Format::PAGE_OPS } else { *Format::all().iter().find(is_of).unwrap() }
}

fn read(bytes: &[u8], format: Format) -> Result<usize, TraceError> {
    // `columns` reads nothing without its columns.
    let columns = "columns:time=time,op=op,offset=offset,length=size,volume=disk,sort=yes";
    let options =
        if format == Format::COLUMNS { Format::parse(columns).unwrap().1 } else { TraceOptions::default() };
    let mut count = 0;
    for record in TraceReader::new("seed", Cursor::new(bytes.to_vec()), Some(format), options)? {
        record?;
        count += 1;
    }
    Ok(count)
}

/// The rule: every format and every packing has a sample, and all samples are valid.
#[test]
fn every_format_and_packing_has_a_valid_sample() {
    let seeds = seeds();
    for (name, bytes) in &seeds {
        let count = read(bytes, format_of(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(count > 0, "{name}");
    }
    let names: Vec<&str> = seeds.iter().map(|(name, _)| name.as_str()).collect();
    for format in Format::all() {
        assert!(names.contains(&format.name()), "fuzz/seeds has no sample of {}", format.name());
    }
    for packing in ["gz", "zst", "xz", "lz4"] {
        assert!(
            names.contains(&&*format!("packed.{packing}")),
            "fuzz/seeds has no sample packed as {packing}"
        );
    }
}

/// The rule: a sample with some wrong, missing or repeated bytes makes no reader panic.
#[test]
fn damaged_samples_make_no_reader_panic() {
    let mut prng = Prng::new(1, "damage");
    for (name, bytes) in seeds() {
        for _ in 0..300 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + prng.below(4) {
                let at = prng.below(damaged.len() as u64) as usize;
                match prng.below(4) {
                    0 => damaged[at] = prng.next_u64() as u8,
                    1 => damaged[at] ^= 1 << prng.below(8),
                    2 if damaged.len() > 1 => drop(damaged.remove(at)),
                    _ => damaged.extend_from_within(at..),
                }
            }
            // The result does not matter.
            let _ = read(&damaged, format_of(&name));
        }
    }
}
