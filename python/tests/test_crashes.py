"""Tests power cuts: a fault is found by a command and by a function, and a right program is not accused."""

import os

import pytest

import fulgurite

#: Replaces a file; without a sync of the new one a cut may leave an empty file.
WRONG = "echo 1 >new; mv new file"
RIGHT = "echo 1 >new; sync new; mv new file"
CHECK = "test ! -e file || test -s file"


def check(folder: str, printed: bytes) -> None:
    """Does what `CHECK` does."""
    path = os.path.join(folder, "file")
    assert printed == b"" and (not os.path.exists(path) or os.path.getsize(path) > 0), "the file is empty"


def test_a_command_and_a_function_find_the_same_violations():
    by_command = fulgurite.crashtest(WRONG, CHECK, cuts=40, threads=2)
    by_function = fulgurite.crashtest(["sh", "-c", WRONG], check, cuts=40, threads=2)
    assert by_command.cuts == 40 and by_command.operations == 3
    seeds = [violation.seed for violation in by_command.violations]
    assert seeds and seeds == [violation.seed for violation in by_function.violations]
    for violation in by_command.violations + by_function.violations:
        assert violation.cut.guilty == ["extension of file to 2 bytes"] and violation.repeats
    assert by_function.violations[0].failure.startswith("AssertionError: the file is empty")
    assert fulgurite.crashtest(RIGHT, check, seed=seeds[0], cuts=5).violations == []
    returned = fulgurite.crashtest(WRONG, lambda folder, _: check_quietly(folder), seed=seeds[0], cuts=1)
    assert [violation.failure for violation in returned.violations] == ["it returned False"]


def check_quietly(folder: str) -> bool:
    """Returns what `check` asserts."""
    try:
        check(folder, b"")
    except AssertionError:
        return False
    return True


def test_requests_without_meaning_are_refused():
    with pytest.raises(fulgurite.RequestError, match="changes nothing"):
        fulgurite.crashtest("true", "true")
    with pytest.raises(fulgurite.RequestError, match="ZeroDivisionError"):
        fulgurite.crashtest(RIGHT, lambda folder, printed: 1 // 0)
    with pytest.raises(fulgurite.RequestError, match="recovery_cuts=4 needs a check"):
        fulgurite.crashtest(RIGHT, check, recovery_cuts=4)
    with pytest.raises(fulgurite.RequestError, match="strict"):
        fulgurite.crashtest(RIGHT, check, folder="posix")
