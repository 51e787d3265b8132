"""The commands of gates as tools that a person may allow agents: exactly these, and nothing like them."""

import re

from raymond.errors import UsageError
from raymond.language.workflow import Workflow
from raymond.machine.run import Run
from raymond.store import loader, sources
from raymond.store.project import Project

FLAG = "--allow-gate-commands"


def patterns(workflow: Workflow) -> list[str]:
    """The patterns that allow the commands of its gates, each once."""
    found: dict[str, None] = {}
    for state in workflow.states.values():
        for check in state.policy.gate:
            found[pattern(check.run.strip(), state.name)] = None
    if not found:
        raise UsageError(f"{FLAG}: no state of {workflow.name} has a gate", hint=f"leave out {FLAG}")
    return list(found)


def of_run(project: Project, run: Run) -> list[str]:
    """The same for the files that a run has now."""
    start = run.start
    files = sources.read(project.run(start.workflow_id), start.source)
    return patterns(loader.from_files(files, name=start.name, entry=start.entry, overrides=start.overrides))


def pattern(command: str, state: str) -> str:
    """The pattern that allows exactly this command."""
    wide = re.search(r"[*\\]|[\x00-\x1f]", command)
    if wide:
        what = "a line break" if wide[0] == "\n" else f"`{wide[0]}`" if wide[0].isprintable() else "a control character"
        raise UsageError(
            f"{FLAG}: a pattern with {what} would allow more than the gate of {state}",
            hint=f"put the command into a file, as in `gate: ./check.sh`; or leave out {FLAG}",
        )
    escaped = re.sub(r"([()])", r"\\\1", command)
    return f"Bash({escaped})"
