#!/usr/bin/env python3
"""strace log of PostgreSQL -> page trace.

usage: strace2pages.py LOG > TRACE

LOG comes from `strace -f -y -s 0`. The trace has one line per 8 KiB page, in the
order in which the calls returned: `R page` or `W page`. Only relation files count
(base/ and global/, every fork and segment). Each file owns a contiguous range of
page numbers, as long as the highest block that was touched plus one, and the files
stand in the order of their path; `# file FIRST COUNT PATH` lines name the ranges.
A summary, with all that was left out, goes to stderr.
"""
import re
import sys
from collections import Counter

PAGE = 8192
# "pid call(fd</path>, buffer, arguments) = result"; an unlinked file has "(deleted)" after it.
CALL = re.compile(r"(?:\d+ +)?(\w+)\(\d+<(.*?)>(?:\(deleted\))?, (.*)\) += (-?\d+)")
RELATION = re.compile(r"/(base/\d+|global)/(t\d+_)?(\d+)(?:_(fsm|vm|init))?(?:\.(\d+))?$")
UNFINISHED = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")


def whole_calls(lines):
    """Lines with calls that strace split in two put together, where the call returned."""
    begun = {}
    for line in lines:
        line = line.rstrip("\n")
        if m := UNFINISHED.match(line):
            begun[m[1]] = m[2]
        elif m := RESUMED.match(line):
            yield begun.pop(m[1], "") + m[2]
        else:
            yield line
    for call in begun.values():
        yield call + " <never returned>"


def requests(lines, left_out):
    """(letter, file, block) for each page; `file` sorts by directory, number, fork, segment."""
    for line in whole_calls(lines):
        m = CALL.match(line)
        if not m:
            if "(" in line:
                left_out["not a finished call on a file"] += 1
            continue
        call, path, arguments, result = m[1], m[2], m[3], int(m[4])
        rel = RELATION.search(path)
        if not rel:
            # Say what kind of file: the directory in the data directory, or the socket, pipe...
            kind = re.search(r"/(base|global|pg_\w+)/", path)
            left_out[call + " on " + (kind[1] + "/ (no relation file)" if kind else "any other file")] += 1
            continue
        if not call.startswith("p"):
            left_out[call + " on a relation file, without an offset"] += 1
            continue
        # pread64/pwrite64: buffer, length, offset; the vectored: iovec, count, offset[, flags].
        field = arguments.split(", ")
        offset = int(field[2])
        asked = int(field[1]) if call.endswith("64") else result
        if result <= 0 or result != asked or result % PAGE or offset % PAGE:
            left_out[call + " on a relation file, failed or short or not of whole pages"] += 1
            continue
        directory, temporary, number, fork, segment = rel.groups()
        space = int(directory.partition("/")[2] or -1)  # global/ has none and comes first
        file = (space, temporary or "", int(number), fork or "", int(segment or 0), rel[0][1:])
        for block in range(offset // PAGE, (offset + result) // PAGE):
            yield ("R" if call.startswith("pread") else "W"), file, block


def main():
    left_out = Counter()
    with open(sys.argv[1], encoding="ascii", errors="replace") as log:
        trace = list(requests(log, left_out))
    length = {}
    for _, file, block in trace:
        length[file] = max(length.get(file, 0), block + 1)
    first, total = {}, 0
    for file in sorted(length):
        first[file] = total
        print(f"# file {total} {length[file]} {file[-1]}")
        total += length[file]
    for letter, file, block in trace:
        print(letter, first[file] + block)

    kinds = Counter(letter for letter, _, _ in trace)
    print(f"{len(trace)} requests: {kinds['R']} R, {kinds['W']} W; {len(set((f, b) for _, f, b in trace))}"
          f" distinct pages of {total} in {len(length)} files", file=sys.stderr)
    for what, count in sorted(left_out.items()):
        print(f"left out: {count} {what}", file=sys.stderr)


if __name__ == "__main__":
    main()
