"""What agents may do unasked: a workflow may narrow what the person who starts it allows, never widen it."""

from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from raymond.errors import Diagnostic
from raymond.language import frontmatter
from raymond.language.policy import Policy
from raymond.language.workflow import State, Workflow, mark_of
from raymond.machine.events import RunStarted

DEFAULT = "acceptEdits"
_RANKS = {"plan": 0, "dontAsk": 1, "default": 1, DEFAULT: 2, "bypassPermissions": 3}
_SYNTAX = frozenset("(),")
"""Letters that end a pattern of tools: a gate with one of them names no tool, and must not name another one."""


class Rights(Struct, frozen=True):
    """What one turn may do."""

    mode: str
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    skip: bool


def of(start: RunStarted, policy: Policy, given: Sequence[str] | None = None) -> Rights:
    """The rights of a turn: the person's, who may have given more tools since the start, narrowed by the state."""
    allowed = tuple(start.allowed_tools if given is None else given)
    if policy.allowed_tools:
        allowed = tuple(tool for tool in allowed if tool in policy.allowed_tools)
    # The command that checks the work may be run by who does the work.
    gates = tuple(f"Bash({command}:*)" for command in policy.gate if not _SYNTAX & set(command))
    narrowed = bool(policy.permission_mode or policy.allowed_tools)
    given_mode = start.permission_mode or DEFAULT
    mode = policy.permission_mode or given_mode
    if _RANKS[mode] > _RANKS[given_mode] and not start.skip_permissions:
        mode = given_mode  # refused before the run began; files that changed since widen nothing either
    return Rights(
        mode,
        (*allowed, *(tool for tool in gates if tool not in allowed)),
        policy.disallowed_tools,
        start.skip_permissions and not narrowed,
    )


def wider(workflow: Workflow, start: RunStarted, without: Collection[str] = ()) -> Iterator[Diagnostic]:
    """Every place where a state asks for more than the person gave; backends `without` rights have none to widen."""
    if start.skip_permissions:
        return
    for state in workflow.states.values():
        if state.kind != "prompt" or start.backends.get(state.name, start.backend) in without:
            continue
        policy = state.policy
        given = start.permission_mode or DEFAULT
        if policy.permission_mode and _RANKS[policy.permission_mode] > _RANKS[given]:
            yield _finding(workflow, state, "permission_mode", policy.permission_mode, given)
        for tool in policy.allowed_tools:
            if tool not in start.allowed_tools:
                yield _finding(workflow, state, "allowed_tools", tool, "")


def unheeded(
    workflow: Workflow, start: RunStarted, without_modes: Collection[str], without_tools: Collection[str]
) -> Iterator[Diagnostic]:
    """Every place where a state narrows rights that its backend does not heed."""
    for state in workflow.states.values():
        backend = start.backends.get(state.name, start.backend)
        for key, deaf in (
            ("permission_mode", without_modes),
            ("allowed_tools", without_tools),
            ("disallowed_tools", without_tools),
        ):
            if state.kind == "prompt" and backend in deaf and getattr(state.policy, key):
                message = f"{backend} heeds no `{key}`: {state.name} would have rights that it should not have"
                mark = mark_of(workflow, state, (key,))
                yield frontmatter.diagnose(mark, "unheeded-right", message, "another backend, or without this key")


def _finding(workflow: Workflow, state: State, key: str, asked: str, given: str) -> Diagnostic:
    mark = mark_of(workflow, state, (key,))
    if given:
        message = f"{state.name} asks for permission mode `{asked}`, and `{given}` was given"
        return frontmatter.diagnose(mark, "wider-permission", message, f"--permission-mode {asked}, if that is meant")
    message = f"{state.name} asks for the tool `{asked}`, which was not allowed"
    return frontmatter.diagnose(mark, "wider-permission", message, f"--allow-tool '{asked}', if that is meant")
