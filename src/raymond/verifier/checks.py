"""Checks: the commands of a gate in order, the first red one ends it."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from raymond.digests import sha256
from raymond.language.check import Check
from raymond.machine.step_events import GREEN
from raymond.patterns import unnumbered
from raymond.system.stragglers import Marks
from raymond.text import visible
from raymond.verifier import command, environment
from raymond.verifier.assignment import TAIL, Assignment, Began, Ended, Found, Printed, Told, Where
from raymond.verifier.command import HERE, Place, Result

Tell = Callable[[Told], None]
_REASON = 300


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
    env = environment.apart(given.environment, where) if where else given.environment
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
