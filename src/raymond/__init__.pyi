"""The public API, for type checkers: `__init__.py` loads each of these when it is first used."""

from raymond.control.handle import RunHandle, find, resume
from raymond.control.preflight import findings as check
from raymond.control.runs import rows as runs
from raymond.control.start import Options, start
from raymond.control.start import load_workflow as load
from raymond.errors import Diagnostic, Error
from raymond.language.workflow import Workflow
from raymond.machine.events import Decision, Event
from raymond.machine.run import Run

__all__ = [
    "__version__",
    "load",
    "check",
    "start",
    "resume",
    "find",
    "runs",
    "Options",
    "RunHandle",
    "Workflow",
    "Run",
    "Decision",
    "Event",
    "Diagnostic",
    "Error",
]

__version__: str
