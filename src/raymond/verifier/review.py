"""What a person looks at before accepting a change of the check: the difference, and what both runs printed."""

import difflib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from raymond.redaction import Secrets
from raymond.system.files import make_private, replace
from raymond.verifier import seal as sealed_files
from raymond.verifier.decides import Change
from raymond.verifier.seal import Seal

DIFF = "changes.diff"
Read: TypeAlias = Callable[[str], bytes]
"""Reads the file at a path of the tree; nothing where there is none."""
_LARGEST = 1 << 20
"""Bytes of a file that is compared line by line, and of the whole difference."""


def save(
    folder: str, changes: Sequence[Change], old: Read, new: Read, texts: Mapping[str, str], secrets: Secrets
) -> None:
    """Write what a person looks at into `folder`, without `secrets`; `old` and `new` read files, `texts` are more."""
    make_private(folder)
    diff = "".join(line for one in changes for line in _diff(one, old(one.path), new(one.path)))
    for name, text in {DIFF: diff[:_LARGEST], **texts}.items():
        replace(os.path.join(folder, name), secrets.clean(text).encode("utf-8", "replace"))


def readers(folder: str, seal: Seal) -> tuple[Read, Read]:
    """How the files of a seal were, and how they are."""
    packs = os.path.dirname(folder)
    return lambda path: _sealed(packs, seal, path), lambda path: _current(os.path.join(seal.rules.top, path))


def _diff(change: Change, old: bytes, new: bytes) -> Iterator[str]:
    if old == new == b"":
        yield f"{change.how} {change.path} (empty)\n"
        return
    if b"\0" in old or b"\0" in new or max(len(old), len(new)) > _LARGEST:
        yield f"{change.how} {change.path} ({len(old):,} bytes before, {len(new):,} now)\n"
        return
    before, after = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (old, new))
    names = (
        ("/dev/null" if change.how == "added" else f"a/{change.path}"),
        ("/dev/null" if change.how == "removed" else f"b/{change.path}"),
    )
    for line in difflib.unified_diff(before, after, *names):
        yield line if line.endswith("\n") else f"{line}\n"


def _sealed(packs: str, seal: Seal, path: str) -> bytes:
    entry = seal.entries.get(path)
    if entry is None:
        return b""
    if entry.link:
        return os.fsencode(f"link to {entry.link}\n")
    return (
        sealed_files.read_pack(os.path.join(packs, entry.pack), entry.offset, entry.known[1])
        if entry.pack
        else b"(too large)\n"
    )


def _current(path: str) -> bytes:
    if os.path.islink(path):
        return os.fsencode(f"link to {os.readlink(path)}\n")
    if not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(_LARGEST + 1)
