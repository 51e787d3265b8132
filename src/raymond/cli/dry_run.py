"""`--dry-run` in words: what a run would start with."""

import shlex
import sys
from collections.abc import Mapping, Sequence

import msgspec

from raymond import durations
from raymond.control.config import Setting
from raymond.control.preview import FirstStep, PlannedGate, Preview
from raymond.control.settings import OPTIONS, Row
from raymond.errors import Diagnostic, Error, WorkflowError
from raymond.faces import errors, foreign_text, words
from raymond.faces.foreign_text import hung, width_of
from raymond.language.check import expected
from raymond.text import visible
from raymond.verifier.assignment import Found

_WARNING = ("id", "message", "file", "line", "column", "hint")
_PROGRAM = ("name", "version", "payer", "path", "host")

ENDS = "nothing was started\n"


def show(plan: Preview) -> str:
    """The first step, exactly; the rights; the limits and where they come from; the gates."""
    start = plan.start
    lines = [
        f"run:      {start.name} at {start.entry}, in {start.cwd}",
        f"workflow: {plan.scope_dir} ({words.many(plan.files, 'file')}, {plan.digest[:16]})",
        *_step(plan.step, "without secrets and" if start.workspace == "isolated" else "without"),
        *_programs(plan),
        *_workspace(plan),
        f"rights:   {_rights(plan)}",
        *(f"settings: {foreign_text.settings_use(one.names, one.is_used, one.why)}" for one in plan.uses),
        *_limits(plan),
        *(line for one in plan.gates for line in _gate(one)),
    ]
    return _shown(plan, lines)


def of_loop(plan: Preview, where: Sequence[str], prompt: str = "") -> str:
    """What the agents of a loop are sent, where they work, and their rights and limits."""
    first, *more = [one.removeprefix("agents work ") for one in where]
    sent = ["prompt:", *(f"  {line}" for line in prompt.rstrip("\n").split("\n"))] if prompt else []
    lines = [*sent, *_programs(plan), f"works:    {first}", *(f"          {one}" for one in more)]
    lines += [f"rights:   {_rights(plan)}", *_limits(plan)]
    return _shown(plan, lines)


def _shown(plan: Preview, lines: Sequence[str]) -> str:
    """These lines as a terminal has room for them, and the warnings."""
    width = width_of(sys.stdout)
    shown = "".join(f"{part}\n" for line in lines for part in hung(visible(line), "  ", width))
    return f"{shown}{errors.warnings(plan.warnings)}"


def document(plan: Preview, tried: Mapping[str, Found] = {}) -> str:
    """The same for programs, as one line of JSON, with what the gates that were `tried` have shown."""
    start, step = plan.start, plan.step
    said = {
        "workflow": start.name,
        "entry": start.entry,
        "scope_dir": plan.scope_dir,
        "source": f"sources/{plan.digest}.zip",
        "backend": step.backend or None,
        "command": step.command,
        "prompt": step.prompt,
        "programs": [{key: getattr(one, key) for key in _PROGRAM} for one in plan.programs],
        "budget_usd": start.budget or None,
        "workspace": start.workspace,
        "gates": [_gate_document(one, tried.get(one.state.name)) for one in plan.gates],
        "warnings": [finding(one) for one in plan.warnings],
        "errors": [],
    }
    return f"{msgspec.json.encode(said).decode()}\n"


def refusal(error: Error, warnings: Sequence[Diagnostic]) -> str:
    """Why a run would not start, as a document with the same keys."""
    alone = {"id": None, "message": str(error), "file": "", "line": 0, "column": 0, "hint": error.hint}
    said = {
        **dict.fromkeys(("workflow", "entry", "scope_dir", "source", "backend")),
        "command": [],
        "prompt": None,
        "programs": [],
        "budget_usd": None,
        "workspace": None,
        "gates": [],
        "warnings": [finding(one) for one in warnings],
        "errors": [finding(one) for one in error.diagnostics] if isinstance(error, WorkflowError) else [alone],
    }
    return f"{msgspec.json.encode(said).decode()}\n"


def finding(one: Diagnostic) -> dict[str, object]:
    """A warning or an error for programs."""
    return {key: getattr(one, key) for key in _WARNING}


def _step(step: FirstStep, without: str) -> list[str]:
    if step.prompt is None:
        return [
            f"command:  {shlex.join(step.command)}",
            f"gets:     {', '.join(step.gets)}",
            f"          and your environment, {without} other variables that begin with RAYMOND_",
        ]
    prompt = ["prompt:", *(f"  {line}" for line in step.prompt.removesuffix("\n").split("\n"))]
    if not step.command:
        return [f"command:  {step.backend}, in this process", *prompt]
    return [
        f"command:  {shlex.join(step.command)} < {step.stdin}",
        f"gets:     {', '.join(step.gets)}",
        f"          and your environment, {without} {', '.join(['RAYMOND_*', *step.without])}",
        *prompt,
    ]


def _programs(plan: Preview) -> list[str]:
    return [f"{'' if at else 'answers:':<9} {words.program(one)}" for at, one in enumerate(plan.programs)]


def _workspace(plan: Preview) -> list[str]:
    """Where agents work, unless that is here, and with what."""
    start = plan.start
    if start.workspace == "here":
        return []
    lent = f"; lent: {', '.join(start.lend)}" if start.lend else ""
    carried = f"; carried: {', '.join(start.carry)}" if start.carry else ""
    net = "; no network" if start.net == "off" else ""
    setup = [f"setup:    {start.setup} (when the work names other dependencies)"] if start.setup else []
    return [f"works:    {words.workplace(start.workspace)}{carried}{lent}{net}", *setup]


def _rights(plan: Preview) -> str:
    start, heedless = plan.start, ", ".join(plan.heedless)
    if heedless and len(plan.heedless) == len(plan.programs):
        inside = "" if start.workspace == "here" else ", inside the workspace"
        return f"those of your user{inside}: {heedless} ignores Raymond's permissions"
    return f"{_given(plan)}; {heedless} ignores that" if heedless else _given(plan)


def _given(plan: Preview) -> str:
    start = plan.start
    if start.skip_permissions:
        return "agents may do anything without asking (--dangerously-skip-permissions)"
    tools = f"; also allowed: {', '.join(start.allowed_tools)}" if start.allowed_tools else ""
    where = ", ".join([start.cwd, *start.roots])
    return f"{start.permission_mode or 'acceptEdits'}{tools}; directories: {where}"


def _limits(plan: Preview) -> list[str]:
    start = plan.start
    guessed = f"; {words.estimate(start, plan.programs)}" if plan.guessed else ""
    return [
        *(
            f"{_limit(OPTIONS[name], limit)}{guessed if name == 'budget' else ''}"
            for name, limit in plan.limits.items()
        ),
        f"parallel: up to {start.max_turns_at_once} turns of a backend, {start.max_scripts_at_once} scripts",
        f"silence:  a step that prints nothing for {durations.show(plan.silence)} is ended",
    ]


def _gate(gate: PlannedGate) -> list[str]:
    policy = gate.state.policy
    then = f"the agent goes to {policy.on_fail}" if policy.on_fail else "the agent fails"
    if gate.tries:
        then = f"the agent is told {words.many(gate.tries, 'time')}, then {then.removeprefix('the agent ')}"
    lines = [f"gate:     {gate.state.name}; when it is red, {then}"]
    for check, timeout in zip(policy.gate, gate.timeouts, strict=True):
        what = "" if expected(check) == "exit code 0" else f", {expected(check)}"
        lines.append(f"          $ {check.run} (at most {durations.show(timeout)}{what})")
    if not policy.gate:
        lines.append(f"          $ {{{{{policy.late['gate']}}}}} (known when an agent is there)")
    return lines


def _gate_document(gate: PlannedGate, found: Found | None) -> dict[str, object]:
    policy = gate.state.policy
    return {
        "state": gate.state.name,
        "checks": [
            {"command": check.run, "expected": expected(check), "timeout": timeout}
            for check, timeout in zip(policy.gate, gate.timeouts, strict=True)
        ],
        "tries": gate.tries,
        "reruns": gate.reruns,
        "on_fail": policy.on_fail or None,
        "verdict": found.verdict if found else None,
        "reason": found.reason or None if found else None,
        "seconds": round(found.seconds, 3) if found else None,
        "flaky": found.flaky if found else None,
    }


def _limit(row: Row, limit: Setting) -> str:
    return f"{row.word + ':':<9} {row.kind.show(limit.value) if limit.value else 'no limit'} ({limit.origin})"
