"""Sight: which documents git sees. What it does not see, nobody compares with what it was."""

import os
from collections.abc import Iterable

from raymond.loops.documents import Documents
from raymond.loops.git_calls import GitCalls
from raymond.system import git


def unseen(found: Documents, folder: str, paths: Iterable[str]) -> set[str]:
    """Those of the paths in a folder that git ignores, or that are in a repository of their own.

    All are relative to the folder of documents. What is only in the index does not count, because an agent can put it
    there; what HEAD has does. Without a repository, everything is seen.
    """
    wanted = {os.path.normpath(os.path.join(found.inside, path)): path for path in paths}
    if not wanted or not os.path.lexists(os.path.join(found.top, ".git")):
        return set()
    nothing = os.path.join(git.directories(found.top)[0], f"index-{os.urandom(8).hex()}")  # an index that is empty
    calls, where = GitCalls(found.top, nothing), os.path.normpath(os.path.join(found.inside, folder))
    others = calls.ask("ls-files", "--others", "--exclude-standard", "-z", "--", where, index=True)
    left = wanted.keys() - _paths(others)
    if left:
        left -= _paths(calls.run("ls-tree", "-r", "-z", "--full-tree", "--name-only", "HEAD", where).stdout)
    return {wanted[path] for path in left}


def _paths(said: bytes) -> set[str]:
    return {os.fsdecode(one) for one in said.split(b"\0")}
