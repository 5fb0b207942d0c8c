//! Sets the columns with the counts of a drive, and of a log-structured layer above it.

use crate::device::Observed;
use crate::{Column, Row, Stack};
use fulgurite_base::Nanos;
use fulgurite_log::LogCounters;
use fulgurite_ssd::DriveCounters;

/// The counts of a drive and a layer at one point of a run.
#[derive(Clone)]
pub(crate) struct DeviceCounts {
    drive: Option<DriveCounters>,
    layer: Option<LogCounters>,
    /// The number of logical pages of the device.
    pages: u64,
}

impl DeviceCounts {
    /// Reads the counts of `device`.
    pub(crate) fn of(device: &(impl Observed + ?Sized)) -> DeviceCounts {
        DeviceCounts { drive: device.observe(), layer: device.observe_layer(), pages: device.caps().pages }
    }

    /// Returns the counts since `before`.
    pub(super) fn since(&self, before: &DeviceCounts) -> DeviceCounts {
        DeviceCounts {
            drive: self.drive.zip(before.drive).map(|(now, before)| now.since(&before)),
            layer: self.layer.as_ref().zip(before.layer.as_ref()).map(|(now, before)| now.since(before)),
            pages: self.pages,
        }
    }

    /// Returns the number of pages that the host wrote. `None` if neither a layer nor the drive counts them.
    pub(crate) fn host_pages_written(&self) -> Option<u64> {
        let by_drive = self.drive.as_ref().map(|drive| drive.host_pages_written);
        self.layer.as_ref().map(|layer| layer.host_pages).or(by_drive)
    }

    /// Returns the number of pages that were written to the flash, or by the layer if the drive below does not count:
    /// those of the host and all copies.
    pub(crate) fn pages_programmed(&self) -> Option<u64> {
        let by_drive = self.drive.as_ref().map(|drive| drive.host_pages_written + drive.gc_pages_copied);
        by_drive.or(self.layer.as_ref().map(LogCounters::pages_written))
    }

    /// Returns the counts of the drive itself; `None` if it does not count.
    pub(crate) fn of_drive(&self) -> Option<&DriveCounters> {
        self.drive.as_ref()
    }

    /// Returns how many times the host wrote the logical space. `None` if neither a layer nor the drive counts
    /// page writes.
    pub(super) fn drive_writes(&self) -> Option<f64> {
        self.host_pages_written().map(|written| written as f64 / self.pages.max(1) as f64)
    }

    /// Returns the write amplification of the layer, and that of the drive below the layer or of the drive
    /// alone. `None` if nothing was written, or if the device does not count.
    fn amplification(&self) -> (Option<f64>, Option<f64>) {
        let layer = self.layer.as_ref().filter(|layer| layer.host_pages > 0);
        let layer = layer.map(|layer| layer.pages_written() as f64 / layer.host_pages as f64);
        // Divide by the pages that the drive has received, not by those that the layer has written: the layer
        // may still hold pages of a collection.
        let drive = self.drive.as_ref().filter(|drive| drive.host_pages_written > 0).map(|drive| {
            (drive.host_pages_written + drive.gc_pages_copied) as f64 / drive.host_pages_written as f64
        });
        (layer, drive)
    }

    /// Returns the write amplification of the device as a whole; `None` if it is not known.
    fn waf(&self) -> Option<f64> {
        let (layer, drive) = self.amplification();
        drive.map(|drive| layer.unwrap_or(1.0) * drive)
    }

    /// Returns the write amplification of the device as a whole, or of the layer if the drive below does not
    /// count.
    pub(super) fn waf_or_layers(&self) -> Option<f64> {
        self.waf().or(self.amplification().0)
    }

    /// Sets the columns about these counts. Sets nothing if the device does not count.
    pub(crate) fn set(&self, row: &mut Row) {
        let Some(written) = self.host_pages_written() else { return };
        row.set(Column::HostPagesWritten, written);
        row.set_some(Column::DriveWrites, self.drive_writes());
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
        if let Some(fdp) = self.drive.as_ref().and_then(|drive| drive.fdp) {
            row.set(Column::ReclaimUnitsReallocated, fdp.reallocated_units);
            row.set(Column::InvalidPlacementIds, fdp.invalid_identifiers);
        }
        if let Some(layer) = &self.layer {
            row.set(Column::LayerPagesCopied, layer.copied_pages);
            row.set(Column::LayerPagesPadded, layer.padded_pages);
            row.set(Column::LayerSegmentsFreed, layer.segments_freed);
        }
        if written == 0 {
            return;
        }
        let (layer_waf, drive_waf) = self.amplification();
        if let Some(drive) = &self.drive {
            row.set_some(Column::Waf, self.waf());
            row.set(Column::EnergyPerPageWrittenUj, drive.energy_j * 1e6 / written as f64);
        }
        row.set_some(Column::LayerWaf, layer_waf);
        row.set_some(Column::DriveWaf, layer_waf.and(drive_waf));
    }
}

/// Sets the columns about the layer and the policies of garbage collection.
pub(crate) fn set_collecting(row: &mut Row, stack: &Stack) {
    row.set_some(Column::Layer, stack.layer.as_ref().map(|layer| layer.label.as_str()));
    if let Some(collect) = stack.collect() {
        row.set(Column::Placement, collect.placement.to_string());
        row.set(Column::Victim, collect.victim.to_string());
    }
}

/// Sets the columns about wear and lifetime of the flash. The lifetime is that at the write amplification of
/// `counts`, which were made in the time `elapsed`.
pub(crate) fn set_wear(row: &mut Row, device: &impl Observed, counts: &DeviceCounts, elapsed: Nanos) {
    row.set_some(Column::LayerMappingBytes, device.layer_mapping_bytes());
    let Some(wear) = device.wear() else { return };
    row.set(Column::WearMin, wear.least);
    row.set(Column::WearMean, wear.mean);
    row.set(Column::WearMax, wear.most);
    row.set(Column::MappingBytes, wear.mapping_bytes);
    let programmed = counts.drive.as_ref().map_or(0, |drive| drive.flash_pages_programmed);
    let written = counts.host_pages_written().unwrap_or(0);
    let Some(endurance) = wear.endurance.filter(|_| programmed > 0 && written > 0) else { return };
    let waf = programmed as f64 / written as f64;
    let pages_written = endurance.flash_pages / waf;
    row.set(Column::LifetimeDwpd5y, pages_written / device.caps().pages as f64 / (5.0 * 365.0));
    if let Some(scale) = endurance.label_scale {
        let page_bytes = f64::from(device.caps().page_bytes);
        let bytes_written = pages_written * page_bytes * scale;
        let rate = written as f64 * page_bytes / elapsed.as_secs_f64();
        row.set(Column::LifetimeBytesWritten, bytes_written);
        row.set(Column::LifetimeYearsAtThisRate, bytes_written / rate / (365.0 * 86_400.0));
        if let Some(rated) = endurance.rated_bytes {
            let nominal = device.caps().pages as f64 * page_bytes * scale;
            row.set(Column::RatedBytesWritten, rated);
            row.set(Column::RatedDwpd5y, rated / nominal / (5.0 * 365.0));
            row.set(Column::RatedYearsAtThisRate, rated / rate / (365.0 * 86_400.0));
        }
    }
}
