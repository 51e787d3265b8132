"""A tree: a private checkout of the person's project as it stands, with a `.git` that is lent.

It is made once and is whole or discarded: see slot.py. The person's repository gets a reference to what the tree began
with, so that no clean-up of git takes that away, and nothing else.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Mapping

import msgspec

from raymond.errors import UsageError, WorkspaceError
from raymond.language.ways import Way
from raymond.system import folders, git
from raymond.system.files import contents, make_private, replace, sync_disk
from raymond.workspace import carried, files, harvest, publish
from raymond.workspace.repository import Repository, alternates, configuration, contents_settings
from raymond.workspace.slot import Origin, Slot

_MARGIN = 64 << 20
"""Bytes that stay free on a disk."""
_OBJECTS = "/run/raymond/objects"
_DEPTH = 5
"""How many repositories may borrow objects of each other; git's own limit."""
_HERE = "use --workspace here"
_RULES = (b".gitignore", b".gitattributes")
_PATIENCE = 10.0
"""Seconds for git where an agent has worked."""


def objects_at(number: int) -> str:
    """Where a step that works isolated finds the folder with this number of the person's objects."""
    return f"{_OBJECTS}-{number}" if number else _OBJECTS


def object_folders(common: str) -> list[str]:
    """The folders with objects of the repository whose git directory this is: its own, and those that it borrows."""
    found = [os.path.join(common, "objects")]
    pending = list(found)
    for _ in range(_DEPTH):
        pending = [one for folder in pending for one in _borrowed(folder) if one not in found]
        found += pending
    return list(dict.fromkeys(found))


def _borrowed(objects: str) -> list[str]:
    try:
        said = os.fsdecode(contents(f"{objects}/info/alternates"))
    except OSError:
        return []
    named = [os.path.join(objects, line) for line in said.split("\n") if line and not line.startswith("#")]
    return [os.path.realpath(one) for one in named if os.path.isdir(one)]


def check(top: str, carry: list[str], *, copies: bool) -> str:
    """The commit that HEAD names in the project at `top`; refused where a tree cannot be made of it.

    `copies`: the tree is to be at another path.
    """
    if not top or not git.directories(top)[0]:
        raise UsageError(
            "a workspace needs a git repository, and this project is not one", hint=f"git init, or {_HERE}"
        )
    head = git.head(top)
    if not head:
        raise UsageError("a workspace needs a commit, and this repository has none", hint=f"git commit, or {_HERE}")
    if os.path.realpath(top) in ("/", os.path.realpath(os.path.expanduser("~"))):
        raise UsageError(f"{top} cannot be a workspace: it holds everything else", hint=_HERE)
    settings = dict(git.settings(top))
    if settings.get("core.sparsecheckout") == "true":
        raise _unfit("a sparse checkout")
    if any(key.startswith("remote.") and key.endswith(".promisor") for key in settings):
        raise _unfit("a partial clone")
    tracked = set()
    for mode, stage, path in git.entries(top):
        tracked.add(path)
        if stage:
            raise UsageError(f"{path} has conflicts that are not resolved", hint=f"finish the merge, or {_HERE}")
        if mode == "160000":
            raise _unfit(f"a repository with submodules ({path})")
        if os.path.basename(path) == ".gitattributes" and _uses_lfs(os.path.join(top, path)):
            raise _unfit(f"a repository that uses Git LFS ({path})")
    for folder in {os.path.dirname(path) for path in tracked}:
        while folder:
            if carried.is_installed(os.path.join(top, folder)):
                raise _unfit(f"a repository that tracks files among installed packages ({folder})")
            folder = os.path.dirname(folder)
    carried.check_named(top, carry, tracked)
    if copies and (named := carried.naming(top)):
        raise UsageError(
            f"{named} names {top}: in a copy, it would use your files instead of the agent's",
            hint=f"use --workspace isolated, or {_HERE.removeprefix('use ')}",
        )
    return head


def _uses_lfs(path: str) -> bool:
    try:
        return b"filter=lfs" in contents(path)
    except OSError:
        return False


def _unfit(what: str) -> UsageError:
    return UsageError(f"a workspace cannot be made of {what}", hint=_HERE)


def make(
    slot: Slot, top: str, run: str, *, carry: list[str], way: Way, tell: Callable[[str], None], time: float
) -> Origin:
    """Make the tree of a run from the checkout as it stands. What a killed process had begun is discarded first."""
    head = check(top, carry, copies=way == "copy")
    slot.prepare()
    with slot.alone():
        repository = Repository(slot.git, slot.rules)
        make_private(slot.rules)
        repository.make(top, head)
        take_index(repository, top, head)
        found = carried.survey(repository, top, carry)
        tree = snapshot(repository, top, found)
        commit = head
        if tree != repository.tree_of(head):
            commit = repository.commit(tree, [head], f"raymond: the checkout as {run} found it\n", time)
        base = _check_out(slot, repository, _origin(way, top, head, commit, tree, found), tell)
        publish.hold(repository, top, f"refs/raymond/{run}/base", commit, head)
        slot.complete(base)
        return base


def make_of(
    slot: Slot,
    top: str,
    commit: str,
    branch: str,
    *,
    began: str,
    kept: list[str],
    vouched: str,
    carry: list[str],
    way: Way,
    tell: Callable[[str], None],
) -> Origin:
    """Make a tree of a commit; the person's checkout, as it `began`, gives what git does not track.

    In a slot that is the person's own checkout, which has that commit, nothing is written.
    """
    slot.prepare()
    with slot.alone():
        repository = Repository(slot.git, slot.rules)
        make_private(slot.rules)
        repository.make(top, commit)
        found = carried.Carried([], [], [], [], [])
        if way != "here":
            take_index(repository, top, git.head(top))
            found = carried.survey(repository, top, carry)
        base = _origin(way, top, commit, commit, repository.tree_of(commit), found)
        began = repository.tree_of(began)
        vouched = repository.tree_of(vouched)
        base = msgspec.structs.replace(base, branch=branch, began=began, kept=kept, vouched=vouched)
        if way == "here":
            repository.ask("read-tree", base.tree)
            _note(slot, base.tree)
        else:
            base = _check_out(slot, repository, base, tell)
        slot.complete(base)
        return base


def _origin(way: Way, top: str, head: str, commit: str, tree: str, found: carried.Carried) -> Origin:
    return Origin(
        way=way,
        top=top,
        head=head,
        commit=commit,
        tree=tree,
        installed=found.installed,
        data=found.data,
        copied=found.copied,
        left_out=found.left_out,
    )


def _check_out(slot: Slot, repository: Repository, base: Origin, tell: Callable[[str], None]) -> Origin:
    """Write the files of a tree that begins, and what it has besides; the origin with what it really has."""
    files = _check_room(repository, slot, base.tree)
    tell(f"making a workspace of {files:,} file{'' if files == 1 else 's'}")
    make_private(slot.tree)
    os.chmod(slot.tree, stat.S_IMODE(os.stat(base.top).st_mode) | 0o700)
    tracked = repository.entries(base.tree).keys()
    base = msgspec.structs.replace(base, copied=[one for one in base.copied if os.fsencode(one) not in tracked])
    carried.copy(base.copied, base.top, slot.tree)
    carried.place(base, base.top, slot.tree, whole=base.way == "copy")
    repository.ask("read-tree", base.tree)
    repository.ask("checkout-index", "-a", "-q", worktree=slot.tree)
    lend(f"{slot.tree}/.git", repository, base, index=base.head, worktree=slot.tree)
    _note(slot, base.tree)
    # Once per tree: after a loss of power, a file that is empty must be one that an agent has emptied.
    sync_disk(slot.tree)
    return base


def follow(slot: Slot, base: Origin, commit: str, vouched: str, *, wanted: str = "", taken: str) -> Origin:
    """Let the tree hold what `commit` has, or with `wanted` that tree on top of it; it has just been `taken`.

    `vouched` is the commit that decides checks. The caller holds the slot alone. Build products stay: git ignores them,
    and checks do not see them.
    """
    repository = Repository(slot.git, slot.rules)
    after, deciding = repository.trees_of(commit, vouched)
    wanted = wanted or after
    changes = repository.changes(taken, wanted)
    files.unlink(slot, [path for path, (_, new) in changes.items() if not new])
    files.write(slot, repository, {path: new for path, (_, new) in changes.items() if new})
    repository.ask("read-tree", wanted)
    began = base.began or base.tree
    base = msgspec.structs.replace(base, head=commit, commit=commit, tree=after, vouched=deciding, began=began)
    _follow_rules(slot, repository, changes)
    _see_again(slot, changes, wanted)
    if base.way != "here":
        with folders.opened(slot.tree) as top:
            folders.remove(".git", top)
        lend(f"{slot.tree}/.git", repository, base, index=commit, worktree=slot.tree)
    slot.complete(base)
    return base


def _follow_rules(slot: Slot, repository: Repository, changes: Mapping[bytes, tuple[bytes, bytes]]) -> None:
    """Keep the rules of what the tree holds now."""
    for path, (_, new) in changes.items():
        if os.path.basename(path) not in _RULES:
            continue
        target = os.path.join(slot.rules, os.fsdecode(path))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        if new and not new.startswith(b"120000"):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            replace(target, repository.blobs([new.split()[1].decode("ascii")]).popitem()[1])


def _see_again(slot: Slot, changes: Mapping[bytes, tuple[bytes, bytes]], tree: str) -> None:
    """Note how the files are that were just written; all of them are this tree."""
    seen, _ = harvest.load_seen(slot)
    for path, (_, new) in changes.items():
        seen.pop(path, None)
        if new:
            seen[path] = files.stat_of(slot, path)
    harvest.save_seen(slot, seen, tree)


def moved(slot: Slot, base: Origin, top: str) -> Origin:
    """The same tree for a project that is at `top` now."""
    objects = alternates([f"{git.directories(top)[1]}/objects"])
    replace(f"{slot.git}/objects/info/alternates", objects)
    if base.way == "copy":
        replace(f"{slot.tree}/.git/objects/info/alternates", objects)
    base = msgspec.structs.replace(base, top=top)
    slot.complete(base)
    return base


def take_index(repository: Repository, top: str, head: str) -> None:
    """Begin with the person's index, which knows what has not changed since it was written."""
    own = git.directories(top)[0]
    try:
        # With its time: by that, git knows which files may have changed in the moment in which it was written.
        shutil.copy2(os.path.join(own, "index"), os.path.join(repository.path, "index"))
        repository.ask("update-index", "-q", "--refresh", "--no-split-index", worktree=top, fails=[1])
    except (FileNotFoundError, WorkspaceError):
        repository.ask("read-tree", head, worktree=top)  # an index of another kind, or none


def snapshot(repository: Repository, top: str, found: carried.Carried) -> str:
    """The tree of the checkout as it stands."""
    said = repository.ask("diff-files", "-z", "--name-status", worktree=top).split(b"\0")
    changed = dict(zip(said[1::2], said[::2], strict=False))
    # Git does not look for a file behind a link, or below another file: what is gone is named as gone.
    gone = [path for path, status in changed.items() if status == b"D"]
    here = [*(path for path in changed if path not in set(gone)), *found.untracked]
    for paths, how in ((gone, ["--force-remove"]), (here, ["--add", "--replace"])):
        if paths:
            repository.ask("update-index", *how, "-z", "--stdin", given=b"\0".join([*paths, b""]), worktree=top)
    return repository.ask("write-tree").decode("ascii").strip()


def _check_room(repository: Repository, slot: Slot, tree: str) -> int:
    """Refuse a tree that the disk has no room for; how many files it has."""
    said = repository.ask("ls-tree", "-r", "-z", "--format=%(objectsize)", tree).split(b"\0")
    needed = sum(int(size) for size in said if size.isdigit())
    free = shutil.disk_usage(slot.path).free
    if needed + _MARGIN > free:
        raise UsageError(
            f"a workspace needs {needed >> 20} MB, and {free >> 20} MB are free at {slot.path}",
            hint=f"make room, or set RAYMOND_HOME to a larger disk, or {_HERE}",
        )
    return len(said) - 1


def lend(lent: str, repository: Repository, base: Origin, *, index: str, worktree: str) -> None:
    """Make a git directory that a step may do anything to, with the tree `index` in its index.

    Nothing reads it afterwards but the step's own git.
    """
    top, head = base.top, base.head
    make_private(f"{lent}/objects/info")
    make_private(f"{lent}/refs/heads")
    make_private(f"{lent}/info")
    common = git.directories(top)[1]
    settings = git.settings(top)
    remotes = [(key, without_login(value)) for key, value in settings if _is_remote(key)]
    given = contents_settings(settings)
    replace(f"{lent}/config", configuration(head, [one for one in given if not one[0].startswith("filter.")]))
    if os.path.exists(f"{repository.path}/shallow"):
        shutil.copyfile(f"{repository.path}/shallow", f"{lent}/shallow")
    refs = git.references(top)
    line = git.branch_line(top) or head
    if base.branch:
        refs[f"refs/heads/{base.branch}"] = head
        line = f"ref: refs/heads/{base.branch}"
    replace(f"{lent}/packed-refs", "".join(f"{commit} {name}\n" for name, commit in sorted(refs.items())).encode())
    replace(f"{lent}/HEAD", f"{line}\n".encode())
    shutil.copyfile(f"{repository.path}/info/exclude", f"{lent}/info/exclude")
    # While the index is made, the objects are where they are; a step finds them where they are bound.
    objects = [*object_folders(common), *base.objects]
    replace(f"{lent}/objects/info/alternates", alternates(objects))
    borrowing = Repository(lent, worktree)
    borrowing.ask("read-tree", index)
    try:
        # Attributes that an agent has left there run no filter of the person's, and may be a pipe.
        borrowing.ask("update-index", "-q", "--refresh", fails=[1], seconds=_PATIENCE)
    except WorkspaceError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{lent}/index.lock")
    replace(f"{lent}/config", configuration(head, [*given, *remotes]))
    if base.way == "isolated":
        places = "".join(f"{objects_at(number)}\n" for number in range(len(objects)))
        replace(f"{lent}/objects/info/alternates", places.encode("ascii"))


def _is_remote(key: str) -> bool:
    return key.startswith("branch.") or (key.startswith("remote.") and key.endswith((".url", ".fetch")))


def without_login(url: str) -> str:
    """An address without the user and password in it."""
    scheme, sign, rest = url.partition("://")
    if not sign:
        return url
    host, slash, path = rest.partition("/")
    user, at, name = host.rpartition("@")
    login = f"{user.partition(':')[0]}@" if at and scheme == "ssh" else ""
    return f"{scheme}://{login}{name}{slash}{path.partition('?')[0]}"


def _note(slot: Slot, tree: str) -> None:
    """See the files of a tree as they were made, and keep the rules of the base."""
    repository = Repository(slot.git, slot.rules)
    tracked = {path for path in repository.ask("ls-files", "-z").split(b"\0") if path}
    found = harvest.look(os.fsencode(slot.tree), {}, (), lambda paths: set()).found
    harvest.save_seen(slot, {path: one for path, one in found.items() if path in tracked}, tree)
    # Those that git does not track hide files of the person's, too.
    harvest.copy_rules(slot.tree, slot.rules, [path for path in found if os.path.basename(path) in _RULES])
