#!/usr/bin/env python3
"""Programs with one planted fault each, which a power cut shows, and the same programs without it.

    faults.py NAME [--right]            the program; with --right it does it right
    faults.py --check NAME [--right]    checks the folder after a cut; its input is what the program printed
    faults.py --list                    prints each name, its rules (--folder), and the rules of the right program

A program prints the number of a round when it promises that the round is durable. In each `run` the lines after
`if right` are what the fault leaves out.
"""

import mmap
import os
import struct
import sys
import zlib

sys.dont_write_bytecode = True
import sqlite  # noqa: E402 (after the line that keeps it from leaving a file)

ROUNDS = range(1, 9)
SECTOR = 512
PAGE = 4096


# What the programs have in common.


def record(number, size=SECTOR):
    """Returns bytes that depend on the number, with a checksum at their end."""
    content = (b"%07d " % number * (size // 8 + 1))[: size - 4]
    return content + struct.pack("<I", zlib.crc32(content))


def number_of(content):
    """Returns the number of a whole record; None for any other bytes."""
    try:
        number = int(content[:7])
    except ValueError:
        return None
    return number if content == record(number, len(content)) else None


def promise(number):
    """Prints that a round is durable."""
    os.write(1, b"%d\n" % number)


def sync(path):
    """Syncs a file or a folder."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.close(file)


def write(path, content, offset=0):
    """Writes into a file, which is made if there is none, and syncs nothing."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.pwrite(file, content, offset)
    os.close(file)


def append(path, content):
    """Appends to a file, and syncs nothing."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(file, content)
    os.close(file)


def prepare(**files):
    """Makes files that are durable before the first round, and promises round 0."""
    for path, content in files.items():
        write(path, content)
        sync(path)
    sync(".")
    promise(0)


def read(path):
    """Returns the bytes of a file; none for a file that does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def records(content, size=SECTOR):
    """Returns the numbers of the records; None for each that is not whole."""
    return [number_of(content[at : at + size]) for at in range(0, len(content), size)]


def fail_unless(is_true, what):
    """Ends the check with exit code 1 unless the condition holds."""
    if not is_true:
        sys.exit(what)


def expect_prefix(found, last):
    """Fails unless the numbers begin with 1 to `last`."""
    fail_unless(found[:last] == list(range(1, last + 1)), f"round {last} was promised; there are {found}")


FAULTS = {}


class Fault:
    """A program: what it does, what it promises, and the rules under which a cut shows its fault."""

    rules = "journaled"
    # The rules of the right program, where they differ.
    right_rules = None

    def __init_subclass__(cls):
        name = "".join("-" + letter.lower() if letter.isupper() else letter for letter in cls.__name__)
        FAULTS[name.strip("-")] = cls


# Bytes that nobody synced.


class AppendWithoutFsync(Fault):
    """Appends a record and promises it."""

    def run(self, right):
        for number in ROUNDS:
            append("log", record(number))
            if right:
                sync("log")
            promise(number)

    def check(self, last, right):
        expect_prefix(records(read("log")), last)


class FsyncOfTheWrongFile(Fault):
    """Appends to a log and to its index, and syncs only the index."""

    def run(self, right):
        for number in ROUNDS:
            append("log", record(number))
            append("index", b"%d\n" % number)
            sync("index")
            if right:
                sync("log")
            promise(number)

    def check(self, last, right):
        expect_prefix(records(read("log")), last)


class FsyncWithoutFlush(Fault):
    """Syncs a file while the record is still in the buffer of the process."""

    def run(self, right):
        with open("log", "ab") as log:
            for number in ROUNDS:
                log.write(record(number))
                if right:
                    log.flush()
                os.fsync(log.fileno())
                promise(number)

    def check(self, last, right):
        expect_prefix(records(read("log")), last)


class PromiseBeforeWrite(Fault):
    """Promises a record that is in the buffer of the process; every third round writes and syncs it."""

    def run(self, right):
        with open("log", "ab") as log:
            for number in ROUNDS:
                log.write(record(number))
                if right or number % 3 == 0:
                    log.flush()
                    os.fsync(log.fileno())
                promise(number)

    def check(self, last, right):
        expect_prefix(records(read("log")), last)


class MsyncForgotten(Fault):
    """Changes a mapped file and promises the change."""

    def run(self, right):
        prepare(table=bytes(PAGE))
        with open("table", "r+b") as file, mmap.mmap(file.fileno(), PAGE) as table:
            for number in ROUNDS:
                table[(number - 1) * SECTOR : number * SECTOR] = record(number)
                if right:
                    table.flush()
                promise(number)
                append("trace", b"round\n")

    def check(self, last, right):
        expect_prefix(records(read("table")), last)


class MarkerBeforeData(Fault):
    """Writes a file and then makes an empty one that says it is complete."""

    def run(self, right):
        for number in ROUNDS:
            write(f"data-{number}", record(number, 3 * PAGE))
            if right:
                sync(f"data-{number}")
                sync(".")
            write(f"data-{number}.done", b"")

    def check(self, last, right):
        for number in ROUNDS:
            if os.path.exists(f"data-{number}.done"):
                whole = number_of(read(f"data-{number}")) == number
                fail_unless(whole, f"data-{number} is marked as complete, and is not")


class LyingDrive(Fault):
    """Does all right, on a drive that acknowledges flushes and ignores them."""

    rules = "journaled:lying=yes"
    right_rules = "journaled"

    def run(self, right):
        for number in ROUNDS:
            append("log", record(number))
            sync("log")
            promise(number)

    def check(self, last, right):
        expect_prefix(records(read("log")), last)


# Names.


class RenameBeforeFsync(Fault):
    """Replaces a file by a new one whose bytes are not durable."""

    def run(self, right):
        prepare(config=record(0))
        for number in ROUNDS:
            write("config.new", record(number))
            if right:
                sync("config.new")
            os.rename("config.new", "config")

    def check(self, last, right):
        fail_unless(number_of(read("config")) is not None, "config is neither the old nor the new one")


class RenameWithoutFolderSync(Fault):
    """Replaces a file by a durable one and promises the new one."""

    rules = "strict"

    def run(self, right):
        prepare(config=record(0))
        for number in ROUNDS:
            write("config.new", record(number))
            sync("config.new")
            os.rename("config.new", "config")
            if right:
                sync(".")
            promise(number)

    def check(self, last, right):
        found = number_of(read("config"))
        fail_unless(found is not None and found >= last, f"version {last} was promised; there is {found}")


class NewFileWithoutFolderSync(Fault):
    """Syncs a new file, and not the folder that names it."""

    rules = "strict"

    def run(self, right):
        for number in ROUNDS:
            write(f"job-{number}", record(number))
            sync(f"job-{number}")
            if right:
                sync(".")
            promise(number)

    def check(self, last, right):
        expect_prefix([number_of(read(f"job-{number}")) for number in ROUNDS], last)


class MoveWithoutTargetSync(Fault):
    """Moves a file between folders and syncs only the one that it leaves."""

    rules = "strict"

    def run(self, right):
        for folder in ["incoming", "done"]:
            os.mkdir(folder)
        sync(".")
        for number in ROUNDS:
            write(f"incoming/{number}", record(number))
            sync(f"incoming/{number}")
            os.rename(f"incoming/{number}", f"done/{number}")
            if right:
                sync("done")
            else:
                append("incoming/trace", b"moved\n")
            promise(number)

    def check(self, last, right):
        expect_prefix([number_of(read(f"done/{number}")) for number in ROUNDS], last)


class FolderRenamedWithoutParentSync(Fault):
    """Fills a folder, syncs it and what is in it, and gives it its final name."""

    rules = "strict"

    def run(self, right):
        for number in ROUNDS:
            os.mkdir("build")
            write("build/result", record(number))
            sync("build/result")
            sync("build")
            os.rename("build", f"release-{number}")
            if right:
                sync(".")
            promise(number)

    def check(self, last, right):
        expect_prefix([number_of(read(f"release-{number}/result")) for number in ROUNDS], last)


class TruncateAndRewrite(Fault):
    """Empties a file and writes it again, so that there is a time without any contents."""

    def run(self, right):
        prepare(config=record(0))
        for number in ROUNDS:
            path = "config.new" if right else "config"
            with open(path, "wb") as file:
                file.write(record(number))
                file.flush()
                os.fsync(file.fileno())
            if right:
                os.rename("config.new", "config")

    def check(self, last, right):
        fail_unless(number_of(read("config")) is not None, "config is neither the old nor the new one")


class SegmentDeletedTooEarly(Fault):
    """Copies a segment with a new record into the next one and deletes the old one."""

    def run(self, right):
        prepare(segment_0=b"")
        for number in ROUNDS:
            write(f"segment_{number}", read(f"segment_{number - 1}") + record(number))
            if right:
                sync(f"segment_{number}")
                sync(".")
            os.unlink(f"segment_{number - 1}")
            sync(".")
            promise(number)

    def check(self, last, right):
        segments = [records(read(name)) for name in os.listdir(".")]
        expect_prefix(max(segments, key=len), last)


# The order of writes.


class OverwriteInPlace(Fault):
    """Overwrites a page, which a cut can tear. The right program writes it into a journal before."""

    def run(self, right):
        prepare(page=record(0, PAGE), journal=record(0, PAGE))
        for number in ROUNDS:
            if right:
                write("journal", record(number, PAGE))
                sync("journal")
            write("page", record(number, PAGE))
            sync("page")
            promise(number)

    def check(self, last, right):
        found = number_of(read("page"))
        if found is None and right:
            found = number_of(read("journal"))
        fail_unless(found is not None and found >= last, f"version {last} was promised; there is {found}")


class HeaderAndDataInOneSync(Fault):
    """Writes a record and the header that counts it, and syncs both at once."""

    def run(self, right):
        prepare(table=record(0) + bytes(len(ROUNDS) * PAGE))
        for number in ROUNDS:
            write("table", record(number, PAGE), SECTOR + (number - 1) * PAGE)
            if right:
                sync("table")
            write("table", record(number))
            sync("table")
            promise(number)

    def check(self, last, right):
        table = read("table")
        count = number_of(table[:SECTOR])
        fail_unless(count is not None and count >= last, f"{last} was promised; the header says {count}")
        expect_prefix(records(table[SECTOR:], PAGE), count)


class CommitRecordBeforeData(Fault):
    """Writes a record, appends its number to a log of commits, and syncs only that log."""

    def run(self, right):
        prepare(table=bytes(len(ROUNDS) * PAGE))
        for number in ROUNDS:
            write("table", record(number, PAGE), (number - 1) * PAGE)
            if right:
                sync("table")
            append("commits", record(number))
            sync("commits")
            promise(number)

    def check(self, last, right):
        commits = sum(number is not None for number in records(read("commits")))
        fail_unless(commits >= last, f"round {last} was promised; there are {commits} commits")
        expect_prefix(records(read("table"), PAGE), commits)


class LogTruncatedTooEarly(Fault):
    """Logs a change, moves every third time all changes into a table, and empties the log."""

    def run(self, right):
        prepare(table=bytes(len(ROUNDS) * SECTOR), log=b"")
        for number in ROUNDS:
            append("log", record(number))
            sync("log")
            promise(number)
            if number % 3 == 0:
                for logged in records(read("log")):
                    write("table", record(logged), (logged - 1) * SECTOR)
                if right:
                    sync("table")
                os.truncate("log", 0)
                sync("log")

    def check(self, last, right):
        found = set(records(read("table")) + records(read("log"))) - {None}
        expect_prefix(sorted(found), last)


class JournalRemovedBeforeSync(Fault):
    """Promises what its journal has. Recovery replays the journal into the table and removes it."""

    def run(self, right):
        prepare(table=bytes(len(ROUNDS) * SECTOR))
        for number in ROUNDS:
            append("journal", record(number))
            sync("journal")
            sync(".")
            promise(number)

    def check(self, last, right):
        for number in set(records(read("journal"))) - {None}:
            write("table", record(number), (number - 1) * SECTOR)
        if right:
            sync("table")
        if os.path.exists("journal"):
            os.unlink("journal")
            sync(".")
        expect_prefix(records(read("table")), last)


class TwoFilesWithoutIntent(Fault):
    """Changes two files that must agree. The right program writes into a log which change it is about to make."""

    def run(self, right):
        prepare(left=record(0), right=record(0), intent=record(0))
        for number in ROUNDS:
            if right:
                write("intent", record(number))
                sync("intent")
            for path in ["left", "right"]:
                write(path, record(number))
                sync(path)
            promise(number)

    def check(self, last, right):
        found = [number_of(read(path)) for path in ["left", "right"]]
        if right:
            # Recovery makes the change again.
            found = [number_of(read("intent"))] * 2
        fail_unless(found[0] == found[1] and found[0] >= last, f"{last} was promised; the files have {found}")


# What a reader can trust.


def frame(number, is_summed, size=1500):
    """Returns a record behind its length and, if it is summed, a checksum of it."""
    content = b"%08d" % number * (size // 8)
    head = struct.pack("<I", len(content))
    return head + (struct.pack("<I", zlib.crc32(content)) if is_summed else b"") + content


def frames(content, is_summed):
    """Returns the records up to the end, or to the first that the reader can tell is not whole."""
    found = []
    head = 8 if is_summed else 4
    while len(content) > head:
        length = struct.unpack("<I", content[:4])[0]
        body = content[head : head + length]
        if length == 0 or len(body) < length:
            break
        if is_summed and struct.unpack("<I", content[4:8])[0] != zlib.crc32(body):
            break
        found.append(body)
        content = content[head + length :]
    return found


def expect_frames(found, last):
    """Fails unless the records are those of the first rounds, up to the promised one at least."""
    fail_unless(len(found) >= last, f"round {last} was promised; there are {len(found)} records")
    for at, body in enumerate(found):
        fail_unless(body == b"%08d" % (at + 1) * (len(body) // 8), f"record {at + 1} has wrong bytes")


class LengthWithoutChecksum(Fault):
    """Appends records behind their lengths; a file can have its size without its bytes."""

    rules = "strict"

    def run(self, right):
        prepare(log=b"")
        for number in ROUNDS:
            append("log", frame(number, right))
            sync("log")
            promise(number)

    def check(self, last, right):
        expect_frames(frames(read("log"), right), last)


class ChecksumOfTheHeaderOnly(Fault):
    """Writes records into a log of a fixed size; their checksum is that of the number and the length."""

    def run(self, right):
        prepare(log=bytes(len(ROUNDS) * PAGE))
        for number in ROUNDS:
            content = record(number, PAGE - 12)
            head = struct.pack("<II", number, len(content))
            summed = head + content if right else head
            write("log", head + struct.pack("<I", zlib.crc32(summed)) + content, (number - 1) * PAGE)
            sync("log")
            promise(number)

    def check(self, last, right):
        log = read("log")
        found = []
        for at in range(0, len(log), PAGE):
            entry = log[at : at + PAGE]
            number, summed = struct.unpack("<I", entry[:4])[0], entry[:8]
            summed += entry[12:] if right else b""
            if struct.unpack("<I", entry[8:12])[0] != zlib.crc32(summed):
                break
            fail_unless(number_of(entry[12:]) == number, f"record {number} passes its checksum and is torn")
            found.append(number)
        expect_prefix(found, last)


# SQLite, with settings that promise less. The right program has those that promise a durable commit.


class Sqlite(Fault):
    """A database whose journal and synchronous are `wrong`, and those of the right program `good`."""

    wrong = good = ("wal", "full")

    def run(self, right):
        sqlite.write(*(self.good if right else self.wrong), len(ROUNDS))

    def check(self, last, right):
        sqlite.main(["check"])


del FAULTS["sqlite"]


class SqliteWalOff(Sqlite):
    wrong, good = ("wal", "off"), ("wal", "full")


class SqliteWalNormal(Sqlite):
    """Consistent, and the last commits are not durable."""

    wrong, good = ("wal", "normal"), ("wal", "full")


class SqliteDeleteOff(Sqlite):
    wrong, good = ("delete", "off"), ("delete", "extra")


class SqliteDeleteFull(Sqlite):
    """Consistent, and the last commit is not durable: the removal of the journal is not synced."""

    wrong, good = ("delete", "full"), ("delete", "extra")


class SqliteJournalInMemory(Sqlite):
    wrong, good = ("memory", "extra"), ("delete", "extra")


class SqliteWithoutJournal(Sqlite):
    wrong, good = ("off", "extra"), ("delete", "extra")


def main(arguments):
    """Runs a command line."""
    flags = [word for word in arguments if word.startswith("--")]
    names = [word for word in arguments if not word.startswith("--")]
    right = "--right" in flags
    if flags == ["--list"] and not names:
        for name, fault in FAULTS.items():
            print(name, fault.rules, fault.right_rules or fault.rules)
    elif len(names) == 1 and names[0] in FAULTS and set(flags) <= {"--check", "--right"}:
        fault = FAULTS[names[0]]()
        if "--check" not in flags:
            fault.run(right)
        elif issubclass(FAULTS[names[0]], Sqlite):
            fault.check(None, right)
        else:
            # Nothing is promised before the files of round 0 are there.
            promised = [int(number) for number in sys.stdin.read().split()]
            is_prepared = "prepare" not in type(fault).run.__code__.co_names or promised
            if is_prepared:
                fault.check(max(promised, default=0), right)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
