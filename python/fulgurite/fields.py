"""Adds the documentation of fields to their classes, so that ``help()`` shows it.

A field is documented by the comment above it, which begins with ``#:``. Documentation tools read such comments;
Python itself does not.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Dict, Mapping


def comments(source: str) -> Dict[str, Dict[str, str]]:
    """Returns the comment above each field, by class and field."""
    found: Dict[str, Dict[str, str]] = {}
    of_class: Dict[str, str] = {}
    above = ""
    for line in source.splitlines():
        opened = re.match(r"class (\w+)", line)
        comment = re.match(r"    #: (.*)", line)
        field = re.match(r"    (\w+): ", line)
        if opened:
            of_class, above = found.setdefault(opened[1], {}), ""
        elif comment:
            above = f"{above} {comment[1]}".strip()
        elif field and above:
            of_class[field[1]] = above
            above = ""
    return found


def explain(module: Mapping[str, Any]) -> None:
    """Adds the documentation of fields to the classes of a module."""
    try:
        with open(module["__file__"], encoding="utf-8") as file:
            found = comments(file.read())
    except (KeyError, OSError):
        # Leave the fields undocumented if the package is installed without its sources.
        return
    for name, fields in found.items():
        cls = module[name]
        if issubclass(cls, tuple):
            for field, about in fields.items():
                getattr(cls, field).__doc__ = about
        elif dataclasses.is_dataclass(cls) and fields:
            lines = "\n".join(f"    {field}: {about}" for field, about in fields.items())
            cls.__doc__ = f"{cls.__doc__}\n\n    Fields:\n\n{lines}\n    "


__all__ = ["comments", "explain"]
