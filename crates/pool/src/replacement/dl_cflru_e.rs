//! DL-CFLRU/E (double-list CFLRU/E): keeps clean and dirty pages in two LRU lists, and evicts every clean
//! page before any dirty one.
//!
//! From the paper of CFLRU/C (Yoo et al., ICCSA 2007). The victim is the least recent clean page. If there is
//! none, it is the one of the `window` least recent dirty pages whose erase block was erased least often. The
//! drive must report erase counts. *Ambiguity.* A page that is written back and stays in the pool is inserted
//! among the clean pages by its last use. O(window) without clean pages.

use super::clean_first::{CleanFirst, CleanFirstConfig, DirtyChoice, clean_first_policy};

clean_first_policy!(DlCflruE, FewestErases, |window, frames| frames);
