"""The folded run, kept next to its journal so that a resume need not fold from the start. Only a cache."""

import zlib

import msgspec
from msgspec import Struct

from raymond.machine.run import Run
from raymond.system import files

LAST = 18
"""Bytes of the journal that are compared."""
SCHEMA = 26
"""Increased with every change of Run, Agent or Frame."""


class Snapshot(Struct):
    """A run as it was when its journal was `offset` bytes long."""

    schema: int
    offset: int
    last: bytes
    """The end of the line before `offset`; shows that the journal is the same one."""
    run: Run


_pack = msgspec.msgpack.Encoder(enc_hook=list).encode
_unpack = msgspec.msgpack.Decoder(Snapshot, dec_hook=lambda kind, items: kind(items)).decode


def pack(offset: int, last: bytes, run: Run) -> bytes:
    """The content of a snapshot file."""
    packed = _pack(Snapshot(SCHEMA, offset, last, run))
    return b"%08x%b" % (zlib.crc32(packed), packed)


def unpack(kept: bytes) -> Snapshot | None:
    """The snapshot in `kept`; None when it is damaged or has another schema."""
    if kept[:8] != b"%08x" % zlib.crc32(kept[8:]):
        return None
    try:
        found = _unpack(kept[8:])
    except (msgspec.DecodeError, RecursionError, TypeError, ValueError):
        return None
    return found if found.schema == SCHEMA else None


def write(path: str, offset: int, last: bytes, run: Run) -> None:
    """Keep `run`, folded from a journal of `offset` bytes that ends in `last`."""
    files.replace(path, pack(offset, last, run), run=run.start.workflow_id)


def read(path: str, journal: bytes) -> Snapshot | None:
    """The snapshot at `path`; None when it cannot be used for `journal`, which is then folded from the start."""
    try:
        found = unpack(files.contents(path))
    except OSError:
        return None
    if found is None:
        return None
    begin = found.offset - LAST
    return found if begin > 0 and found.last == journal[begin : found.offset] and len(found.last) == LAST else None
