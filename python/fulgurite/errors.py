"""What can go wrong.

Every exception says in one sentence what is wrong and what would be accepted: the same sentence that the command
``fulgurite`` prints. All of them are :class:`FulguriteError`, so one ``except`` catches them; each is also what Python calls
such an error (``ValueError``, ``RuntimeError``, …).
"""

from __future__ import annotations


class FulguriteError(Exception):
    """Any error of Fulgurite."""


class RequestError(FulguriteError, ValueError):
    """The request cannot be met. The sentence names the argument and what would be accepted.

    The command exits with 2 in this case. Nothing was run.
    """


class RunError(FulguriteError, RuntimeError):
    """A run broke one of its checks, or something that it needs failed. It has no result.

    The command exits with 1 in this case.
    """


class PolicyError(RunError):
    """A policy that is written in Python gave an answer that cannot be, or broke the order law."""


class StoreError(FulguriteError, RuntimeError):
    """The store could not do what it was asked."""


class DeadlockError(StoreError):
    """The transaction was given up to end a deadlock. Nothing of it was done; do it again from its beginning.

    :meth:`fulgurite.Store.transact` does that by itself.
    """


class SnapshotTooOldError(StoreError):
    """The snapshot needs versions that no longer fit into memory. Take another."""


class StoreFullError(StoreError):
    """The store has no room for what would be written. Nothing was lost; deleting makes room."""


class StoreClosedError(StoreError):
    """The store, the transaction or the snapshot has ended."""


class StoreDamagedError(StoreError):
    """A part of the store is not what was written. ``fulgurite check`` says what is lost, ``fulgurite repair`` saves the
    rest."""


class MissingPackageError(FulguriteError, ImportError):
    """An optional package is needed for this and is not installed. The sentence says how to install it."""


__all__ = [
    "DeadlockError",
    "FulguriteError",
    "MissingPackageError",
    "PolicyError",
    "RequestError",
    "RunError",
    "SnapshotTooOldError",
    "StoreClosedError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
]
