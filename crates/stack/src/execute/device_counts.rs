//! Sets the columns with the counts of a drive, and of a log-structured layer above it.

use crate::device::Observed;
use crate::{Column, Row, Stack};
use fulgurite_base::Nanos;
use fulgurite_log::LogCounters;
use fulgurite_ssd::DriveCounters;

/// The counts of a drive and a layer at one point of a run.
pub(super) struct DeviceCounts {
    drive: Option<DriveCounters>,
    layer: Option<LogCounters>,
}

impl DeviceCounts {
    /// Reads the counts of `device`.
    pub(super) fn of(device: &(impl Observed + ?Sized)) -> DeviceCounts {
        DeviceCounts { drive: device.observe(), layer: device.observe_layer() }
    }

    /// Returns the counts since `before`.
    pub(super) fn since(&self, before: &DeviceCounts) -> DeviceCounts {
        DeviceCounts {
            drive: self.drive.zip(before.drive).map(|(now, before)| now.since(&before)),
            layer: self.layer.as_ref().zip(before.layer.as_ref()).map(|(now, before)| now.since(before)),
        }
    }

    /// Returns the number of pages that the host wrote. `None` if neither a layer nor the drive counts them.
    pub(super) fn host_pages_written(&self) -> Option<u64> {
        let by_drive = self.drive.as_ref().map(|drive| drive.host_pages_written);
        self.layer.as_ref().map(|layer| layer.host_pages).or(by_drive)
    }

    /// Sets the columns about these counts. Sets nothing if the device does not count.
    pub(super) fn set(&self, row: &mut Row) {
        let Some(written) = self.host_pages_written() else { return };
        row.set(Column::HostPagesWritten, written);
        if let Some(drive) = &self.drive {
            row.set(Column::FlashPagesRead, drive.flash_pages_read);
            row.set(Column::FlashPagesProgrammed, drive.flash_pages_programmed);
            row.set(Column::GcPagesCopied, drive.gc_pages_copied);
            row.set(Column::Erases, drive.erases);
            row.set(Column::MergedPages, drive.merged_pages);
            row.set(Column::Overlaps, drive.overlaps);
            row.set(Column::Suspensions, drive.suspensions);
            row.set(Column::EnergyJ, drive.energy_j);
        }
        if let Some(layer) = &self.layer {
            row.set(Column::LayerPagesCopied, layer.copied_pages);
            row.set(Column::LayerPagesPadded, layer.padded_pages);
            row.set(Column::LayerSegmentsFreed, layer.segments_freed);
        }
        if written == 0 {
            return;
        }
        let per_page = |pages: u64| pages as f64 / written as f64;
        let layer_waf = self.layer.as_ref().map(|layer| per_page(layer.pages_written()));
        // Divide by the pages that the drive has received, not by those that the layer has written: the layer
        // may still hold pages of a collection.
        let drive_waf = self.drive.as_ref().filter(|drive| drive.host_pages_written > 0).map(|drive| {
            (drive.host_pages_written + drive.gc_pages_copied) as f64 / drive.host_pages_written as f64
        });
        if let Some(drive) = &self.drive {
            row.set_some(Column::Waf, drive_waf.map(|drive_waf| layer_waf.unwrap_or(1.0) * drive_waf));
            row.set(Column::EnergyPerPageWrittenUj, drive.energy_j * 1e6 / written as f64);
        }
        row.set_some(Column::LayerWaf, layer_waf);
        row.set_some(Column::DriveWaf, layer_waf.and(drive_waf));
    }
}

/// Sets the columns about the layer and the policies of garbage collection.
pub(super) fn set_collecting(row: &mut Row, stack: &Stack) {
    row.set_some(Column::Layer, stack.layer.as_ref().map(|layer| layer.label.as_str()));
    if let Some(collect) = stack.collect() {
        row.set(Column::Placement, collect.placement.to_string());
        row.set(Column::Victim, collect.victim.to_string());
    }
}

/// Sets the columns about wear and lifetime of the flash.
pub(super) fn set_wear(row: &mut Row, device: &impl Observed, elapsed: Nanos) {
    if let Some(wear) = device.wear(elapsed) {
        row.set(Column::WearMin, wear.least);
        row.set(Column::WearMean, wear.mean);
        row.set(Column::WearMax, wear.most);
        row.set(Column::MappingBytes, wear.mapping_bytes);
        if let Some(lifetime) = wear.lifetime {
            row.set(Column::LifetimeBytesWritten, lifetime.bytes_written);
            row.set(Column::LifetimeDwpd5y, lifetime.drive_writes_per_day);
            row.set(Column::LifetimeYearsAtThisRate, lifetime.years_at_this_rate);
        }
    }
    row.set_some(Column::LayerMappingBytes, device.layer_mapping_bytes());
}
