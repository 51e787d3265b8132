"""What is doubtful about a start and no reason to refuse it: said before the first turn, refused with --strict."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from msgspec.structs import replace

from raymond.backends import registry
from raymond.control import config
from raymond.control.settings import KEYS, OPTIONS
from raymond.errors import Diagnostic, WorkflowError
from raymond.language import frontmatter, reach, reading
from raymond.language.frontmatter import Mark
from raymond.language.lint import places
from raymond.language.tags import BUILT_IN
from raymond.language.workflow import State, Workflow, mark_of
from raymond.machine.events import RunStarted
from raymond.store import loader, verdicts
from raymond.store.loader import Loaded
from raymond.system import bash
from raymond.system.stragglers import MARK

EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
"""What Claude Code or Codex take."""
_OURS = "HOME CGROUP PORTABLE STEP STEP_KEY OUT INPUT_FILE VARS_FILE TITLE MESSAGE VAR".split()
_NEAR = 0.75


def of_start(loaded: Loaded, start: RunStarted) -> Iterator[Diagnostic]:
    """What can only be known with the backends, the files and the environment of a start."""
    replies = registry.replies_of(start, loaded.files)
    if replies:
        yield from replies.unknown([*loaded.workflow.states, *loaded.workflow.beside])
    yield from _efforts(loaded.workflow, start)
    yield from of_environment(os.environ)
    yield from of_scripts(loaded.workflow)


def of_environment(environment: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Variables that were probably meant to be settings."""
    known = {name.upper() for name, row in KEYS.items() if not row.is_table}
    known |= {*_OURS, *(name.upper() for name in BUILT_IN), MARK.removeprefix(config.PREFIX)}
    known |= {"WORKSPACE"} if MARK in environment else set()  # set for a step that works in one
    for variable in sorted(environment):
        name = variable.removeprefix(config.PREFIX)
        if not variable.startswith(config.PREFIX) or name in known or name.startswith("VAR_"):
            continue
        if row := {**OPTIONS, **KEYS}.get(name.lower()):
            way = f"use {row.flags[-1]}" if row.group else f"write `{row.name}` into config.toml"
            message = f"`{variable}` is not read"
            yield frontmatter.diagnose(Mark("the environment", source=variable), "unknown-setting", message, way)
            continue
        from difflib import get_close_matches

        if close := get_close_matches(name, known, 1, _NEAR):
            message, hint = f"unknown setting `{variable}`", f"did you mean `{config.PREFIX}{close[0]}`?"
            yield frontmatter.diagnose(Mark("the environment", source=variable), "unknown-setting", message, hint)


def of_scripts(workflow: Workflow) -> Iterator[Diagnostic]:
    """What bash does not like about the scripts that the entry can lead to, and about those in lib/."""
    named = reach.of(workflow).named
    texts = {name: state.body for name, state in workflow.states.items() if name.endswith(".sh") and name in named}
    texts |= {f"lib/{name}": text for name, text in workflow.lib.items() if name.endswith(".sh")}
    for name, said in verdicts.complaints({name: text for name, text in texts.items() if _is_read(name, text)}).items():
        for line, message in bash.places(said):
            mark = frontmatter.mark(name, texts[name], line, 1, 1000)
            yield frontmatter.diagnose(mark, "bash-syntax", f"bash: {message}", "`bash -n` says the same")


def _is_read(name: str, text: str) -> bool:
    return not name.startswith("lib/") or bash.is_for_bash(text)


def _efforts(workflow: Workflow, start: RunStarted) -> Iterator[Diagnostic]:
    hint = f"one of: {', '.join(EFFORTS)}"
    reached = sorted(reach.of(workflow).named)
    prompts = [workflow.states[name] for name in reached if workflow.states[name].kind == "prompt"]
    if prompts and start.effort and start.effort not in EFFORTS and start.backend in registry.PROGRAMS:
        mark = Mark("--effort", source=start.effort)
        yield frontmatter.diagnose(mark, "unknown-effort", f"{start.backend} knows no effort `{start.effort}`", hint)
    for state in prompts:
        backend = start.backends.get(state.name, start.backend)
        if backend in registry.PROGRAMS:
            for effort, mark in _efforts_of(workflow, state):
                if effort not in EFFORTS:
                    message = f"{backend} knows no effort `{effort}`"
                    yield frontmatter.diagnose(mark, "unknown-effort", message, hint)


def _efforts_of(workflow: Workflow, state: State) -> Iterator[tuple[str, Mark]]:
    if state.policy.effort:
        yield state.policy.effort, mark_of(workflow, state, ("effort",))
    for tag in reading.scan(state.body) if "effort=" in state.body else ():
        if (effort := tag.attributes.get("effort")) and tag.name == "function" and "{{" not in effort:
            yield effort, places.attribute(state, tag, "effort")


def located(found: Iterable[Diagnostic], loaded: Loaded) -> list[Diagnostic]:
    """The findings with the paths of the author's files, as one would type them here."""
    return [loader.located(one, loaded.scope_dir) if one.file in loaded.files else one for one in found]


@contextmanager
def placed(loaded: Loaded) -> Iterator[None]:
    """Within it, an error in the author's files names them as one would type them here."""
    try:
        yield
    except WorkflowError as error:
        raise type(error)(*located(error.diagnostics, loaded)) from None


def refuse(found: list[Diagnostic]) -> None:
    """Refuse a start because of warnings: somebody asked for that."""
    if found:
        raise WorkflowError(*(replace(one, severity="error") for one in found))
