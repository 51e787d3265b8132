"""The public API, for type checkers: `__init__.py` loads each of these when it is first used."""

from raymond import events
from raymond.control.handle import RunHandle, find, resume
from raymond.control.preflight import findings as check
from raymond.control.reviews import Review
from raymond.control.runs import rows as runs
from raymond.control.settings import Options
from raymond.control.start import load_workflow as load
from raymond.control.start import start
from raymond.errors import Diagnostic, Error
from raymond.language.workflow import Workflow
from raymond.machine.events import Decision, Event
from raymond.machine.run import Run
from raymond.views.questions import Question

__all__ = [
    "__version__",
    "load",
    "check",
    "start",
    "resume",
    "find",
    "runs",
    "events",
    "Options",
    "RunHandle",
    "Question",
    "Review",
    "Workflow",
    "Run",
    "Decision",
    "Event",
    "Diagnostic",
    "Error",
]

__version__: str
