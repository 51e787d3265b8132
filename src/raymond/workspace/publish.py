"""Publish: put work under a reference of the person's repository."""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence

from raymond.system import git
from raymond.workspace.repository import Repository, call

SIGNING = 60.0
"""Seconds to sign a commit: a prompt that is not answered must not hold up a night."""
_KEPT = ("GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_AUTHOR_", "GIT_COMMITTER_")
"""Variables of the person's that count: who commits, settings, and where git's programs are."""
_SETTINGS = "core.hooksPath=/dev/null core.fsync=committed,loose-object core.logAllRefUpdates=false gc.auto=0"
_QUIET = tuple(word for one in _SETTINGS.split() for word in ("-c", one))


def hold(repository: Repository, top: str, reference: str, commit: str, known: str) -> None:
    """Let `reference` of the repository at `top` name `commit`, whose objects are copied; `known` is there already."""
    if commit != known:
        send(repository, top, [commit], [known])
    with contextlib.suppress(FileNotFoundError):
        # Nothing else moves this reference while we have the tree alone: a git that was killed has left the lock.
        os.unlink(f"{git.directories(top)[1]}/{reference}.lock")
    ask(top, "update-ref", "--no-deref", reference, commit)


def send(repository: Repository, top: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    """Copy objects, and all that belongs to them, but for what belongs to the ones that are `known` there."""
    given = "".join([*(f"{one}\n" for one in wanted), *(f"^{one}\n" for one in known if one)]).encode()
    packed = repository.ask("pack-objects", "--revs", "--stdout", "-q", "--thin", given=given)
    ask(top, "unpack-objects", "-q", given=packed)


def commit(top: str, tree: str, parents: Sequence[str], message: str, time: float) -> str:
    """Make a commit of a tree that is there; signed if the person signs theirs."""
    signs = settings(top).get("commit.gpgsign", "") in ("true", "yes", "on", "1")
    above = [word for parent in parents if parent for word in ("-p", parent)]
    dates = {name: f"@{int(time)} +0000" for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")}
    text = message.encode("utf-8", "replace")
    sign = ["-S"] if signs else []
    return ask(top, "commit-tree", *sign, *above, tree, given=text, env=dates, seconds=SIGNING).decode().strip()


def settings(top: str) -> dict[str, str]:
    """The person's settings of git, without ours."""
    said = call(["git", "config", "--list", "-z"], top, _environment(top)).decode("utf-8", "replace")
    return {key: value for key, _, value in (one.partition("\n") for one in said.split("\0") if one)}


def move(top: str, reference: str, new: str, old: str) -> bool:
    """Let a reference name a commit if it names `old` now; an empty one means that there is none. Whether it did."""
    ask(top, "update-ref", "--no-deref", reference, new, old or "0" * len(new), fails=[1, 128])
    return git.reference(top, reference) == new


def drop(top: str, reference: str) -> None:
    """Remove a reference."""
    ask(top, "update-ref", "--no-deref", "-d", reference)


def held(top: str, reference: str) -> list[str]:
    """The commit that a reference names; none when there is no such reference."""
    return ask(top, "for-each-ref", "--count=1", "--format=%(objectname)", reference).decode("ascii").split()


def contains(top: str, commit: str, other: str) -> bool:
    """Whether a commit is another one, or comes after it."""
    if commit == other:
        return True
    said = ask(top, "merge-base", "--is-ancestor", other, commit, fails=[1, 128], tells=True)
    return said == b"0"


def ask(
    top: str,
    *args: str,
    given: bytes = b"",
    fails: Sequence[int] = (),
    env: dict[str, str] | None = None,
    seconds: float | None = None,
    tells: bool = False,
) -> bytes:
    """Ask the git of the person's repository; nothing of its settings is run. With `tells`, its exit code."""
    return call(["git", *_QUIET, *args], top, {**_environment(top), **(env or {})}, given, fails, seconds, tells=tells)


def _environment(top: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    own = git.directories(top)[0]
    return {**kept, "GIT_DIR": own, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class Person(Repository):
    """The person's repository, for trees that Raymond makes right there; index files lie in a folder of ours."""

    def __init__(self, top: str, folder: str) -> None:
        super().__init__(folder, top)
        self._top = top

    def ask(
        self,
        *args: str,
        given: bytes = b"",
        worktree: str = "",
        index: str = "index",
        env: Mapping[str, str] = {},
        fails: Iterable[int] = (),
        seconds: float | None = None,
    ) -> bytes:
        more = {"GIT_INDEX_FILE": os.path.join(self.path, index), "GIT_LITERAL_PATHSPECS": "1", **env}
        return ask(self._top, *args, given=given, fails=tuple(fails), env=more, seconds=seconds)
