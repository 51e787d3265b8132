"""Check whether this machine can run workflows; repair a damaged journal."""

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raymond import __version__
from raymond.control import config, inside
from raymond.errors import Error, JournalError, UsageError
from raymond.store import exports, journal, program_cache, project, repair
from raymond.store import home as homes
from raymond.store.project import Project
from raymond.store.repair import Repair
from raymond.system import cgroup, processes
from raymond.system.locks import LOCKS
from raymond.text import visible

if TYPE_CHECKING:
    from raymond.backends import registry

_LITTLE = 1 << 30
"""Free bytes of disk below which a long run is at risk."""
_DEFAULT = "claude"
"""The backend of prompts where nobody names one."""
_SHOWN = 5
"""Runs that cannot be read and are named."""
_HIDES_LOGINS = sys.platform == "darwin"
"""The keychain of macOS is not opened: somebody may be logged in there."""
_NOT_INSTALLED, _UNAVAILABLE = "not installed", "unavailable: "


class About(Struct, frozen=True, kw_only=True):
    """A backend that is installed."""

    program: str
    version: str | None
    payer: str | None
    conversations: str
    keeps_days: int | None


class Finding(Struct, frozen=True):
    """One thing that was checked."""

    what: str
    found: str
    ok: bool = True
    hint: str = ""
    """What to do, when it is not ok or may not be meant."""
    backend: About | None = None
    needed: bool = True
    """Whether a run that is started here needs it; what is broken besides is told, and no reason to fail."""

    @property
    def is_absent(self) -> bool:
        """Whether it is a backend that cannot be used, and that nobody asked for."""
        return self.ok and self.found.startswith((_NOT_INSTALLED, _UNAVAILABLE))


def examine() -> list[Finding]:
    """Check everything runs need here; no run is started."""
    found = [_python(), _programs(), _processes()]
    here: Project | None = None
    try:
        here = project.at(os.getcwd())
    except Error as error:
        found.append(_wrong("home", str(error), error.hint))
    else:
        found += [*_storage(here.home), _project(here), _workspaces(here.home)]
    settings: config.Config | None = None
    try:
        settings = config.load(config.tree_of(os.getcwd()))
    except Error as error:
        found.append(_wrong("config", str(error), error.hint))
    else:
        found.append(_config(settings))
    return [*found, *(_trust() if here else ()), *_backends(settings), *(_runs(here) if here else ())]


def repair_journal(home: Project, id: str) -> Repair:
    """Cut the journal of `id` at its first bad line; a copy is kept."""
    inside.check_person("doctor --repair")
    return repair.repair(home.run(id))


def probe(name: str = "", *, asking: Callable[[str], None] = lambda name: None) -> Finding:
    """Send one short prompt to a backend, the configured one without a name; `asking` is told before."""
    import uuid

    from raymond.backends import Trouble, guard, registry
    from raymond.redaction import Secrets
    from raymond.steps.probe import take, turn

    settings = None
    with contextlib.suppress(Error):  # `examine` says it
        settings = config.load(config.tree_of(os.getcwd()))
    name = name or (settings["backend"] if settings else "") or _DEFAULT
    if name in registry.SCRIPTED:
        raise UsageError(f"{name} has no model to ask", hint="raymond doctor --probe --backend claude")
    backend = registry.backend(name, settings["backends"] if settings else {})
    found = guard.look(backend)
    if found.problem:
        return _wrong("probe", f"{name}: {found.problem}", found.advice)
    asking(name)
    began = time.monotonic()
    # In a folder of its own: nothing that lies here is to be used.
    with tempfile.TemporaryDirectory(prefix="raymond-") as empty:
        ending = take(backend, turn("Reply with the single word: ready", cwd=empty, session=str(uuid.uuid4())))
    clean = Secrets.of(os.environ).clean
    took = f"after {time.monotonic() - began:.1f} s for {'~' if ending.spent.estimated else ''}${ending.spent.cost:.4f}"
    if isinstance(ending, Trouble):
        return _wrong("probe", f"{name} failed {took} ({ending.kind}): {clean(ending.error)}", found.hint)
    return Finding("probe", f"{name} answered {took}: {clean(ending.text)[:60]}")


def proven(findings: list[Finding], probe: Finding) -> list[Finding]:
    """The findings after a probe: whoever answers is logged in, wherever that is kept."""
    answered = [one for one in findings if one.backend and probe.ok and probe.found.startswith(f"{one.what} answered ")]
    return [*(replace(one, ok=True, hint="") if one in answered else one for one in findings), probe]


def _wrong(what: str, found: str, hint: str) -> Finding:
    return Finding(what, found, False, hint)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("raymond", f"{__version__}, Python {version} at {sys.executable}")


def _programs() -> Finding:
    found = {name: shutil.which(name) for name in ("bash", "git", "pwsh")}
    listed = ", ".join(f"{name} {path or 'not found'}" for name, path in found.items())
    return Finding("programs", listed) if found["bash"] else _wrong("programs", listed, _NO_BASH)


_NO_BASH = "`.sh` states need bash: install it"


def _processes() -> Finding:
    if processes.HAS_PIDFD and processes.HAS_PROC:
        also = " and by their cgroup" if cgroup.delegated() else ""
        return Finding("processes", f"watched by pidfd, found by their mark in /proc{also}")
    return Finding("processes", "watched by SIGCHLD, found by a list of pids")


def _workspaces(home: homes.Home) -> Finding:
    """Whether a step can be isolated, found out by doing it."""
    from raymond.workspace import ability

    found = ability.probe(home.path)
    if not found.problem:
        return Finding("workspace", "steps can be isolated: --workspace isolated")
    return Finding("workspace", f"steps cannot be isolated: {found.problem}", hint=found.hint)


def _storage(home: homes.Home) -> list[Finding]:
    if not os.path.isdir(home.path):
        return [_future(home)]
    try:
        with tempfile.TemporaryFile(dir=home.path) as probe:
            LOCKS.take(probe.fileno())
        wrote = Finding("home", f"{home.path}, writable, locks work")
    except OSError as error:
        hint = f"runs are kept there: make it writable, on a disk that supports locks, or set {homes.VARIABLE}"
        wrote = _wrong("home", f"{home.path}: {(error.strerror or str(error)).lower()}", hint)
    free = shutil.disk_usage(home.path).free
    told = f"{free / (1 << 30):.1f} GiB free"
    return [
        wrote,
        Finding("disk", told) if free > _LITTLE else _wrong("disk", told, "free some space: raymond clean --keep 1d"),
    ]


def _future(home: homes.Home) -> Finding:
    """A home that is to be made: in the nearest folder there is."""
    above = home.path
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    if os.access(above, os.W_OK | os.X_OK):
        return Finding("home", f"{home.path}, created by the first run")
    return _wrong("home", f"{home.path} cannot be created in {above}", f"set {homes.VARIABLE} to a folder of your own")


def _project(here: Project) -> Finding:
    if here.holds_home:
        hint = f"agents that work here can reach their own runs: set {homes.VARIABLE} to a folder outside of it"
        return _wrong("project", f"{here.tree} contains {here.home.path}", hint)
    return _exports(here.tree) or Finding("project", here.tree)


def _exports(tree: str) -> Finding | None:
    """Why state files and task folders cannot be written to the project; None when they can."""
    folder = exports.top(tree)
    if os.path.lexists(folder) and not os.path.isdir(folder):
        hint = "state files and task folders of runs go there: move that file away"
        return _wrong("project", f"{folder} is not a folder", hint)
    where = folder if os.path.isdir(folder) else tree
    if not os.access(where, os.W_OK | os.X_OK):
        hint = "agents work there, and state files and task folders of runs go to .raymond in it: make it writable"
        return _wrong("project", f"{where} cannot be written", hint)
    return None


def _runs(here: Project) -> list[Finding]:
    """The runs of this project that cannot be read."""
    found: list[Finding] = []
    for id in here.ids():
        try:
            journal.read(here.run(id))
        except JournalError as error:
            hint = error.hint or f"raymond doctor --repair {id}"
            found.append(Finding("run", f"{id} cannot be read: {error}", False, hint, needed=False))
    rest = found[_SHOWN:]
    more = f"{len(rest)} more cannot be read"
    return [*found[:_SHOWN], *([Finding("run", more, False, "raymond list", needed=False)] if rest else [])]


def _config(settings: config.Config) -> Finding:
    said = [f"{name} ({one.origin})" for name, one in settings.settings.items() if one.origin != "default"]
    return Finding("config", f"set: {', '.join(said)}" if said else "nothing is set")


def _trust() -> list[Finding]:
    """Whether the settings that come with the project here would be used; nothing when there are none."""
    from raymond.control import trust
    from raymond.faces import foreign_text

    here = os.getcwd()
    try:
        found = trust.uses(config.tree_of(here), here)
    except Error as error:
        return [_wrong("trust", str(error), error.hint)]
    hint = "raymond trust shows what they do, and asks"
    told = [(foreign_text.settings_use(one.names, one.is_used, one.why), "" if one.is_used else hint) for one in found]
    return [Finding("trust", what, hint=hint) for what, hint in told]


def _backends(settings: config.Config | None) -> list[Finding]:
    """Every backend: whether it is installed, who pays, and what it does with conversations."""
    program_cache.forget_versions()
    from raymond.backends import registry

    tables: registry.Tables = settings["backends"] if settings else {}
    wanted = settings["backend"] if settings else ""
    found = [Finding("scripted", "built in; free; conversations branch")]
    for name in registry.names(tables):
        if name not in registry.SCRIPTED:
            found += _backend(name, tables, is_wanted=name == wanted, is_default=not wanted and name == _DEFAULT)
    return found


def _backend(name: str, tables: "registry.Tables", *, is_wanted: bool, is_default: bool) -> list[Finding]:
    """One backend; a problem is a fault when the configuration names it, or when it is installed.

    One that was not named and is not installed is missing, also the default: workflows of scripts need none.
    """
    from raymond.backends import guard, registry

    needed = is_wanted or is_default
    try:
        backend = registry.backend(name, tables)
    except Error as error:
        return [Finding(name, str(error), False, error.hint, needed=needed)]
    found = guard.look(backend)
    if found.problem:
        if is_wanted or found.program:
            return [Finding(name, found.problem, False, found.advice, needed=needed)]
        told = _NOT_INSTALLED if name in registry.PROGRAMS else f"{_UNAVAILABLE}{found.problem}"
        return [Finding(name, told, hint=f"it is the default: {found.advice}" if is_default else "", needed=needed)]
    lasts = f", and are deleted after {found.keeps_days} days" if found.keeps_days else ""
    kinds = {(True, True): "branch", (False, True): "continue in place"}
    how = kinds.get((backend.can.branches, backend.can.continues), "are not kept")
    version = f"{found.version} at " if found.version else ""
    told = f"{version}{found.program}; conversations {how}{lasts}; paid by: {found.payer or 'nobody is logged in'}"
    about = About(
        program=visible(found.program),
        version=found.version or None,
        payer=found.payer or None,
        conversations=how,
        keeps_days=found.keeps_days or None,
    )
    ok = bool(found.payer) or not needed or _HIDES_LOGINS
    hint = "" if found.payer else found.hint
    return [Finding(name, told, ok, hint, about, needed=needed), *_acts(name, found.acts), *_login(name, backend)]


def _login(name: str, backend: object) -> list[Finding]:
    """What isolated agents would get of its login, where there is something to know."""
    from raymond.backends import guard

    login = guard.login(backend)
    told = login.problem or login.note
    return [Finding(name, f"--workspace isolated: {told}", hint=login.hint, needed=False)] if told else []


def _acts(name: str, acts: tuple[str, ...]) -> list[Finding]:
    """What a person has set up for themselves works inside of turns too, where nobody looks."""
    hint = f'to leave them out: setting_sources = ["project", "local"] in [backends.{name}]'
    return [Finding(name, f"your {' and '.join(acts)} act in every turn", hint=hint)] if acts else []
