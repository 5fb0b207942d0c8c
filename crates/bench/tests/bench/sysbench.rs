//! Tests of sysbench: the statements of transactions, and verification.

use crate::common::{config, loaded, on_store, plan, refusal, run, unwatched};
use fulgurite_base::{Nanos, Prng};
use fulgurite_bench::sysbench::Action;
use fulgurite_bench::{Benchmark, Plan, Program};

#[test]
fn a_transaction_has_the_statements_of_its_program() {
    on_store(async |store| {
        loaded(&store, "sysbench-insert:rows=100").await;
        let programs = [
            ("read-write", [10, 4, 1, 1, 1, 1]),
            ("read-only", [10, 4, 0, 0, 0, 0]),
            ("write-only", [0, 0, 1, 1, 1, 1]),
            ("point-select", [1, 0, 0, 0, 0, 0]),
            ("update-index", [0, 0, 1, 0, 0, 0]),
            ("update-non-index", [0, 0, 0, 1, 0, 0]),
            ("delete", [0, 0, 0, 0, 1, 0]),
            ("insert", [0, 0, 0, 0, 0, 1]),
        ];
        for (name, expected) in programs {
            let program = config(&format!("sysbench-{name}:rows=100")).open(&store).await.unwrap();
            let Program::Sysbench(sysbench) = program else { panic!("{name} is not sysbench") };
            let statements = sysbench.draw(&mut Prng::new(1, "statements"));
            let mut counts = [0; 6];
            for statement in &statements {
                counts[match statement.action {
                    Action::Point => 0,
                    Action::Range(_) => 1,
                    Action::UpdateIndex => 2,
                    Action::UpdateNonIndex(_) => 3,
                    Action::Delete => 4,
                    Action::Insert(_) => 5,
                }] += 1;
            }
            assert_eq!((counts, sysbench.kinds()), (expected, &[name][..]));
        }
    });
}

#[test]
fn a_range_has_its_rows() {
    on_store(async |store| {
        let program = loaded(&store, "sysbench-read-only:rows=10000,range=20").await;
        let cpu_per_op = Nanos::from_micros(1_000);
        let plan = Plan { users: 1, cpu_per_op, ..plan(50) };
        let outcome = program.run(&store, &plan, || (), &unwatched()).await.unwrap();
        // A transaction counts 95 calls of the store: 10 reads by key, 4 scans with one call for the scan and
        // one for each of its 20 rows, and a commit. The calls take most of the time.
        let calls = outcome.elapsed.0 / 50 / cpu_per_op.0;
        assert!((90..=100).contains(&calls), "{calls}");
    });
}

#[test]
fn updates_of_the_indexed_column_add_up() {
    on_store(async |store| {
        let program = loaded(&store, "sysbench-update-index:tables=2,rows=50").await;
        let before = program.verify(&store).await.unwrap();
        assert_eq!(before.rows, 100);
        let outcome = run(&program, &store, 400).await;
        let after = program.verify(&store).await.unwrap();
        assert_eq!((after.rows, after.changes), (100, before.changes + outcome.transactions()));
    });
}

#[test]
fn inserts_and_deletes_change_the_number_of_rows() {
    on_store(async |store| {
        let program = loaded(&store, "sysbench-insert:rows=100").await;
        run(&program, &store, 150).await;
        assert_eq!(program.verify(&store).await.unwrap().rows, 250);
        // The ids of a store that is opened again continue after the inserted ids.
        let again = config("sysbench-insert:rows=100").open(&store).await.unwrap();
        run(&again, &store, 50).await;
        assert_eq!(again.verify(&store).await.unwrap().rows, 300);
        let deleting = config("sysbench-delete:rows=100").open(&store).await.unwrap();
        run(&deleting, &store, 300).await;
        let left = deleting.verify(&store).await.unwrap().rows;
        assert!((200..295).contains(&left), "{left}");
    });
}

#[test]
fn locked_reads_keep_the_rows() {
    on_store(async |store| {
        let text = "sysbench-read-write:rows=1000,range=20,reads=locked";
        let program = loaded(&store, text).await;
        let outcome = run(&program, &store, 200).await;
        assert_eq!(outcome.transactions(), 200);
        assert_eq!(program.verify(&store).await.unwrap().rows, 1_000);
    });
}

#[test]
fn a_row_that_cannot_be_read_is_found() {
    on_store(async |store| {
        let program = loaded(&store, "sysbench-point-select:rows=100").await;
        let table = store.table("sbtest1").await.unwrap();
        let work = store.begin();
        work.put(table, &7u32.to_be_bytes(), b"no row").await.unwrap();
        work.commit().await.unwrap();
        assert_eq!(refusal(&program, &store).await, "a row of `sbtest` cannot be read");
    });
}
