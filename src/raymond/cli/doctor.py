"""`raymond doctor`: is this machine fit to run workflows; mend what is broken."""

import os
import shutil
import sys
from typing import Any

import click
import msgspec

from raymond import __version__, config, lock, process, project, repair
from raymond.cli import choose
from raymond.errors import Error

_LITTLE = 1 << 30
"""Bytes of free disk below which a night is in danger."""


@click.command("doctor")
@click.option("--repair", "id_", metavar="ID", help="Cut a damaged journal at its bad line; a copy is kept.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, as_json: bool) -> int:
    """Look at what runs need here, and say what is missing; with --repair, mend the journal of a run."""
    if id_:
        return _repair(id_)
    findings = [_python(), _shell(), _processes(), *_project(), _config(), *_backends()]
    if as_json:
        sys.stdout.write(msgspec.json.encode(findings).decode() + "\n")
    else:
        for one in findings:
            print(f"{'ok  ' if one['ok'] else 'BAD '} {one['what']}: {one['found']}")
            if one["hint"]:
                print(f"     hint: {one['hint']}")
    return 0 if all(one["ok"] for one in findings) else 1


def _finding(what: str, found: str, ok: bool = True, hint: str = "") -> dict[str, Any]:
    return {"what": what, "found": found, "ok": ok, "hint": "" if ok else hint}


def _python() -> dict[str, Any]:
    version = ".".join(map(str, sys.version_info[:3]))
    return _finding("raymond", f"{__version__}, Python {version} at {sys.executable}")


def _shell() -> dict[str, Any]:
    found = {name: shutil.which(name) for name in ("bash", "git", "pwsh")}
    listed = ", ".join(f"{name} {path or 'not found'}" for name, path in found.items())
    return _finding("programs", listed, found["bash"] is not None, "`.sh` states need bash: install it")


def _processes() -> dict[str, Any]:
    if process.HAS_PIDFD and process.HAS_PROC:
        return _finding("processes", "watched by pidfd, found by their mark in /proc")
    return _finding("processes", "watched by SIGCHLD, found by a list of pids")


def _project() -> list[dict[str, Any]]:
    home = project.place(os.getcwd())
    if not os.path.isdir(home.root):
        return [_finding("project", f"{home.root}, made by the first run")]
    probe = home.path("workflows", f".doctor-{os.getpid()}")
    try:
        home.folder("workflows")
        lock.take(probe).release()
        os.unlink(probe)
        wrote = _finding("project", f"{home.root}, writable, locks work")
    except (Error, OSError) as error:
        wrote = _finding("project", str(error), False, "runs are kept there: make it writable, on a disk that can lock")
    free = shutil.disk_usage(home.root).free
    disk = _finding("disk", f"{free / (1 << 30):.1f} GiB free", free > _LITTLE, "make room: raymond clean")
    return [wrote, disk]


def _config() -> dict[str, Any]:
    home = project.find(os.getcwd())
    try:
        settings = config.load(home.root if home else "").settings
    except Error as error:
        return _finding("config", str(error), False, error.hint)
    said = [f"{name} ({one.origin})" for name, one in settings.items() if one.origin != "default"]
    return _finding("config", f"set: {', '.join(said)}" if said else "nothing is set")


def _backends() -> list[dict[str, Any]]:
    """Every backend: whether it is there, who pays, and what it does with conversations."""
    from raymond import programs

    scripted = _finding("scripted", "in Raymond itself; nobody pays; branches")
    found = programs.find()
    if not found.program:
        about = "not installed; `--backend claude` needs it"
        return [scripted, _finding("claude", about, not _is_set("claude"), "install Claude Code, and log in")]
    keeps = f"conversations branch, and are deleted after {found.keeps_days} days"
    about = f"{found.version} at {found.program}; {keeps}; pays: {found.payer or 'nobody is logged in'}"
    hint = "start `claude` once and log in, or set ANTHROPIC_API_KEY"
    return [scripted, _finding("claude", about, bool(found.payer) or not _is_set("claude"), hint)]


def _is_set(backend: str) -> bool:
    """Whether the configuration wants this backend: only then its lack is a fault."""
    home = project.find(os.getcwd())
    try:
        return bool(config.load(home.root if home else "")["backend"] == backend)
    except Error:
        return False


def _repair(id_: str) -> int:
    home, id = choose.run(id_, changes=True)
    done = repair.repair(home, id)
    print(f"cut at line {done.line}; the whole journal is kept in {done.copy}", file=sys.stderr)
    print(f"{done.decisions} good decision(s) after it are lost", file=sys.stderr)
    for step in done.steps:
        print(f"  {step} had finished and will run again", file=sys.stderr)
    print(f"next: raymond resume {id}", file=sys.stderr)
    return 0
