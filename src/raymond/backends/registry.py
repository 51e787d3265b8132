"""Which backends there are, whether those a run needs can be used, and the ones of a run."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from raymond.backends import Backend, Direct
from raymond.errors import BackendError, UsageError
from raymond.events import RunStarted
from raymond.loader import REPLIES_FILE
from raymond.process import program
from raymond.programs import CLAUDE
from raymond.project import Project
from raymond.run import Run
from raymond.variables import Placed
from raymond.workflow import Workflow

if TYPE_CHECKING:
    from raymond.backends.scripted import Replies

NAMES = ("scripted", "scripted-program", "claude")
SCRIPTED = NAMES[:2]
PROTECTED = ("config.toml", "workflows", "sources", "transcripts")
"""What of Raymond's own files no agent may edit, where its program can prevent it."""


def check(workflow: Workflow, start: RunStarted, files: Mapping[str, bytes]) -> None:
    """A backend that is not there, and a prompt that nobody answers, are said before anything is written."""
    for state, name in {"": start.backend, **start.backends}.items():
        if name not in NAMES:
            where = f" for {state}" if state else ""
            raise BackendError(
                f"there is no backend `{name}`{where}", backend=name, hint=f"there are: {', '.join(NAMES)}"
            )
    prompts = [state.name for state in workflow.states.values() if state.kind == "prompt"]
    scripted = [name for name in prompts if start.backends.get(name, start.backend) in SCRIPTED]
    if scripted and not start.replies and REPLIES_FILE not in files:
        raise UsageError(
            f"nothing answers the prompt {scripted[0]}",
            hint=f"--backend claude, or a {REPLIES_FILE} beside it: docs/language.md, Scripted replies",
        )
    if scripted:
        _replies(start, files.get(REPLIES_FILE, b"").decode())
    if len(scripted) < len(prompts):
        _check_claude()


def _check_claude() -> None:
    if not os.path.isabs(program(CLAUDE)):
        raise BackendError(
            f"there is no program `{CLAUDE}` on the PATH",
            backend="claude",
            hint="install Claude Code, then start it once to log in; `--backend scripted` needs no account",
        )


def make(project: Project, run: Run, placed: Placed) -> Mapping[str, Backend | Direct]:
    """The backends the run's prompts need."""
    if not any(state.kind == "prompt" for state in placed.workflow.states.values()):
        return {}
    needed = {run.start.backend, *run.start.backends.values()}
    made = dict(_scripted(project, run, placed)) if needed & set(SCRIPTED) else {}
    if "claude" in needed:
        from raymond.backends.claude import Claude

        made["claude"] = Claude(protected=[project.path(name) for name in PROTECTED])
    return made


def _scripted(project: Project, run: Run, placed: Placed) -> Iterable[tuple[str, Backend | Direct]]:
    from raymond.backends.scripted import ScriptedBackend, ScriptedProgram

    beside, text = os.path.join(placed.workflow_dir, REPLIES_FILE), ""
    if os.path.exists(beside):
        with open(beside, encoding="utf-8") as opened:
            text = opened.read()
    replies = _replies(run.start, text)
    sessions = project.path("sessions", run.start.workflow_id)
    yield "scripted", ScriptedBackend(replies, sessions)
    yield "scripted-program", ScriptedProgram(replies, sessions)


def _replies(start: RunStarted, beside: str) -> "Replies | None":
    from raymond.backends.scripted import Replies

    if start.replies:
        return Replies(start.replies, "--replies")
    return Replies(beside, REPLIES_FILE) if beside else None
