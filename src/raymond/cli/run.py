"""`raymond run`: start a workflow."""

import os
import sys

import click

from raymond import console, launch, loader, project, views
from raymond.cli import background
from raymond.errors import UsageError
from raymond.launch import Options


@click.command("run")
@click.argument("path")
@click.option("--input", "input_", metavar="TEXT|@FILE|-", help="What the first state gets as {{input}}.")
@click.option("--id", "id_", default="", metavar="ID", help="Name the run; an id that exists is refused.")
@click.option("--var", "variables", multiple=True, metavar="K=V", help="A variable every agent sees as {{K}}.")
@click.option("--set", "settings", multiple=True, metavar="STATE.KEY=VALUE", help="A policy key, above frontmatter.")
@click.option("--backend", default="", help="scripted, or scripted-program.")
@click.option("--replies", metavar="FILE", help="Scripted replies, instead of replies.yaml.")
@click.option("--budget", type=click.FloatRange(0), metavar="USD", help="Stop when this is spent (10; 0 for none).")
@click.option("--max-iterations", type=click.IntRange(1), help="Stop after this many steps.")
@click.option("--max-parallel", type=click.IntRange(1), help="Steps at once, of each backend and of scripts.")
@click.option("--root", "roots", multiple=True, metavar="DIR", help="A directory agents may `cd` to.")
@click.option("-d", "detach", is_flag=True, help="Run in the background; prints the id.")
@click.option("--quiet", is_flag=True, help="Only what steps print, and the ending.")
def command(path: str, input_: str | None, id_: str, detach: bool, quiet: bool, **given: object) -> int:
    """Start the workflow in PATH: a folder, a zip, or one state file."""
    options = Options(
        id=id_,
        input=text(input_ or ""),
        variables=dict(_pair(pair, "--var") for pair in _many(given["variables"])),
        overrides=overrides(_many(given["settings"])),
        backend=str(given["backend"]),
        replies=_replies(given["replies"]),
        budget=given["budget"],  # type: ignore[arg-type]
        max_iterations=given["max_iterations"],  # type: ignore[arg-type]
        max_parallel=given["max_parallel"],  # type: ignore[arg-type]
        roots=_many(given["roots"]),
    )
    loaded = loader.load(path, overrides=options.overrides)
    home = project.make(os.getcwd())
    id = launch.begin(home, loaded, options)
    if detach:
        return background.start(home, id, loaded=loaded)
    held = launch.take_up(home, id, console.Lines(quiet=quiet), loaded=loaded)
    return drive(held)


def drive(held: launch.Held, *, restart: bool = False) -> int:
    """Drive to the end, tell how it ended; the exit code."""
    driver = held.driver
    try:
        driver.drive(restart=restart)
    finally:
        held.close()
    run = driver.run
    console.Lines().said(console.ending(run))
    result = views.result(run)
    if result is not None and run.ended:
        sys.stdout.write(result if result.endswith("\n") else f"{result}\n")
        sys.stdout.flush()
    return views.exit_code(run, driver.signal)


def text(given: str) -> str:
    """The text itself, of a file with @FILE, or of stdin with -."""
    if given == "-":
        try:
            return sys.stdin.buffer.read().decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"stdin is not UTF-8 (byte {error.start})") from None
    if given.startswith("@"):
        return _read(given[1:])
    return given


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 (byte {error.start})") from None


def _replies(path: object) -> str | None:
    return _read(str(path)) if path else None


def _many(given: object) -> list[str]:
    return [str(one) for one in given] if isinstance(given, tuple) else []


def _pair(given: str, flag: str) -> tuple[str, str]:
    key, equals, value = given.partition("=")
    if not equals or not key.isidentifier():
        raise UsageError(f"`{given}` is no variable", hint=f"{flag} name=value")
    return key, value


def overrides(given: list[str]) -> dict[str, dict[str, object]]:
    """`STATE.KEY=VALUE` -> {STATE: {KEY: VALUE}}; the value is YAML."""
    found: dict[str, dict[str, object]] = {}
    for one in given:
        left, equals, value = one.partition("=")
        state, dot, key = left.rpartition(".")
        if not equals or not dot:
            raise UsageError(f"`{one}` sets nothing", hint="--set REVIEW.md.max_visits=5")
        from raymond import frontmatter

        document = frontmatter.load(f"{key}: {value}", file="--set")
        if document.diagnostics or key not in document.values:
            raise UsageError(f"`{value}` cannot be read as a value of {key}", hint="--set REVIEW.md.max_visits=5")
        found.setdefault(state, {})[key] = document.values[key]
    return found
