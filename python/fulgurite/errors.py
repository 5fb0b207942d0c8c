"""Defines the exceptions.

The message of every exception says in one sentence what is wrong and what would be accepted. The command
``fulgurite`` prints the same sentence. All exceptions derive from :class:`FulguriteError`, and each also derives
from the matching class of Python (``ValueError``, ``RuntimeError``, …).
"""

from __future__ import annotations


class FulguriteError(Exception):
    """Any error of Fulgurite."""


class RequestError(FulguriteError, ValueError):
    """The request is invalid. The message names the argument and what would be accepted.

    Nothing was run. The command exits with 2 in this case.
    """


class RunError(FulguriteError, RuntimeError):
    """A run failed one of its checks, or something that it needs failed. It has no result.

    The command exits with 1 in this case.
    """


class PolicyError(RunError):
    """A policy that is written in Python returned an invalid answer, or broke the order law."""


class StoreError(FulguriteError, RuntimeError):
    """An operation of the store failed."""


class DeadlockError(StoreError):
    """The transaction was aborted to resolve a deadlock. Repeat it from its beginning.

    :meth:`fulgurite.Store.transact` repeats it automatically.
    """


class SnapshotTooOldError(StoreError):
    """The snapshot needs versions that do not fit into memory any more. Take a new snapshot."""


class StoreFullError(StoreError):
    """The store has no space for the write. No data is lost; deleting records frees space."""


class StoreClosedError(StoreError):
    """The store, the transaction or the snapshot has ended."""


class StoreDamagedError(StoreError):
    """A part of the store does not contain what was written. ``fulgurite check`` reports what is lost, and
    ``fulgurite repair`` saves the rest."""


class MissingPackageError(FulguriteError, ImportError):
    """An optional package is required but not installed. The message says how to install it."""


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
