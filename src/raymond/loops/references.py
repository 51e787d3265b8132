"""Branches, tags, stashes, what Raymond saved and all else: an item leaves it as it was, but for its own branch."""

import re
import shlex
import time
from functools import cached_property

from raymond.loops import other_loops, reflogs
from raymond.loops.baseline import Baseline
from raymond.loops.repository import SAVED, Repository
from raymond.loops.saved import Saved
from raymond.patterns import regex

_NIGHTS = "refs/heads/raymond/"
"""The branches that loops make."""
_STARTING = 1.0
"""Seconds that a loop may need from its worktree to its run."""
_STASHED = regex(rb"(?m)^[0-9a-f]+ ([0-9a-f]{40,64}) ")
_MOST_STASHES = 50
_MOST_NAMED = 20
_COMMON = ("refs/heads/", "refs/tags/", "refs/notes/", "refs/stash", SAVED, "refs/remotes/")
"""A fetch that moves one of these is not anybody's habit."""
_REPLACED = "refs/replace/"
_FETCH = regex(r"remote\..*\.fetch", re.DOTALL)


class References:
    """The references now, against those that were there when the item began."""

    def __init__(
        self,
        repository: Repository,
        before: Baseline,
        first: Baseline,
        saved: Saved,
        aside: str,
        *,
        is_shared: bool,
    ) -> None:
        """`first` is the baseline of the loop; below `aside`, what was moved or made is kept.

        `is_shared`: another checkout has the same references, so that a person may have moved them.
        """
        self._is_shared = is_shared
        self._repository = repository
        self._before = before
        self._first = first
        self._saved = saved
        self._aside = aside
        self._own = f"refs/heads/{before.branch}"
        self._now = repository.references()
        self._worktrees = repository.worktrees()
        self._first_trees, self._trees_before = first.worktrees, before.worktrees

    @cached_property
    def _wanted(self) -> dict[str, str]:
        """What each reference has to name, but for those that are nobody's business."""
        noted = {f"{self._saved.prefix}start": self._first.work, **self._saved.noted()}
        elsewhere = {branch for path, branch in self._worktrees.items() if self._is_free(path, branch)}
        wanted = {**self._before.references, **noted}
        for name in list(wanted):
            is_others = name.startswith(SAVED) and not name.startswith(self._saved.prefix) and name in self._now
            is_anybodys = self._is_shared and not name.startswith(self._saved.prefix)
            if is_others or is_anybodys or name == self._own or name in elsewhere or self._is_fetched(name):
                del wanted[name]
        return wanted

    @cached_property
    def _fetched(self) -> tuple[str, ...]:
        """Where fetches write to, by the settings from before the item."""
        settings = self._before.settings.items()
        targets = (one.partition(":")[2] for key, values in settings if _FETCH.fullmatch(key) for one in values)
        return tuple(one.partition("*")[0] for one in targets if one)

    def _is_fetched(self, name: str) -> bool:
        """Whether a fetch may have moved it, as where requests to merge are kept as `refs/pull/`."""
        return name.startswith(self._fetched) and not name.startswith((*_COMMON, _REPLACED))

    def _is_free(self, path: str, branch: str) -> bool:
        """Whether somebody may be at work in another worktree: one that was there before any agent of the loop.

        Another loop may also have begun in one of its own since, as its run tells. A branch that everybody starts from
        is free only where it was checked out from the beginning.
        """
        if path not in self._first_trees:
            return path in self._trees_before and self._is_of_a_loop(path, branch)
        known = self._first_trees.values()
        return branch in known or not self._repository.is_default(branch.removeprefix("refs/heads/"))

    def _is_of_a_loop(self, path: str, branch: str) -> bool:
        """Whether another loop began in a worktree after this one."""
        return branch.startswith(_NIGHTS) and other_loops.is_in(path, self._began)

    @cached_property
    def _began(self) -> float:
        return float(self._repository.date(self._first.work))

    @cached_property
    def _made(self) -> list[str]:
        """What somebody else has saved in Raymond's name, or lets stand in for other objects."""
        made = [name for name in self._now if name.startswith(self._saved.prefix) and name not in self._wanted]
        known = self._before.references
        return made + [name for name in self._now if name.startswith(_REPLACED) and name not in known]

    @property
    def _has_other_stashes(self) -> bool:
        return bool(self._before.stashes) and not self._is_shared and self._repository.stashes() != self._before.stashes

    def tampered(self) -> list[str]:
        """What is not as it was, and should be, in words."""
        found = [f"made {_short(name)}" for name in self._made]
        if self._now.get(self._own, "").startswith("refs/"):
            found.append(f"made {self._before.branch} stand for {self._now[self._own]}")
        unfinished = self._saved.unfinished()
        for name, commit in self._wanted.items():
            if self._now.get(name) != commit and (name in self._now or name not in unfinished):
                found.append(f"{'moved' if name in self._now else 'removed'} {_short(name)}")
        if self._has_other_stashes:
            found.append("changed the list of stashes")
        if self._is_shared:
            return found
        new = {path: branch for path, branch in self._worktrees.items() if path not in self._trees_before}
        new = {path: branch for path, branch in new.items() if not self._is_of_a_loop(path, branch)}
        if any(branch.startswith(_NIGHTS) for branch in new.values()):
            time.sleep(_STARTING)
        return found + [
            f"added the worktree {path}" for path, branch in new.items() if not self._is_of_a_loop(path, branch)
        ]

    def doubtful(self) -> list[str]:
        """What somebody has moved or removed, the agent or a person in another checkout: it stays so."""
        elsewhere = {self._own, *self._worktrees.values()}
        found = []
        for name, commit in self._before.references.items() if self._is_shared else ():
            is_free = name in elsewhere or name.startswith(SAVED) or self._is_fetched(name)
            if self._now.get(name) != commit and not is_free:
                verb = "moved" if name in self._now else "removed"
                told = f"{_short(name)}, which was at {commit[:12]}, was {verb} by the agent or in another worktree"
                found.append(f"{told}, and stays so")
        return found

    def notes(self) -> list[str]:
        """What was made, and may be."""
        known = {*self._before.references, *self._worktrees.values(), self._own}
        hidden = (SAVED, _REPLACED, "refs/remotes/")
        new = [name for name in self._now if name not in known and name.startswith("refs/")]
        new = [name for name in new if not name.startswith(hidden) and not self._is_fetched(name)]
        found = [f"made {_short(name, 'refs/')}" for name in new[:_MOST_NAMED]]
        more = len(new) - _MOST_NAMED
        return [*found, *([f"made {more} more references"] if more > 0 else []), *self._shortened()]

    def _shortened(self) -> list[str]:
        """Which reflogs have lost lines: a person who looks for a lost commit would not find it there."""
        before, now = self._before.reflogs, reflogs.lengths(self._repository.top)
        there = {"HEAD", *self._now} - {"refs/stash"}
        names = sorted(_short(name) for name, length in before.items() if name in there and now.get(name, 0) < length)
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        return [f"shortened the reflog of {', '.join(names[:_MOST_NAMED])}{more}"] if names else []

    def put_back(self) -> list[str]:
        """Let references name again what they did, and keep what they name now; what could not be done, in words."""
        if self._now.get(self._own, "").startswith("refs/"):
            self._repository.run("symbolic-ref", "-d", self._own)
            self._repository.move(self._own, self._before.references.get(self._own) or self._repository.head())
        for name in self._made:
            self._repository.drop(name)  # before anything is saved: it may be in the way
        moved = [name for name, commit in self._wanted.items() if self._now.get(name) != commit]
        for name in [*self._made, *moved]:
            there = self._now.get(name, "")
            if there and not there.startswith("refs/"):
                self._saved.keep(f"{self._aside}/{name.removeprefix('refs/')}", there)
        for name in moved:
            self._repository.put(name, self._wanted[name])
        if self._has_other_stashes:
            self._put_stashes()
        return self._unlike([*self._made, *moved])

    def _put_stashes(self) -> None:
        old, new = (_STASHED.findall(one) for one in (self._before.stashes, self._repository.stashes()))
        for commit in [one.decode() for one in dict.fromkeys(new) if one not in old][:_MOST_STASHES]:
            if self._repository.reference(f"{commit}^{{commit}}"):
                self._saved.keep(f"{self._aside}/stashes/{commit}", commit)
        self._repository.put_stashes(self._before.stashes)

    def _unlike(self, names: list[str]) -> list[str]:
        now = self._repository.references() if names else {}
        found = []
        for name in names:
            wanted = self._wanted.get(name, "")
            if now.get(name, "") == wanted:
                continue
            if wanted and not wanted.startswith("refs/") and not self._repository.reference(f"{wanted}^{{object}}"):
                found.append(f"let git forget {wanted}, so that {_short(name)} cannot be put back")
            else:
                verb = "symbolic-ref" if wanted.startswith("refs/") else "update-ref"
                way = shlex.join(["git", verb, *([name, wanted] if wanted else ["-d", name])])
                found.append(f"kept {_short(name)} from being put back; remove the lock in .git/refs, then: {way}")
        return found


def _short(name: str, more: str = "refs/heads/") -> str:
    return name.removeprefix(more).removeprefix("refs/")
