"""The environment of a check: that of the run, without what could change the check unseen."""

import os
import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from raymond.digests import sha256
from raymond.language.check import Check
from raymond.machine.step_events import GREEN
from raymond.patterns import regex, unnumbered
from raymond.system.stragglers import Marks
from raymond.text import visible
from raymond.verifier import command
from raymond.verifier.assignment import TAIL, Assignment, Began, Ended, Found, Printed, Told, Where
from raymond.verifier.command import HERE, Place, Result

_UNSAFE = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV", "ENV"),
    *("MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MAKELEVEL"),
)
_UNSAFE_BEGINNINGS = ("LD_", "GIT_", "RAYMOND_", "BASH_FUNC_")
"""Variables with which an earlier step, or whoever started us, could change what a check does."""

CACHES = ("MYPY_CACHE_DIR", "RUFF_CACHE_DIR")
"""What tools remember beside the files that they read: an agent could have changed it."""

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

Tell = Callable[[Told], None]
_REASON = 300


def environment_of(given: Mapping[str, str], more: Mapping[str, str], caches: str) -> dict[str, str]:
    """`given` as a check finds it, with `more`; what tools remember is kept in `caches`, and nowhere else."""
    env = {
        name: value for name, value in given.items() if name not in _UNSAFE and not name.startswith(_UNSAFE_BEGINNINGS)
    }
    env["PATH"] = os.pathsep.join(filter(os.path.isabs, env.get("PATH", os.defpath).split(os.pathsep)))
    return {**env, **dict.fromkeys(CACHES, caches), **more}


def apart(env: Mapping[str, str], name: str) -> dict[str, str]:
    """`env` for a run whose tools remember nothing of any other."""
    return {key: f"{value}-{name}" if key in CACHES else value for key, value in env.items()}


# How many tests ran, where the runner prints it


def count_tests(output: str) -> int | None:
    """How many tests ran; None when the output does not say."""
    for pattern in _PRINTED:
        found = [one.groupdict() for one in pattern.finditer(output)]
        if found:
            return sum(int(one["total"]) if "total" in one else _ran(one["line"]) for one in found)
    return None


def _ran(line: str) -> int:
    return sum(int(one["number"]) for one in _RAN.finditer(line))


def fewer_tests(now: str, before: str) -> str:
    """In words that fewer tests ran now; empty when that is not so, or cannot be told."""
    ran, had = count_tests(now), count_tests(before)
    if ran is None or had is None or ran >= had:
        return ""
    return f"{ran} {'test' if ran == 1 else 'tests'} ran instead of {had}"


# What a check itself writes: tracked files that are not as they were before it ran


class Written:
    """Some files as they stand, to be compared with later; by size and time, so that nothing is read."""

    def __init__(self, top: str, paths: Iterable[str]) -> None:
        self._top = top
        self._known = {path: self._look(path) for path in paths}

    def names(self) -> list[str]:
        """Those that were written to, or removed, since."""
        return sorted(path for path, known in self._known.items() if known and self._look(path) != known)

    def _look(self, path: str) -> tuple[int, int] | None:
        try:
            found = os.lstat(f"{self._top}/{path}")
        except OSError:
            return None
        return found.st_size, found.st_mtime_ns


# Checks: the commands of a gate in order, the first red one ends it


class Ran(Struct, frozen=True):
    """What came of running all checks at one place."""

    found: Found
    printed: str
    """The end of what they printed."""

    @property
    def is_green(self) -> bool:
        return self.found.verdict == "passed"

    @property
    def before(self) -> str:
        """What the journal says of checks that ran before the work: that they are green, or why they are red."""
        return GREEN if self.is_green else f"{self.found.reason[:_REASON]} [{self.found.sign}]"


def run(given: Assignment, tell: Tell, where: Where = "", place: Place = HERE) -> Ran:
    """Run the checks in order until one is red."""
    flaky, printed = False, ""
    last = Found(verdict="passed")
    for check in given.checks:
        last, output = _check(given, check, tell, where, place)
        flaky, printed = flaky or last.flaky, (printed + output)[-TAIL:]
        if last.verdict != "passed":
            break
    return Ran(replace(last, flaky=flaky and last.verdict == "passed"), printed)


def _check(given: Assignment, check: Check, tell: Tell, where: Where, place: Place) -> tuple[Found, str]:
    """Run one command, and once more when it is red: what is red by chance teaches agents to weaken tests."""
    seconds = check.timeout or given.timeout
    env = apart(given.environment, where) if where else given.environment
    for again in range(given.reruns + 1):
        tell(Began(check.run, again, where))
        result = command.run(check, seconds, env, lambda text: tell(Printed(text)), place)
        if given.step:
            Marks(given.key, "").end(step=given.step)
        tell(Ended(result.exit_code, result.seconds))
        why = command.why_red(check, result, seconds)
        if not why:
            flaky = Found(verdict="passed", command=check.run, exit_code=result.exit_code, flaky=again > 0)
            return flaky, result.output
        if cause := command.cannot_start(check, result, env):
            reason = f"the check `{check.run}` cannot start: {cause}"
            found = Found(verdict="could not start", command=check.run, exit_code=result.exit_code, reason=reason)
            return found, result.output
    return _red(check, result, why), result.output


def _red(check: Check, result: Result, why: str) -> Found:
    return Found(
        verdict="timed out" if result.timed_out else "failed",
        command=check.run,
        exit_code=result.exit_code,
        reason=f"`{check.run}` {why}",
        output=result.output.strip("\n")[-TAIL:],
        sign=_sign(f"{check.run} {why}\n{result.output[-TAIL:]}"),
    )


def _sign(text: str) -> str:
    """The same for the same failure: times and addresses differ from run to run."""
    return sha256(unnumbered(text).encode("utf-8", "replace")).hexdigest()[:12]


def listed(paths: list[str]) -> str:
    """The first of some paths, and how many more there are."""
    shown = ", ".join(map(visible, paths[:3]))
    return f"{shown} and {len(paths) - 3} more" if len(paths) > 3 else shown
