"""Fulgurite: storage that knows it is on flash.

One stack, from the workload to the NAND, that can be taken apart, measured and put together again::

    import fulgurite

    result = fulgurite.sweep("pool", workload="mixed-skewed", write_back=["single", "ace"])
    print(result)
    result.to_pandas()

A run is a value (:class:`Run`) with the same settings as on the command line and in a study file. :func:`run`
and :func:`sweep` execute runs on all cores, with the GIL (the interpreter's lock) released. A result is an
Arrow table. :class:`Trace` reads and writes traces, :mod:`fulgurite.models` calculates write amplification,
and :mod:`fulgurite.policies` describes how to write policies in Python.
"""

from __future__ import annotations

from . import errors, models, policies
from ._native import VERSION as __version__
from .crashes import Cuts, PowerCut, Violation, crashtest
from .description import (
    Benchmark,
    Characterisation,
    Engine,
    Load,
    Measure,
    Pool,
    Requests,
    Run,
    Setting,
    Stack,
    Translation,
    grid,
    settings,
)
from .errors import (
    DeadlockError,
    FulguriteError,
    MissingPackageError,
    PolicyError,
    RequestError,
    RunError,
    SnapshotTooOldError,
    StoreClosedError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
)
from .models import (
    Groups,
    Lifetimes,
    Prediction,
    midas_groups,
    midas_predict,
    waf_fifo,
    waf_fifo_two_classes,
    waf_greedy,
    waf_random,
)
from .plots import report
from .policies import Drive, Placement, Replacement, Segment, Victim, Write, check_policy
from .progress import Progress
from .result import Column, Failure, Result, columns
from .running import Outlook, Profile, Study, StudyResult, Verdict, names, outlook, profile, run, studies, sweep
from .store import Snapshot, SnapshotTable, Store, Table, Transaction, TransactionTable
from .traces import Trace, summary

__all__ = [
    "Benchmark",
    "Characterisation",
    "Column",
    "Cuts",
    "DeadlockError",
    "Drive",
    "Engine",
    "Failure",
    "FulguriteError",
    "Groups",
    "Lifetimes",
    "Load",
    "Measure",
    "MissingPackageError",
    "Outlook",
    "Placement",
    "PolicyError",
    "Pool",
    "PowerCut",
    "Prediction",
    "Profile",
    "Progress",
    "Replacement",
    "RequestError",
    "Requests",
    "Result",
    "Run",
    "RunError",
    "Segment",
    "Setting",
    "Snapshot",
    "SnapshotTable",
    "SnapshotTooOldError",
    "Stack",
    "Store",
    "StoreClosedError",
    "StoreDamagedError",
    "StoreError",
    "StoreFullError",
    "Study",
    "StudyResult",
    "Table",
    "Trace",
    "Transaction",
    "TransactionTable",
    "Translation",
    "Verdict",
    "Victim",
    "Violation",
    "Write",
    "__version__",
    "check_policy",
    "columns",
    "crashtest",
    "errors",
    "grid",
    "midas_groups",
    "midas_predict",
    "models",
    "names",
    "outlook",
    "policies",
    "profile",
    "report",
    "run",
    "settings",
    "studies",
    "summary",
    "sweep",
    "waf_fifo",
    "waf_fifo_two_classes",
    "waf_greedy",
    "waf_random",
]
