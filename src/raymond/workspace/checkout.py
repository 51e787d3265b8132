"""A checkout for checks: it holds what was harvested, and before each check Raymond puts it right.

A check runs what agents wrote, so nothing that an earlier one left here is believed. Raymond knows every file that it
wrote, by content and by time: what differs is written again, and what it does not know is removed. Only what the ignore
rules hide, such as build products, may stay for the next check.
"""

import contextlib
import marshal
import os
import shutil
import stat
from collections.abc import Collection, Mapping

import msgspec

from raymond.system import folders
from raymond.system.files import contents, make_private, replace
from raymond.workspace import carried, files, tree
from raymond.workspace.harvest import Stat, entries_of, folders_of, ignored, mode_of, seen, write_blobs
from raymond.workspace.repository import Repository
from raymond.workspace.slot import Origin, Slot

_PATIENCE = 10.0
"""Seconds to wait for the end of a check whose verifier was killed."""
Written = dict[bytes, tuple[bytes, Stat]]
"""Path -> mode and blob, and how the file was when it was written."""


def follow(slot: Slot, source: Slot, base: Origin, wanted: str, *, keep: bool) -> Collection[bytes]:
    """Let the checkout in `slot` hold the tree `wanted`, which was harvested in `source`; its files.

    What is ignored may stay if we `keep` it.
    """
    repository = Repository(source.git, source.rules)
    base = msgspec.structs.replace(base, objects=[f"{source.git}/objects"])
    written = _load(slot)
    if written is None:
        slot.prepare()
        _place(slot, source, base)
        slot.complete(base)
        written, keep = {}, False
    with slot.alone(patience=_PATIENCE):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_note(slot))  # until it is there again, the checkout is none
        entries = repository.entries(wanted)
        standing = _put_right(slot, repository, base, written, entries, keep=keep)
        gone = written.keys() - entries.keys()
        missing = {path: one for path, one in entries.items() if path not in standing or standing[path][0] != one}
        files.remove(slot, gone, entries)
        files.write(slot, repository, missing)
        if not keep:
            carried.copy((path for path in base.copied if os.fsencode(path) not in entries), base.top, slot.tree)
        _renew(slot)
        nothing = b"0 " + b"0" * len(wanted)
        _lend(slot, repository, base, wanted, {**dict.fromkeys(gone, nothing), **missing})
        kept = {path: one for path, one in standing.items() if path in entries and path not in missing}
        new = {path: (one, files.stat_of(slot, path)) for path, one in missing.items()}
        replace(_note(slot), marshal.dumps({**kept, **new}))
        return entries


def changed(slot: Slot, source: Slot, but: str) -> str:
    """The tree that was put into the checkout with what was changed in its files since, `but` for those in a folder."""
    repository = Repository(source.git, source.rules)
    written = {path: one for path, one in (_load(slot) or {}).items() if not path.startswith(os.fsencode(f"{but}/"))}
    now: dict[bytes, Stat] = {}
    lines: dict[str, bytes] = {os.fsdecode(path): entry for path, (entry, _) in (_load(slot) or {}).items()}
    for path, (_, known) in written.items():
        try:
            found = files.stat_of(slot, path)
        except OSError:
            del lines[os.fsdecode(path)]
            continue
        if found != known and (stat.S_ISREG(found[0]) or stat.S_ISLNK(found[0])):
            now[path] = found
    blobs = write_blobs(repository, slot.tree, source.rules, now, now, f"{slot.path}/links")
    lines |= {os.fsdecode(path): mode_of(now[path]) + b" " + blob for path, blob in blobs.items()}
    return repository.changed(repository.empty_tree(), lines)


def place_again(slot: Slot, source: Slot, base: Origin) -> None:
    """Empty a checkout with packages of its own, and let it have those of the person again."""
    with folders.opened(slot.path) as beside:
        folders.remove("tree", beside)
        folders.remove("lent", beside)
    _place(slot, source, base)
    replace(_note(slot), marshal.dumps({}))


def _place(slot: Slot, source: Slot, base: Origin) -> None:
    make_private(slot.tree)
    os.chmod(slot.tree, stat.S_IMODE(os.stat(source.tree).st_mode) | 0o700)
    carried.place(base, base.top, slot.tree, whole=base.way == "copy")


def is_whole(slot: Slot) -> bool:
    """Whether there is a checkout, and not what a kill has left of one."""
    return os.path.exists(_note(slot))


def _note(slot: Slot) -> str:
    return f"{slot.path}/written"


def _load(slot: Slot) -> Written | None:
    """What Raymond wrote in a checkout that is whole; None where there is none."""
    try:
        written: Written = marshal.loads(contents(_note(slot)))
        return written
    except FileNotFoundError:
        return None


def _put_right(
    slot: Slot, repository: Repository, base: Origin, written: Written, wanted: Collection[bytes], *, keep: bool
) -> Written:
    """Remove what Raymond did not write, or what is in the way; the files that are as it wrote them."""
    skipped = {os.fsencode(path) for path in (".git", *base.installed, *base.data)}
    standing: Written = {}
    strangers = []
    known = folders_of(written)
    above_skipped = folders_of(skipped)
    pending = [b""]
    while pending:
        prefix = pending.pop()
        for name, found in entries_of(os.path.join(os.fsencode(slot.tree), prefix)):
            path = prefix + name
            if path in skipped:
                continue
            is_folder = stat.S_ISDIR(found.st_mode)
            if is_folder and (path in known or path in above_skipped):
                pending.append(path + b"/")
            elif path in written and written[path][1] == seen(found):
                standing[path] = written[path]
            else:
                strangers.append(path + b"/" if is_folder else path)
    stay = ignored(repository, repository.worktree, strangers) if keep and strangers else set()
    stay -= {one for path in (*written, *wanted, *folders_of(wanted)) for one in (path, path + b"/")}
    with folders.opened(slot.tree) as top:
        for path in strangers:
            if path not in stay:
                files.remove_one(top, path.rstrip(b"/"))
    return standing


def _lend(slot: Slot, repository: Repository, base: Origin, wanted: str, changed: Mapping[bytes, bytes]) -> None:
    """Give it a `.git` as it was never used, whose index has the tree `wanted`."""
    lent = f"{slot.path}/lent"
    if not os.path.isdir(lent):
        tree.lend(lent, repository, base, index=wanted, worktree=slot.tree)
    elif changed:
        lines = b"".join(b"%s\t%s\0" % (one, path) for path, one in changed.items())
        Repository(lent, slot.tree).ask("update-index", "-z", "--index-info", given=lines)
    if base.branch:
        make_private(os.path.dirname(f"{lent}/refs/heads/{base.branch}"))
        replace(f"{lent}/refs/heads/{base.branch}", f"{base.head}\n".encode("ascii"))
    shutil.copytree(lent, f"{slot.tree}/.git")


def _renew(slot: Slot) -> None:
    """Take away what a check wrote over installed packages and caches, and its `.git`."""
    with folders.opened(slot.path) as beside:
        folders.remove("layer", beside)
    make_private(f"{slot.layer}/upper")
    with folders.opened(slot.tree) as top:
        folders.remove(".git", top)
