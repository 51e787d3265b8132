"""Folder, zip or file -> Workflow, and the snapshot a run keeps of it."""

import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from raymond import pasted
from raymond.digests import digest
from raymond.errors import Diagnostic, WorkflowError, WorkflowNotFound
from raymond.language import frontmatter, reach
from raymond.language.settings import SETTINGS_FILE, read_settings
from raymond.language.workflow import Workflow, bare, build, extension, is_state
from raymond.patterns import regex
from raymond.store import zips
from raymond.store.zips import MOST_BYTES, MOST_FILES, refusal, too_large
from raymond.text import visible

_BOM = b"\xef\xbb\xbf"
_HASH = regex(r"(?<![0-9a-fA-F])[0-9a-fA-F]{64}(?![0-9a-fA-F])")
_TEXTS = (".md", ".txt")
REPLIES_FILE = "replies.yaml"
_READ = {name: name for name in (SETTINGS_FILE, REPLIES_FILE)}
_LIB = rf"\{{\{{include:|\{{\{{workflow_dir|{reach.BESIDE}"
"""How a state uses the files of lib/."""
_FORMS = "a workflow is a folder, a .zip, or one file that ends in .md .sh .py .ps1 .bat"


class Loaded(Struct):
    """A workflow and the files it was read from."""

    workflow: Workflow
    scope_dir: str
    """The absolute path of the folder or zip."""
    files: dict[str, bytes]
    """What is in the snapshot."""
    digest: str
    """Names the snapshot: the SHA-256 of its names and contents."""
    is_clean: bool = False
    """Nothing was found in the workflow when it was looked at before."""
    clean_by: tuple[object, ...] = ()
    """What decided that lint found nothing now; empty if it found something, or has to look every time."""

    @property
    def source(self) -> bytes:
        """The snapshot as a zip; only written when there is none with its digest yet."""
        return zips.write(self.files)


def load(path: str, *, overrides: Mapping[str, Mapping[str, Any]] = {}, platform: str = sys.platform) -> Loaded:
    """Read a workflow. Raises WorkflowError if it cannot be read at all; mistakes inside it are left to lint."""
    full = os.path.abspath(path)
    entry, beside = None, frozenset[str]()
    try:
        if os.path.isdir(full):
            name, scope, files = os.path.basename(full), full, _folder(full)
        elif not os.path.exists(full):
            raise _not_found(path, full)
        elif full.lower().endswith(".zip"):
            name, scope, files = _zip_name(full), full, _zip(full, path)
        elif extension(os.path.basename(full)) and os.path.isfile(full):
            scope, entry = os.path.split(full)
            name = os.path.basename(scope) if bare(entry) in ("START", "1_START") else bare(entry)
            files = _around(scope, entry, overrides)
            beside = frozenset(name for name in os.listdir(scope) if is_state(name) and name not in files)
        else:
            raise refusal("not-a-workflow", f"`{path}` is not a workflow", path, _FORMS)
    except OSError as error:
        raise _unreadable(path, full, error) from None
    if not files:
        raise refusal("empty-workflow", f"there is nothing in `{path}`", path, "add START.md")
    files = {inside: _clean(inside, data) for inside, data in files.items()}
    try:
        workflow = _build(name, files, entry, overrides, platform)
    except WorkflowError as error:
        found = (located(one, scope) if one.file in files else one for one in error.diagnostics)
        raise type(error)(*found) from None
    workflow.beside = beside
    return Loaded(workflow, scope, files, zips.digest(files))


def without_prompts(path: str, overrides: Mapping[str, Mapping[str, Any]]) -> Loaded:
    """The workflow in a folder without its prompts: another program does what they would."""
    found = load(path)
    files = {name: data for name, data in found.files.items() if not name.endswith(".md")}
    kept = {name: one for name, one in overrides.items() if name in files}
    workflow = from_files(files, name=found.workflow.name, entry=None, overrides=kept)
    return Loaded(workflow, found.scope_dir, files, zips.digest(files))


def located(one: Diagnostic, folder: str) -> Diagnostic:
    """A finding in a file of the workflow in `folder`, which is named as one would type it here."""
    full = os.path.join(folder, one.file)
    path = min(os.path.relpath(full), full, key=len)
    # A command in a hint is to be pasted.
    before, after = (f"raymond ralph {name} " for name in (one.file, pasted.word(path, "PATH")))
    lines = tuple(line.replace(before, after) for line in one.lines)
    return replace(one, file=path, hint=one.hint.replace(before, after), lines=lines)


def from_files(
    files: Mapping[str, bytes],
    *,
    name: str,
    entry: str | None,
    overrides: Mapping[str, Mapping[str, Any]] = {},
    platform: str = sys.platform,
) -> Workflow:
    """The workflow a run began with, from the files of its snapshot."""
    return _build(name, files, entry, overrides, platform)


def _build(
    name: str,
    files: Mapping[str, bytes],
    entry: str | None,
    overrides: Mapping[str, Mapping[str, Any]],
    platform: str,
) -> Workflow:
    texts = {}
    wrong = []
    for inside in sorted(files):
        if not (is_state(inside) or inside in (SETTINGS_FILE, REPLIES_FILE) or inside.startswith("lib/")):
            continue
        try:
            texts[inside] = files[inside].decode().removeprefix("\ufeff").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            # lib/ may hold pictures and programs too.
            if not inside.startswith("lib/") or inside.endswith(_TEXTS):
                wrong.append(_not_utf8(inside, files[inside], error.start))
    if wrong:
        raise WorkflowError(*wrong)
    runnable = _runnable(texts, platform)
    workflow = build(name, texts, entry=entry, platform=platform, runnable=runnable, overrides=overrides)
    workflow.diagnostics += [_misnamed(inside, right) for inside, right in _other_names(files)]
    return workflow


def _other_names(files: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Files that almost have the name of one that is read, and that name."""
    for name in files:
        right = _READ.get(name.lower().replace(".yml", ".yaml"), "")
        if right and name != right and right not in files:
            yield name, right


def _misnamed(name: str, right: str) -> Diagnostic:
    message, hint = f"`{name}` is not read: the file is called `{right}`", f"rename it to {right}"
    return frontmatter.diagnose(frontmatter.Mark(name), "misnamed-file", message, hint)


def _runnable(texts: Mapping[str, str], platform: str) -> frozenset[str]:
    ends = {".md", ".py", ".bat"} if platform == "win32" else {".md", ".py", ".sh"}
    if any(name.endswith(".ps1") for name in texts):
        from shutil import which

        if which("pwsh") or (platform == "win32" and which("powershell")):
            ends.add(".ps1")
    return frozenset(ends)


def _not_utf8(file: str, data: bytes, start: int) -> Diagnostic:
    message = f"byte {start + 1} of `{file}` is not UTF-8"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Diagnostic(
            id="not-utf8", message=message, file=file, line=1, hint="it looks like UTF-16: save it as UTF-8"
        )
    before = data[:start].decode()
    place = frontmatter.mark(file, data.decode(errors="replace"), *frontmatter.position(before, len(before)))
    return frontmatter.diagnose(place, "not-utf8", message, "save it as UTF-8")


def _clean(name: str, data: bytes) -> bytes:
    # bash would read a carriage return or a byte order mark as part of a command.
    if name.endswith(".sh") and is_state(name):
        return data.removeprefix(_BOM).replace(b"\r\n", b"\n")
    return data


def _not_found(path: str, full: str) -> WorkflowError:
    parent, name = os.path.split(full)
    if os.path.islink(full):
        hint = f"make `{os.readlink(full)}`, or remove the link"
        return _nothing(f"`{path}` is a broken link", path, hint)
    try:
        os.lstat(full)
    except PermissionError as error:
        return _unreadable(path, full, error)
    except OSError:
        pass
    try:
        siblings = [other for other in os.listdir(parent) if not other.startswith(".")]
    except OSError:
        siblings = []
    return _nothing(f"there is no `{path}`", path, frontmatter.suggest(name, siblings) or _FORMS)


def _nothing(message: str, path: str, hint: str) -> WorkflowNotFound:
    return WorkflowNotFound(Diagnostic(id="not-found", message=message, file=path, hint=hint))


def _unreadable(path: str, full: str, error: OSError) -> WorkflowError:
    file = error.filename if isinstance(error.filename, str) else full
    scope = full if os.path.isdir(full) else os.path.dirname(full)
    shown = path if file == full else os.path.relpath(file, scope)
    message = f"`{shown}` cannot be read: {(error.strerror or str(error)).lower()}"
    return refusal("unreadable", message, shown, "make it readable, or move it away")


def _zip_name(full: str) -> str:
    return _HASH.sub("", os.path.basename(full)[:-4]).strip("-_. ") or "workflow"


def _zip(full: str, path: str) -> dict[str, bytes]:
    size = os.path.getsize(full)
    if size > MOST_BYTES:
        raise too_large(f"this zip is {size / 1024**2:.0f} MiB large", path)
    with open(full, "rb") as file:
        data = file.read()
    found = digest(data)
    wanted = _HASH.search(os.path.basename(full))
    if wanted and wanted[0].lower() != found:
        message = "the SHA-256 in the name of this zip does not match its content"
        raise refusal("hash-mismatch", message, path, f"get it again, or rename it: its SHA-256 is {found}")
    files = zips.read(data, file=path)
    return {name: content for name, content in files.items() if not name.startswith("tests/")}


def _folder(folder: str) -> dict[str, bytes]:
    return _read(folder, _walk(folder, ""))


def _around(folder: str, entry: str, overrides: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
    """The files of a workflow started from one file: the states it can lead to, workflow.yaml, lib/ and `include`."""
    listed = sorted(os.listdir(folder))
    named = {*_READ, *(name for name, _ in _other_names(listed))}
    paths = [name for name in listed if name in named and _is_file(folder, name)]
    settings = _text(folder, SETTINGS_FILE) or "" if SETTINGS_FILE in paths else ""
    states, uses_lib = _led_to(folder, entry, [name for name in listed if is_state(name)], settings, overrides)
    paths += states
    if uses_lib:
        paths += _lib(folder)
    for pattern in read_settings(settings)[0].include if "include" in settings else ():
        paths += _included(folder, pattern)
    return _read(folder, iter(dict.fromkeys(paths)))


def _led_to(
    folder: str, entry: str, listed: list[str], settings: str, overrides: Mapping[str, Mapping[str, Any]]
) -> tuple[list[str], bool]:
    """The states that `entry` can lead to, and whether one of them uses lib/; no other file is read."""
    names, lib, uses_lib = reach.Names(listed), dict[str, str](), False
    found, named, ahead = [entry], {entry}, [entry]
    while ahead:
        name = ahead.pop()
        text = _state_text(folder, name, required=name in named)
        if text is None:
            found.remove(name)
            continue
        if not uses_lib and re.search(_LIB, text):
            uses_lib = True
            lib = {path[4:]: _text(folder, path) or "" for path in _lib(folder) if path.endswith(_TEXTS)}
        state = build("", {name: text, SETTINGS_FILE: settings}, overrides=overrides).states.get(name)
        if state:
            leads = reach.of_state(state, lib, names)
            named |= set(listed) if leads.every else leads.named
            new = [one for one in listed if one not in found and one in named | leads.mentioned]
            found, ahead = found + new, ahead + new
    return found, uses_lib


def _state_text(folder: str, name: str, *, required: bool) -> str | None:
    """The text of a state; None for a folder, and for what is only mentioned and cannot be a state."""
    try:
        if not _is_file(folder, name):
            return None
        text = _text(folder, name)
    except (OSError, WorkflowError):
        if required:
            raise
        return None
    return "" if text is None and required else text


def _lib(folder: str) -> list[str]:
    if not os.path.isdir(os.path.join(folder, "lib")):
        return []
    _stay(folder, "lib")
    return list(_walk(folder, "lib"))


def _text(folder: str, name: str) -> str | None:
    """The text of a file; None when it is not UTF-8."""
    try:
        return _bytes(f"{folder}/{name}", MOST_BYTES).decode().removeprefix("\ufeff").replace("\r\n", "\n")
    except UnicodeDecodeError:
        return None


def _included(folder: str, pattern: str) -> Iterator[str]:
    import glob

    wrong = zips.unsafe(pattern)
    found = [] if wrong else sorted(glob.glob(pattern.removesuffix("/"), root_dir=folder, recursive=True))
    if not found:
        message = f"`include` names `{pattern}`, which {wrong or 'is not there'}"
        raise refusal("not-found", message, SETTINGS_FILE, "paths are relative to the folder of workflow.yaml")
    for path in found:
        inside = path.replace(os.sep, "/")
        _stay(folder, inside)
        if os.path.isdir(os.path.join(folder, path)):
            yield from _walk(folder, inside)
        elif _is_file(folder, inside):
            yield inside


def _walk(top: str, inside: str) -> Iterator[str]:
    """The files below `top`/`inside`, without hidden ones and tests/."""
    at = os.path.join(top, inside) if inside else top
    with os.scandir(at) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{inside}/{entry.name}" if inside else entry.name
        if entry.name.startswith(".") or entry.name == "__pycache__" or path == "tests":
            continue
        if not entry.is_dir():
            if entry.is_file(follow_symlinks=False) or _is_file(top, path):
                yield path
            continue
        if entry.is_symlink():
            _stay(top, path)
            if (os.path.realpath(at) + os.sep).startswith(os.path.realpath(entry.path) + os.sep):
                raise refusal("unsafe-link", f"`{path}` is a link to a folder that contains it", path, "remove it")
        yield from _walk(top, path)


def _is_file(top: str, path: str) -> bool:
    full = os.path.join(top, path)
    if os.path.islink(full):
        _stay(top, path)
    mode = os.stat(full).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise refusal("unreadable", f"`{path}` is not a regular file", path, "move it out of the workflow")
    return stat.S_ISREG(mode)


def _stay(top: str, path: str) -> None:
    """Refuse links that lead out of the workflow."""
    full = os.path.join(top, path)
    real, root = os.path.realpath(full), os.path.realpath(top)
    if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
        message = f"`{path}` is a link that leads out of the workflow, to `{real}`"
        raise refusal("unsafe-link", message, path, "put a copy of it in the workflow")
    if not os.path.exists(full):
        raise refusal("unsafe-link", f"`{path}` is a broken link", path, "remove it")


def _read(folder: str, paths: Iterator[str]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    room = MOST_BYTES
    for path in paths:
        if len(files) == MOST_FILES:
            raise too_large(f"there are more than {MOST_FILES:,} files in `{folder}`", folder)
        if not path.isprintable() or zips.unsafe(path):
            raise refusal(
                "unsafe-name", f"`{visible(path)}` is not allowed as a file name in a workflow", folder, "rename it"
            )
        files[path] = _bytes(f"{folder}/{path}", room)
        room -= len(files[path])
        if room < 0:
            raise too_large(f"there are more than {MOST_BYTES // 1024**2} MiB in `{folder}`", folder)
    return files


def _bytes(path: str, room: int) -> bytes:
    """The content of a file, or one byte more than `room`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Asking for all of `room` would allocate it for every file.
        wanted = min(os.fstat(fd).st_size, room) + 1
        data = os.read(fd, wanted)
        while len(data) < wanted and (more := os.read(fd, wanted - len(data))):
            data += more
        return data
    finally:
        os.close(fd)
