//! Tests that the number of page writes in flight is limited, so that reads and commits do not queue behind
//! all of them.

use crate::common::{fill, options, run};
use fulgurite_base::Nanos;
use fulgurite_device::{Caps, Command, Completion, Device, Executor, MemDevice, Operation, QueueFull, Tag};
use fulgurite_engine::{Options, Store, TornPages};
use std::collections::BTreeSet;

/// The number of pages of the drive in a page of the store. The log writes blocks of one page of the drive.
const PAGE: u32 = 4;

/// A drive with atomic writes that records the highest number of page writes in flight.
struct Counting {
    inner: MemDevice,
    caps: Caps,
    under_way: BTreeSet<Tag>,
    most: usize,
}

impl Device for Counting {
    fn caps(&self) -> &Caps {
        &self.caps
    }

    fn now(&self) -> Nanos {
        self.inner.now()
    }

    fn submit(&mut self, command: Command) -> Result<(), QueueFull> {
        if matches!(command.operation, Operation::Write { pages: PAGE, .. }) {
            self.under_way.insert(command.tag);
            self.most = self.most.max(self.under_way.len());
        }
        self.inner.submit(command)
    }

    fn wait(&mut self, deadline: Option<Nanos>, completions: &mut Vec<Completion>) {
        self.inner.wait(deadline, completions);
        for completion in &*completions {
            self.under_way.remove(&completion.tag);
        }
    }
}

/// The rule: a checkpoint of pages that need no second copy has at most sixteen page writes in flight,
/// although a batch has 64 pages and the drive would accept all of them.
#[test]
fn a_checkpoint_writes_sixteen_pages_concurrently() {
    for torn_pages in [TornPages::None, TornPages::Atomic] {
        let inner = MemDevice::new(8192, 4096, 256, Nanos::from_micros(10));
        let caps = Caps { atomic_bytes: PAGE * 4096, ..inner.caps().clone() };
        let device = Counting { inner, caps, under_way: BTreeSet::new(), most: 0 };
        let executor = Executor::new(device);
        run(&executor, |handle| async move {
            let (memory_bytes, log_bytes) = (8 << 20, 8 << 20);
            let page_bytes = PAGE * 4096;
            let options =
                Options { page_bytes, torn_pages, memory_bytes, log_bytes, records: 0, ..options() };
            let store = Store::create(handle, options).await.unwrap();
            let records = (0..6_000u32).map(|key| (key.to_be_bytes().to_vec(), vec![key as u8; 400]));
            fill(&store, "table", records).await;
            store.checkpoint().await.unwrap();
        });
        assert_eq!(executor.with_device(|device| device.most), 16, "{torn_pages:?}");
    }
}
