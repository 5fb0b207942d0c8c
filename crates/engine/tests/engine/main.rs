//! Tests of the store through its public interface, in one program, because each program would have to be
//! linked separately.

mod common;

mod ahead;
mod asked;
mod backup;
mod beside;
mod bulk;
mod checkpoints;
mod commit;
mod compact;
mod confined;
mod corruption;
mod create;
mod division;
mod few_at_once;
mod full;
mod given_up;
mod indexes;
mod inner_nodes;
mod merging;
mod model;
mod out_of_place;
mod recovery;
mod repair;
mod shards;
mod share;
mod stopped;
mod tail;
mod threads;
