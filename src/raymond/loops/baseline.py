"""Baseline: how the repository stood when an item began, so that everything since then is the agent's."""

import hashlib
import os
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from raymond.errors import Error
from raymond.loops.repository import Repository
from raymond.loops.step import Step
from raymond.system import files, git
from raymond.verifier import control_plane
from raymond.verifier.control_plane import Control, Difference
from raymond.verifier.private_git import PrivateGit

_FILES = ("config", "config.worktree", "info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout")
_MORE = ("objects/info/alternates",)
_HOOKS = "hooks"
_LARGEST = 1 << 20


class Baseline(Struct, frozen=True, kw_only=True):
    """What was there before the work."""

    head: str
    branch: str
    work: str
    """A commit, on no branch, of all files as they were, uncommitted ones included."""
    control: Control
    files: dict[str, bytes]
    """Files of git that decide what git does, relative to its folder."""
    modes: dict[str, int]
    remotes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Keeper:
    """Keeps a baseline in the folder of the run."""

    path: str
    repository: Repository
    private: PrivateGit

    def take(self, reference: str, date: str) -> tuple[Baseline, str]:
        """Take the baseline now, and its digest; `reference` keeps git from forgetting the files."""
        repository = self.repository
        head = repository.head()
        self.private.prepare(head)
        work = repository.commit(repository.tree(), [head], "raymond: before the item\n", date)
        repository.move(reference, work)
        copies, modes = _copies(repository.top)
        found = Baseline(
            head=head,
            branch=repository.branch(),
            work=work,
            control=control_plane.read(repository.top, self.private),
            files=copies,
            modes=modes,
            remotes=repository.remotes(),
        )
        data = msgspec.msgpack.encode(found)
        files.replace(self.path, data, durable=True)
        return found, hashlib.sha256(data).hexdigest()

    def load(self, digest: str) -> Baseline:
        """The baseline that was journaled with this digest."""
        data = files.contents(self.path)
        if hashlib.sha256(data).hexdigest() != digest:
            raise Error(f"{self.path} is not what was journaled: somebody has changed files of the run")
        return msgspec.msgpack.decode(data, type=Baseline)

    def differences(self, before: Baseline) -> list[Difference]:
        """What decides how git sees the work, and is not as it was."""
        return control_plane.differences(before.control, control_plane.read(self.repository.top, self.private))

    def restore(self, before: Baseline) -> None:
        """Give git back the files that decide what it does."""
        folder = git.directories(self.repository.top)[1]
        now, _ = _copies(self.repository.top)
        for name in now.keys() | before.files.keys():
            path = os.path.join(folder, name)
            if name not in before.files:
                os.unlink(path)
            elif now.get(name) != before.files[name]:
                files.replace(path, before.files[name])
                os.chmod(path, before.modes[name])
        replaced = [one for one in before.control.parts if one.startswith("the replaced object")]
        if not replaced:
            self.repository.drop_all("refs/replace")


def keeper_of(step: Step, slot: str) -> Keeper:
    """What keeps the baseline of an item."""
    private = PrivateGit(step.file("git"), step.top)
    return Keeper(step.file(f"baseline-{slot}"), step.repository, private)


def _copies(top: str) -> tuple[dict[str, bytes], dict[str, int]]:
    folder = git.directories(top)[1]
    found: dict[str, bytes] = {}
    modes: dict[str, int] = {}
    for name in (*_FILES, *_MORE, *_hooks(folder)):
        path = os.path.join(folder, name)
        try:
            found[name], modes[name] = files.contents(path, _LARGEST), os.lstat(path).st_mode & 0o777
        except OSError:
            continue
    return found, modes


def _hooks(folder: str) -> list[str]:
    try:
        names = os.listdir(os.path.join(folder, _HOOKS))
    except OSError:
        return []
    return [f"{_HOOKS}/{name}" for name in names if not name.endswith(".sample")]
