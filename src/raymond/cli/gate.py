"""`raymond gate`: run the checks of states now."""

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from raymond.cli import texts
from raymond.cli.command import argument, as_command, option
from raymond.control import gate, start
from raymond.errors import WorkflowError
from raymond.faces import errors
from raymond.faces.lines import CheckLines
from raymond.language.ways import WAYS, Way
from raymond.language.workflow import State
from raymond.verifier.assignment import Found


@as_command("gate")
@argument("path")
@argument("state", required=False)
@option("--set", "settings", many=True, metavar="STATE.KEY=VALUE", help="Set a policy key; overrides frontmatter.")
@option("--workspace", "way", choices=WAYS, help="Run it where a run would that works this way.")
def command(path: str, state: str | None, settings: tuple[str, ...], way: Way | None) -> int:
    """Run the gate of STATE of the workflow in PATH now, as a run would; without STATE, all its gates.

    Nothing else is started.
    """
    loaded = start.load(path, texts.overrides(settings))
    doubtful = gate.checked(loaded)
    states = gate.chosen(loaded, state)
    sys.stderr.write(errors.warnings(gate.about(doubtful, loaded, states)))
    return exit_code(list(run(states, gate.where_of(loaded, way), sys.stdout).values()))


def run(states: Sequence[State], where: gate.Where, stream: TextIO) -> dict[str, Found]:
    """Run the gates of these states, one after the other; what each has shown."""
    found = {}
    with interruptible():
        for state in states:
            trial = CheckLines(stream)
            found[state.name] = gate.try_out(state, where, trial.tell)
            trial.end(state.name, found[state.name])
    return found


def exit_code(found: Sequence[Found]) -> int:
    """A gate that cannot start is a mistake of the workflow; that counts for more than a red one."""
    if any(one.verdict == "could not start" for one in found):
        return WorkflowError.exit_code
    return 1 if any(one.verdict != "passed" for one in found) else 0


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within it, whatever ends this process ends the check as well."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
