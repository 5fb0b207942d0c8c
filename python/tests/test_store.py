"""Tests the store as a mapping with transactions."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import fulgurite


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.store"


@pytest.fixture
def store(path):
    with fulgurite.Store.create(path, size="16MiB", log="1MiB") as store:
        yield store


def test_a_table_is_a_mutable_mapping(store):
    users = store.create_table("users")
    assert not users and len(users) == 0
    users.update({b"ada": b"1815", b"bob": b"1900", b"eve": b""})
    assert dict(users) == {b"ada": b"1815", b"bob": b"1900", b"eve": b""} and users
    assert users[b"eve"] == b"" and b"ada" in users and b"zoe" not in users and users.get(b"zoe", b"-") == b"-"
    assert users.pop(b"bob") == b"1900" and users.setdefault(b"ada", b"x") == b"1815"
    assert list(reversed(users)) == [b"eve", b"ada"]
    with pytest.raises(KeyError):
        del users[b"bob"]
    with pytest.raises(KeyError):
        users[b"bob"]
    assert dict(store) == {"users": store["users"]} or list(store) == ["users"]
    assert "users" in store and "other" not in store
    with pytest.raises(KeyError):
        store["other"]


def test_scans_have_ends_and_directions(store):
    numbers = store.create_table("numbers")
    keys = [b"%04d" % number for number in range(700)]
    with store.transaction() as transaction:
        for key in keys:
            transaction["numbers"][key] = key
        # A scan in a transaction returns the transaction's own writes, over several fetches.
        assert [key for key, _ in transaction["numbers"].scan()] == keys
    assert [key for key, _ in numbers.scan()] == keys
    assert [key for key, _ in numbers.scan(backward=True)] == keys[::-1]
    assert [key for key, _ in numbers.scan(b"0100", b"0400")] == keys[100:400]
    assert [key for key, _ in numbers.scan(b"0100", b"0400", backward=True, limit=257)] == keys[399:142:-1]
    assert list(numbers.scan(limit=0)) == [] and len(numbers) == 700


def test_a_transaction_is_all_or_nothing(store):
    users = store.create_table("users")
    users[b"ada"] = b"1"
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        transaction["users"][b"ada"] = b"2"
        transaction["users"][b"new"] = b"2"
        assert transaction["users"][b"ada"] == b"2" and users[b"ada"] == b"1"
        1 / 0
    assert dict(users) == {b"ada": b"1"}
    with store.transaction("flush") as transaction:
        del transaction["users"][b"ada"]
        assert b"ada" not in transaction["users"]
    assert dict(users) == {}
    with pytest.raises(fulgurite.StoreClosedError):
        transaction["users"][b"late"] = b"1"


def test_a_thread_does_not_wait_for_itself(store):
    users = store.create_table("users")
    with store.transaction() as transaction:
        transaction["users"][b"ada"] = b"1"
        for what in (lambda: users.update({b"ada": b"2"}), store.close, lambda: store.transaction().__enter__()):
            with pytest.raises(fulgurite.StoreError, match="would wait for itself"):
                what()
        assert users.get(b"ada") is None
    assert users[b"ada"] == b"1"


def test_threads_count_without_losing_one(store):
    store.create_table("counters")[b"n"] = b"0"

    def add(transaction):
        counters = transaction["counters"]
        # With a plain read first, two transactions deadlock, and one of them is repeated.
        counters[b"n"] = b"%d" % (int(counters[b"n"]) + 1)

    def work():
        for _ in range(25):
            store.transact(add)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store["counters"][b"n"] == b"100"


def test_aborted_transactions_take_turns(store):
    """The rule: an aborted transaction keeps its age and waits for its turn, so few of them are aborted again."""
    store.create_table("counters")[b"n"] = b"0"
    threads_together, commits_each, attempts = 8, 20, []
    barrier = threading.Barrier(threads_together)

    def add(transaction):
        attempts.append(None)
        counters = transaction["counters"]
        old = int(counters[b"n"])
        time.sleep(0)
        counters[b"n"] = b"%d" % (old + 1)

    def work():
        barrier.wait()
        for _ in range(commits_each):
            store.transact(add)

    threads = [threading.Thread(target=work) for _ in range(threads_together)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    commits = threads_together * commits_each
    assert store["counters"][b"n"] == b"%d" % commits
    assert len(attempts) < 3 * commits


def test_what_a_function_raises_is_raised(store):
    """The rule: an exception of a function undoes its transaction and is raised as it is. A transaction that was
    aborted is repeated, whatever the function makes of that."""
    table = store.create_table("records")
    table[b"a"] = table[b"b"] = b"0"
    for raised in (ValueError("own"), fulgurite.DeadlockError("of another store"), KeyboardInterrupt()):

        def fail(transaction, raised=raised):
            transaction["records"][b"a"] = b"never"
            raise raised

        with pytest.raises(type(raised)) as caught:
            store.transact(fail)
        assert caught.value is raised and table[b"a"] == b"0"
    both, runs = threading.Barrier(2), []

    def cross(first, second):
        def work(transaction):
            runs.append(first)
            records = transaction["records"]
            records.get_for_update(first)
            if runs.count(first) == 1:
                both.wait()
            try:
                value = records.get_for_update(second)
            except fulgurite.DeadlockError as error:
                raise ValueError("wrapped") from error
            records[second] = b"%d" % (int(value) + 1)

        return lambda: store.transact(work)

    threads = [threading.Thread(target=cross(*keys)) for keys in ((b"a", b"b"), (b"b", b"a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table[b"a"] == table[b"b"] == b"1" and len(runs) == 3

    def ends_itself(transaction):
        transaction["records"][b"a"] = b"2"
        transaction.rollback()
        return "ended"

    assert store.transact(ends_itself) == "ended" and table[b"a"] == b"1"


def test_a_transaction_belongs_to_its_thread(store):
    store.create_table("users")
    failed = []

    def use(transaction):
        try:
            transaction["users"][b"a"] = b"b"
        except fulgurite.StoreError as error:
            failed.append(str(error))

    with store.transaction() as transaction:
        thread = threading.Thread(target=use, args=(transaction,))
        thread.start()
        thread.join()
    assert failed == ["the transaction belongs to another thread; accepted: the thread that began it"]


def test_a_block_may_end_its_transaction_itself(store):
    users = store.create_table("users")
    with store.transaction() as transaction:
        transaction["users"][b"ada"] = b"1"
        inside = transaction["users"]
        transaction.commit()
        for what in (lambda: inside.get(b"ada"), transaction.commit):
            with pytest.raises(fulgurite.StoreClosedError, match="^the transaction has ended; accepted: another one"):
                what()
        # The first transaction has ended, so the thread may begin another one. A rollback of the first one
        # does not affect it.
        with store.transaction() as other:
            transaction.rollback()
            with pytest.raises(fulgurite.StoreError, match="would wait for itself"):
                users[b"ada"] = b"2"
            other["users"][b"bob"] = b"2"
    with store.transaction() as transaction:
        transaction["users"][b"ada"] = b"3"
        transaction.rollback()
    assert dict(users) == {b"ada": b"1", b"bob": b"2"}
    with store.snapshot() as snapshot:
        seen = snapshot["users"]
    with pytest.raises(fulgurite.StoreClosedError, match="^the snapshot was closed; accepted: another one"):
        seen.get(b"ada")


def test_another_thread_cannot_end_a_transaction(store):
    store.create_table("users")
    failed = []

    def end(what):
        try:
            what()
        except fulgurite.StoreError as error:
            failed.append(str(error))

    with store.transaction() as transaction:
        transaction["users"][b"ada"] = b"1"
        for what in (transaction.commit, transaction.rollback):
            thread = threading.Thread(target=end, args=(what,))
            thread.start()
            thread.join()
    assert failed == ["the transaction belongs to another thread; accepted: the thread that began it"] * 2
    assert dict(store["users"]) == {b"ada": b"1"}


def test_a_snapshot_does_not_change(store):
    users = store.create_table("users")
    users[b"ada"] = b"1"
    with store.snapshot() as snapshot:
        users[b"ada"] = b"2"
        assert snapshot["users"][b"ada"] == b"1" and dict(snapshot["users"]) == {b"ada": b"1"}
    with pytest.raises(fulgurite.StoreClosedError):
        snapshot["users"][b"ada"]
    # An unfinished scan keeps no versions.
    next(users.scan())


def test_a_closed_store_can_be_opened_again(store, path):
    """Open snapshots and scans do not keep the file open."""
    users = store.create_table("users")
    users.update({b"ada": b"1", b"bob": b"2"})
    snapshot, scan = store.snapshot(), users.scan()
    next(scan)
    store.close()
    with fulgurite.Store.open(path) as again:
        assert dict(again["users"]) == {b"ada": b"1", b"bob": b"2"}
    with pytest.raises(fulgurite.StoreClosedError):
        snapshot["users"]


def test_errors(store, path, tmp_path):
    users = store.create_table("users")
    for what, sentence in [
        (lambda: users["text"], r"the key 'text' is a str; accepted: bytes"),
        (lambda: users.update({b"k": 5}), "the value 5 is a int"),
        (lambda: users.update({b"k" * 5000: b""}), "a key of 5000 bytes is too long"),
        (lambda: store.create_table(5), "the table 5 is a int; accepted: a name as text"),
        (lambda: fulgurite.Store.create(path), "exists; accepted: a new file"),
        (lambda: fulgurite.Store.create(tmp_path / "b", size=5), "--size"),
        (lambda: fulgurite.Store.open(tmp_path / "none"), "does not exist; accepted: "),
        (lambda: fulgurite.Store.open(path), "in use"),
        (lambda: fulgurite.Store.open(path, durability="never"), "--durability: unknown value `never`"),
    ]:
        with pytest.raises(fulgurite.RequestError, match=sentence):
            what()
    (tmp_path / "text").write_text("no store" * 1000)
    with pytest.raises(fulgurite.RequestError, match="holds no store|mark"):
        fulgurite.Store.open(tmp_path / "text")
    with pytest.raises(fulgurite.StoreFullError):
        for number in range(10_000):
            users[b"%d" % number] = bytes(40_000)


def test_committed_data_survives_a_kill(path):
    code = """
import sys, fulgurite
store = fulgurite.Store.create(sys.argv[1], size="16MiB", log="1MiB", durability="flush")
table = store.create_table("t")
for number in range(10**6):
    table[b"%d" % number] = b"x" * 100
    print(number, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True) as process:
        last = None
        for line in process.stdout:
            last = int(line)
            if last >= 20:
                break
        os.kill(process.pid, signal.SIGKILL)
    with fulgurite.Store.open(path) as store:
        assert all(b"%d" % number in store["t"] for number in range(last + 1))


INTERRUPTED = """
import os, signal, sys, threading, time
import fulgurite

store = fulgurite.Store.create(sys.argv[1], size="16MiB", log="1MiB")
table = store.create_table("t")
held, leave = threading.Event(), threading.Event()

def hold():
    with store.transaction() as transaction:
        transaction["t"].get_for_update(b"held")
        transaction["t"][b"held"] = b"by the holder"
        held.set()
        leave.wait()

def interrupt():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

def takes(what):
    timer = threading.Thread(target=interrupt)
    began = time.monotonic()
    timer.start()
    try:
        what()
    except KeyboardInterrupt:
        assert 0.3 <= time.monotonic() - began < 1.3, time.monotonic() - began
    else:
        raise SystemExit("it was not interrupted")
    timer.join()

def within(transaction):
    assert transaction["t"].get(b"free") is None
    transaction["t"][b"free"] = b""
    transaction["t"].get_for_update(b"held")
    transaction["t"][b"held"] = b""

holder = threading.Thread(target=hold)
holder.start()
held.wait()
takes(lambda: table.update({b"held": b""}))
takes(lambda: store.transact(within))
# The lock for a write is acquired by the commit.
takes(lambda: store.transact(lambda transaction: transaction["t"].update({b"held": b""})))
takes(lambda: store.transact(lambda transaction: transaction["t"].get_for_update(b"held")))
# A handler that raises nothing does not end the wait, and it cannot use the waiting transaction.
said = []
def handler(*_):
    assert not transacting._transaction._transaction.is_ended
    for what in (transacting._transaction.rollback, lambda: within(transacting._transaction)):
        try:
            what()
        except fulgurite.StoreError as error:
            said.append(str(error))
    leave.set()
signal.signal(signal.SIGINT, handler)
threading.Thread(target=interrupt).start()
with (transacting := store.transaction()) as transaction:
    within(transaction)
holder.join()
print(*set(said))
print(dict(table.scan()), len(said))
store.close()
"""


def test_an_interrupt_ends_the_wait_for_a_lock(path):
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, str(path)], capture_output=True, text=True, timeout=60)
    sentence = (
        "the transaction is in the middle of a call, which a signal interrupted; "
        "accepted: to leave the signal's handler first"
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == f"{sentence}\n{{b'free': b'', b'held': b''}} 2\n"


FORKED = """
import os, sys
import fulgurite

def said(what):
    try:
        what()
    except fulgurite.StoreError as error:
        return str(error)
    return "no error"

store = fulgurite.Store.create(sys.argv[1], size="16MiB", log="1MiB", durability="flush")
table = store.create_table("t")
table[b"before"] = b""
transacting, snapshot = store.transaction(), store.snapshot()
transaction = transacting.__enter__()
transaction["t"][b"under way"] = b""
inner, seen = transaction["t"], snapshot["t"]
child = os.fork()
if child == 0:
    calls = [
        lambda: table.get(b"k"), lambda: table.update({b"k": b""}), lambda: list(table.scan()), lambda: list(store),
        lambda: store.create_table("u"), store.snapshot, store.transaction().__enter__, store.close,
        lambda: inner.get(b"k"), lambda: inner.update({b"k": b""}), transaction.commit, transaction.rollback,
        lambda: seen.get(b"k"), snapshot.close,
    ]
    print(*{said(call) for call in calls}, repr(store), flush=True)
    try:
        # The end of a block does not hide the exception that leaves it.
        with store, snapshot:
            sys.exit(5)
    finally:
        # Dropping them writes nothing either.
        del calls, table, inner, seen, transaction, transacting, snapshot, store
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
transacting.__exit__(None, None, None)
for number in range(100):
    table[b"%d" % number] = b"x" * 1000
snapshot.close()
store.close()
"""


def test_a_store_belongs_to_the_process_that_opened_it(path):
    done = subprocess.run([sys.executable, "-c", FORKED, str(path)], capture_output=True, text=True, timeout=60)
    sentence = "the store was opened by another process; open it in this one <fulgurite.Store of another process>\n"
    assert (done.stdout, done.stderr, done.returncode) == (f"{sentence}5\n", "", 0)
    with fulgurite.Store.open(path) as store:
        assert set(store["t"]) == {b"before", b"under way", *(b"%d" % number for number in range(100))}


def test_upkeep_works_while_the_store_is_open(store, path, tmp_path):
    numbers = store.create_table("numbers")
    for first in range(0, 3000, 500):
        with store.transaction() as transaction:
            for number in range(first, first + 500):
                transaction["numbers"][b"%06d" % number] = b"x" * 100
    store.checkpoint()
    assert store.check() == []
    before = store.statistics()
    assert before["commits"] >= 1 and before["pages_used"] > 50
    assert store.copy(tmp_path / "copy.store", size="32MiB", page="8KiB", place="out-of-place") == 3000
    store.backup(tmp_path / "image.store")
    with pytest.raises(fulgurite.RequestError, match="exists"):
        store.backup(tmp_path / "image.store")
    for first in range(0, 2900, 100):
        store.transact(lambda work: [work["numbers"].pop(b"%06d" % number) for number in range(first, first + 100)])
    pages, fewer = store.compact()
    assert fewer <= pages and fewer < before["pages_used"] / 4 and len(numbers) == 100
    for name in ("copy.store", "image.store"):
        with fulgurite.Store.open(tmp_path / name, read_only=True) as copy:
            assert len(copy["numbers"]) == 3000
            with pytest.raises(fulgurite.StoreError, match="reading only"):
                copy["numbers"][b"key"] = b"value"


def test_a_larger_size_extends_a_store(path):
    with fulgurite.Store.create(path, size="8MiB", log="1MiB") as store:
        pages = store.statistics()["pages"]
    with fulgurite.Store.open(path, size="32MiB") as store:
        assert store.statistics()["pages"] == pages + (24 << 20) // 4096
    with pytest.raises(fulgurite.RequestError, match="differs"):
        fulgurite.Store.open(path, size="8MiB")
