//! Tests the store through its public interface. All tests are in one program, because each program would
//! have to be linked separately.

mod common;

mod across;
mod across_backup;
mod across_cuts;
mod across_repair;
mod across_scan;
mod backup;
mod bulk_load;
mod cancelled_calls;
mod checkpoints;
mod commit;
mod compact;
mod confined;
mod corruption;
mod create;
mod deltas;
mod division;
mod dropped_futures;
mod dropped_tables;
mod full;
mod grow;
mod indexes;
mod inner_nodes;
mod log_tail;
mod merge_pending;
mod model;
mod out_of_place;
mod ranges;
mod read_ahead;
mod recovery;
mod repair;
mod sharded;
mod shards;
mod shared_pages;
mod space;
mod stopped_store;
mod staging;
mod threads;
mod torn_pages;
mod transaction_size;
mod write_concurrency;
mod writes_beside_checkpoint;
