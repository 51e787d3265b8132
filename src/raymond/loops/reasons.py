"""Review reasons: what in the work of an agent a person has to see before it counts."""

import os
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from raymond.loops.documents import PRD, PRD_STATUS
from raymond.loops.formats import records, task_spec
from raymond.loops.formats.foreign_text import inline
from raymond.loops.formats.task_spec import Task
from raymond.text import has_conflict, visible
from raymond.workspace.repository import Repository

LARGE = 10 << 20
"""Bytes of a new file that a person has to look at."""
_SCANNED = 1 << 20
"""Bytes of a file that are searched for secrets."""
_GUARDED = (
    *(".github", ".gitlab", ".circleci", ".buildkite", ".husky", ".githooks", ".claude", ".codex", ".raymond"),
    *(".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "jenkinsfile", "bitbucket-pipelines.yml", ".drone.yml"),
    *(".mcp.json", ".gitmodules", ".gitattributes"),
)
"""Names of files and folders that decide what runs elsewhere, or for other agents; case does not matter."""
_MODULE, _FOLDER = b"160000", b"040000"
Changes = Mapping[bytes, tuple[bytes, bytes]]
"""Path -> mode and blob before and after; nothing where there is no file."""

_ADDED = '"{title}" was added to {path} while an agent worked; it counts as proposed'


class Texts(Struct, frozen=True):
    """What changed files say now."""

    sizes: dict[str, int]
    """By the name of the blob."""
    contents: dict[bytes, bytes]
    """By path, of those that are not too large to be looked into."""


def texts_of(repository: Repository, changes: Changes) -> Texts:
    """What these files say."""
    named = {path: name for path, (_, new) in changes.items() if (name := _name(new))}
    sizes = repository.sizes(set(named.values())) if named else {}
    searched = {path: name for path, name in named.items() if sizes.get(name, 0) <= _SCANNED}
    contents = repository.blobs(set(searched.values())) if searched else {}
    return Texts(sizes, {path: contents.get(name, b"") for path, name in searched.items()})


def reasons_for(repository: Repository, changes: Changes, may: Callable[[str], bool], texts: Texts) -> list[str]:
    """What a person has to see about changed files; those that the item `may` change decide nothing by their name."""
    told = [one for path, pair in changes.items() for one in _of_change(os.fsdecode(path), pair, texts.sizes, may)]
    told += [f"put {what} into {path}" for path, what in _secrets(repository, changes, texts)]
    return list(dict.fromkeys(map(visible, told)))  # a name of a file may have line breaks in it


def _of_change(
    path: str, pair: tuple[bytes, bytes], sizes: Mapping[str, int], may: Callable[[str], bool]
) -> Iterator[str]:
    old, new = pair
    if _MODULE in (old[:6], new[:6]):
        yield f"changed the submodule {path}"
        return
    guarded = [part for part in path.split("/") if part.casefold() in _GUARDED]
    if guarded and not may(path):
        verb = "changed" if old and new else "added" if new else "removed"
        yield f"{verb} {path} ({guarded[0]} decides what runs elsewhere)"
    if new and (what := secret(path)):
        yield f"put {what} into the name of a file"
    if not old and sizes.get(_name(new), 0) > LARGE and not may(path):
        yield f"added {path}, which has {sizes[_name(new)] / (1 << 20):.0f} MB"


def secret_files(repository: Repository, changes: Changes) -> list[str]:
    """The files whose new version has what looks like a secret, and whose old one has not."""
    return [path for path, _ in _secrets(repository, changes, texts_of(repository, changes))]


def conflicts(repository: Repository, changes: Changes, texts: Texts) -> list[str]:
    """The files with marks of a conflict that were not there before."""
    return [
        os.fsdecode(path)
        for path, text in texts.contents.items()
        if has_conflict(text) and not has_conflict(_before(repository, changes[path][0]))
    ]


def _secrets(repository: Repository, changes: Changes, texts: Texts) -> Iterator[tuple[str, str]]:
    for path, content in texts.contents.items():
        new = _text(content)
        if secret(new) and (what := secret(new, _text(_before(repository, changes[path][0])))):
            yield os.fsdecode(path), what


def _name(entry: bytes) -> str:
    return entry.split()[1].decode("ascii") if entry and entry[:6] not in (_MODULE, _FOLDER) else ""


def _before(repository: Repository, old: bytes) -> bytes:
    return repository.ask("cat-file", "blob", name) if (name := _name(old)) else b""


def _text(content: bytes) -> str:
    # Letters of two bytes are read as well, whichever comes first.
    return content.replace(b"\0", b"").decode("utf-8", "replace")


def secret(text: str, known: str = "") -> str:
    """What looks like a secret in a text and is not in another; empty when nothing does."""
    from raymond import redaction

    if not redaction.suspects(text):
        return ""
    lines = text.split("\n")
    for line, column, length, what in redaction.lines(text):
        token = lines[line - 1][column - 1 : column - 1 + length] if line <= len(lines) else ""
        if token and token not in known:
            return what
    return ""


def cleaned(text: str) -> str:
    """A text without what looks like a secret in it."""
    from raymond import redaction

    return redaction.Secrets({}).clean(text) if redaction.suspects(text) else text


def plan_changes(old: str, new: str, own: str, path: str) -> tuple[list[str], list[str]]:
    """What is to be noted, and raw items that are proposed; an agent may mark its own task, `own`, as done."""
    if path.rpartition("/")[2] in (PRD, PRD_STATUS):
        return [f"changed {path}, which says what is to be done; it was put back"], []
    before = {one.id: one for one in task_spec.read(old).tasks}
    now = {one.id: one for one in task_spec.read(new).tasks}
    added = [one for id, one in now.items() if id not in before]
    notes = [_ADDED.format(title=f"{one.id}. {one.title}", path=path) for one in added]
    for id, one in before.items():
        if id not in now:
            notes += [] if id == own else [f"removed task {id} from {path}, which does not count"]
        elif check_of(now[id]) != check_of(one):
            notes.append(f"changed the check of task {id} in {path}, which does not count")
        elif id != own and _kept(now[id]) != _kept(one):
            notes.append(f"changed task {id} in {path}, which does not count")
    return notes, [_item(one) for one in added]


def check_of(task: Task) -> tuple[object, ...]:
    """All that decides whether a task is verified."""
    return task.check, task.is_manual, task.criteria, task.problem, task.retries, task.seal, task.may


def _kept(task: Task) -> tuple[object, ...]:
    return task.title, task.status, task.verified, task.implements, task.body


def _item(task: Task) -> str:
    check = f"[VERIFY: `{inline(task.check.run)}`] " if task.check and "`" not in task.check.run else ""
    return f"- {records.PROPOSED} {check}{task.id}. {inline(task.title)}"
