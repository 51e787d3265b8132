"""Baseline: how the repository stood when an item began, so that everything since then is the agent's."""

import os

import msgspec
from msgspec import Struct

from raymond.digests import sha256
from raymond.errors import Error
from raymond.loops import unfinished
from raymond.loops.repository import Repository
from raymond.loops.step import Step
from raymond.system import files

RESUMED = "resumed"
"""The file with the digest of a baseline that was renewed when a person resumed the loop."""
_MOST_IGNORED = 5_000


class Baseline(Struct, frozen=True, kw_only=True):
    """What was there before the work."""

    head: str
    branch: str
    work: str
    """A commit, on no branch, of all files as they were, uncommitted ones included."""
    ignored: list[str]
    """What git ignored; a folder ends in `/`."""
    signs: bool
    nested: list[str]
    """Repositories inside of this one."""
    staged: str
    """A commit, on no branch, of what a person had staged; empty when that was nothing."""
    refused: list[str]
    """Files that git takes into no tree."""
    unfinished: list[str]
    """What somebody had begun with git and not ended."""


class Keeper(Struct, frozen=True):
    """Keeps a baseline in the folder of the run."""

    path: str
    repository: Repository

    def take(self, reference: str, date: str) -> tuple[Baseline, str]:
        """Take the baseline now, and its digest; `reference` keeps git from forgetting the files."""
        repository = self.repository
        head = repository.head()
        staged = self.staged(head, date)
        work = repository.commit(repository.tree(), [head, staged], "raymond: before the item\n", date)
        refused = list(repository.refused)
        repository.move(reference, work)
        found = Baseline(
            head=head,
            branch=repository.branch(),
            work=work,
            ignored=repository.ignored()[:_MOST_IGNORED],
            signs=repository.signs,
            nested=repository.nested(),
            staged=staged,
            refused=refused,
            unfinished=unfinished.there(repository),
        )
        return found, self.save(found)

    def staged(self, head: str, date: str) -> str:
        """A commit of what a person has staged now; empty when that is nothing."""
        tree = self.repository.staged(head)
        return self.repository.commit(tree, [head], "raymond: staged\n", date) if tree else ""

    def save(self, found: Baseline, *, renews: bool = False) -> str:
        """Write it to the disk; its digest. One that renews another has its own file: a kill must not lose both."""
        data = msgspec.msgpack.encode(found)
        digest = sha256(data).hexdigest()
        files.replace(self._renewed(digest) if renews else self.path, data, durable=True)
        return digest

    def _renewed(self, digest: str) -> str:
        return f"{self.path}-{digest[:16]}"

    def load(self, digest: str) -> Baseline:
        """The baseline that was journaled with this digest."""
        renewed = self._renewed(digest)
        data = files.contents(renewed if os.path.exists(renewed) else self.path)
        if sha256(data).hexdigest() != digest:
            raise Error(f"{self.path} is not what was journaled: somebody has changed files of the run")
        return msgspec.msgpack.decode(data, type=Baseline)


def keeper_of(step: Step, slot: str) -> Keeper:
    """What keeps the baseline of an item."""
    return Keeper(step.file(f"baseline-{slot}"), step.repository)
