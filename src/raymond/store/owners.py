"""Whose files may be used in a project: a person's own, and those of a repository that they told git to trust."""

import os

from raymond.system import git


def is_trusted(owner: int, tree: str) -> bool:
    """Whether files of user `owner` in the project at `tree` are as good as our own."""
    us = os.geteuid()
    if owner == us or (us == 0 and str(owner) == os.environ.get("SUDO_UID")):
        return True
    return owner == os.lstat(tree).st_uid and git.top(tree) == tree


def name(uid: int) -> str:
    """The name of a user, for messages."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
