"""`raymond ralph`: send the same prompt file to a fresh agent again and again, until it is done."""

import os
from difflib import get_close_matches
from typing import Any

import click
from msgspec.structs import replace

from raymond import pasted
from raymond.cli import background, choice, flags, foreground, loop_flags, loop_group, loop_verbs
from raymond.cli import run as runs_of
from raymond.cli.count import Count
from raymond.cli.flags import StartFlags
from raymond.control import runs
from raymond.errors import UsageError
from raymond.faces import words
from raymond.loops import checks, opening, starting
from raymond.loops.settings import COMMIT, RALPH, Settings
from raymond.loops.starting import Found

_OWN = (
    click.argument("prompt", type=click.Path()),
    click.option(
        "--max-iterations", "most", type=Count(0), default=10, metavar="N", help="At most (10; 0 for no limit)."
    ),
    click.option("--gate", metavar="CMD", help="An iteration counts, and is committed, only when this is green."),
    click.option("--until", metavar="TEXT", help="Done when the agent says <promise>TEXT</promise>."),
    click.option("--goal", metavar="CONDITION", help="Done when a small model judges that this is met."),
    click.option("--commit", type=click.Choice(COMMIT), help="What is committed (green with --gate, else never)."),
    click.option(
        "--max-failures",
        type=Count(),
        default=3,
        metavar="N",
        help="Ask a person after N iterations in a row in which the agent's program failed (3).",
    ),
    click.option("--pin-prompt", is_flag=True, help="Read the prompt once; changes of its file do not count."),
    *(one for one in loop_flags.COMMON if not loop_flags.is_of_items(one)),
)


class _Verbs(click.Group):
    """A first word that is no verb is the prompt to start with."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["start", *args]
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["start", *args]
        return super().parse_args(ctx, args)


@click.group("ralph", cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
def command() -> None:
    """Send a prompt file to a fresh agent again and again: `ralph PROMPT.md` is `ralph start PROMPT.md`."""


@command.command("start")
@flags.looping(_OWN, loop_flags.WITHOUT)
def start(given: StartFlags, prompt: str, **own: Any) -> int:
    """Start the loop over PROMPT, or resume the one that was cut off here."""
    given, options, _ = runs_of.choose(given)
    foreground.check(given.show, dry=given.dry_run)
    settings = _settings(prompt, own)
    id = starting.new_id(RALPH, given.id_)
    starting.check_new(id)
    options.id = id
    place = starting.place_here(own["docs"], needs_git=settings.commit != "never")
    checkout = ""
    if own["worktree"] and not given.dry_run:
        checkout, place = place.repository.top, loop_verbs.move_to_worktree(place, id, own["docs"])
    starting.check_alone(runs.here())
    found = starting.look(runs.here(), place.documents, RALPH)
    starting.check_open(runs.here(), starting.own(found))
    if found and found.is_unconcluded:
        loop_verbs.conclude(found, given.show)
    is_same = found is not None and found.loop is not None and found.loop.settings.prompt == settings.prompt
    if found and is_same and found.status not in ("complete", "failed") and not given.dry_run:
        code = loop_verbs.take_up(place, found, RALPH, flags.as_resumption(given), yes=own["yes"])
        if code is not None:
            return code
    if found and not is_same and not given.dry_run:
        _refuse_second(found)
    opening.check_gate(settings)
    if not own["workflow"]:
        starting.check_judge(settings, options)
    if settings.commit != "never":
        opening.check_repository(place.repository, settings.branch or "current")
    variables = {"check": checks.command(settings.gate), "check_timeout": f"{settings.gate_timeout:g}s"}
    options.variables = {**options.variables, **variables}
    if not settings.goal:
        options.small_model = options.small_model or "none"  # nobody is asked to judge
    loaded = starting.load(own["workflow"] or starting.PLAIN, options, [settings.gate] if settings.gate else [], RALPH)
    if settings.commit != "never" and not given.dry_run:
        settings = opening.branch_out(place, id, settings)
    shown = replace(settings, branch=place.repository.branch()) if settings.branch == "current" else settings
    loop_verbs.tell(_first_line(shown))
    if given.dry_run:
        print("nothing was started")
        return 0
    if found and found.state:
        starting.archive(place.documents, RALPH)
    handle = starting.begin(loaded, options, replace(settings, checkout=checkout))
    loop_verbs.introduce(handle)
    choice.warn_of_reach(handle)
    choice.warn_of_company(handle)
    return (background.start if given.show.detach else foreground.drive)(handle, given.show)


def _refuse_second(found: Found) -> None:
    """A loop over another prompt that was cut off is not forgotten."""
    if found.loop is None or found.loop.run.is_over:
        return
    id, before = found.loop.id, found.loop.settings.prompt
    what = f"the loop {id} over {pasted.name(before)} has not ended"
    raise UsageError(what, hint=f"raymond ralph resume continues it, raymond cancel {id} ends it")


def _settings(prompt: str, own: dict[str, Any]) -> Settings:
    text = _read(prompt)
    for name in ("gate", "until", "goal"):
        if own[name] is not None and not own[name].strip():
            raise UsageError(
                f"--{name} is empty", hint=f"leave it out, or say what --{name} is: a variable may not be set"
            )
        own[name] = own[name] or ""
    commit = own["commit"] or ("green" if own["gate"] else "never")
    if commit == "green" and not own["gate"]:
        raise UsageError("--commit green needs a check", hint="--gate 'make test', or --commit always")
    if own["no_commit"]:
        commit = "never"
    return loop_flags.settings(
        RALPH,
        {**loop_flags.DEFAULTS, **own, "branch": "" if commit == "never" else own["branch"] or "current"},
        most=own["most"],
        prompt=os.path.relpath(prompt),
        gate=own["gate"],
        until=own["until"],
        goal=own["goal"],
        commit=commit,
        pin=text if own["pin_prompt"] else "",
    )


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
    parts.append("no commits" if settings.commit == "never" else f"commits: {settings.commit}, on {settings.branch}")
    return "; ".join(parts)


loop_group.add_to(command, RALPH, starting.PLAIN)
