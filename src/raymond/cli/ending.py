"""How a run ended: five lines for people, the result or one JSON document for programs."""

import sys

import msgspec

from raymond.faces import lines, summary
from raymond.machine.run import Run
from raymond.views import documents
from raymond.views.status import exit_code, main_result


def tell(run: Run, *, as_json: bool = False, signal: int = 0) -> int:
    """Tell it, and return the exit code."""
    lines.Lines().on_note(summary.ending(run))
    if as_json:
        sys.stdout.write(msgspec.json.encode(documents.outcome(run)).decode() + "\n")
    else:
        result = main_result(run)
        if result is not None and run.ended:
            sys.stdout.write(result if result.endswith("\n") else f"{result}\n")
    sys.stdout.flush()
    return exit_code(run, signal)
