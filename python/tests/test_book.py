"""Runs every code block of the page in the book, in order, and compares the output with the page."""

import contextlib
import io
import pathlib
import re

import pytest

for package in ("altair", "pandas"):
    pytest.importorskip(package)

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "python.md"


def test_the_page_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 12
    names, printed = {}, None
    for kind, text in blocks:
        if kind == "python":
            assert not printed, f"the page does not show what is printed:\n{printed}"
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, str(PAGE), "exec"), names)
            printed = out.getvalue()
            continue
        lines = [re.escape(line.rstrip()).replace("…", ".*") for line in text.splitlines() if line.strip()]
        # A line with only `…` matches any number of lines.
        shown = "\n".join(lines).replace("\n.*\n", "\n(?:.*\n)*")
        shown = re.sub(r"^\.\*\n", "(?:.*\n)*", shown)
        shown = re.sub(r"\n\.\*$", "\n(?:.*\n?)*", shown)
        found = "\n".join(line.rstrip() for line in printed.splitlines() if line.strip())
        assert re.fullmatch(shown, found), f"the page shows\n{text}\nand this is printed:\n{printed}"
        printed = ""
