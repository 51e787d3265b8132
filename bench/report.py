"""What was measured, next to the goals: a table for people and a line of JSON for programs."""

import os
import platform
import sysconfig
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

BUSY = 0.1
"""Cores used by other programs above which times cannot be trusted."""
FAILED, MISSED, REACH, AIM = "FAILED", "MISSED", "reach", "aim"
_HEAD = ("figure", "floor", "ours", "compared", "reach", "aim", "verdict")


@dataclass(frozen=True)
class Goal:
    """One figure, the value it must reach and the value it aims for."""

    key: str
    title: str
    reach: float
    aim: float
    form: str
    """How a compared value is written: `{:.2f}x`."""


@dataclass(frozen=True)
class Reading:
    """What was measured for a goal; `value` is what is judged."""

    floor: str
    ours: str
    compared: str
    value: float
    numbers: dict[str, object] = field(default_factory=dict)
    """The raw numbers behind it, in seconds and bytes."""

    def noted(self, note: str) -> "Reading":
        """The same, with a note on what was measured."""
        return replace(self, ours=f"{self.ours}; {note}") if note else self


@dataclass(frozen=True)
class Row:
    """A goal with its reading, or with the reason for having none."""

    goal: Goal
    reading: Reading | None
    problem: str = ""

    @property
    def verdict(self) -> str:
        """aim, reach, MISSED or FAILED."""
        if self.reading is None:
            return FAILED
        if self.reading.value <= self.goal.aim:
            return AIM
        return REACH if self.reading.value <= self.goal.reach else MISSED

    def cells(self) -> list[str]:
        """The row of the table."""
        seen = self.reading or Reading("-", "-", "-", 0.0)
        limits = [f"<= {self.goal.form.format(limit)}" for limit in (self.goal.reach, self.goal.aim)]
        return [self.goal.title, seen.floor, seen.ours, seen.compared, *limits, self.verdict]

    def document(self) -> dict[str, object]:
        """The row for programs."""
        fixed = {"key": self.goal.key, "title": self.goal.title, "verdict": self.verdict}
        limits = {"reach": self.goal.reach, "aim": self.goal.aim}
        if self.reading is None:
            return {**fixed, **limits, "value": None, "problem": self.problem}
        return {**fixed, **limits, "value": round(self.reading.value, 4), **self.reading.numbers}


def table(rows: list[Row]) -> str:
    """A Markdown table, aligned for reading as text."""
    lines = [list(_HEAD), *(row.cells() for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(_HEAD))]
    text = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines]
    text.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return "\n".join(text)


def machine(folder: Path) -> dict[str, object]:
    """Where and when the figures were taken."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "python": f"{platform.python_version()} ({_build()})",
        "system": f"{platform.system()} {platform.release()}",
        "file_system": _file_system(folder),
    }


def heading(where: dict[str, object], note: str) -> str:
    """The lines above the table."""
    return (
        f"## Measured on {where['date']}{note}\n\n"
        f"{where['cores']} cores ({where['processor']}), Python {where['python']}, {where['system']}, "
        f"{where['file_system']}. {_company(where)}"
    )


def _company(where: dict[str, object]) -> str:
    used = float(str(where["cores_used_by_others"]))
    warning = "**a busy machine: not for the record**" if used > BUSY else "a quiet machine"
    return f"Other programs used {used:.2f} cores meanwhile: {warning}."


def _build() -> str:
    """How the interpreter was built: one without optimizations is a fifth slower."""
    optimized = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return "optimized" if optimized else "not optimized"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    """The type of the mount that holds `folder`: the longest one that is above it."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    above = [(len(at), kind) for at, kind in mounts if folder.is_relative_to(at)]
    return max(above)[1] if above else "unknown file system"
