"""Opens stores, which have tables of keys and values on a drive, with serialisable transactions.

A store is a file. Its tables are mappings of bytes, sorted by key::

    with fulgurite.Store.create("shop.store", size="1GiB") as store:
        users = store.create_table("users")
        users[b"ada"] = b"1815"                      # a separate transaction, durable when this returns

        with store.transaction() as transaction:     # commits at the end, rolls back on an exception
            counters = transaction["users"]
            counters[b"ada"] = b"1852"

        with store.snapshot() as snapshot:           # a consistent past state; reads do not wait
            print(dict(snapshot["users"].scan(b"a", b"b")))

The commands ``fulgurite get``, ``scan``, ``check``, ``backup`` and so on work on the same file. Only one process
at a time may open the store for writing; all its threads may use it. After a fork the store belongs to the
parent, and every call in the child raises a :class:`StoreError`.
"""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import Callable, Dict, Iterator, List, Mapping, MutableMapping, Optional, Tuple, Type, TypeVar, Union

from . import _native
from .errors import RequestError

T = TypeVar("T")

#: The number of records that are fetched together.
_PAGE = 256


def _key(key: object, what: str = "key") -> bytes:
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    raise RequestError(f"the {what} {key!r} is a {type(key).__name__}; accepted: bytes, such as {str(key)!r}.encode()")


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise RequestError(f"the table {name!r} is a {type(name).__name__}; accepted: a name as text")


def _size(size: Union[int, str, None]) -> Optional[str]:
    """Returns a size in the syntax of the command line. A plain number is in bytes."""
    return f"{size}B" if isinstance(size, int) else size


def _is_foreign(store: Store, error: Optional[BaseException]) -> bool:
    """Whether an exception leaves a block in a process that did not open the store. There is nothing to end in
    that process, and another exception would hide the first."""
    return error is not None and not store._store.is_here


class _Readable(Mapping[bytes, bytes]):
    """The common base of all tables."""

    def __init__(self, name: str, table: _native.StoreTable) -> None:
        #: The table's name.
        self.name = name
        self._table = table

    def _get(self, key: bytes) -> Optional[bytes]:
        raise NotImplementedError

    def _page(
        self, low: Optional[bytes], after: bool, high: Optional[bytes], backward: bool, most: int
    ) -> List[Tuple[bytes, bytes]]:
        raise NotImplementedError

    def __getitem__(self, key: bytes) -> bytes:
        value = self._get(_key(key))
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self._get(_key(key)) is not None

    def scan(
        self,
        low: Optional[bytes] = None,
        high: Optional[bytes] = None,
        *,
        backward: bool = False,
        limit: Optional[int] = None,
    ) -> Iterator[Tuple[bytes, bytes]]:
        """Yields the records from ``low`` up to but excluding ``high``, in the order of their keys.

        :param backward: whether the order is descending.
        :param limit: the maximum number of records.
        """
        low = None if low is None else _key(low)
        high = None if high is None else _key(high)
        left, after = limit, False
        while left is None or left > 0:
            most = _PAGE if left is None else min(_PAGE, left)
            page = self._page(low, after, high, backward, most)
            yield from page
            if len(page) < most:
                return
            if left is not None:
                left -= len(page)
            if backward:
                high = page[-1][0]
            else:
                low, after = page[-1][0], True

    def __iter__(self) -> Iterator[bytes]:
        return (key for key, _ in self.scan())

    def __reversed__(self) -> Iterator[bytes]:
        return (key for key, _ in self.scan(backward=True))

    def __len__(self) -> int:
        """Returns the number of records. This reads all of them."""
        return sum(1 for _ in self.scan())

    def __bool__(self) -> bool:
        return next(self.scan(limit=1), None) is not None

    def __repr__(self) -> str:
        return f"<fulgurite.{type(self).__name__} {self.name}>"


class SnapshotTable(_Readable):
    """A table as it was when the snapshot was taken."""

    def __init__(self, name: str, table: _native.StoreTable, snapshot: _native.Snapshot) -> None:
        super().__init__(name, table)
        self._snapshot = snapshot

    def _get(self, key: bytes) -> Optional[bytes]:
        return self._snapshot.get(self._table, key)

    def _page(
        self, low: Optional[bytes], after: bool, high: Optional[bytes], backward: bool, most: int
    ) -> List[Tuple[bytes, bytes]]:
        return self._snapshot.scan(self._table, low, after, high, backward, most)


class TransactionTable(_Readable, MutableMapping[bytes, bytes]):
    """A table within a transaction, including the transaction's own writes. Reads lock until the transaction
    ends. Writes lock from the next read or the commit on."""

    def __init__(self, name: str, table: _native.StoreTable, transaction: _native.Transaction) -> None:
        super().__init__(name, table)
        self._transaction = transaction

    def _get(self, key: bytes) -> Optional[bytes]:
        return self._transaction.get(self._table, key, False)

    def get_for_update(self, key: bytes) -> Optional[bytes]:
        """Returns the value of a key that will be written, or None. This locks the key for writing at once,
        so that two transactions that read and then write it do not deadlock."""
        return self._transaction.get(self._table, _key(key), True)

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._transaction.put(self._table, _key(key), _key(value, "value"))

    def __delitem__(self, key: bytes) -> None:
        if self.get_for_update(key) is None:
            raise KeyError(key)
        self._transaction.delete(self._table, _key(key))

    def _page(
        self, low: Optional[bytes], after: bool, high: Optional[bytes], backward: bool, most: int
    ) -> List[Tuple[bytes, bytes]]:
        return self._transaction.scan(self._table, low, after, high, backward, most)


class Table(_Readable, MutableMapping[bytes, bytes]):
    """A table of a store. Each read returns committed data; each write is a separate transaction.

    Methods with several steps (``pop``, ``setdefault``, ``update``) take several transactions. Use
    :meth:`Store.transaction` to make them atomic.
    """

    def __init__(self, name: str, table: _native.StoreTable, store: Store) -> None:
        super().__init__(name, table)
        self._store = store

    def _get(self, key: bytes) -> Optional[bytes]:
        return self._store._store.get(self._table, key)

    def __setitem__(self, key: bytes, value: bytes) -> None:
        self._store._store.put(self._table, _key(key), _key(value, "value"))

    def __delitem__(self, key: bytes) -> None:
        def delete(transaction: Transaction) -> None:
            del transaction[self.name][key]

        self._store.transact(delete)

    def scan(
        self,
        low: Optional[bytes] = None,
        high: Optional[bytes] = None,
        *,
        backward: bool = False,
        limit: Optional[int] = None,
    ) -> Iterator[Tuple[bytes, bytes]]:
        """Yields the records from ``low`` up to but excluding ``high``, in the order of their keys, from one
        snapshot."""
        with self._store.snapshot() as snapshot:
            yield from SnapshotTable(self.name, self._table, snapshot._snapshot).scan(
                low, high, backward=backward, limit=limit
            )


class Transaction:
    """A transaction. It belongs to the thread that began it.

    The end of the ``with`` block ends the transaction. The block may end it earlier by :meth:`commit` or
    :meth:`rollback`; the transaction cannot be used afterwards.
    """

    def __init__(self, store: Store, transaction: _native.Transaction) -> None:
        self._store = store
        self._transaction = transaction

    def __getitem__(self, table: str) -> TransactionTable:
        """Returns the table with this name."""
        return TransactionTable(table, self._store._table(table), self._transaction)

    def commit(self, durability: Optional[str] = None) -> None:
        """Commits the transaction with this durability, by default that of the store.

        :raises DeadlockError: if it was aborted to resolve a deadlock; repeat it from its beginning.
        """
        self._transaction.commit(durability)

    def rollback(self) -> None:
        """Rolls the transaction back."""
        self._transaction.rollback()


class Snapshot:
    """A consistent past state of all tables."""

    def __init__(self, store: Store, snapshot: _native.Snapshot) -> None:
        self._store = store
        self._snapshot = snapshot
        store._snapshots.add(self)

    def __getitem__(self, table: str) -> SnapshotTable:
        """Returns the table with this name."""
        return SnapshotTable(table, self._store._table(table), self._snapshot)

    def close(self) -> None:
        """Releases the versions that the snapshot keeps."""
        self._snapshot.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        if not _is_foreign(self._store, error):
            self.close()


class _Transacting:
    """Commits at the end of ``with``, and rolls back if an exception leaves the block."""

    def __init__(self, store: Store, durability: Optional[str]) -> None:
        self._store, self._durability = store, durability
        self._transaction: Optional[Transaction] = None

    def __enter__(self) -> Transaction:
        self._transaction = Transaction(self._store, self._store._store.begin())
        return self._transaction

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is None or _is_foreign(self._store, error):
            return
        if transaction._transaction.is_ended:
            # Do nothing, because the block has already committed the transaction or rolled it back.
            return
        if kind is None:
            transaction.commit(self._durability)
        else:
            transaction.rollback()


class Store(Mapping[str, Table]):
    """A store in a file: a mapping of its tables by name. See :meth:`create` and :meth:`open`."""

    def __init__(self, store: _native.Store) -> None:
        self._store = store
        # Open snapshots keep the file open, so closing the store must close them.
        self._snapshots: "weakref.WeakSet[Snapshot]" = weakref.WeakSet()

    @classmethod
    def create(
        cls,
        path: Union[str, "os.PathLike[str]"],
        *,
        size: Union[int, str, None] = None,
        page: Union[int, str, None] = None,
        log: Union[int, str, None] = None,
        place: Optional[str] = None,
        memory: Union[int, str, None] = None,
        durability: Optional[str] = None,
    ) -> Store:
        """Creates a store in a new file, which appears with a complete store or not at all.

        :param size: size of the file in bytes, by default 16 GiB. It is a limit: the file takes room on the disk as
            the store fills. :meth:`open` can extend it.
        :param page: page size in bytes; by default 4 KiB.
        :param log: size of the log in bytes.
        :param place: the place of page writes: ``in-place`` or ``out-of-place``.
        :param memory: the limit of memory in bytes.
        :param durability: the durability of commits: ``flush``, ``group`` (the default; a commit may wait for
            others, to share a flush) or ``relaxed`` (a crash may lose the last commits).
        """
        size, page, log, memory = map(_size, (size, page, log, memory))
        return cls(_native.Store.create(os.fspath(path), size, page, log, place, memory, durability))

    @classmethod
    def open(
        cls,
        path: Union[str, "os.PathLike[str]"],
        *,
        read_only: bool = False,
        size: Union[int, str, None] = None,
        memory: Union[int, str, None] = None,
        durability: Optional[str] = None,
    ) -> Store:
        """Opens the store in a file. After a crash this recovers it.

        :param read_only: whether the store refuses writes. The file does not change, and several processes may read
            it at once, but not while another one writes it.
        :param size: a larger size of the file in bytes, which extends a store with pages in place.
        """
        return cls(_native.Store.open(os.fspath(path), read_only, _size(size), _size(memory), durability))

    def check(self) -> List[str]:
        """Reads every page. Returns a sentence for each problem, so the list of a sound store is empty."""
        return self._store.check()

    def compact(self) -> Tuple[int, int]:
        """Merges sparse pages and gives the room of free ones back to the disk, while other threads go on. Returns the
        pages in use before and after."""
        return self._store.compact()

    def backup(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Copies the store into a new file while it is in use. The copy has every commit that returned before the
        call."""
        self._store.backup(os.fspath(path))

    def copy(
        self,
        path: Union[str, "os.PathLike[str]"],
        *,
        size: Union[int, str, None] = None,
        page: Union[int, str, None] = None,
        log: Union[int, str, None] = None,
        place: Optional[str] = None,
    ) -> int:
        """Copies the records, as one snapshot shows them, into a new store whose sizes and place may differ. Returns
        their number. A program makes its indexes again in the copy."""
        return self._store.copy(os.fspath(path), _size(size), _size(page), _size(log), place)

    def checkpoint(self) -> None:
        """Writes all dirty pages, so that recovery after a crash would have nothing to redo."""
        self._store.checkpoint()

    def statistics(self) -> Dict[str, int]:
        """Returns the counters since the store was opened, and its current sizes."""
        return self._store.statistics()

    def create_table(self, name: str) -> Table:
        """Returns the table with this name. The table is created if it does not exist."""
        return Table(name, self._store.create_table(_name(name)), self)

    def _table(self, name: str) -> _native.StoreTable:
        found = self._store.table(_name(name))
        if found is None:
            raise KeyError(name)
        return found

    def __getitem__(self, name: str) -> Table:
        return Table(name, self._table(name), self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.tables())

    def __len__(self) -> int:
        return len(self._store.tables())

    def transaction(self, durability: Optional[str] = None) -> _Transacting:
        """Begins a transaction in a ``with`` block. It commits at the end of the block, and rolls back if an
        exception leaves the block. A thread has at most one transaction, and must write through it.

        :raises DeadlockError: if it was aborted to resolve a deadlock; :meth:`transact` repeats it
            automatically.
        """
        return _Transacting(self, durability)

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Runs ``work`` in a transaction and commits it. If it is aborted to resolve a deadlock, it is
        repeated, so ``work`` may run several times. Exceptions of ``work`` undo the transaction and are raised as
        they are.

        An aborted transaction keeps its age, and first waits for those that began earlier, at most half a second
        each time. So threads that change the same records get through in about the order in which they began.
        """
        transaction = Transaction(self, self._store.begin())
        native = transaction._transaction
        while True:
            try:
                value = work(transaction)
                if not native.is_ended:
                    transaction.commit()
                return value
            except Exception as error:
                if _is_foreign(self, error) or not native.again():
                    raise
            except BaseException as error:
                if not _is_foreign(self, error) and not native.is_ended:
                    transaction.rollback()
                raise

    def snapshot(self) -> Snapshot:
        """Takes a snapshot of the committed state. It does not block other threads and does not wait for
        them."""
        return Snapshot(self, self._store.snapshot())

    def close(self) -> None:
        """Writes all dirty pages, so that the next opening is fast, and ends snapshots and scans. A second
        call does nothing."""
        self._store.close()
        while True:
            try:
                self._snapshots.pop().close()
            except KeyError:
                return

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        if not _is_foreign(self, error):
            self.close()

    def __repr__(self) -> str:
        if not self._store.is_here:
            return "<fulgurite.Store of another process>"
        return "<fulgurite.Store, closed>" if self._store.is_closed else f"<fulgurite.Store of {len(self)} tables>"


__all__ = ["Snapshot", "SnapshotTable", "Store", "Table", "Transaction", "TransactionTable"]
