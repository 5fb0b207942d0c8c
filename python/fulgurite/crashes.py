"""Cuts the power of a program again and again, and checks what is left."""

from __future__ import annotations

import json
import os
import shlex
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

from . import _native
from .errors import RequestError
from .fields import explain

#: A program or a checker: a shell command, or a list of a program and its arguments.
Command = Union[str, Sequence[str]]


class PowerCut(NamedTuple):
    """A power cut after which a checker failed."""

    #: The number of the operation at which the power was cut.
    operation: int
    #: That operation in words.
    at: str
    #: The number of changes, or parts of writes, that could be lost.
    unsynced: int
    #: The number of these that were lost.
    lost: int
    #: The changes whose loss suffices for the failure, in words.
    guilty: List[str]


class Violation(NamedTuple):
    """A failure of the checker."""

    #: The seed of the cut.
    seed: int
    #: The cut while the program ran.
    cut: PowerCut
    #: The cut while the checker recovered the folder; None if the checker failed without one.
    recovery: Optional[PowerCut]
    #: What the checker said last.
    failure: str
    #: Whether the same loss made the checker fail again.
    repeats: bool


class Cuts(NamedTuple):
    """The outcome of power cuts."""

    #: The number of cuts.
    cuts: int
    #: The number of cuts that came before the program's end.
    cuts_in_run: int
    #: The number of cuts that were followed by one during the checker's recovery.
    recovery_cuts: int
    #: The number of changes and syncs of the program without a cut.
    operations: int
    #: The number of changes, or parts of writes, that the cuts could lose.
    unsynced: int
    #: The number of these that they lost.
    lost: int
    #: The time of all cuts in seconds.
    seconds: float
    #: The violations, by seed.
    violations: List[Violation]


def crashtest(
    program: Command,
    check: "Union[Command, Callable[[str, bytes], object]]",
    *,
    cuts: int = 100,
    seed: int = 42,
    recovery_cuts: Optional[int] = None,
    folder: str = "journaled",
    time: str = "60s",
    setup: Optional[Command] = None,
    keep: "Union[str, os.PathLike[str], None]" = None,
    stop: bool = False,
    threads: Optional[int] = None,
) -> Cuts:
    """Runs a program in a folder, cuts the power, and checks what is left; again and again.

    It does what the command ``fulgurite crashtest`` does, in this process. ``check`` is a command, which fails by its
    exit code, or a function that gets the path of the folder and what the program printed before the cut. The
    function fails by an exception, or by returning something false other than None::

        def check(folder: str, printed: bytes) -> None:
            with open(f"{folder}/log", "rb") as log:
                assert log.read().startswith(printed)

        fulgurite.crashtest("echo 1 >>log; sync log; echo 1", check)

    The function is called in other threads, by several at a time. It cannot be interrupted, so no power is cut while
    it runs, and ``time`` does not limit it.

    :param recovery_cuts: after one of so many cuts, the power is cut again while the check recovers the folder; 0 for
        never. By default 4, and 0 if ``check`` is a function.
    :param folder: the rules of losses: ``journaled`` or ``strict``, with options.
    :raises RequestError: if the program or the check fails without a power cut.
    :raises RunError: if the folder cannot be mounted.
    """
    if callable(check) and recovery_cuts:
        raise RequestError(
            f"recovery_cuts={recovery_cuts} needs a check that can be interrupted; accepted: a command as check, or 0"
        )
    words = ["sh", "-c", program] if isinstance(program, str) else [os.fspath(word) for word in program]
    found: Dict[str, Any] = json.loads(
        _native.crashtest(
            words,
            check if callable(check) else _shell(check),
            cuts=str(cuts),
            seed=str(seed),
            recovery_cuts="0" if callable(check) else None if recovery_cuts is None else str(recovery_cuts),
            folder=folder,
            time=time,
            setup=None if setup is None else _shell(setup),
            keep=None if keep is None else os.fspath(keep),
            stop=stop,
            threads=threads,
        )
    )
    violations = [_violation(one) for one in found.pop("violations")]
    return Cuts(**found, violations=violations)


def _shell(command: Command) -> str:
    return command if isinstance(command, str) else shlex.join(command)


def _violation(found: Dict[str, Any]) -> Violation:
    cut = PowerCut(**{name: found[name] for name in PowerCut._fields})
    recovery = found["recovery"] and PowerCut(**found["recovery"])
    return Violation(found["seed"], cut, recovery, found["failure"], found["repeats"])


explain(globals())

__all__ = ["Command", "Cuts", "PowerCut", "Violation", "crashtest"]
