//! What a drive, and a layer above it, have done by the end of a run: columns of pool runs and of replays.

use crate::device::{DeviceDescription, Observed};
use crate::table::Row;
use fulgurite_log::LogCounters;
use fulgurite_ssd::DriveCounters;

/// Counts at the end of the last request.
pub struct Done {
    drive: Option<DriveCounters>,
    layer: Option<LogCounters>,
}

impl Done {
    /// By `device` so far.
    pub fn by(device: &impl Observed) -> Done {
        Done { drive: device.observe(), layer: device.observe_layer() }
    }

    /// Pages that the host wrote, where anybody counts them.
    pub fn host_pages_written(&self) -> Option<u64> {
        let by_drive = self.drive.as_ref().map(|drive| drive.host_pages_written);
        self.layer.as_ref().map(|layer| layer.host_pages).or(by_drive)
    }

    /// Sets the columns.
    pub fn set(&self, row: &mut Row) {
        let Some(written) = self.host_pages_written() else { return };
        row.set("host_pages_written", written);
        if let Some(drive) = &self.drive {
            row.set("flash_pages_read", drive.flash_pages_read);
            row.set("flash_pages_programmed", drive.flash_pages_programmed);
            row.set("gc_pages_copied", drive.gc_pages_copied);
            row.set("erases", drive.erases);
            row.set("merged_pages", drive.merged_pages);
            row.set("overlaps", drive.overlaps);
            row.set("suspensions", drive.suspensions);
            row.set("energy_j", drive.energy_j);
        }
        if let Some(layer) = &self.layer {
            row.set("layer_pages_copied", layer.copied_pages);
            row.set("layer_pages_padded", layer.padded_pages);
            row.set("layer_segments_freed", layer.segments_freed);
        }
        if written == 0 {
            return;
        }
        let per_page = |pages: u64| pages as f64 / written as f64;
        let layer_waf = self.layer.as_ref().map(|layer| per_page(layer.pages_written()));
        // Of what the drive was given, not of what is on its way to it; the rest of a collection may be.
        let drive_waf = self.drive.as_ref().filter(|drive| drive.host_pages_written > 0).map(|drive| {
            (drive.host_pages_written + drive.gc_pages_copied) as f64 / drive.host_pages_written as f64
        });
        if let Some(drive) = &self.drive {
            row.set_some("waf", drive_waf.map(|drive_waf| layer_waf.unwrap_or(1.0) * drive_waf));
            row.set("energy_per_page_written_uj", drive.energy_j * 1e6 / written as f64);
        }
        row.set_some("layer_waf", layer_waf);
        row.set_some("drive_waf", layer_waf.and(drive_waf));
    }
}

/// The columns that say who collects garbage, and by which policies.
pub fn set_collecting(row: &mut Row, device: &DeviceDescription) {
    row.set_some("layer", device.layer());
    if let Some((placement, victim)) = device.placement() {
        row.set("placement", placement);
        row.set("victim", victim);
    }
}
