"""A gate: its commands in order, the first red one ends it."""

import time
from collections.abc import Callable

from raymond.language.check import Check
from raymond.system.marks import Marks
from raymond.verifier import command
from raymond.verifier.assignment import TAIL, Assignment, Began, Ended, Found, Printed, Told
from raymond.verifier.command import Result


def verify(given: Assignment, tell: Callable[[Told], None]) -> Found:
    """Run the checks; what happens is told as it does."""
    for turn in given.turns:
        Marks(given.key, "").end(step=turn)  # an agent that goes on could change what is checked
    began, flaky = time.monotonic(), False
    last = Found(verdict="passed")
    for check in given.checks:
        found = _check(given, check, tell)
        flaky = flaky or found.flaky
        last = found
        if found.verdict != "passed":
            break
    return Found(
        verdict=last.verdict,
        command=last.command,
        exit_code=last.exit_code,
        seconds=time.monotonic() - began,
        flaky=flaky and last.verdict == "passed",
        reason=last.reason,
        output=last.output,
    )


def _check(given: Assignment, check: Check, tell: Callable[[Told], None]) -> Found:
    """Run one command, and once more when it is red: what is red by chance teaches agents to weaken tests."""
    seconds = check.timeout or given.timeout
    for again in range(given.reruns + 1):
        tell(Began(check.run, again))
        result = command.run(check, seconds, given.environment, lambda text: tell(Printed(text)))
        if given.step:
            Marks(given.key, "").end(step=given.step)
        tell(Ended(result.exit_code, result.seconds))
        why = command.why_red(check, result, seconds)
        if not why:
            return Found(verdict="passed", command=check.run, exit_code=result.exit_code, flaky=again > 0)
        if cause := command.cannot_start(check, result, given.environment):
            reason = f"the check `{check.run}` cannot start: {cause}"
            return Found(verdict="could not start", command=check.run, exit_code=result.exit_code, reason=reason)
    return _red(check, result, why)


def _red(check: Check, result: Result, why: str) -> Found:
    return Found(
        verdict="timed out" if result.timed_out else "failed",
        command=check.run,
        exit_code=result.exit_code,
        reason=f"`{check.run}` {why}",
        output=result.output.strip("\n")[-TAIL:],
    )
