//! Builds a run of `gc`, which counts the page writes of a flash translation layer.

use super::Asked;
use super::trace_length::within_trace;
use crate::device::{DeviceConfig, DriveConfig};
use crate::run::{Arrivals, Load, Measure, Requested, Rows, Run, Stack};
use crate::workload::{AddressMap, View, Workloads};
use crate::{StackError, Unit};
use fulgurite_base::units::{self, Portion};
use fulgurite_ftl::{Collect, FtlConfig};

pub(super) fn gc(mut asked: Asked, workloads: &mut Workloads) -> Result<Run, StackError> {
    let (page_bytes, seed) = (asked.page_bytes, asked.seed);
    let form = asked.trace_form();
    let workload = workloads.get(&asked.workload, form)?;
    let ftl = translation_shape(&asked)?;
    let logical = u64::from(ftl.logical_pages);
    let rows = gc_rows(&asked, logical)?;
    let bound = workload.bind(View::Changes { page_bytes, pages: ftl.logical_pages })?;
    if let Some(pages) = bound.distinct_pages().filter(|pages| *pages > logical) {
        return Err(StackError::request(format!(
            "the trace touches {pages} pages, --logical has {logical}; use at least {}",
            units::format_size(pages * u64::from(page_bytes))
        )));
    }
    let ops = match bound.change_count() {
        None => asked.ops.unwrap_or(20 * logical),
        Some(has) => within_trace(asked.ops, has, "page writes and trims")?,
    };
    let mut stack =
        Stack { engine: None, pool: None, layer: None, device: DeviceConfig::translation(ftl, page_bytes) };
    if let DriveConfig::Translation(translation) = &mut stack.device.drive {
        translation.labels = [asked.placement_label, asked.victim_label];
    }
    let arrivals = Arrivals::Closed { users: 1 };
    let load = Requested { workload, pages: logical, addresses: AddressMap::Scale, arrivals, skip: 0, ops };
    let measure = Measure { rows, ..Measure::default() };
    Ok(Run { stack, load: Load::Requests(load), measure, seed })
}

fn translation_shape(asked: &Asked) -> Result<FtlConfig, StackError> {
    let page_bytes = u64::from(asked.page_bytes);
    let pages = |flag: &str, bytes: u64| -> Result<u64, StackError> {
        if bytes < page_bytes {
            return Err(StackError::request(format!(
                "--{flag} {bytes}B is less than a page; accepted: at least {}",
                units::format_size(page_bytes)
            )));
        }
        Ok(bytes / page_bytes)
    };
    let logical = pages("logical", asked.logical_bytes)?;
    let physical = pages("physical", asked.physical_bytes)?;
    let segment = pages("segment", asked.segment_bytes)?;
    if logical >= physical {
        return Err(StackError::request(format!(
            "--logical {} is not less than --physical {}; accepted: less logical than physical, since garbage \
                collection needs free space",
            Unit::Bytes.humane(asked.logical_bytes as f64),
            Unit::Bytes.humane(asked.physical_bytes as f64)
        )));
    }
    if segment > physical {
        return Err(StackError::request(format!(
            "--segment {} is larger than --physical {}; accepted: a small part of it, like 4MiB",
            Unit::Bytes.humane(asked.segment_bytes as f64),
            Unit::Bytes.humane(asked.physical_bytes as f64)
        )));
    }
    let narrow = |flag: &str, value: u64| {
        u32::try_from(value).map_err(|_| {
            StackError::request(format!("--{flag} has {value} pages; accepted: fewer than 2^32"))
        })
    };
    let shape = FtlConfig::plain(
        narrow("logical", logical)?,
        narrow("physical", physical / segment)?,
        narrow("segment", segment)?,
    );
    let collect = Collect {
        reserve: asked.gc_reserve.unwrap_or(Collect::PLAIN.reserve),
        victim: asked.victim.clone().unwrap_or(Collect::PLAIN.victim),
        placement: asked.placement.clone().unwrap_or(Collect::PLAIN.placement),
        ..Collect::PLAIN
    };
    Ok(FtlConfig { collect, ..shape })
}

/// Returns the subject of each result row: the run, an interval of page writes, or a group of segments.
fn gc_rows(asked: &Asked, logical: u64) -> Result<Rows, StackError> {
    let interval = asked.page_interval.map(|interval| interval.of(logical));
    match (interval, asked.groups, asked.explain) {
        (Some(0), ..) => Err(StackError::request(format!(
            "--interval {} is less than one page write (there are {logical} logical pages); accepted: a count, or a \
                larger share of them",
            asked.page_interval.unwrap_or(Portion::ZERO)
        ))),
        (None, false, false) => Ok(Rows::Run),
        (None, false, true) => Ok(Rows::Explained),
        (Some(length), false, false) => Ok(Rows::PageIntervals(length)),
        (None, true, false) => Ok(Rows::Groups),
        (Some(_), true, _) => Err(StackError::request(
            "--interval and --groups both choose the subject of a row; accepted: one of them",
        )),
        (_, _, true) => Err(StackError::request(
            "--explain describes whole runs; accepted: --explain without --interval and --groups",
        )),
    }
}
