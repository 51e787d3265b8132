"""Before a loop begins: what must hold, and what is said or done about what does not. Nothing is started here."""

import os
import shlex
import shutil
from collections.abc import Callable
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from raymond import pasted
from raymond.errors import UsageError, WrongDirectory
from raymond.loops import documents, doubts, unfinished
from raymond.loops.documents import FAILURES, LEARNINGS, LOGS, PROGRESS, SUMMARIES, Documents
from raymond.loops.repository import Repository
from raymond.loops.selection import refused
from raymond.loops.settings import SESSION, STORIES, TASKS, Settings
from raymond.system import git

Ask = Callable[[str, tuple[str, ...]], str]
"""Puts a question with these answers to a person; the first answer is the default."""
_SHOWN = 5
_SHELL = frozenset("! . : [ [[ cd command eval exec exit export for if set source test time type until while {".split())
"""Words of the shell that are no programs."""
EXAMPLE = "write a section `## Next Steps` with items such as `1. [VERIFY: make test] Add a login page`"


class Place(Struct, frozen=True):
    """Where a loop works."""

    documents: Documents
    repository: Repository


def place(docs: str, index: str, *, needs_git: bool = True, has_plans: bool = False) -> Place:
    """The directory here, which must be in a repository if commits are made."""
    cwd = os.getcwd()
    top = git.top(cwd) or ("" if needs_git else os.path.realpath(cwd))
    if not top:
        raise UsageError("this is not a git repository: a loop commits what it has checked", hint=_INIT)
    found = Documents(cwd, os.path.relpath(docs) if os.path.isabs(docs) else docs, top, has_plans)
    if os.path.realpath(found.folder) != top and not os.path.realpath(found.folder).startswith(f"{top}/"):
        raise UsageError(f"--docs {docs} is not in this repository", hint="name a folder below the directory here")
    return Place(found, Repository(top, index))


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
        hint = f"docs/{'tasks' if loop == TASKS else 'stories'}.md of Raymond shows what belongs there; or --docs DIR"
    raise UsageError(f"there is no folder {found.docs} here", hint=hint)


def check_docs(found: Documents, loop: str = SESSION) -> None:
    """Refuse a folder of documents in which no records can be kept."""
    check_folder(found, "start", loop)
    for name in ("", LOGS, SUMMARIES):
        documents.check_inside(found.path(name).rstrip("/"))
    if not os.access(found.folder, os.W_OK):
        raise UsageError(
            f"the folder {found.docs} cannot be written", hint="make it writable: a loop keeps its records there"
        )
    for name in (PROGRESS, FAILURES, LEARNINGS):
        check_size(found, name)


def check_size(found: Documents, *names: str) -> None:
    """Refuse a document that is read and written again for every item, if that takes too long."""
    path = found.path(*names)
    if os.path.isfile(path) and os.path.getsize(path) > documents.LARGEST:
        shown = found.shown(*names)
        hint = "move what is old in it to another file, and commit that"
        raise UsageError(f"{shown} is larger than {documents.LARGEST >> 20} MiB: a loop reads all of it", hint=hint)


def check_repository(repository: Repository, branch: str) -> None:
    """Refuse a repository in which no commit can be made as it should be."""
    if not repository.head():
        raise UsageError("this repository has no commit yet", hint="git add -A && git commit -m 'Start'")
    if under_way := unfinished.words(unfinished.there(repository)):
        raise UsageError(f"{under_way} is in progress here", hint="finish or abort it first: `git status` says how")
    if conflicts := repository.conflicts():
        hint = "resolve them and `git add` the files; `git reset` keeps the files as they are and forgets the conflicts"
        raise UsageError(f"the index has conflicts: {few(conflicts)}", hint=hint)
    said = os.fsdecode(repository.run("rev-parse", "--show-toplevel").stdout).removesuffix("\n")
    if os.path.realpath(said) != os.path.realpath(repository.top):
        hint = "git config --unset core.worktree, or start where its work tree is"
        raise UsageError("core.worktree of this repository names another directory", hint=hint)
    if repository.is_sparse:
        hint = "work in a whole checkout: git sparse-checkout disable, or another clone"
        raise UsageError("this is a sparse checkout, which a loop would fill", hint=hint)
    if repository.is_locked:
        hint = "wait until the other git has ended; if there is none, remove the file"
        raise UsageError("there is a file .git/index.lock: somebody is changing the index", hint=hint)
    if not repository.branch() and branch in ("", "current"):
        raise UsageError(
            "HEAD is detached: commits would belong to no branch", hint="git switch -c NAME, or --branch NAME"
        )
    if not repository.identity():
        hint = "git config user.name 'Your Name' && git config user.email you@example.com"
        raise UsageError("git does not know who commits", hint=hint)


def check_queue(place: Place) -> None:
    """Refuse logs that git does not see: nobody could tell who has changed the queue."""
    where, rule = place.repository.rule_of(os.path.join(place.documents.inside, LOGS, "20250101_0900_session.md"))
    if where:
        hint = "let git see them: the queue is compared with what it was when an item began"
        raise UsageError(f"git ignores {place.documents.shown(LOGS)} (`{rule}` in {where})", hint=hint)


def source(found: Documents, asked: str | None) -> str:
    """The session log that the queue comes from, relative to the folder of logs."""
    if asked:
        path = asked if os.path.exists(asked) else found.path(LOGS, asked)
        if not os.path.isfile(path):
            raise UsageError(
                f"--from-session {asked}: there is no such file", hint=f"ls {shlex.quote(found.shown(LOGS))}"
            )
        name = os.path.relpath(path, found.path(LOGS))
    else:
        name = newest(found)
    path = found.path(LOGS, name)
    if os.path.islink(path) or not os.path.isfile(path):
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
    if not settings.gate:
        return
    if why := refused(settings.gate, settings):
        raise UsageError(f"--gate: {why}", hint="a check only looks: put what it needs into a script of the project")
    if name := missing(settings.gate):
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


def dirt_of(place: Place) -> list[str]:
    """The paths that are not as HEAD has them, without what Raymond writes, or will tell git not to see."""
    dirt = place.repository.dirt(place.documents.hides)
    return [path for path in dirt if not place.documents.owns(path)]


def few(paths: list[str]) -> str:
    """Some of them, and how many more there are."""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"{', '.join(paths[:_SHOWN])}{more}"


def branch_of(place: Place, settings: Settings) -> str:
    """The branch that a loop would work on; empty for a new one of its own."""
    here, asked = place.repository.branch(), settings.branch
    if asked and asked != "current":
        return asked
    return "" if not asked and place.repository.is_default(here) else here


def settle(place: Place, id: str, on_dirty: str, ask: Ask | None) -> tuple[str, str]:
    """Deal with a tree that is not as HEAD has it; what was done, in words, and what has to be done with the rest.

    The rest is committed on the branch of the loop, once that is checked out, or stays in the tree: `commit`,
    `continue`, or nothing.
    """
    dirt = dirt_of(place)
    if not dirt:
        return "", ""
    what = few(dirt)
    if on_dirty == "ask":
        if ask is None:
            raise UsageError(
                f"the tree has changes that are not committed: {what}",
                hint="commit or stash them; or --on-dirty commit, discard (they are saved first) or continue",
            )
        on_dirty = ask(f"The tree has changes that are not committed: {what}.", ("commit", "discard", "continue"))
    if on_dirty == "continue":
        return f"going on with changes that are not committed: {what}", "continue"
    if on_dirty == "commit":
        _check_secrets(place.repository, dirt)
        return "", "commit"
    return _discard(place, id, dirt), ""


def _check_secrets(repository: Repository, dirt: list[str]) -> None:
    """Refuse to commit what a person would not want to push."""
    changes = repository.changes(repository.head(), repository.tree(dirt))
    if found := list(doubts.new_secrets(repository, changes)):
        hint = "tell git to ignore such a file; or --on-dirty continue, which commits nothing of it"
        what = "; ".join(one.removeprefix("put ").replace(" into ", " in ") for one in found)
        raise UsageError(f"this would be committed: {what}", hint=hint)


def commit_rest(place: Place) -> str:
    """Commit what is not committed on the branch that is checked out; what was done, in words."""
    repository = place.repository
    head, branch, dirt = repository.head(), repository.branch(), dirt_of(place)
    tree, message = repository.tree(dirt), "chore: commit work in progress before the loop\n"
    made = repository.commit(tree, [head], message, _now(), sign=repository.signs)
    repository.move(f"refs/heads/{branch}" if branch else "HEAD", made, head, "raymond: work in progress")
    repository.refresh()
    return f"committed what was there as {made[:12]} on {branch or 'HEAD'}"


def _discard(place: Place, id: str, dirt: list[str]) -> str:
    repository = place.repository
    head, name = repository.head(), f"refs/raymond/{id}/dirty"
    repository.move(name, repository.commit(repository.tree(), [head], "raymond: what was there before\n", _now()))
    repository.bring_back(head, dirt)
    repository.refresh()
    return f"put away what was there; it is kept in {name}"


def _now() -> str:
    return f"{int(datetime.now(UTC).timestamp())} +0000"


def move_to_worktree(repository: Repository, id: str) -> str:
    """Make a worktree for a loop beside the checkout, on a branch of its own, and go there; its path."""
    cwd, top = os.path.realpath(os.getcwd()), repository.top
    path = os.path.join(os.path.dirname(top), f"{os.path.basename(top)}-{id}")
    if os.path.lexists(path):
        raise UsageError(f"{path} already exists", hint="remove it, or choose another --id")
    if clash := repository.in_the_way(f"raymond/{id}"):
        raise UsageError(
            f"a branch `{clash}` is in the way of raymond/{id}", hint="rename it, or make a worktree yourself"
        )
    repository.add_worktree(path, f"raymond/{id}")
    os.chdir(os.path.join(path, os.path.relpath(cwd, top)))
    return path


def branch_for(place: Place, id: str, settings: Settings) -> str:
    """The branch that the loop will work on; refused when it cannot be made or checked out here."""
    repository, here, asked = place.repository, place.repository.branch(), settings.branch
    if asked == "current" or (not asked and not repository.is_default(here)) or asked == here:
        return here
    name = asked or f"raymond/{id}"
    if not repository.is_branch_name(name):
        raise UsageError(f"`{name}` cannot be the name of a branch", hint="--branch NAME")
    if f"refs/heads/{name}" in repository.worktrees().values():
        raise UsageError(f"another worktree has {name} checked out", hint="--branch NAME, or start the loop there")
    if clash := repository.in_the_way(name):
        raise UsageError(f"a branch `{clash}` is in the way of {name}", hint="--branch NAME")
    return name


def branch_out(place: Place, id: str, settings: Settings) -> Settings:
    """The settings with the branch that the loop works on, which is checked out then."""
    repository, name = place.repository, branch_for(place, id, settings)
    before = repository.branch()
    if name == before:
        return replace(settings, branch=name)
    there = repository.reference(f"refs/heads/{name}")
    if there and there != repository.head():
        repository.check_out(name)
    else:
        repository.move(f"refs/heads/{name}", repository.head())
        repository.switch(name)
    return replace(settings, branch=name, began_on=before)
