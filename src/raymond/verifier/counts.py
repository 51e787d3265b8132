"""How many tests ran, where the runner prints it."""

import re

from raymond.patterns import regex

_PRINTED = (
    re.compile(r"^=*\s*(?P<line>.*\b\d+ passed\b.*) in [\d.]+s", re.MULTILINE),  # pytest
    re.compile(r"^Tests:\s+(?P<line>.*\btotal\b.*)$", re.MULTILINE),  # jest
    re.compile(r"^\s*Tests\s+(?P<line>\d+ passed.*)\(\d+\)$", re.MULTILINE),  # vitest
    re.compile(r"^test result: \w+\. (?P<line>.*)$", re.MULTILINE),  # cargo
    re.compile(r"^# tests (?P<total>\d+)$", re.MULTILINE),  # node, tap
    re.compile(r"^Ran (?P<total>\d+) tests? in ", re.MULTILINE),  # unittest
    re.compile(r"^(?P<total>\d+) examples?, ", re.MULTILINE),  # rspec
    re.compile(r"^Tests run: (?P<total>\d+), .*Time elapsed", re.MULTILINE),  # maven
)
_RAN = regex(r"(?P<number>\d+) (?:passed|failed|errors?)\b")


def count(output: str) -> int | None:
    """How many tests ran; None when the output does not say."""
    for pattern in _PRINTED:
        found = [one.groupdict() for one in pattern.finditer(output)]
        if found:
            return sum(int(one["total"]) if "total" in one else _ran(one["line"]) for one in found)
    return None


def _ran(line: str) -> int:
    return sum(int(one["number"]) for one in _RAN.finditer(line))


def fewer(now: str, before: str) -> str:
    """In words that fewer tests ran now; empty when that is not so, or cannot be told."""
    ran, had = count(now), count(before)
    if ran is None or had is None or ran >= had:
        return ""
    return f"{ran} {'test' if ran == 1 else 'tests'} ran instead of {had}"
