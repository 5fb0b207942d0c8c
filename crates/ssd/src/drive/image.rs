//! The contents of a drive without the drive, so that many drives can start with the same contents, as if
//! each had been filled.

use super::contents::Contents;
use super::in_place::InPlace;
use super::{SimDrive, Translation};
use crate::SsdConfig;
use fulgurite_ftl::Ftl;

/// The contents of an idle drive: the map, and the bytes if the drive keeps them. Clones share the bytes.
#[derive(Clone)]
pub struct Image {
    translation: Held,
    contents: Option<Contents>,
}

#[derive(Clone)]
enum Held {
    PageMapped(Box<Ftl>),
    InPlace(InPlace),
}

impl SimDrive {
    /// Returns the contents of the drive; `None` while an operation is in progress (see
    /// [`SimDrive::drain_events`]).
    pub fn image(&self) -> Option<Image> {
        if !self.commands.is_empty() || !self.flash.is_idle() {
            return None;
        }
        let translation = match &self.translation {
            Translation::PageMapped(ftl) => {
                let mut ftl = ftl.clone();
                // Resets counters and wear, since a drive that starts with the image has had no requests.
                ftl.start_anew(self.config.endurance);
                Held::PageMapped(ftl)
            }
            Translation::InPlace(medium) => Held::InPlace(InPlace { host_pages: 0, ..medium.clone() }),
        };
        Some(Image { translation, contents: self.flash.contents.clone() })
    }

    /// Creates a drive with the contents of another drive of the same `config`. Its clock, counters and wear
    /// start at zero.
    pub fn with_image(config: SsdConfig, image: &Image) -> SimDrive {
        let (ftl, medium) = match &image.translation {
            Held::PageMapped(ftl) => (Some((**ftl).clone()), None),
            Held::InPlace(medium) => (None, Some(medium.clone())),
        };
        let mut drive = SimDrive::with_ftl(config, ftl, image.contents.is_some());
        if let Some(medium) = medium {
            drive.translation = Translation::InPlace(medium);
        }
        drive.flash.contents.clone_from(&image.contents);
        drive
    }
}
