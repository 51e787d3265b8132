"""Baseline: how the repository stood when an item began, so that everything since then is the agent's."""

import os

import msgspec
from msgspec import Struct

from raymond.digests import sha256
from raymond.errors import Error
from raymond.loops import git_files, git_settings, locks, reflogs, submodules, unfinished
from raymond.loops.git_calls import GitError
from raymond.loops.git_files import CONFIG, HOOKS, GitFiles
from raymond.loops.hooks import hooks_in
from raymond.loops.repository import Repository
from raymond.loops.step import Step
from raymond.system import files, git
from raymond.verifier import control_plane
from raymond.verifier.control_plane import Control
from raymond.verifier.private_git import PrivateGit

RESUMED = "resumed"
"""The file with the digest of a baseline that was renewed when a person resumed the loop."""
FIRST = "first"
"""In the place of a slot: how everything stood when the loop began."""
_OF_GIT = (" .git/", " the git setting ")
_MOST_IGNORED = 5_000


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
    references: dict[str, str]
    """Every reference but for the branches of remotes, and where it was."""
    remotes: dict[str, str]
    ignored: list[str]
    """What git ignored; a folder ends in `/`."""
    hooks: str
    """Digest of the hooks that git would run."""
    hooks_folder: str
    signs: bool
    settings: dict[str, list[str]]
    """What .git/config says, but for a few settings."""
    in_effect: dict[str, list[str]]
    """The settings that run something, from wherever they come."""
    stashes: bytes
    """The list of stashes, as git keeps it."""
    worktrees: dict[str, str]
    """The other worktrees, and the branch of each."""
    nested: list[str]
    """Repositories inside of this one."""
    folders: tuple[str, str]
    """The git directory, and the one that it shares with other worktrees."""
    queue: tuple[str, bytes]
    """The path of the session log with the queue, and what it said: git's own copy could be forged."""
    modules: dict[str, str]
    """Every submodule, and how it stood."""
    staged: str
    """A commit, on no branch, of what a person had staged; empty when that was nothing."""
    is_index_broken: bool
    """Whether git could not read the index."""
    locks: list[str]
    """The locks of git that were there."""
    refused: list[str]
    """Files that git takes into no tree."""
    reflogs: dict[str, int]
    """The reflog of each reference, and how many bytes it has."""
    unfinished: list[str]
    """What somebody had begun with git and not ended."""
    links: dict[str, bytes]
    """Which of git's files, and of their folders, were links, and where each led."""
    unread: dict[str, tuple[int, int]]
    """Those of git's files that could not be read whole: size and time."""

    @property
    def git_files(self) -> GitFiles:
        """The files of git that decide what it does."""
        return GitFiles(contents=self.files, modes=self.modes, links=self.links, unread=self.unread)


class Keeper(Struct, frozen=True):
    """Keeps a baseline in the folder of the run."""

    path: str
    repository: Repository
    private: PrivateGit

    def take(self, reference: str, date: str, queue: tuple[str, bytes] = ("", b"")) -> tuple[Baseline, str]:
        """Take the baseline now, and its digest; `reference` keeps git from forgetting the files."""
        repository = self.repository
        head = repository.head()
        self.private.prepare(head)
        staged = self.staged(head, date)
        work = repository.commit(repository.tree(), [head, staged], "raymond: before the item\n", date)
        refused = list(repository.refused)
        repository.move(reference, work)
        of_git = git_files.read(self._common)
        folder = repository.hooks_folder()
        found = Baseline(
            head=head,
            branch=repository.branch(),
            work=work,
            control=control_plane.read(repository.top, self.private),
            files=of_git.contents,
            modes=of_git.modes,
            links=of_git.links,
            unread=of_git.unread,
            references=repository.references(),
            stashes=repository.stashes(),
            worktrees=repository.worktrees(),
            remotes=repository.remotes(),
            ignored=repository.ignored()[:_MOST_IGNORED],
            hooks=hooks_in(folder),
            hooks_folder=folder,
            settings=git_settings.of_repository(repository.top, self.private),
            in_effect=git_settings.in_effect(repository),
            signs=repository.signs,
            nested=repository.nested(),
            folders=git.directories(repository.top),
            queue=queue,
            modules=submodules.states(repository, self._modules),
            staged=staged,
            is_index_broken=repository.is_broken(),
            locks=locks.there(*git.directories(repository.top)),
            refused=refused,
            reflogs=reflogs.lengths(repository.top),
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

    def regained(self, before: Baseline) -> list[str]:
        """Give git back what it knows its own directory by; what was wrong, in words."""
        top, (own, _) = self.repository.top, before.folders
        if not own or git.directories(top) == before.folders:
            return []
        if os.path.isdir(own) and not os.path.islink(os.path.join(top, ".git")):
            named = f"ref: refs/heads/{before.branch}" if before.branch else before.head
            self._write_head(os.path.join(own, "HEAD"), f"{named}\n".encode("utf-8", "surrogateescape"))
        if git.directories(top) != before.folders:
            raise Error(f"{own} is not the git directory of {top} any more", hint="bring it back, then resume")
        return ["removed .git/HEAD"]

    def _write_head(self, path: str, content: bytes) -> None:
        """Write it; of a folder in its place, git could make nothing."""
        if os.path.islink(path) or not os.path.isdir(path):
            files.replace(path, content)
            os.chmod(path, 0o644)

    @property
    def _common(self) -> str:
        return git.directories(self.repository.top)[1]

    def free(self, before: Baseline) -> list[tuple[str, bool]]:
        """The locks of git that were left since, and whether each is removed."""
        top = self.repository.top
        found = locks.there(*git.directories(top))
        new = [path for path in found if path not in before.locks]
        gone = locks.removed(new, [top, *self.repository.worktrees()]) if new else []
        return [(path, path in gone) for path in new]

    def unfinished(self, before: Baseline) -> list[str]:
        """What was begun with git since, and not ended."""
        return [name for name in unfinished.there(self.repository) if name not in before.unfinished]

    @property
    def _modules(self) -> str:
        return f"{self.private.path}-modules"

    def changed_modules(self, before: Baseline) -> list[str]:
        """The submodules that are not as they were."""
        return submodules.changed(self.repository, self._modules, before.modules)

    @property
    def is_shared(self) -> bool:
        """Whether another checkout has the same references and settings: what changes there may be a person's."""
        folder, common = git.directories(self.repository.top)
        return not os.path.samefile(folder, common)

    def differences(self, before: Baseline) -> list[str]:
        """What decides how git sees the work, and is not as it was, in words."""
        now = control_plane.read(self.repository.top, self.private)
        found = control_plane.differences(before.control, now)
        settings = git_settings.of_repository(self.repository.top, self.private)
        # What another checkout sets is a person's business; `restore` leaves it.
        old = settings if self.is_shared else before.settings
        more = git_settings.differences(old, settings, before.references)
        found += [one for one in more if one not in found]
        return found + before.git_files.differences(self._common)

    def differences_elsewhere(self, before: Baseline) -> list[str]:
        """Settings that a file outside of .git has changed, in words: such a file is not put back."""
        now = git_settings.in_effect(self.repository)
        found = git_settings.differences(before.in_effect, now, before.references)
        return [f"{one}, in a file outside of .git" for one in found]

    def restore(self, before: Baseline) -> list[str]:
        """Give git back the files that decide what it does; no link is followed on the way. Where they are kept."""
        config = os.path.join(self._common, CONFIG)
        others = self._harmless(before, config) if self.is_shared else []
        kept = before.git_files.put_back(self._common, self.path)
        replaced = [one for one in before.control.parts if one.startswith("the replaced object")]
        if not replaced:
            self.repository.drop_all("refs/replace")
        for key, value in others:
            self.repository.run("config", "--file", config, "--add", key, value)
        if before.git_files.are_linked:
            self._check_behind_links(before)
        return kept

    def _check_behind_links(self, before: Baseline) -> None:
        """Go no further while git does what an agent wrote behind a link: nothing was put back there."""
        found = [one for one in self.differences(before) if any(what in one for what in _OF_GIT)]
        if left := [one for one in found if f" .git/{HOOKS}" not in one]:
            hint = "a link leads to it, which Raymond does not follow: undo it there"
            raise GitError(f"the agent {'; '.join(left)}", hint=hint)

    def _harmless(self, before: Baseline, config: str) -> list[tuple[str, str]]:
        """The settings that were added and run nothing: whoever set them in another checkout wants to keep them."""
        files.replace(f"{self.path}-{CONFIG}", before.files.get(CONFIG, b""))
        known = self.private.settings(f"{self.path}-{CONFIG}")
        new = [one for one in self.private.settings(config) if one not in known]
        return [(key, value) for key, value in new if not control_plane.is_decisive(key, value)]


def keeper_of(step: Step, slot: str) -> Keeper:
    """What keeps the baseline of an item."""
    private = PrivateGit(step.file("git"), step.top)
    return Keeper(step.file(f"baseline-{slot}"), step.repository, private)
