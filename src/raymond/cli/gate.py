"""`raymond gate`: run the check of a state now."""

import sys

import click

from raymond import durations
from raymond.cli import texts
from raymond.control import gate, start
from raymond.errors import WorkflowError
from raymond.faces.foreign_text import in_margin, width_of
from raymond.language.workflow import State
from raymond.text import visible
from raymond.verifier.assignment import Began, Ended, Found, Printed, Told

_MARGIN = "  | "


@click.command("gate")
@click.argument("path", type=click.Path())
@click.argument("state")
@click.option(
    "--set", "settings", multiple=True, metavar="STATE.KEY=VALUE", help="Set a policy key; overrides frontmatter."
)
def command(path: str, state: str, settings: tuple[str, ...]) -> int:
    """Run the gate of STATE of the workflow in PATH here and now, as a run would: nothing else is started."""
    loaded = start.load(path, texts.overrides(settings))
    found = show(gate.state_of(loaded, state))
    if found.verdict == "could not start":
        return WorkflowError.exit_code
    return 0 if found.verdict == "passed" else 1


def show(state: State) -> Found:
    """Run the gate of a state, and print what happens."""
    width = width_of(sys.stdout)

    def tell(told: Told) -> None:
        match told:
            case Began():
                print(f"$ {visible(told.command)}{' (once more)' if told.again else ''}", flush=True)
            case Printed():
                print("\n".join(in_margin(told.text.rstrip("\n"), _MARGIN, width)), flush=True)
            case Ended():
                how = "its time is over" if told.exit_code is None else f"exit code {told.exit_code}"
                print(f"  {how} after {durations.brief(told.seconds)}")
            case _:
                pass

    found = gate.try_out(state, tell)
    why = f": {visible(found.reason)}" if found.reason else " (flaky: it was red the first time)" if found.flaky else ""
    print(f"{visible(state.name)}: {found.verdict}{why}")
    return found
