//! Tests that the Parquet table contains the same values as the other tables.

use fulgurite_stack::{Column, Row};
use fulgurite_study::parquet::bytes;
use fulgurite_study::table::Table;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs::{self, File};
use std::path::Path;

#[test]
fn rows_are_read_back_as_written() {
    let mut first = Row::default();
    first.set(Column::Device, "p4510:channels=4");
    first.set(Column::Seed, u64::MAX);
    first.set(Column::Alpha, 2.5);
    let mut second = Row::default();
    second.set(Column::Device, "sata");
    second.set(Column::Seed, 7u64);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("table.parquet");
    fs::write(&path, bytes(&Table { rows: vec![first, second] }).unwrap()).unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let names: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    assert_eq!(names, ["device", "seed", "alpha"]);
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].get_string(0).unwrap(), "p4510:channels=4");
    assert_eq!(rows[0].get_ulong(1).unwrap(), u64::MAX);
    assert_eq!(rows[0].get_double(2).unwrap(), 2.5);
    assert_eq!(rows[1].get_ulong(1).unwrap(), 7);
    assert!(rows[1].get_double(2).is_err(), "a missing cell must be null");
}
