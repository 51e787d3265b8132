"""Workflow, State: a definition as values; names, entry point."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from raymond import pasted
from raymond.errors import Diagnostic
from raymond.language import frontmatter, policy
from raymond.language.allowed_transitions import EXTENSIONS, bare
from raymond.language.findings import OF_NAME
from raymond.language.frontmatter import Mark, Path
from raymond.language.policy import Policy
from raymond.language.refusal import Refusal, cut
from raymond.language.settings import SETTINGS_FILE, Settings, read_settings, slug
from raymond.patterns import regex

__all__ = ["Settings", "State", "Workflow", "bare", "build", "is_state", "read_settings", "resolve"]
_NOT_STATES = frozenset({"readme.md", "changelog.md", "claude.md", "agents.md", "skill.md"})
_UNSAFE = regex(r"\A\.|[/\\\0]|\A[A-Za-z]:")
ENTRIES = ("1_START", "START")
_MOST_LISTED = 8
_LONGEST_NAME = 255
"""Characters in the name of a file."""


class State(Struct):
    """One file of a workflow that an agent can be in."""

    name: str
    kind: Literal["prompt", "script"]
    body: str
    line: int
    """Where the body begins in the file."""
    policy: Policy
    marks: dict[Path, Mark] = {}
    """Where the values of the policy are."""


class Reach(Struct, frozen=True):
    """The states that the entry of a workflow can lead to."""

    named: frozenset[str]
    """By tags and policies, or because a script or an agent computes where it goes."""
    possible: frozenset[str]
    """Those, and what an agent or a script may name because its text mentions it."""


class Workflow(Struct):
    """A definition."""

    name: str
    entry: str
    """Empty when there is none; `diagnostics` then says why."""
    states: dict[str, State]
    lib: dict[str, str]
    settings: Settings
    diagnostics: list[Diagnostic]
    platform: str
    runnable: frozenset[str]
    """Extensions of the states that this machine can run."""
    marks: dict[Path, Mark] = {}
    """Where the values of workflow.yaml are."""
    names: dict[str, str] = {}
    """Every target that has led to a state -> that state."""
    beside: frozenset[str] = frozenset()
    """State files in the same folder that do not belong to it, because it was started from one file."""
    overrides: Mapping[str, Mapping[str, Any]] = {}
    """What the person set for its states."""
    reach: Reach | None = None
    """What `reach.of` has found."""
    judges: dict[str, list[str]] | None = None
    """What `judges.of` has found."""

    @property
    def has_workspaces(self) -> bool:
        """Whether some state says where it works."""
        return any(state.policy.workspace for state in self.states.values())


def build(
    name: str,
    files: Mapping[str, str],
    *,
    entry: str | None = None,
    platform: str = "linux",
    runnable: frozenset[str] | None = None,
    overrides: Mapping[str, Mapping[str, Any]] = {},
    beside: frozenset[str] = frozenset(),
) -> Workflow:
    """A workflow from its texts. Never raises: what is wrong is in `diagnostics`."""
    settings, document = read_settings(files.get(SETTINGS_FILE, ""))
    workflow = Workflow(
        name=settings.name or slug(name),
        entry="",
        states={},
        lib={path[4:]: files[path] for path in sorted(files) if path.startswith("lib/")},
        settings=settings,
        diagnostics=document.diagnostics,
        platform=platform,
        runnable=_runnable(platform) if runnable is None else runnable,
        marks=document.marks,
        beside=beside,
        overrides=overrides,
    )
    _add_states(workflow, files, overrides)
    workflow.entry = _entry(workflow, entry)
    return workflow


def resolve(workflow: Workflow, target: str) -> str | Refusal:
    """The state that `target` names, with its extension."""
    state = workflow.names.get(target)
    if state:
        return state
    found = _resolve(workflow, target)
    if isinstance(found, str):
        workflow.names[target] = found
    return found


def _resolve(workflow: Workflow, target: str) -> str | Refusal:
    if _UNSAFE.search(target):
        return Refusal("unsafe_name", f"`{cut(target)}` is not the name of a state", "name a state of this workflow")
    if target in workflow.states:
        return target if extension(target) in workflow.runnable else _foreign(workflow, [target])
    found = [] if extension(target) else [target + end for end in EXTENSIONS if target + end in workflow.states]
    here = [name for name in found if extension(name) in workflow.runnable]
    if len(here) == 1:
        return here[0]
    if here:
        hint = f"write the extension: {_either(here)}"
        return Refusal("ambiguous_state", f"`{target}` could be {_either(here)}", hint)
    if found:
        return _foreign(workflow, found)
    return Refusal(
        "unknown_state", f"there is no state `{cut(target)}`", _meant(target, [*workflow.states, *workflow.beside])
    )


@lru_cache(maxsize=4096)
def is_state(path: str) -> bool:
    """Whether the file at `path` in a workflow is a state."""
    return extension(path) != "" and "/" not in path and path[0] != "." and path.lower() not in _NOT_STATES


def extension(name: str) -> str:
    """The known extension of `name`, or nothing."""
    return name[len(bare(name)) :]


def _add_states(workflow: Workflow, files: Mapping[str, str], overrides: Mapping[str, Mapping[str, Any]]) -> None:
    names = [name for name in sorted(files) if is_state(name)]
    unused = set(overrides)
    for name in names:
        if _UNSAFE.search(name):
            message = f"`{name}` cannot be the name of a state"
            wrong = frontmatter.diagnose(Mark(name), "unsafe-target", message, "rename the file")
            workflow.diagnostics.append(wrong)
            continue
        unused -= {name, bare(name)}
        above = {**overrides.get(bare(name), {}), **overrides.get(name, {})} if overrides else {}
        script = not name.endswith(".md")
        source = files[name].removeprefix("\ufeff")
        parsed = policy.parse(source, file=name, script=script, defaults=workflow.settings.defaults, overrides=above)
        kind: Literal["prompt", "script"] = "script" if script else "prompt"
        workflow.states[name] = State(name, kind, parsed.body, parsed.line, parsed.policy, parsed.marks)
        workflow.diagnostics += parsed.diagnostics
    for name in sorted(unused):
        mark, hint = Mark("--set", source=name), _meant(name, workflow.states)
        workflow.diagnostics.append(frontmatter.diagnose(mark, "missing-target", f"there is no state `{name}`", hint))


def _entry(workflow: Workflow, entry: str | None) -> str:
    if entry is not None:
        found = resolve(workflow, entry)
        if isinstance(found, str):
            return found
        id = "no-entry" if found.kind == "unknown_state" else OF_NAME[found.kind]
        return _no_entry(workflow, id, found.reason, found.hint)
    starts = [name for name in workflow.states if bare(name) in ENTRIES]
    candidates = starts or list(workflow.states)
    here = [name for name in candidates if extension(name) in workflow.runnable]
    if len(here) == 1:
        return here[0]
    if candidates and not here and (starts or len(candidates) == 1):
        foreign = _foreign(workflow, candidates)
        return _no_entry(workflow, OF_NAME[foreign.kind], foreign.reason, foreign.hint)
    if starts:
        reason = f"{_join(here, 'and')} could all start" if len(here) > 2 else f"both {_join(here, 'and')} could start"
        return _no_entry(
            workflow, "ambiguous-entry", reason, f"keep one, or name the one to start: {workflow.name}/{here[0]}"
        )
    if not candidates:
        hint = f"add START.md; a state is a file that ends in {' '.join(EXTENSIONS)}"
        return _no_entry(workflow, "no-entry", "there is no state in this workflow", hint)
    message = "there is no `1_START` or `START`, and there is more than one state"
    other_case = [name for name in workflow.states if bare(name).upper() in ENTRIES]
    hint = (
        f"rename `{other_case[0]}` to `{bare(other_case[0]).upper()}{extension(other_case[0])}`" if other_case else ""
    )
    if not hint and here:
        first = f"rename the one to begin with to START, or name it: {workflow.name}/{min(here)}"
        hint = f"{first}; {_list(workflow.states)}"
    return _no_entry(workflow, "no-entry", message, hint or _list(workflow.states))


def _no_entry(workflow: Workflow, id: str, message: str, hint: str) -> str:
    workflow.diagnostics.append(frontmatter.diagnose(Mark(workflow.name), id, message, hint))
    return ""


def _foreign(workflow: Workflow, names: list[str]) -> Refusal:
    needs = {".bat": "Windows", ".sh": "bash", ".ps1": "PowerShell (pwsh)"}
    what = _join(sorted({needs.get(extension(name), extension(name)) for name in names}), "or")
    reason = f"{_join(names, 'and')} cannot run on this machine ({workflow.platform})"
    return Refusal("wrong_platform", reason, f"it needs {what}; or add `{bare(names[0])}.py`, which runs everywhere")


def _runnable(platform: str) -> frozenset[str]:
    return frozenset(EXTENSIONS) - ({".sh"} if platform == "win32" else {".bat"})


def _meant(target: str, names: Iterable[str]) -> str:
    if len(target) > _LONGEST_NAME:
        return _list(names)
    same = [name for name in names if bare(name).casefold() == bare(target).casefold()]
    if same:
        return f"did you mean {_either(same)}?"
    whole = {bare(name): name for name in names}
    return frontmatter.suggest(bare(target), whole) or _list(names)


def _either(names: list[str]) -> str:
    return _join(names, "or")


def _join(names: Iterable[str], word: str) -> str:
    quoted = [f"`{name}`" if "." in name else name for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"


def _list(names: Iterable[str]) -> str:
    all_names = sorted(names)
    if not all_names:
        return ""
    more = f" and {len(all_names) - _MOST_LISTED} more" if len(all_names) > _MOST_LISTED else ""
    return f"the states are: {', '.join(map(pasted.name, all_names[:_MOST_LISTED]))}{more}"


def mark_of(workflow: Workflow, state: State, path: Path) -> Mark:
    """Where a value of the state's policy is: in its own file, or in workflow.yaml."""
    marks = state.marks if path[:1] in state.marks else workflow.marks
    for length in range(len(path), 0, -1):
        if path[:length] in marks:
            return marks[path[:length]]
    return Mark(state.name)
