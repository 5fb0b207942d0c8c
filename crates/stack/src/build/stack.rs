//! Builds the stages of a stack below a pool or an engine: the device and the layer.

use super::Asked;
use crate::device::DriveConfig;
use crate::{Stack, StackError};
use fulgurite_ftl::Collect;

/// Builds the device and the log-structured layer, and sets the policies of their garbage collection.
pub(super) fn stack(asked: Asked) -> Result<Stack, StackError> {
    let Asked { device, layer, placement, victim, schedule, destroy_contents, reuse, .. } = asked;
    let device = device.ok_or_else(|| StackError::request("device is missing"))?;
    let mut stack = Stack { engine: None, pool: None, layer, device };
    if let Some(placement) = placement {
        stack.change_collect("--placement", placement, |collect| &mut collect.placement)?;
    }
    if let Some(victim) = victim {
        stack.change_collect("--victim", victim, |collect| &mut collect.victim)?;
    }
    if let Some(schedule) = schedule {
        stack.change_collect("--schedule", schedule, |collect| &mut collect.schedule)?;
    }
    if let DriveConfig::File(file) = &mut stack.device.drive {
        file.destroy_contents = destroy_contents;
        file.keeps_store = reuse;
    }
    Ok(stack)
}

impl Stack {
    fn change_collect<T: std::fmt::Display>(
        &mut self,
        flag: &str,
        value: T,
        field: impl FnOnce(&mut Collect) -> &mut T,
    ) -> Result<(), StackError> {
        let Some(collect) = self.collect_mut() else {
            return Err(StackError::request(format!(
                "{flag} {value} does not go with {}, which collects no garbage; leave it out",
                self.device.label
            )));
        };
        *field(collect) = value;
        Ok(())
    }
}
