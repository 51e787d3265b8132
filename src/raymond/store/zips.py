"""Zip files: read one that somebody made, with strict checks, and write Raymond's own snapshots."""

import stat
from collections.abc import Iterator, Mapping
from io import BytesIO
from struct import Struct
from typing import TYPE_CHECKING
from zlib import DEFLATED, MAX_WBITS, compressobj, crc32

from raymond.digests import begun
from raymond.errors import Diagnostic, WorkflowError
from raymond.patterns import regex

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

MOST_FILES = 1000
MOST_ENTRIES = 10 * MOST_FILES
"""Folders and hidden files count here too: whatever a zip lists has to be read before it is known."""
MOST_BYTES = 64 * 1024 * 1024
MOST_RATIO = 100
FOLDERS = ("lib", "tests")
"""The only folders allowed below the top."""
_SMALL = 64
_DRIVE = regex(r"[A-Za-z]:")

# The format of zip files, as in PKWARE's APPNOTE 4.3.
_ABOUT = Struct("<HHHHHIIIHH")
_INDEXED = Struct("<4sH26sHHHII")
_END = Struct("<4sHHHHIIH")
_ENTRY = b"PK\x01\x02"
"""What every entry in the list of a zip begins with."""
_VERSION = 20
_UNIX = 3 << 8
_UTF8 = 1 << 11
_DATE = 1 << 5 | 1  # the first of January 1980
_MODE = stat.S_IFREG | 0o600


def read(data: bytes, *, file: str) -> dict[str, bytes]:
    """The files of a workflow's zip, without its top folder. docs/language.md lists what is refused."""
    with _open(data, file) as archive:
        entries = list(_entries(archive, file))
        names = _flatten([entry.filename for entry in entries], file)
        _measure(entries, len(data), file)
        return {name: _content(archive, entry, file) for name, entry in zip(names, entries, strict=True)}


def read_snapshot(data: bytes, *, file: str) -> dict[str, bytes]:
    """The files of a snapshot that `write` made."""
    with _open(data, file) as archive:
        entries = archive.infolist()
        for entry in entries:
            if reason := unsafe(entry.filename):
                raise refusal("bad-zip", f"`{entry.filename}` {reason}", file)
        return {entry.filename: _content(archive, entry, file) for entry in entries}


def write(files: Mapping[str, bytes]) -> bytes:
    """A zip of `files`; the same files give the same bytes. zipfile takes ten times as long for a thousand files."""
    body: list[bytes] = []
    index: list[bytes] = []
    at = 0
    for name in sorted(files):
        path, content = name.encode(), files[name]
        method, packed = _pack(content)
        about = _ABOUT.pack(_VERSION, _UTF8, method, 0, _DATE, crc32(content), len(packed), len(content), len(path), 0)
        index.append(_INDEXED.pack(_ENTRY, _UNIX | _VERSION, about, 0, 0, 0, _MODE << 16, at) + path)
        body += (b"PK\x03\x04", about, path, packed)
        at += 4 + len(about) + len(path) + len(packed)
    listed = b"".join(index)
    return b"".join((*body, listed, _END.pack(b"PK\x05\x06", 0, 0, len(index), len(index), len(listed), at, 0)))


def _pack(content: bytes) -> tuple[int, bytes]:
    """The compression method and the packed content: short files are stored, others deflated."""
    if len(content) < _SMALL:
        return 0, content
    packer = compressobj(6, DEFLATED, -MAX_WBITS)
    return 8, packer.compress(content) + packer.flush()


def digest(files: Mapping[str, bytes]) -> str:
    """The SHA-256 of names and contents: the same on every machine, whatever tool packs the zip."""
    seen = begun(sum(map(len, files.values())))
    for name in sorted(files):
        content = files[name]
        seen.update(f"{len(name.encode())} {len(content)} {name}\n".encode())
        seen.update(content)
    return seen.hexdigest()


def refusal(id: str, message: str, file: str, hint: str = "") -> WorkflowError:
    """An error about a whole file."""
    return WorkflowError(Diagnostic(id=id, message=message, file=file, hint=hint))


def too_large(message: str, file: str) -> WorkflowError:
    """The error for a workflow that exceeds the limits."""
    return refusal("too-large", message, file, f"at most {MOST_FILES:,} files and {MOST_BYTES // 1024**2} MiB")


def unsafe(name: str) -> str:
    """Why a path must not be unpacked; empty when it is safe."""
    if not name or name.startswith("/") or _DRIVE.match(name):
        return "is an absolute path"
    if "\\" in name or "\0" in name:
        return "contains a character that is not allowed in names"
    if any(part in ("", ".", "..") for part in name.removesuffix("/").split("/")):
        return "leads out of its folder"
    return ""


def _open(data: bytes, file: str) -> "ZipFile":
    from zipfile import BadZipFile, ZipFile

    if data.count(_ENTRY) > MOST_ENTRIES:
        raise too_large(f"there are more than {MOST_ENTRIES:,} entries in this zip", file)
    try:
        return ZipFile(BytesIO(data))
    except (BadZipFile, ValueError, OSError, NotImplementedError):
        raise refusal("bad-zip", "not a zip file, or it is damaged", file, "make it again") from None


def _entries(archive: "ZipFile", file: str) -> Iterator["ZipInfo"]:
    seen: dict[str, str] = {}
    number = 0
    for entry in archive.infolist():
        name = entry.orig_filename
        if reason := unsafe(name):
            raise refusal("bad-zip", f"`{name}` {reason}", file, "make it again, with names below one folder")
        if not _is_plain(entry):
            raise refusal("bad-zip", f"`{name}` is a link or a device", file, "put the file itself in the zip")
        if entry.flag_bits & 1:
            raise refusal("bad-zip", f"`{name}` is encrypted", file, "make the zip without a password")
        if entry.is_dir() or _is_hidden(name):
            continue
        number += 1
        if number > MOST_FILES:
            raise too_large(f"there are more than {MOST_FILES:,} files in this zip", file)
        if (first := seen.setdefault(name.casefold(), name)) != name:
            raise refusal("bad-zip", f"`{first}` and `{name}` differ only in case", file, "rename one")
        if len(seen) < number:
            raise refusal("bad-zip", f"`{name}` is in this zip twice", file, "make it again")
        yield entry


def _is_plain(entry: "ZipInfo") -> bool:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    return kind in (0, stat.S_IFREG, stat.S_IFDIR)


def _is_hidden(name: str) -> bool:
    # __MACOSX is what the Finder adds to every zip.
    return name.startswith("__MACOSX/") or any(part.startswith(".") for part in name.split("/"))


def _flatten(names: list[str], file: str) -> list[str]:
    """The names without the one top folder that may hold everything."""
    if not names:
        raise refusal("empty-workflow", "there is nothing in this zip", file, "add START.md")
    tops = {name.split("/")[0] for name in names if "/" in name} - set(FOLDERS)
    flat = [name for name in names if "/" not in name or name.split("/")[0] in FOLDERS]
    if len(tops) > 1:
        message = f"this zip has several top folders: {', '.join(sorted(tops))}"
        raise refusal("bad-zip", message, file, "put the files of one workflow in it, flat or in one folder")
    if tops and flat:
        message = f"this zip mixes files at the top (`{flat[0]}`) with the folder `{min(tops)}`"
        raise refusal("bad-zip", message, file, "put all files at the top, or all in one folder")
    if tops:
        names = [name.partition("/")[2] for name in names]
    for name in names:
        folder = name.rpartition("/")[0]
        if folder and folder not in FOLDERS:
            message = f"`{name}` is nested too deeply"
            raise refusal("bad-zip", message, file, "the only folders are lib/ and tests/, with no folders inside")
    if clash := set(names) & {name.split("/")[0] for name in names if "/" in name}:
        raise refusal("bad-zip", f"`{min(clash)}` is both a file and a folder", file, "rename one")
    return names


def _measure(entries: "list[ZipInfo]", packed: int, file: str) -> None:
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > MOST_BYTES:
        raise too_large(f"this zip unpacks to {unpacked / 1024**2:.0f} MiB", file)
    if unpacked > MOST_RATIO * packed:
        message = f"this zip unpacks to more than {MOST_RATIO} times its size, like a zip bomb"
        raise refusal("too-large", message, file, "if you trust it, unpack it and run the folder")


def _content(archive: "ZipFile", entry: "ZipInfo", file: str) -> bytes:
    import zlib
    from lzma import LZMAError
    from zipfile import BadZipFile

    try:
        # The header may be wrong: never read more than it says.
        with archive.open(entry) as stream:
            data = stream.read(entry.file_size + 1)
    except NotImplementedError:
        message = f"`{entry.filename}` uses a compression method that is not supported"
        raise refusal("bad-zip", message, file, "make the zip with the default compression, deflate") from None
    except (BadZipFile, RuntimeError, EOFError, OSError, ValueError, zlib.error, LZMAError):
        raise refusal("bad-zip", f"`{entry.filename}` is damaged in this zip", file, "make it again") from None
    if len(data) != entry.file_size:
        raise refusal("bad-zip", f"`{entry.filename}` is not as long as the zip says", file, "make it again")
    return data
