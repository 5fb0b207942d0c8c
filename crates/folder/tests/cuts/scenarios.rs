//! The classic scenarios, each with all contents that a cut may leave.

use crate::script::{BLOCK, contents, run};
use fulgurite_folder::{Folder, Model, Piece, ROOT, Rules};
use std::collections::BTreeSet;

fn rules(model: Model) -> Rules {
    Rules { model, tear_bytes: BLOCK, ..Rules::default() }
}

/// Checks that cuts after `before` (synced) and `operations` leave all of `expected`, separated by bars, and nothing
/// else.
fn check_rules(rules: Rules, before: &str, operations: &str, expected: &str) {
    let mut folder = Folder::new(rules);
    run(&mut folder, before);
    folder.sync_all();
    run(&mut folder, operations);
    let mut found = BTreeSet::new();
    for seed in 0..1_000 {
        let mut cut = folder.clone();
        let lost = cut.power_cut(seed).lost;
        let left = contents(&cut);
        let mut again = folder.clone();
        assert_eq!(again.power_cut_with(&lost).lost, lost);
        assert_eq!(contents(&again), left, "the pieces of seed {seed} lose something else");
        found.insert(left);
    }
    let expected: BTreeSet<String> = expected.split('|').map(|left| left.trim().to_owned()).collect();
    assert_eq!(found, expected, "{rules:?}: {operations}");
}

/// Checks both models.
fn check(before: &str, operations: &str, journaled: &str, strict: &str) {
    check_rules(rules(Model::Journaled), before, operations, journaled);
    check_rules(rules(Model::Strict), before, operations, strict);
}

/// The rule: the name of a new file is durable after a sync of the file in a journal, and after a sync of the folder
/// without one. The bytes are durable after a sync of the file.
#[test]
fn a_new_file() {
    check("", "create f", "| f=", "| f=");
    check("", "create f; write f 0 1 1; sync f", "f=1", "| f=1");
    check("", "create f; write f 0 1 1; sync .", "f= | f=1", "f= | f=0 | f=1");
    check("", "create f; write f 0 1 1; sync f; sync .", "f=1", "f=1");
    check("", "create f; sync .; mode f 600", "f= | f=:600", "f= | f=:600");
}

/// The rule: replacing a file by a rename without a sync may leave the old file, the new one or an empty one. With a
/// sync of the new file before, or with `rename_syncs`, it leaves the old or the new one.
#[test]
fn replacing_by_rename() {
    let old = "create f; write f 0 1 1";
    check(
        old,
        "create t; write t 0 1 2; rename t f",
        "f=1 | f=1 t= | f=1 t=2 | f= | f=2",
        "f=1 | f=1 t= | f=1 t=0 | f=1 t=2 | f= | f=0 | f=2",
    );
    check(old, "create t; write t 0 1 2; sync t; rename t f", "f=1 t=2 | f=2", "f=1 | f=1 t=2 | f=2");
    check(old, "create t; write t 0 1 2; sync t; rename t f; sync .", "f=2", "f=2");
    let syncs = Rules { rename_syncs: true, ..rules(Model::Journaled) };
    check_rules(syncs, old, "create t; write t 0 1 2; rename t f", "f=1 | f=1 t= | f=1 t=2 | f=2");
    check_rules(syncs, "create t; write t 0 1 1", "write t 0 1 2; rename t f", "t=1 | t=2 | f=1 | f=2");
    check_rules(
        syncs,
        "create t; write t 0 1 1; create f",
        "write t 0 1 2; rename t f",
        "f= t=1 | f= t=2 | f=2",
    );
}

/// The rule: an append is kept from its beginning on, block by block. In a journal a kept size has its bytes.
#[test]
fn appends() {
    check(
        "create f; write f 0 1 1",
        "write f 1 2 2",
        "f=1 | f=12 | f=122",
        "f=1 | f=10 | f=12 | f=100 | f=102 | f=120 | f=122",
    );
    // The part inside the file is a write of its own.
    check(
        "create f; write f 0 1 1",
        "write f 0 2 2",
        "f=1 | f=2 | f=12 | f=22",
        "f=1 | f=2 | f=10 | f=12 | f=20 | f=22",
    );
    check("create f; write f 0 1 1", "write f 1 1 2; sync f", "f=12", "f=12");
    // A write over an append without a sync is lost with it.
    check(
        "create f; write f 0 1 1",
        "write f 1 1 2; write f 1 1 3",
        "f=1 | f=12 | f=13",
        "f=1 | f=10 | f=12 | f=13",
    );
    // A write over the first of two appends needs only the first.
    check(
        "create f",
        "write f 0 1 1; write f 1 1 2; write f 0 1 3",
        "f= | f=1 | f=3 | f=12 | f=32",
        "f= | f=0 | f=1 | f=3 | f=00 | f=10 | f=30 | f=02 | f=12 | f=32",
    );
}

/// The rule: a truncation is lost with all that was written after it behind the new end.
#[test]
fn truncations() {
    let old = "create f; write f 0 2 1";
    check(old, "truncate f 0; write f 0 1 2", "f=11 | f= | f=2", "f=11 | f= | f=0 | f=2");
    check(old, "truncate f 1; truncate f 2", "f=11 | f=1 | f=10", "f=11 | f=1 | f=10");
    check(old, "zero f 1 9", "f=11 | f=10", "f=11 | f=10");
    check(
        old,
        "truncate f 1; write f 1 1 2; write f 0 2 3",
        "f=11 | f=31 | f=1 | f=3 | f=12 | f=32 | f=13 | f=33",
        "f=11 | f=31 | f=1 | f=3 | f=10 | f=30 | f=12 | f=32 | f=13 | f=33",
    );
    check_rules(
        rules(Model::Journaled),
        "create f",
        "write f 0 4 1; truncate f 0; write f 0 1 2; write f 0 1 3",
        "f= | f=1 | f=11 | f=111 | f=1111 | f=2 | f=3",
    );
    // In a journal, changes keep their order.
    check(old, "truncate f 1; create g", "f=11 | f=1 | f=1 g=", "f=11 | f=1 | f=1 g= | f=11 g=");
}

/// The rule: without a sync of the database before it, the removal of a rollback journal may be kept without the
/// write that it made final.
#[test]
fn a_rollback_journal() {
    let old = "create db; write db 0 1 1";
    let journal = "create j; write j 0 1 1; sync j;";
    check(
        old,
        &format!("{journal} sync .; write db 0 1 2; sync db; unlink j"),
        "db=2 j=1 | db=2",
        "db=2 j=1 | db=2",
    );
    check(
        old,
        &format!("{journal} sync .; write db 0 1 2; unlink j"),
        "db=1 j=1 | db=2 j=1 | db=1 | db=2",
        "db=1 j=1 | db=2 j=1 | db=1 | db=2",
    );
    check(old, &format!("{journal} write db 0 1 2; sync db"), "db=2 j=1", "db=2 j=1 | db=2");
}

/// The rule: a sync of a file makes the bytes of no other file durable. In a journal it makes all names durable.
#[test]
fn two_files() {
    check(
        "",
        "create a; create b; write a 0 1 1; write b 0 1 2; sync a",
        "a=1 b= | a=1 b=2",
        "| a=1 | b= | b=0 | b=2 | a=1 b= | a=1 b=0 | a=1 b=2",
    );
    check(
        "create a; create b",
        "write a 0 1 1; write b 0 1 2; sync a",
        "a=1 b= | a=1 b=2",
        "a=1 b= | a=1 b=0 | a=1 b=2",
    );
    // In a journal the second file may not exist without the first.
    check("", "create a; create b", "| a= | a= b=", "| a= | b= | a= b=");
}

/// The rule: changes in a new folder are lost with it, also those that a sync of the folder has made durable in it.
/// Nothing is lost that was moved into it.
#[test]
fn folders() {
    check("", "mkdir d; create d/f", "| d/ | d/ d/f=", "| d/ | d/ d/f=");
    check("", "mkdir d; create d/f; sync d", "d/ d/f=", "| d/ d/f=");
    check("", "mkdir d; create d/f; sync .", "d/ d/f=", "d/ | d/ d/f=");
    check("create f", "mkdir d; rename f d/f; sync d", "d/ d/f=", "f= | d/ d/f=");
    check("mkdir d; mkdir e; create d/f", "rename d/f e/f; sync e", "d/ e/ e/f=", "d/ e/ e/f=");
    // A folder is removed only after its names.
    check("mkdir d; create d/f", "rename d/f f; rmdir d", "d/ d/f= | d/ f= | f=", "d/ d/f= | d/ f= | f=");
    // Moves of folders keep their order, so none lies in itself.
    check(
        "mkdir a; mkdir b",
        "rename a b/a; rename b/a a; rename b a/b",
        "a/ b/ | b/ b/a/ | a/ a/b/",
        "a/ b/ | b/ b/a/ | a/ a/b/",
    );
}

/// The rule: a rename is atomic, and without a journal a link and a removal are not: the file may have both names or
/// none.
#[test]
fn links_and_renames() {
    check("create f", "rename f g", "f= | g=", "f= | g=");
    check("create f; create g; mode g 600", "exchange f g", "f= g=:600 | f=:600 g=", "f= g=:600 | f=:600 g=");
    check("create f", "link f g; unlink f", "f= | f= g= | g=", "f= | f= g= | g= |");
    check("create a", "rename a b; rename b c", "a= | b= | c=", "a= | b= | c=");
    // A sync of the one folder makes a move durable as a whole.
    check("mkdir d; create f", "rename f d/g; sync d", "d/ d/g=", "d/ d/g=");
}

/// The rule: an open file without a name has its bytes until it is closed or the power is cut, and the cut may bring
/// its name back with its bytes.
#[test]
fn a_removed_file_that_is_open() {
    let old = "create f; write f 0 1 1; sync-all; open f; unlink f";
    check("", old, "f=1 |", "f=1 |");
    for model in [Model::Journaled, Model::Strict] {
        let mut folder = Folder::new(rules(model));
        run(&mut folder, "create f; write f 0 1 1; open f");
        let file = folder.lookup(ROOT, b"f").unwrap();
        run(&mut folder, "unlink f; sync-all");
        folder.write(file, BLOCK, &[2; 4_096], 0).unwrap();
        let mut bytes = Vec::new();
        folder.read(file, 0, 9_000, &mut bytes).unwrap();
        assert_eq!((bytes.len(), bytes[0], bytes[8_191]), (8_192, 1, 2));
        folder.power_cut(1);
        assert_eq!((contents(&folder).as_str(), folder.bytes_used()), ("", 0));
        assert!(folder.attributes(file).is_err());
        // After a cut nothing is open.
        run(&mut folder, "create g; write g 0 1 1; open g; sync-all");
        folder.power_cut(1);
        run(&mut folder, "unlink g; sync-all");
        assert_eq!(folder.bytes_used(), 0);
    }
}

/// The rule: pieces say in words what they are, in the order of the changes, and each can be lost by its name.
#[test]
fn pieces_in_words() {
    let mut folder = Folder::new(Rules { tear_bytes: 2_048, ..rules(Model::Strict) });
    run(&mut folder, "mkdir d; create d/a.db; write d/a.db 0 4 1; sync-all");
    run(&mut folder, "create j; write d/a.db 2 1 2; rename j d/k; write d/a.db 4 1 3; truncate d/a.db 1");
    run(&mut folder, "link d/k l; unlink l; mode d 700; exchange d/a.db d/k");
    let words = |pieces: Vec<Piece>| -> Vec<String> { pieces.iter().map(Piece::to_string).collect() };
    let pieces = words(folder.pieces());
    let expected = [
        "creation of j",
        "write of 2,048 bytes at 8,192 of d/k",
        "write of 2,048 bytes at 10,240 of d/k",
        "rename of j to d/k",
        "extension of d/k to 20,480 bytes",
        "write of 2,048 bytes at 16,384 of d/k",
        "write of 2,048 bytes at 18,432 of d/k",
        "truncation of d/k to 4,096 bytes",
        "link l",
        "removal of l",
        "mode 700 of d",
        "exchange of d/a.db and d/k",
    ];
    assert_eq!(pieces, expected);
    let lost = vec![folder.pieces().swap_remove(4)];
    let expected = [
        "extension of d/k to 20,480 bytes",
        "write of 2,048 bytes at 16,384 of d/k",
        "write of 2,048 bytes at 18,432 of d/k",
        "truncation of d/k to 4,096 bytes",
    ];
    assert_eq!(words(folder.power_cut_with(&lost).lost), expected);
    // A call is one write even if the bytes of its range became part of the file by several.
    let mut folder = Folder::new(Rules { tear_bytes: 1 << 20, ..rules(Model::Strict) });
    run(&mut folder, "create f; write f 0 1 1; write f 1 1 1; sync-all; write f 0 2 2");
    assert_eq!(words(folder.pieces()), ["write of 8,192 bytes at 0 of f"]);
}

/// The rule: seeds do not lose a large append or many names always from an early point on. Each is often kept as a
/// whole, often lost as a whole, and cut at many points.
#[test]
fn seeds_differ() {
    for model in [Model::Journaled, Model::Strict] {
        let mut folder = Folder::new(rules(model));
        run(&mut folder, "create f; sync-all; write f 0 64 1");
        check_spread(&folder, |cut| {
            let file = cut.lookup(ROOT, b"f").unwrap();
            cut.attributes(file).unwrap().size / BLOCK
        });
    }
    let mut folder = Folder::new(rules(Model::Journaled));
    (0..64).for_each(|name| run(&mut folder, &format!("create f{name}")));
    check_spread(&folder, |cut| cut.entries(ROOT).unwrap().count() as u64);
}

/// Checks that many cuts keep 64, many keep none, and others keep many different numbers.
fn check_spread(folder: &Folder, count: impl Fn(&Folder) -> u64) {
    let mut found = [0; 65];
    for seed in 0..1_000 {
        let mut cut = folder.clone();
        cut.power_cut(seed);
        found[count(&cut) as usize] += 1;
    }
    let kinds = found.iter().filter(|count| **count > 0).count();
    assert!(found[0] >= 5 && found[64] > 100 && kinds > 5, "{found:?}");
}

/// The rule: a synced change is no piece, and cannot be lost by its name. It is lost with the creation of its folder.
#[test]
fn synced_changes_are_no_pieces() {
    let mut folder = Folder::new(rules(Model::Strict));
    run(&mut folder, "mkdir d; create d/f; write d/f 0 1 1");
    let pieces = folder.pieces();
    run(&mut folder, "sync d; sync d/f");
    let [creation] = &folder.pieces()[..] else { panic!("{:?}", folder.pieces()) };
    assert_eq!(creation.to_string(), "creation of d");
    let mut cut = folder.clone();
    assert_eq!(cut.power_cut_with(&pieces[1..]).lost, []);
    assert_eq!(contents(&cut), "d/ d/f=1");
    assert_eq!(folder.power_cut_with(&pieces[..1]).lost, pieces[..2]);
    assert_eq!(contents(&folder), "");
}

/// The rule: no more bytes than the cache holds can be lost, and a write that the full cache stores is kept with the
/// changes that it needs. The same holds for the number of changes.
#[test]
fn a_full_cache_stores_the_oldest_writes() {
    for model in [Model::Journaled, Model::Strict] {
        let mut folder = Folder::new(Rules { cache_bytes: 2 * BLOCK, ..rules(model) });
        run(&mut folder, "create a; create f; write f 0 1 1; write f 1 1 2; create g; write f 2 1 3");
        let mut found = BTreeSet::new();
        for seed in 0..300 {
            let mut cut = folder.clone();
            cut.power_cut(seed);
            found.insert(cut.lookup(ROOT, b"f").map_or(0, |file| cut.attributes(file).unwrap().size / BLOCK));
            assert!(model == Model::Strict || cut.lookup(ROOT, b"a").is_ok());
        }
        let names = usize::from(model == Model::Strict);
        assert_eq!(found.into_iter().collect::<Vec<u64>>(), [0, 1, 2, 3][1 - names..]);
        for change in 0..40_000 {
            folder.set_mode(ROOT, change % 2).unwrap();
        }
        assert!(folder.pieces().len() <= 32_768);
    }
}
