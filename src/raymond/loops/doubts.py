"""What in the work of an agent a person has to look at before it counts: secrets, large files, what runs elsewhere."""

from collections.abc import Iterable, Iterator, Mapping

from raymond.loops.change import Change
from raymond.loops.repository import Repository
from raymond.text import has_conflict

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


def of_changes(repository: Repository, changes: Iterable[Change]) -> list[str]:
    """What is doubtful about files, each thing once."""
    looked = list(changes)
    sizes = _sizes(repository, looked)
    found = [doubt for one in looked for doubt in _of_change(one, sizes.get(one.new, 0))]
    texts = _texts(repository, looked, sizes)
    return list(dict.fromkeys([*found, *_secrets(repository, texts), *_conflicts(repository, texts)]))


def _sizes(repository: Repository, looked: Iterable[Change]) -> dict[str, int]:
    new = {one.new for one in looked if one.has_content}
    return repository.sizes(new) if new else {}


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
    """What looks like a secret in the new version of a file and was not in the old one."""
    return list(_secrets(repository, _texts(repository, looked, _sizes(repository, looked))))


def _secrets(repository: Repository, texts: Iterable[tuple[Change, bytes]]) -> Iterator[str]:
    for one, content in texts:
        new = _text(content)
        if secret(new) and (what := secret(new, _text(_before(repository, one)))):
            yield f"put {what} into {one.path}"


def _conflicts(repository: Repository, texts: Iterable[tuple[Change, bytes]]) -> Iterator[str]:
    for one, content in texts:
        if has_conflict(content) and not has_conflict(_before(repository, one)):
            yield f"left the marks of a conflict in {one.path}"


def _texts(repository: Repository, looked: Iterable[Change], sizes: Mapping[str, int]) -> list[tuple[Change, bytes]]:
    """The files that are not too large to be looked into, with what they say now."""
    searched = [one for one in looked if one.has_content and sizes.get(one.new, 0) <= _SCANNED]
    contents = repository.blobs({one.new for one in searched}) if searched else {}
    return [(one, contents.get(one.new, b"")) for one in searched]


def _before(repository: Repository, one: Change) -> bytes:
    return repository.blob(one.old) if one.had_content else b""


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
