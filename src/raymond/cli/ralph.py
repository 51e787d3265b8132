"""`raymond ralph`: send the same prompt file to a fresh agent again and again, until it is done."""

import contextlib
import json
import os
import sys
from difflib import get_close_matches
from typing import Any

import click
from msgspec.structs import replace

from raymond.cli import driving, dry_run, flags, gate, loop_commands, loop_start, loop_verbs
from raymond.cli import run as runs_of
from raymond.cli.by_click import HELP_NAMES, Group
from raymond.cli.command import argument
from raymond.cli.flags import StartFlags
from raymond.control import preview, runs
from raymond.control.gate import Where, try_out
from raymond.control.start import Choices
from raymond.errors import UsageError, WorkflowError
from raymond.faces import words
from raymond.faces.foreign_text import said
from raymond.faces.lines import CheckLines
from raymond.language.ways import Way, narrowed
from raymond.loops import checks, finding, preflight, ralph, starting
from raymond.loops.documents import Folder
from raymond.loops.ledger import Ledger
from raymond.loops.settings import RALPH, Settings


class Starting(Group):
    """A group whose first word, when it is none of its commands, is what `start` starts with."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `start`, which may be left out."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["start", *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Those of `start`."""
        return self.commands["start"].collect_usage_pieces(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The flags of `start`, then the other commands."""
        self.commands["start"].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


_OWN = (argument("prompt"), *loop_start.own_flags(RALPH))


@click.group("ralph", cls=Starting, context_settings=HELP_NAMES, no_args_is_help=False)
def command() -> None:
    """Send a prompt file to a fresh agent again and again: `ralph PROMPT.md` is `ralph start PROMPT.md`."""


@command.define("start", grouped=True)
@flags.looping(_OWN)
def start(given: StartFlags, prompt: str, **own: Any) -> int:
    """Start the loop over PROMPT, or resume the one that was cut off here."""
    given, options, configuration = runs_of.choose(given)
    driving.check_log_file(given.show, dry=given.dry_run)
    id = starting.new_id(RALPH, given.run["id"], dry=given.dry_run)
    starting.check_new(id)
    options.id = id
    settings = _settings(id, prompt, own)
    workflow = own["workflow"] or starting.PLAIN
    checkout = preflight.folder_here(own["docs"], needs_git=False, owned=settings.owned)
    found = finding.look(runs.here(), checkout, RALPH)
    if found and found.is_unconcluded and not given.dry_run:
        loop_verbs.conclude(found, given.show)
    is_same = found is not None and found.loop is not None and found.loop.settings.prompt == settings.prompt
    if found and is_same and found.status == "failed" and not given.dry_run:
        loop_verbs.give_up(found, RALPH)
    if found and is_same and found.status not in ("complete", "failed") and not given.dry_run:
        code = loop_verbs.take_up(found, RALPH, flags.as_resumption(given, yes=own["yes"]))
        if code is not None:
            return code
    preflight.check_gate(settings)
    if not own["workflow"]:
        starting.check_judge(settings, options)
    settings = _placed(settings, workflow, options, checkout)
    starting.check_alone(runs.here(), checkout, settings)
    variables = {"check": checks.gate_of(settings.gates), "check_timeout": f"{settings.gate_timeout:g}s"}
    options.variables = {**options.variables, **variables}
    if not settings.goal:
        options.small_model = options.small_model or "none"  # no model is asked to judge
    way: Way = "here" if settings.way == "here" else "copy" if settings.way == "copy" else "isolated"
    takes_all, since = own["on_dirty"] == "snapshot", own["since"] or ""
    with contextlib.ExitStack() as held:
        draft = None
        if settings.commits_anything:
            if settings.way == "here":
                starting.check_here(checkout, settings)
            asked = starting.draft(runs.here(), checkout, id, settings, takes_all=takes_all, since=since)
            draft = held.enter_context(asked)
            if settings.way == "here":
                starting.check_clean(checkout, draft.point, settings.why)
            settings = starting.settled(settings, draft.point)
        loaded = starting.load(workflow, options, settings.gates, RALPH, way, dry=given.dry_run)
        where = list(starting.introduction(settings, draft.point if draft else None))
        if given.dry_run:
            return _rehearse(
                preview.dry_run(loaded, options, configuration), settings, where, as_json=given.show.as_json
            )
        loop_verbs.tell(_first_line(settings))
        for line in where:
            loop_verbs.tell(line)
        handle = starting.begin(loaded, options, settings, draft)
    if found and found.state:
        finding.archive(checkout, RALPH)
    loop_verbs.introduce(handle)
    driving.warn(handle)
    return driving.go(handle, given.show)


def _rehearse(made: preview.Preview, settings: Settings, where: list[str], *, as_json: bool) -> int:
    """Show what would start, and what the check shows now; the exit code."""
    prompt = f"{settings.pin or _read(settings.prompt)}\n\n{ralph.footer(settings, Ledger(sessions=1))}"
    start = replace(made.start, workspace=settings.way)
    if not as_json:
        sys.stdout.write(f"loop:     {_first_line(settings)}\n")
        sys.stdout.write(dry_run.of_loop(replace(made, start=start), where, prompt))
        sys.stdout.flush()
    there = Where(narrowed(settings.way, ""), settings.carry, start.lend, start.net, start.setup)
    tried = None
    if state := starting.check_of(settings):
        with gate.interruptible():
            tried = try_out(state, there, CheckLines(sys.stderr, brief=True).tell)
    if as_json:
        told = {
            "loop": RALPH,
            "prompt": prompt,
            "check": settings.gate or None,
            "verdict": tried.verdict if tried else None,
            "reason": (tried.reason or None) if tried else None,
            "most": settings.most or None,
            "branch": settings.branch or None,
            "workspace": settings.way,
            "why": settings.why or None,
            "backend": start.backend,
            "budget_usd": start.budget or None,
            "warnings": [dry_run.finding(one) for one in made.warnings],
        }
        print(json.dumps(told))
    else:
        if tried:
            print(
                said(
                    f"check:    {settings.gate} is {checks.outcome_of(tried)}",
                    sys.stdout,
                )
            )
        print("apart from the check, nothing was started" if tried else "nothing was started")
    return WorkflowError.exit_code if tried and tried.verdict == "could not start" else 0


def _placed(settings: Settings, workflow: str, options: Choices, checkout: Folder) -> Settings:
    """The settings with where agents work; where nothing can be committed, they work in the directory as it is."""
    if not settings.commits_anything:
        if options.workspace not in ("", "here"):
            raise UsageError(f"--commit never works in the checkout, not {options.workspace}", hint="leave one out")
        return replace(settings, branch="", why="it makes no commits")
    if lacks := preflight.lacks(checkout.top):
        if options.workspace not in ("", "here"):
            raise UsageError(f"{lacks}, so there is no workspace", hint="git init, and make a commit")
        return replace(settings, commit="never", branch="", why=lacks)
    preflight.check_repository(checkout.top)
    way, why, carry = loop_start.place(workflow, options, checkout)
    return replace(settings, way=way, why=why, carry=carry)


def _settings(id: str, prompt: str, own: dict[str, Any]) -> Settings:
    text = _read(prompt)
    for name in ("gate", "until", "goal"):
        given = own["gates"] if name == "gate" else [own[name]]
        if any(one is not None and not one.strip() for one in given):
            raise UsageError(
                f"--{name} is empty", hint=f"leave it out, or say what --{name} is: a variable may not be set"
            )
    prompt, pin = os.path.relpath(prompt), text if own["pin_prompt"] else ""
    return loop_start.settings_of(RALPH, id, own, prompt=prompt, pin=pin, attempts=1)


def _read(prompt: str) -> str:
    try:
        with open(prompt, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = (error.strerror or "").lower() if isinstance(error, OSError) else "not a text in UTF-8"
        near = get_close_matches(prompt, command.commands, 1)
        hint = (
            f"did you mean `raymond ralph {near[0]}`?"
            if near
            else "name a file with the prompt: raymond ralph PROMPT.md"
        )
        raise UsageError(f"{prompt}: {why}", hint=hint) from None
    if not text.strip():
        raise UsageError(f"{prompt} is empty", hint="write into it what the agent should do each time")
    return text


def _first_line(settings: Settings) -> str:
    most = f"at most {words.many(settings.most, 'iteration')}" if settings.most else "without a limit of iterations"
    parts = [settings.prompt, most]
    parts += [f"check: {settings.gate}"] if settings.gate else []
    parts += [f"until: {settings.until}"] if settings.until else []
    parts += [f"goal: {settings.goal}"] if settings.goal else []
    parts += [f"commits: {settings.commit}"] if settings.gate or settings.commit == "never" else []
    return "; ".join(parts)


loop_commands.add_to(command, RALPH, starting.PLAIN)
