"""What Raymond needs to know of git.

Where a repository begins and what HEAD names is read from files. Git itself is asked only for what files do not tell,
and in such a way that nothing in the repository's own settings is run.
"""

import os
import stat

PATIENCE = 10.0
"""Seconds that git has for an answer."""
DEPTH = 5
"""How many references may name each other before there is a commit; git's own limit."""
_ONE = 1 << 16
_MANY = 1 << 28
"""Bytes read of a file with one line, and of the one with all references: a checkout may hold files of any size."""

_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.commitGraph=false")
"""Nothing is run, and the history is that of the commits, whatever a commit graph says."""
_QUIET = ("--no-pager", *(word for one in _SETTINGS for word in ("-c", one)))
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # In a partial clone, git would fetch what is missing, with the commands that the repository sets for that.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}
_BLANK = " \t\n\v\f\r"
"""What git leaves out around a value; other blanks are part of a name."""
_KEPT = ("GIT_CONFIG_", "GIT_EXEC_PATH")
"""The user's own settings, such as `safe.directory`, and where git's programs are. The rest may change what is read."""


def lines(said: str) -> list[str]:
    """The lines of what git printed, or of one of its files: they end at a line feed, and at nothing else.

    A name or a message may have any other character at which `str.splitlines` would begin a new one.
    """
    return said.removesuffix("\n").split("\n") if said else []


def top(cwd: str) -> str:
    """The top level of the work tree that holds `cwd`, if git trusts it; empty when there is none.

    It is the folder that has the `.git`: `core.worktree`, GIT_DIR, GIT_CEILING_DIRECTORIES and
    GIT_DISCOVERY_ACROSS_FILESYSTEM change nothing. As in git, an untrusted `.git` hides those above it.
    """
    folder, git = _discover(os.path.realpath(cwd))
    if not git:
        return ""
    return folder if _is_ours(folder, git) or _is_safe(folder, git) else ""


def _discover(folder: str) -> tuple[str, str]:
    """The nearest folder with a `.git`, and its git directory; both empty when there is none or it is of no use."""
    while True:
        git = _git_directory(folder)
        if git is not None:
            return (folder, git) if git else ("", "")
        above = os.path.dirname(folder)
        if above == folder or _is_git_directory(folder):
            return "", ""
        folder = above


def _git_directory(folder: str) -> str | None:
    """What the `.git` in a folder stands for: None when git would look further up, empty when it would give up."""
    path = os.path.join(folder, ".git")
    if not os.path.exists(path):
        return None
    if not os.path.isfile(path):
        return path if _is_git_directory(path) else None
    link = _line(path) or ""
    own = os.path.join(folder, link.removeprefix("gitdir: "))
    return own if link.startswith("gitdir: ") and _is_git_directory(own) else ""


def _is_git_directory(path: str) -> bool:
    head = os.path.join(path, "HEAD")
    # As a link, it dangles until the first commit. Git itself would read a pipe or a device without end.
    if not os.path.lexists(head) or (not os.path.isfile(head) and os.path.exists(head)):
        return False
    common = _common(path)
    return all(os.path.isdir(os.path.join(common, name)) for name in ("objects", "refs"))


def _common(git: str) -> str:
    """Where a git directory has what it shares with the other worktrees."""
    link = _line(os.path.join(git, "commondir"))
    return os.path.join(git, link) if link else git


def _is_ours(folder: str, git: str) -> bool:
    """Whether we own the top level, its `.git` and the git directory; for root, what sudo's caller owns counts too."""
    us = os.geteuid()
    owners = (str(us), os.environ.get("SUDO_UID") if us == 0 else None)
    try:
        found = os.lstat(folder), os.lstat(os.path.join(folder, ".git")), os.stat(git)
    except OSError:
        return False
    return all(str(one.st_uid) in owners for one in found)


def _is_safe(folder: str, git: str) -> bool:
    """Whether git trusts what we do not own: only git knows every place where `safe.directory` can be set."""
    code, said = _ask(folder, "rev-parse", "--absolute-git-dir")
    return code == 0 and os.path.realpath(said.removesuffix("\n")) == os.path.realpath(git)


def head(top: str) -> str:
    """The commit that HEAD names; empty when there is none yet."""
    git = _git_directory(top) if top else None
    if not git:
        return ""
    common, value = _common(git), _line(os.path.join(git, "HEAD")) or ""
    for _ in range(DEPTH):
        if _is_commit(value):
            return value
        name = value.removeprefix("ref:").strip(_BLANK)
        if name == value or not name.startswith("refs/") or "/." in name:
            break  # with reftable, the name is always `refs/heads/.invalid`
        found = _reference(git, common, name)
        if found is None:
            return ""
        value = found
    said = _ask(top, "rev-parse", "-q", "--verify", "HEAD^{commit}")[1].strip()
    return said if _is_commit(said) else ""


def reference(top: str, name: str) -> str:
    """The commit that a reference names; empty when there is none."""
    git = _git_directory(top) if top else None
    if not git:
        return ""
    found = _reference(git, _common(git), name) or ""
    if _is_commit(found):
        return found
    said = _ask(top, "rev-parse", "-q", "--verify", f"{name}^{{commit}}")[1].strip()
    return said if _is_commit(said) else ""


def checked_out(cwd: str) -> list[str]:
    """What HEAD says in each worktree of the repository that holds `cwd`."""
    common = _common_above(cwd)
    if not common:
        return []
    folder = os.path.join(common, "worktrees")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    heads = [os.path.join(common, "HEAD"), *(os.path.join(folder, name, "HEAD") for name in names)]
    return [_line(path) or "" for path in heads]


def _reference(git: str, common: str, name: str) -> str | None:
    loose = _line(os.path.join(git, name))
    if loose is None and common != git:
        loose = _line(os.path.join(common, name))
    return _packed(common, name) if loose is None else loose


def _packed(common: str, name: str) -> str | None:
    packed = _content(os.path.join(common, "packed-refs"), _MANY) or b""
    end = packed.find(b" %b\n" % os.fsencode(name))
    return None if end < 0 else os.fsdecode(packed[packed.rfind(b"\n", 0, end) + 1 : end])


def _is_commit(value: str) -> bool:
    return len(value) in (40, 64) and not value.strip("0123456789abcdef")


def has_commit(tree: str, commit: str) -> bool | None:
    """Whether the repository that holds `tree` has this commit; None when that cannot be told."""
    if not _is_commit(commit):
        return False
    code, _ = _ask(tree, "cat-file", "-e", f"{commit}^{{commit}}")
    if code == 0:
        return True
    # Git fails in the same way when there is no repository, or none that it trusts.
    return False if code in (1, 128) and _ask(tree, "rev-parse", "--git-dir")[0] == 0 else None


def directories(top: str) -> tuple[str, str]:
    """The git directory of the work tree at `top`, and the one it shares with other worktrees; empty without one."""
    git = _git_directory(top)
    return (os.path.realpath(git), os.path.realpath(_common(git))) if git else ("", "")


def settings(top: str) -> list[tuple[str, str]]:
    """Every setting that git uses in the work tree at `top`, wherever it comes from; none when it cannot tell."""
    code, said = _ask(top, "config", "--list", "-z")
    pairs = (one.partition("\n") for one in said.split("\0") if one) if code == 0 else ()
    return [(key, value) for key, _, value in pairs]


def entries(top: str) -> list[tuple[str, int, str]]:
    """The index of the work tree at `top`: the mode, stage and path of each file; nothing when git cannot tell.

    A stage is not 0 while a conflict is not resolved.
    """
    said = _ask(top, "ls-files", "-s", "-z", within=60.0)[1]
    split = (one.partition("\t") for one in said.split("\0") if one)
    return [(about.split()[0], int(about.split()[2]), path) for about, _, path in split]


def references(top: str) -> dict[str, str]:
    """Every reference of the repository at `top`, and the object that it names; Raymond's own are left out."""
    code, said = _ask(top, "for-each-ref", "--format=%(objectname) %(refname)")
    pairs = (line.split(" ", 1) for line in lines(said)) if code == 0 else ()
    return {name: commit for commit, name in pairs if not name.startswith("refs/raymond/")}


def branch_line(top: str) -> str:
    """What HEAD says when it names a branch; empty when it names a commit."""
    code, said = _ask(top, "symbolic-ref", "-q", "HEAD")
    return f"ref: {said.strip()}" if code == 0 and said.strip() else ""


def objects(top: str) -> str:
    """The folder with the objects of the repository at `top`; empty when there is none."""
    common = directories(top)[1]
    return os.path.join(common, "objects") if common else ""


def root_commit(top: str, within: float = 1.0) -> str:
    """The first commit of HEAD's history; empty when there is none, or git needs longer than `within` seconds.

    A shallow clone has none: its oldest commit changes with every fetch.
    """
    git = _git_directory(top) if top else None
    if not git or os.path.exists(os.path.join(_common(git), "shallow")) or not head(top):
        return ""
    code, said = _ask(top, "rev-list", "--max-parents=0", "HEAD", "--", within=within)
    return said.split()[-1] if code == 0 and said else ""


def ignored_folders(top: str) -> frozenset[str]:
    """The folders below `top` that git ignores and in which it tracks nothing; none when git cannot tell."""
    return _untracked(top, "--ignored", "--exclude-standard")


def untracked_folders(top: str) -> frozenset[str]:
    """The folders below `top` in which git tracks nothing, ignored or not; none when git cannot tell."""
    return _untracked(top)


def _untracked(top: str, *which: str) -> frozenset[str]:
    # Settings of the repository may name another work tree.
    code, said = _ask(top, "--work-tree=.", "ls-files", "--others", *which, "--directory", "-z")
    paths = said.split("\0") if code == 0 else []
    return frozenset(os.path.join(top, path.rstrip("/")) for path in paths if path.endswith("/"))


def worktrees(cwd: str) -> list[str]:
    """The top levels of all worktrees of the repository that holds `cwd`, whoever owns it.

    Nothing but the repository itself says what belongs to it: a `.git` that points to one can be written by anybody.
    """
    git = _common_above(cwd)
    if not git:
        return []
    found = [os.path.dirname(git)] if os.path.basename(git) == ".git" else []
    try:
        names = os.listdir(os.path.join(git, "worktrees"))
    except OSError:
        return found
    trees = ((_claimed(own), own) for own in (os.path.join(git, "worktrees", name) for name in names))
    return [*found, *(tree for tree, own in trees if tree and _belongs(tree, own))]


def _claimed(own: str) -> str:
    """The worktree whose git directory is `own`, by what the repository says; empty when it says nothing."""
    link = _line(os.path.join(own, "gitdir"))
    return os.path.realpath(os.path.join(own, os.path.dirname(link))) if link else ""


def _belongs(tree: str, own: str) -> bool:
    """Whether a worktree points back to the repository that claims it, as git asks for too."""
    back = (_line(os.path.join(tree, ".git")) or "").removeprefix("gitdir: ")
    return bool(back) and os.path.realpath(os.path.join(tree, back)) == os.path.realpath(own)


def _common_above(cwd: str) -> str:
    """The common git directory of the repository that holds `cwd` and knows of it."""
    folder = os.path.realpath(cwd)
    while True:
        path = os.path.join(folder, ".git")
        if os.path.isdir(path):
            return "" if os.path.islink(path) else path
        link = (_line(path) or "").removeprefix("gitdir: ")
        if link:
            own = os.path.realpath(os.path.join(folder, link))
            common = os.path.realpath(_common(own))
            is_worktree = os.path.dirname(own) == os.path.join(common, "worktrees") and _claimed(own) == folder
            return common if is_worktree or (own == common and _is_apart(own, folder)) else ""
        above = os.path.dirname(folder)
        if above == folder:
            return ""
        folder = above


def _is_apart(own: str, folder: str) -> bool:
    """Whether `own` is the git directory of `folder`, kept apart from it: right in it, or by its own settings."""
    settings = os.fsdecode((_content(os.path.join(own, "config"), _MANY) or b"").replace(b"\0", b""))
    core = settings.partition("[core]")[2].partition("\n[")[0]
    named = [line.partition("=")[2].strip() for line in lines(core) if line.split("=")[0].strip() == "worktree"]
    if named:
        return any(os.path.realpath(os.path.join(own, one)) == folder for one in named)
    return os.path.dirname(own) == folder


def _line(path: str) -> str | None:
    """The first line of a file; None when it cannot be read, or has a NUL, which no path and no reference has."""
    content = _content(path, _ONE)
    return None if content is None or b"\0" in content else os.fsdecode(content.partition(b"\n")[0].strip())


def _content(path: str, most: int) -> bytes | None:
    """The content of a file, up to `most` bytes; None when it is not a file or cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening a pipe would wait for its writer
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        return os.read(fd, min(found.st_size, most)) if stat.S_ISREG(found.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _ask(where: str, *args: str, within: float = PATIENCE) -> tuple[int | None, str]:
    """The exit code of git and what it printed; None when there is no git, or it takes too long."""
    import subprocess

    if not where:
        return None, ""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name.startswith(_KEPT)}
    try:
        done = subprocess.run(
            ["git", *_QUIET, "-C", where, *args],
            env={**kept, **_ENVIRONMENT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=within,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):  # ValueError: a path with a NUL
        return None, ""
    return done.returncode, os.fsdecode(done.stdout)


# Whose files may be used in a project: a person's own, and those of a repository that they told git to trust


def trusts_owner(owner: int, tree: str) -> bool:
    """Whether files of user `owner` in the project at `tree` are as good as our own."""
    us = os.geteuid()
    if owner == us or (us == 0 and str(owner) == os.environ.get("SUDO_UID")):
        return True
    return owner == os.lstat(tree).st_uid and top(tree) == tree
