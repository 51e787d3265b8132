"""Before a loop begins: what must hold, and what is said about what does not. Nothing is started here."""

import os
import shlex
import shutil
from collections.abc import Callable
from datetime import UTC, datetime

from raymond import pasted
from raymond.errors import UsageError, WrongDirectory
from raymond.loops import documents
from raymond.loops.documents import LOGS, PRD, SUMMARIES, Documents, Folder
from raymond.loops.selection import refused
from raymond.loops.settings import SESSION, STORIES, TASKS, Settings
from raymond.system import git

Ask = Callable[[str, tuple[str, ...]], str]
"""Puts a question with these answers to a person; the first answer is the default."""
_SHOWN = 5
_SHELL = frozenset("! . : [ [[ cd command eval exec exit export for if set source test time type until while {".split())
"""Words of the shell that are no programs."""
EXAMPLE = "write a section `## Next Steps` with items such as `1. [VERIFY: make test] Add a login page`"


def here(docs: str, *, needs_git: bool = True, owned: tuple[str, ...] = documents.RECORDS) -> Folder:
    """The documents in the directory here, which must be in a repository if commits are made."""
    cwd = os.getcwd()
    top = git.top(cwd) or ("" if needs_git else os.path.realpath(cwd))
    if not top:
        raise UsageError("this is not a git repository: a loop commits what it has checked", hint=_INIT)
    found = Folder(cwd, os.path.relpath(docs) if os.path.isabs(docs) else docs, top, owned)
    if os.path.realpath(found.folder) != top and not os.path.realpath(found.folder).startswith(f"{top}/"):
        raise UsageError(f"--docs {docs} is not in this repository", hint="name a folder below the directory here")
    return found


_INIT = "go to your project, or raymond -C DIR ...; in a new one: git init && git add -A && git commit -m 'Start'"


def check_folder(found: Documents, verb: str, loop: str = SESSION) -> None:
    """Refuse a directory without the folder of documents; `verb` is the command that needs it."""
    if os.path.isdir(found.folder):
        return
    if os.path.exists(found.folder):
        raise UsageError(f"{found.docs} is a file, not a folder", hint="rename it, or name another folder: --docs DIR")
    if os.path.isdir(os.path.join(found.top, found.docs)):
        what = f"there is no folder {found.docs} here, but there is one at the top of the repository"
        up = os.path.relpath(found.top, os.path.realpath(found.cwd))
        raise WrongDirectory(what, directory=up, hint=f"raymond {pasted.flag('-C', up, 'DIR')} {loop} {verb}")
    hint = f"mkdir -p {shlex.quote(found.shown(LOGS))}, then {EXAMPLE}"
    if loop in (TASKS, STORIES):
        hint = "`raymond docs plans` shows what belongs there; or name another folder: --docs DIR"
    raise UsageError(f"there is no folder {found.docs} here", hint=hint)


def check_docs(found: Folder, loop: str = SESSION) -> None:
    """Refuse a folder of documents in which no records can be kept."""
    check_folder(found, "start", loop)
    for name in ("", LOGS, SUMMARIES):
        documents.check_inside(found.path(name).rstrip("/"))
    if not os.access(found.folder, os.W_OK):
        raise UsageError(
            f"the folder {found.docs} cannot be written", hint="make it writable: a loop keeps its records there"
        )


def check_size(found: Documents, *names: str) -> None:
    """Refuse a document that is read and written again for every item, if that takes too long."""
    if len(found.beginning(*names)) > documents.LARGEST:
        shown = found.shown(*names)
        hint = "move what is old in it to another file, and commit that"
        raise UsageError(f"{shown} is larger than {documents.LARGEST >> 20} MiB: a loop reads all of it", hint=hint)


def lacks(top: str) -> str:
    """What a directory lacks that a branch needs; empty when it has that."""
    if not git.directories(top)[0]:
        return "this is not a git repository"
    return "" if git.head(top) else "this repository has no commit yet"


def check_repository(top: str) -> None:
    """Refuse a repository in which no commit can be made."""
    if not git.head(top):
        raise UsageError("this repository has no commit yet", hint="git add -A && git commit -m 'Start'")
    settings = dict(git.settings(top))
    has_name = all(
        settings.get(f"user.{one}") or os.environ.get(f"GIT_AUTHOR_{one.upper()}") for one in ("name", "email")
    )
    if not has_name:
        hint = "git config user.name 'Your Name' && git config user.email you@example.com"
        raise UsageError("git does not know who commits", hint=hint)


def check_seen(checkout: Documents, found: Documents, since: str) -> None:
    """Refuse documents that git ignores: they would be on no branch. Another commit has documents of its own."""
    from raymond.loops import spec_files

    if since and git.reference(checkout.top, since) != git.head(checkout.top):
        return
    newest = checkout.newest()
    if newest and not checkout.exists(LOGS, newest):
        hint = "put a file in its place, or remove it"
        raise UsageError(f"{checkout.shown(LOGS, newest)} is not a regular file", hint=hint)
    names = [PRD, *spec_files.paths(checkout), *([os.path.join(LOGS, newest)] if newest else [])]
    lost = next((one for one in names if checkout.exists(one) and not found.exists(one)), "")
    if lost:
        hint = "take the rule out of .gitignore: a loop keeps its documents on its branch"
        raise UsageError(f"git ignores {checkout.shown(lost)}", hint=hint)


def source(found: Documents, asked: str | None) -> str:
    """The session log that the queue comes from, relative to the folder of logs."""
    if asked:
        path = asked if os.path.exists(asked) else found.path(LOGS, asked)
        name = os.path.relpath(os.path.realpath(path), os.path.realpath(found.path(LOGS)))
        if not found.exists(LOGS, name):
            raise UsageError(
                f"--from-session {asked}: there is no such file", hint=f"ls {shlex.quote(found.shown(LOGS))}"
            )
    else:
        name = newest(found)
    if not found.exists(LOGS, name):
        hint = "put a file in its place, or remove it"
        raise UsageError(f"{os.path.normpath(found.shown(LOGS, name))} is not a regular file", hint=hint)
    check_size(found, LOGS, name)
    return name


def newest(found: Documents) -> str:
    """The name of the newest session log; refused when there is none, or none that is named like one."""
    if name := found.newest():
        return name
    wanted = found.shown(LOGS, f"{datetime.now(UTC).astimezone():%Y%m%d}_0900_session.md")
    others = sorted(one for one in found.logs() if one.endswith(".md"))
    if others:
        what = f"{pasted.name(found.shown(LOGS, others[0]))} does not have the name of a session log"
        raise UsageError(what, hint=f"rename it to {pasted.name(wanted)}")
    raise UsageError(f"there is no session log in {found.shown(LOGS)}", hint=f"in {pasted.name(wanted)}, {EXAMPLE}")


def check_gate(settings: Settings) -> None:
    """Refuse a check of the plain loop that could do harm, or whose program is not here."""
    for gate in settings.gates:
        if why := refused(gate, settings):
            raise UsageError(
                f"--gate: {why}", hint="a check only looks: put what it needs into a script of the project"
            )
        if name := missing(gate):
            raise UsageError(f"--gate needs `{name}`, which is not here", hint="install it, or name another check")


def missing(command: str) -> str:
    """The program of a command, if nobody could find it; a file of the project may be part of the work."""
    from raymond.language import shell_line

    for pipeline in shell_line.read(command):
        if not any(one.words or one.inner for one in pipeline):
            continue  # it only sets variables
        word = pipeline[0].words[0] if pipeline and pipeline[0].words else ""
        if not word or "/" in word or "$" in word or word in _SHELL or shutil.which(word):
            return ""
        return word
    return ""


def few(paths: list[str]) -> str:
    """Some of them, and how many more there are."""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"
