#!/usr/bin/env python3
"""Commits transactions to a SQLite database, and checks after a power cut that it keeps them.

    sqlite.py write --journal wal|delete|... --synchronous off|normal|full|extra [--transactions N]
    sqlite.py check

The promises: a transaction whose number was printed is durable, and the database is what some number of transactions
in their order make. SQLite promises both with journal_mode=WAL and synchronous=FULL, and with DELETE and EXTRA. With
DELETE and FULL it does not promise that the last transaction is durable: only EXTRA syncs the folder after the removal
of the journal, which is the commit (https://www.sqlite.org/pragma.html#pragma_synchronous). With WAL and NORMAL it
promises only that the database is consistent.
"""

import os
import sqlite3
import sys

DATABASE = "shop.db"


def text(transaction):
    """Returns the text of a row: it depends on the row, and its length varies over more than a page."""
    return f"order {transaction} " * (1 + transaction * 97 % 700)


def rows(transactions):
    """Returns the rows of both tables after so many transactions."""
    orders = {}
    for number in range(1, transactions + 1):
        orders[number] = (text(number), number)
        if number > 1:
            orders[number - 1] = (orders[number - 1][0], number)
        orders.pop(number - 4, None)
    return orders, {number: len(content) for number, (content, _) in orders.items()}


def write(journal, synchronous, transactions):
    """Makes the transactions, and prints the number of each after its commit."""
    db = sqlite3.connect(DATABASE, isolation_level=None)
    db.execute(f"PRAGMA journal_mode={journal}")
    db.execute(f"PRAGMA synchronous={synchronous}")
    # The log of WAL becomes part of the database often, so that cuts meet that.
    db.execute("PRAGMA wal_autocheckpoint=8")
    db.execute("BEGIN")
    db.execute("CREATE TABLE orders(number INTEGER PRIMARY KEY, content TEXT, follower INTEGER)")
    db.execute("CREATE TABLE lengths(number INTEGER PRIMARY KEY, length INTEGER)")
    db.execute("COMMIT")
    for number in range(1, transactions + 1):
        content = text(number)
        db.execute("BEGIN")
        db.execute("INSERT INTO orders VALUES(?, ?, ?)", (number, content, number))
        db.execute("UPDATE orders SET follower = ? WHERE number = ?", (number, number - 1))
        db.execute("INSERT INTO lengths VALUES(?, ?)", (number, len(content)))
        for table in ["orders", "lengths"]:
            db.execute(f"DELETE FROM {table} WHERE number = ?", (number - 4,))
        db.execute("COMMIT")
        os.write(1, b"%d\n" % number)


def check():
    """Opens the database, which recovers it, and compares it with the printed numbers."""
    printed = len(sys.stdin.read().split())
    db = sqlite3.connect(DATABASE)
    verdict = db.execute("PRAGMA integrity_check").fetchone()[0]
    if verdict != "ok":
        sys.exit(f"integrity_check: {verdict}")
    if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
        sys.exit(f"{printed} transactions were printed, and there are no tables" if printed else 0)
    orders = {number: rest for number, *rest in db.execute("SELECT * FROM orders")}
    lengths = dict(db.execute("SELECT * FROM lengths"))
    there = max(orders, default=0)
    if there < printed:
        sys.exit(f"transaction {printed} was printed, and the last one there is {there}")
    expected, expected_lengths = rows(there)
    if {number: tuple(row) for number, row in orders.items()} != expected:
        sys.exit(f"orders are not those of {there} transactions")
    if lengths != expected_lengths:
        sys.exit("lengths do not agree with orders")


def main(arguments):
    """Runs a command line."""
    options = dict(zip(arguments[1::2], arguments[2::2]))
    if arguments[:1] == ["write"] and options.keys() <= {"--journal", "--synchronous", "--transactions"}:
        journal, synchronous = options.get("--journal", "wal"), options.get("--synchronous", "full")
        write(journal, synchronous, int(options.get("--transactions", 10)))
    elif arguments == ["check"]:
        try:
            check()
        except sqlite3.Error as error:
            sys.exit(f"SQLite: {error}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
