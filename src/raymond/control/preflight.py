"""Everything that is refused before anything is written."""

import os
from collections.abc import Iterator

from msgspec.structs import replace

from raymond.backends import registry
from raymond.control import config
from raymond.errors import Diagnostic, UsageError, WorkflowError
from raymond.language import lint
from raymond.language.workflow import Workflow
from raymond.machine import rights
from raymond.machine.events import RunStarted
from raymond.redaction import Secrets
from raymond.store.loader import Loaded


def check_start(
    loaded: Loaded, start: RunStarted, tables: registry.Tables, backends: list[str], models: list[str]
) -> RunStarted:
    """Refuse what the policy file, the backends or the rights of who starts it are against; what it starts with."""
    workflow = loaded.workflow
    _check_rules(workflow, start, backends, models)
    able = registry.check(workflow, start, loaded.files, tables)
    start = replace(start, in_place=[name for name, can in able.items() if not can.branches])
    modes = {name for name, can in able.items() if not can.permission_modes}
    tools = {name for name, can in able.items() if not can.tool_rules}
    wrong = [*rights.wider(workflow, start, registry.SCRIPTED), *rights.unheeded(workflow, start, modes, tools)]
    prompts = [state.name for state in workflow.states.values() if state.kind == "prompt"]
    named = {name: start.backends.get(name, start.backend) for name in prompts}
    wrong += lint.polluting(workflow, {name: one for name, one in named.items() if one in start.in_place})
    if wrong:
        raise WorkflowError(*wrong)
    return start


def check(workflow: Workflow) -> None:
    """Refuse a workflow that lint finds errors in."""
    problems = [*lint.errors(workflow), *_exposed(workflow)]
    if problems:
        raise WorkflowError(*problems)


def _exposed(workflow: Workflow) -> Iterator[Diagnostic]:
    """States in which the value of a secret variable of this environment stands."""
    known = Secrets.of(os.environ)
    texts = [(state.name, state.body) for state in workflow.states.values()] + list(workflow.lib.items())
    if not known.find("\n".join(text for _, text in texts)):
        return  # one look at all of them: a workflow may have a thousand states
    for name, text in texts:
        found = known.find(text)
        if found.startswith("the value of"):
            message, hint = f"{name} contains {found}", "a step reads secrets from its environment"
            yield Diagnostic(id="secret-in-state", message=message, file=name, hint=hint)


def _check_rules(workflow: Workflow, start: RunStarted, backends: list[str], models: list[str]) -> None:
    """The policy file holds for what a workflow names too."""
    for state in workflow.states.values():
        for what, named, allowed in (
            ("backend", state.policy.backend, backends),
            ("model", state.policy.model, models),
        ):
            if allowed and named and named not in allowed:
                raise UsageError(
                    f"{config.SITE_FILE} allows no {what} `{named}`, which {state.name} names",
                    hint=f"one of: {', '.join(allowed)}",
                )
    if backends and start.backend not in backends:
        raise UsageError(
            f"{config.SITE_FILE} allows no backend `{start.backend}`", hint=f"one of: {', '.join(backends)}"
        )
