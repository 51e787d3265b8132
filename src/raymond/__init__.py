"""Raymond: the durable runtime for coding agents.

The names in `__all__` are the public API; docs/python.md has a line for each. They are loaded when they are first used:
`import raymond` alone imports nothing else.
"""

__version__ = "0.1.0"
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

_PLACES = {
    "load": "control.start:load_workflow",
    "check": "control.preflight:findings",
    "start": "control.start:start",
    "resume": "control.handle:resume",
    "find": "control.handle:find",
    "runs": "control.runs:rows",
    "events": "events",
    "Options": "control.settings:Options",
    "RunHandle": "control.handle:RunHandle",
    "Question": "views.questions:Question",
    "Review": "control.reviews:Review",
    "Workflow": "language.workflow:Workflow",
    "Run": "machine.run:Run",
    "Decision": "machine.events:Decision",
    "Event": "machine.events:Event",
    "Diagnostic": "errors:Diagnostic",
    "Error": "errors:Error",
}
"""Where each public name is at home; `__init__.pyi` says the same to type checkers."""


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = _PLACES[name].partition(":")
    home = import_module(f"raymond.{module}")
    found: object = getattr(home, attribute) if attribute else home
    globals()[name] = found
    return found
