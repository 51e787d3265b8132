"""`raymond doctor`: is this machine fit to run workflows; mend what is broken."""

import os
import shutil
import sys
import time
from typing import Any

import click
import msgspec

from raymond import __version__
from raymond.cli import target
from raymond.control import config
from raymond.errors import Error, UsageError
from raymond.redaction import Secrets
from raymond.store import lock, project, repair
from raymond.system import processes

_LITTLE = 1 << 30
"""Bytes of free disk below which a night is in danger."""


@click.command("doctor")
@click.option("--repair", "id_", metavar="ID", help="Cut a damaged journal at its bad line; a copy is kept.")
@click.option("--probe", is_flag=True, help="Send one short prompt to a backend; this costs what it costs.")
@click.option("--backend", metavar="NAME", help="With --probe: which one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, probe: bool, backend: str | None, as_json: bool) -> int:
    """Look at what runs need here, and say what is missing; with --repair, mend the journal of a run."""
    if id_:
        return _repair(id_)
    if backend and not probe:
        raise UsageError("--backend goes with --probe", hint=f"raymond doctor --probe --backend {backend}")
    findings = [_python(), _shell(), _processes(), *_project(), _config(), *_backends()]
    if probe:
        findings.append(_probe(backend))
    if as_json:
        sys.stdout.write(msgspec.json.encode(findings).decode() + "\n")
    else:
        for one in findings:
            print(f"{'ok  ' if one['ok'] else 'BAD '} {one['what']}: {one['found']}")
            if one["hint"]:
                print(f"     hint: {one['hint']}")
    return 0 if all(one["ok"] for one in findings) else 1


def _finding(what: str, found: str, ok: bool = True, hint: str = "", about: object = None) -> dict[str, Any]:
    return {"what": what, "found": found, "ok": ok, "hint": "" if ok else hint, "backend": about}


def _python() -> dict[str, Any]:
    version = ".".join(map(str, sys.version_info[:3]))
    return _finding("raymond", f"{__version__}, Python {version} at {sys.executable}")


def _shell() -> dict[str, Any]:
    found = {name: shutil.which(name) for name in ("bash", "git", "pwsh")}
    listed = ", ".join(f"{name} {path or 'not found'}" for name, path in found.items())
    return _finding("programs", listed, found["bash"] is not None, "`.sh` states need bash: install it")


def _processes() -> dict[str, Any]:
    if processes.HAS_PIDFD and processes.HAS_PROC:
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
    from raymond.backends import registry

    settings = _settings()
    tables: registry.Tables = settings["backends"] if settings else {}
    wanted = settings["backend"] if settings else ""
    found = [_finding("scripted", "in Raymond itself; nobody pays; conversations branch")]
    for name in registry.names(tables):
        if name not in registry.SCRIPTED:
            found.append(_backend(name, tables, is_wanted=name == wanted))
    return found


def _backend(name: str, tables: Any, *, is_wanted: bool) -> dict[str, Any]:
    """One of them; that it lacks something is a fault when the configuration wants it, or when it is half there."""
    from raymond.backends import guard, registry

    try:
        backend = registry.backend(name, tables)
    except Error as error:
        return _finding(name, str(error), False, error.hint)
    found = guard.look(backend)
    if found.problem:
        return _finding(name, found.problem, not is_wanted and not found.program, found.hint)
    lasts = f", and are deleted after {found.keeps_days} days" if found.keeps_days else ""
    kinds = {(True, True): "branch", (False, True): "go on in place"}
    how = kinds.get((backend.can.branches, backend.can.continues), "are not kept")
    version = f"{found.version} at " if found.version else ""
    told = f"{version}{found.program}; conversations {how}{lasts}; pays: {found.payer or 'nobody is logged in'}"
    about = {
        "program": found.program,
        "version": found.version or None,
        "payer": found.payer or None,
        "conversations": how,
        "keeps_days": found.keeps_days or None,
    }
    return _finding(name, told, bool(found.payer) or not is_wanted, found.hint, about)


def _probe(name: str | None) -> dict[str, Any]:
    """One real turn."""
    import uuid

    from raymond.backends import Trouble, guard, registry
    from raymond.steps.probe import take, turn

    settings = _settings()
    name = name or (settings["backend"] if settings else "") or "claude"
    if name in registry.SCRIPTED:
        raise UsageError(f"{name} asks nobody", hint="raymond doctor --probe --backend claude")
    backend = registry.backend(name, settings["backends"] if settings else {})
    found = guard.look(backend)
    if found.problem:
        return _finding("probe", f"{name}: {found.problem}", False, found.hint)
    print(f"asking {name} ...", file=sys.stderr)
    began = time.monotonic()
    one = turn("Reply with the single word: ready", cwd=os.getcwd(), session=str(uuid.uuid4()))
    ending = take(backend, one)
    clean = Secrets.of(os.environ).clean
    took = f"after {time.monotonic() - began:.1f} s for {'~' if ending.spent.estimated else ''}${ending.spent.cost:.4f}"
    if isinstance(ending, Trouble):
        return _finding("probe", f"{name} failed {took} ({ending.kind}): {clean(ending.error)}", False, found.hint)
    return _finding("probe", f"{name} answered {took}: {clean(ending.text)[:60]}")


def _settings() -> config.Config | None:
    home = project.find(os.getcwd())
    try:
        return config.load(home.root if home else "")
    except Error:
        return None


def _repair(id_: str) -> int:
    home, id = target.run(id_, changes=True)
    done = repair.repair(home, id)
    print(f"cut at line {done.line}; the whole journal is kept in {done.copy}", file=sys.stderr)
    print(f"{done.decisions} good decision(s) after it are lost", file=sys.stderr)
    for step in done.steps:
        print(f"  {step} had finished and will run again", file=sys.stderr)
    print(f"next: raymond resume {id}", file=sys.stderr)
    return 0
