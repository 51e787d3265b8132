"""Checks of an item, as the gate of its agent is given them, and as people are told them."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from raymond.language.check import Check, expectation, expected
from raymond.loops.formats.foreign_text import last_line

if TYPE_CHECKING:  # a step that only names a check runs none
    from raymond.machine.events import GateEnded
    from raymond.verifier.assignment import Found

_MOST = 200
"""Characters of what a check printed."""


def written(checks: Iterable[Check]) -> str:
    """The value of a late gate: the command itself where that says everything, and nothing else can be read in it."""
    found = tuple(checks)
    if not found:
        return ""
    if len(found) == 1 and found[0] == Check(run=found[0].run) and not _is_like_tables(found[0].run):
        return found[0].run
    return json.dumps([_table(one) for one in found])


def commands(texts: Iterable[str]) -> str:
    """The same for commands that a person gave; empty for none."""
    return written(Check(run=text) for text in texts)


def _is_like_tables(command: str) -> bool:
    return command.lstrip().startswith("[{")


def _table(check: Check) -> dict[str, Any]:
    table: dict[str, Any] = {"run": check.run}
    if check.exit or check.contains or check.matches:
        table["expected"] = check.exit or expected(check)
    if check.timeout:
        table["timeout"] = f"{check.timeout:g}s"
    return table


def read(text: str) -> tuple[Check, ...]:
    """The checks in what `written` made."""
    if not text.startswith('[{"'):
        return (Check(run=text),) if text else ()
    return tuple(_check(one) for one in json.loads(text))


def _check(table: dict[str, Any]) -> Check:
    more: dict[str, Any] = expectation(table["expected"]) if "expected" in table else {}
    return Check(run=table["run"], timeout=float(table.get("timeout", "0s")[:-1]), **more)


def told(checks: Iterable[Check]) -> str:
    """The commands in a line, as people would type them."""
    return " && ".join(one.run for one in checks)


def shown(found: "GateEnded | Found") -> str:
    """What a check has shown: of a red one, the last line that it printed, which is where test runners sum up."""
    if found.verdict == "passed":
        return "green"
    said = last_line(found.output, _MOST) if found.verdict == "failed" else ""
    return f"{'red' if found.verdict == 'failed' else found.verdict}: {said or found.reason}"


def explained(checks: Iterable[Check]) -> str:
    """The commands with what makes each green, for whoever works on it."""
    return ", ".join(f"`{one.run}`{_with(one)}" for one in checks)


def _with(check: Check) -> str:
    return f" ({expected(check)})" if check.exit or check.contains or check.matches else ""
