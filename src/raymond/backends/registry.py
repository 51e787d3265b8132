"""The backends that exist, whether a run can use those it needs, and the ones it gets."""

import importlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from raymond.backends import Abilities, Backend, Direct, Places, Setup
from raymond.errors import BackendError, UsageError
from raymond.language import judges, reach
from raymond.language.workflow import Workflow, bare
from raymond.machine.agent import SCRIPTED as SCRIPTED
from raymond.machine.events import RunStarted
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run
from raymond.store import exports, trust
from raymond.store.loader import REPLIES_FILE
from raymond.store.project import Project
from raymond.store.trust import Trust
from raymond.text import is_text

if TYPE_CHECKING:
    from raymond.backends.scripted import Replies

PROGRAMS = {"claude": "raymond.backends.claude:Claude", "codex": "raymond.backends.codex:Codex"}
GROUP = "raymond.backends"
"""The entry points by which other packages add backends: NAME -> something that takes a Setup and returns a Backend."""
_NOWHERE = Places()
_NOBODY = Trust()

Tables = Mapping[str, dict[str, Any]]
"""The tables `[backends.NAME]` of the configuration."""


def names(tables: Tables) -> list[str]:
    """Every backend there is, those from other packages last."""
    own = [*SCRIPTED, *PROGRAMS]
    return [*own, *(name for name in {**tables, **_entry_points()} if name not in own)]


def backend(name: str, tables: Tables, places: Places = _NOWHERE, trust: Trust = _NOBODY, folder: str = "") -> Backend:
    """The backend that is called `name`, which keeps agents from `places` as far as it can."""
    options = dict(tables.get(name, {}))
    made: Backend = _factory(name, tables)(Setup(name=name, options=options, places=places, trust=trust, folder=folder))
    return made


def _near(name: str, known: Sequence[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, 1)
    return f"{f'did you mean `{close[0]}`? ' if close else ''}there are: {', '.join(known)}"


def _factory(name: str, tables: Tables) -> Any:
    if name in PROGRAMS:
        module, _, made = PROGRAMS[name].partition(":")
        return getattr(importlib.import_module(module), made)
    found = {} if "command" in tables.get(name, {}) else _entry_points()
    if name in tables and name not in found:
        from raymond.backends.command import CommandBackend

        return CommandBackend
    if name not in found:
        raise BackendError(f"there is no backend `{name}`", backend=name, hint=_near(name, names(tables)))
    try:
        return found[name].load()
    except (ImportError, AttributeError) as error:
        raise BackendError(f"the backend `{name}` cannot be loaded: {error}", backend=name) from error


def _entry_points() -> Mapping[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}


def default(replies: str | None, files: Mapping[str, bytes]) -> str:
    """The backend when none was named: the replies that came with the workflow, else Claude Code."""
    return SCRIPTED[0] if replies or REPLIES_FILE in files else "claude"


def check(
    workflow: Workflow, start: RunStarted, files: Mapping[str, bytes], tables: Tables, *, look: bool = True
) -> dict[str, Abilities]:
    """Refuse backends that cannot be used, before anything is written; what the others can do.

    Programs are looked for where the entry can lead; a name that no backend has is refused anywhere.
    """
    prompts = [state.name for state in judges.answered(workflow)]
    by_name: dict[str, list[str]] = {}
    for state in prompts:
        by_name.setdefault(start.backends.get(state, start.backend), []).append(state)
    able: dict[str, Abilities] = {}
    for name, states in by_name.items():
        reached = [state for state in states if state in reach.of(workflow).possible]
        if name in SCRIPTED:
            if reached:
                _check_replies(reached[0], start, files)
            continue
        program = _known(name, tables, states[0] if name != start.backend else "")
        if look and reached:
            _check_program(program)
        able[name] = program.can
    if not prompts and start.backend not in (*SCRIPTED, *PROGRAMS):
        _known(start.backend, tables, "")  # our own are known without an import
    return able


def _known(name: str, tables: Tables, state: str) -> Backend:
    try:
        return backend(name, tables)
    except BackendError as error:
        if state:
            raise BackendError(f"{error} for {state}", backend=name, hint=error.hint) from None
        raise
    except UsageError as error:
        path = trust.settings_of_person()  # nobody else can set up a backend
        raise UsageError(f"{path}: {error}" if path else str(error), hint=error.hint) from None


def _check_replies(state: str, start: RunStarted, files: Mapping[str, bytes]) -> None:
    if not start.replies and REPLIES_FILE not in files:
        raise UsageError(
            f"nothing answers the prompt {state}",
            hint=f"write {REPLIES_FILE} beside it, e.g. `{bare(state)}: <result>done</result>`; or --backend claude",
        )
    _replies(start, files.get(REPLIES_FILE, b"").decode())


def _check_program(program: Backend) -> None:
    _of_person()
    from raymond.backends import guard  # a run of scripts asks no program

    found = guard.look(program)
    if found.problem:
        raise BackendError(found.problem, backend=program.name, hint=found.advice)


def make(
    project: Project,
    run: Run,
    placed: PlacedWorkflow,
    tables: Tables,
    trusts: Mapping[str, Trust] = {},
    folder: Callable[[str], str] | None = None,
) -> Mapping[str, Backend | Direct]:
    """The backends the run's prompts need; `trusts` says where each may use settings of a project.

    `folder` says where each keeps its own settings and conversations, if not at its usual place.
    """
    if not any(state.kind == "prompt" for state in placed.workflow.states.values()):
        return {}
    needed = {run.start.backend, *run.start.backends.values()}
    made = dict(_scripted(project, run, placed)) if needed & set(SCRIPTED) else {}
    home = project.home
    places = Places(
        hidden=[home.projects, home.sources],
        readable=[placed.workflow_dir],
        fixed=[home.path, *exports.fixed(project.tree), *_of_person()],
    )
    return made | {
        name: backend(name, tables, places, trusts.get(name, _NOBODY), folder(name) if folder else "")
        for name in sorted(needed - set(SCRIPTED))
    }


def _of_person() -> list[str]:
    """The folder of a person's own settings: what they say there holds for every run."""
    path = trust.settings_of_person()
    if not is_text(path):
        # No rule that keeps agents out of it could name it.
        hint = "set XDG_CONFIG_HOME to a folder whose path is"
        raise UsageError(f"the path of your settings is not UTF-8: {path}", hint=hint)
    return [os.path.dirname(path)] if path else []


def _scripted(project: Project, run: Run, placed: PlacedWorkflow) -> Iterable[tuple[str, Backend | Direct]]:
    from raymond.backends.scripted import ScriptedBackend, ScriptedProgram

    beside, text = os.path.join(placed.workflow_dir, REPLIES_FILE), ""
    if os.path.exists(beside):
        with open(beside, encoding="utf-8") as opened:
            text = opened.read()
    replies = _replies(run.start, text)
    sessions = project.run(run.start.workflow_id).sessions
    yield "scripted", ScriptedBackend(replies, sessions)
    yield "scripted-program", ScriptedProgram(replies, sessions)


def replies_of(start: RunStarted, files: Mapping[str, bytes]) -> "Replies | None":
    """The replies that a run would be answered with; None when no scripted backend answers."""
    if not {start.backend, *start.backends.values()} & set(SCRIPTED):
        return None
    return _replies(start, files.get(REPLIES_FILE, b"").decode())


def _replies(start: RunStarted, beside: str) -> "Replies | None":
    if start.replies:
        return _read_replies(start.replies, "--replies")
    return _read_replies(beside, REPLIES_FILE) if beside else None


@lru_cache(maxsize=1)
def _read_replies(text: str, file: str) -> "Replies":
    from raymond.backends.scripted import Replies

    return Replies(text, file)
