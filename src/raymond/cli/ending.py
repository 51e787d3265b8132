"""How a run ended: five lines for people, the result or one JSON document for programs."""

import sys

import msgspec

from raymond import console, views
from raymond.machine.run import Run


def tell(run: Run, *, as_json: bool = False, signal: int = 0) -> int:
    """Tell it, and return the exit code."""
    console.Lines().said(console.ending(run))
    if as_json:
        sys.stdout.write(msgspec.json.encode(views.outcome(run)).decode() + "\n")
    else:
        result = views.result(run)
        if result is not None and run.ended:
            sys.stdout.write(result if result.endswith("\n") else f"{result}\n")
    sys.stdout.flush()
    return views.exit_code(run, signal)
