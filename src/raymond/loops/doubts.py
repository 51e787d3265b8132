"""What in the work of an agent a person has to look at before it counts: secrets, large files, what runs elsewhere."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from raymond.loops.change import Change
from raymond.loops.genuine import Genuine
from raymond.loops.repository import Repository

LARGE = 10 << 20
"""Bytes of a new file that a person has to look at."""
_SCANNED = 1 << 20
"""Bytes of a file that are searched for secrets."""
_MOST_COMMITS = 100
_GUARDED = (
    *(".github", ".gitlab", ".circleci", ".buildkite", ".husky", ".githooks", ".claude", ".codex", ".raymond"),
    *(".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "jenkinsfile", "bitbucket-pipelines.yml", ".drone.yml"),
    *(".mcp.json", ".gitmodules", ".gitattributes"),
)
"""Names of files and folders that decide what runs elsewhere, or for other agents; case does not matter."""


class Doubts(Struct, frozen=True):
    """What was found, each thing once."""

    review: list[str]
    rewritten: list[str]
    """The paths of which git has something else stored than there was before."""


class _Read(Struct, frozen=True):
    """What was found in objects, by their names."""

    sizes: dict[str, int] = {}
    suspected: set[str] = set()
    """Those with a secret."""
    forged: set[str] = set()
    """Those that are something else than their names say."""


def of_changes(repository: Repository, changes: Iterable[Change], folders: Mapping[str, str] = {}) -> Doubts:
    """What is doubtful about files, and about the folders that are stored anew for them: object -> path."""
    looked = list(changes)
    old = {one.old: one.path for one in looked if one.had_content}
    read = _read(repository, looked, [*old, *folders])
    found = [doubt for one in looked for doubt in _of_change(one, read.sizes.get(one.new, 0))]
    found += _of_content(repository, looked, read)
    found += [_planted(path) for name, path in folders.items() if name in read.forged]
    rewritten = [path for name, path in old.items() if name in read.forged]
    return Doubts(list(dict.fromkeys(found)), list(dict.fromkeys(rewritten)))


def _read(repository: Repository, looked: Iterable[Change], more: Iterable[str] = ()) -> _Read:
    """Read what is new in files, and some objects more, with one command."""
    new, found = {one.new for one in looked if one.has_content}, _Read({}, set(), set())
    names = dict.fromkeys([*new, *more])
    if not names:
        return found
    with Genuine(repository) as stored:
        for one in stored.read(names, _SCANNED):
            found.sizes[one.name] = one.size
            if not one.is_genuine:
                found.forged.add(one.name)
            elif one.name in new and one.content and secret(_text(one.content)):
                found.suspected.add(one.name)
    return found


def _planted(path: str) -> str:
    return f"put something else than {path} into .git in its place"


def _of_change(one: Change, size: int) -> Iterator[str]:
    if one.is_module:
        yield f"changed the submodule {one.path}"
        return
    if guarded := [part for part in one.path.split("/") if part.casefold() in _GUARDED]:
        verb = {"A": "added", "D": "removed"}.get(one.status, "changed")
        yield f"{verb} {one.path} ({guarded[0]} decides what runs elsewhere)"
    if what := secret(one.path):
        yield f"put {what} into the name of a file"
    if one.status == "A" and size > LARGE:
        yield f"added {one.path}, which has {size / (1 << 20):.0f} MB"


def of_commits(repository: Repository, commits: list[str]) -> list[str]:
    """What is doubtful about the agent's own commits, besides the files in them."""
    found = [f"made {len(commits)} commits, too many to look at"] if len(commits) > _MOST_COMMITS else []
    for commit in commits[:_MOST_COMMITS]:
        if what := secret(f"{repository.message(commit)}\n{repository.people(commit)}"):
            found.append(f"wrote {what} into the message of {commit[:12]}")
    return found


def new_secrets(repository: Repository, looked: list[Change]) -> list[str]:
    """What looks like a secret in the new version of a file and was not in the old one, and what is no version of it.

    Git takes an object that is there for what it is about to write, whatever is in it.
    """
    return list(_of_content(repository, looked, _read(repository, looked)))


def _of_content(repository: Repository, looked: Iterable[Change], read: _Read) -> Iterator[str]:
    for one in looked:
        if one.has_content and one.new in read.forged:
            yield _planted(one.path)
        elif one.has_content and one.new in read.suspected:
            old = _text(repository.blob(one.old)) if one.had_content else ""
            if what := secret(_text(repository.blob(one.new)), old):
                yield f"put {what} into {one.path}"


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
