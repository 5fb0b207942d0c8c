//! Writes a table as Parquet. Integers become INT64, reals DOUBLE and names UTF-8. A missing cell is null.

use crate::table::Table;
use fulgurite_stack::StackError;
use fulgurite_stack::{Column, Value};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// The type of the values of a column.
#[derive(Clone, Copy)]
enum ColumnKind {
    Text,
    Integer,
    Real,
}

impl ColumnKind {
    fn of(table: &Table, column: Column) -> ColumnKind {
        let values = || table.rows.iter().filter_map(|row| row.get(column));
        if values().any(|value| matches!(value, Value::Text(_))) {
            ColumnKind::Text
        } else if values().any(|value| matches!(value, Value::Real(_))) {
            ColumnKind::Real
        } else {
            ColumnKind::Integer
        }
    }
}

/// Returns the table as the bytes of a Parquet file with one row group. The columns are in the table's order.
pub fn bytes(table: &Table) -> Result<Vec<u8>, StackError> {
    write(table).map_err(|error| StackError::run(format!("the table cannot be written as Parquet: {error}")))
}

fn write(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let columns: Vec<(Column, ColumnKind)> =
        table.columns().into_iter().map(|column| (column, ColumnKind::of(table, column))).collect();
    let fields =
        columns.iter().map(|(column, kind)| field(column.name(), *kind)).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("row").with_fields(fields).build()?);
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(WriterProperties::default()))?;
    let mut group = file.next_row_group()?;
    for (column, kind) in columns {
        let cells = || table.rows.iter().map(|row| row.get(column));
        let mut writer =
            group.next_column()?.ok_or_else(|| ParquetError::General("too few columns".into()))?;
        match kind {
            ColumnKind::Text => {
                put::<ByteArrayType>(&mut writer, cells(), |value| ByteArray::from(value.exact().as_str()))?
            }
            ColumnKind::Integer => put::<Int64Type>(&mut writer, cells(), |value| match value {
                Value::Integer(integer) => *integer as i64,
                _ => unreachable!("a column of integers holds integers"),
            })?,
            ColumnKind::Real => {
                put::<DoubleType>(&mut writer, cells(), |value| value.as_f64().unwrap_or(f64::NAN))?
            }
        }
        writer.close()?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}

fn field(column: &str, kind: ColumnKind) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match kind {
        ColumnKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Integer => {
            (PhysicalType::INT64, Some(LogicalType::Integer { bit_width: 64, is_signed: false }))
        }
        ColumnKind::Real => (PhysicalType::DOUBLE, None),
    };
    let builder = Type::primitive_type_builder(column, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(builder.with_logical_type(logical).build()?))
}

fn put<'a, T: DataType>(
    writer: &mut SerializedColumnWriter,
    cells: impl Iterator<Item = Option<&'a Value>>,
    convert: impl Fn(&Value) -> T::T,
) -> Result<(), ParquetError> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    for cell in cells {
        present.push(i16::from(cell.is_some()));
        values.extend(cell.map(&convert));
    }
    writer.typed::<T>().write_batch(&values, Some(&present), None)?;
    Ok(())
}
