"""Pushes: what an agent did to the branches of remotes, as far as this repository heard of it."""

from collections.abc import Sequence
from functools import cached_property

from raymond.loops import reflogs
from raymond.loops.baseline import Baseline
from raymond.loops.repository import Repository

_MOST = 20
_BACK = '"{name}" moved {way}, from {old} to {new}: by a push of the agent, or by a fetch'
_GONE = '"{name}", which was at {old}, is gone: removed there by the agent, or by a fetch that saw it gone'
_ELSEWHERE = '"{name}" was pushed to, by the agent or in another worktree'


class Pushes:
    """The branches of remotes now, against those that were there when the item began.

    A fetch moves them too. It brings no commit that was made here, and git notes what a push did.
    """

    def __init__(
        self, repository: Repository, before: Baseline, first: Baseline, commits: Sequence[str], *, is_shared: bool
    ) -> None:
        """`first` is the baseline of the loop, `commits` those that the agent has made.

        `is_shared`: another checkout has the same references, so that a person may have pushed.
        """
        self.tampered: list[str] = []
        self.review: list[str] = []
        self.notes: list[str] = []
        self._repository = repository
        self._first = first
        self._commits = commits
        now = repository.remotes()
        for name in sorted({*before.remotes, *now} - before.references.keys()):
            old, new = before.remotes.get(name, ""), now.get(name, "")
            shown = name.removeprefix("refs/remotes/")
            length = before.reflogs.get(name, 0)
            if old != new and new and self._is_made_here(new):
                self.tampered.append(f"pushed to {shown}")
            elif reflogs.is_pushed(repository.top, name, length, old):
                self._judge(shown, old, new, is_shared=is_shared)
            elif old != new:
                self._note(shown, old, new)
        if len(self.notes) > _MOST:
            more = f'"{len(self.notes) - _MOST} more branches of remotes" moved backwards, or are gone'
            self.notes = [*self.notes[:_MOST], more]

    def _is_made_here(self, commit: str) -> bool:
        """Whether a branch elsewhere has a commit that the agent made."""
        return commit in self._commits or any(self._repository.descends(commit, one) for one in self._commits[:1])

    def _judge(self, name: str, old: str, new: str, *, is_shared: bool) -> None:
        if new and self._is_persons(name, old, new):
            self.notes.append(_ELSEWHERE.format(name=name))
        elif is_shared:
            self.review.append(f"pushed to {name}, or somebody in another worktree did")
        else:
            self.tampered.append(f"pushed to {name}")

    @cached_property
    def _branches(self) -> dict[str, str]:
        """What is checked out in the worktrees that were there before any agent of the loop, and where it is."""
        trees = self._repository.worktrees()
        known = self._first.worktrees
        return {one: self._repository.reference(one) for path, one in trees.items() if one and path in known}

    def _is_persons(self, name: str, old: str, new: str) -> bool:
        """Whether it is what a person pushes who is at work in another worktree: more of a branch, or it anew."""
        descends = self._repository.descends
        is_ahead = new != old and (not old or descends(new, old))
        return any(
            (is_ahead and tip and descends(tip, new))
            or (new == tip != old and name.endswith(f"/{branch.removeprefix('refs/heads/')}"))
            for branch, tip in self._branches.items()
        )

    def _note(self, name: str, old: str, new: str) -> None:
        descends = self._repository.descends
        if not new:
            self.notes.append(_GONE.format(name=name, old=old[:12]))
        elif old and not descends(new, old):
            way = "backwards" if descends(old, new) else "to another history"
            self.notes.append(_BACK.format(name=name, way=way, old=old[:12], new=new[:12]))
