"""Runs that earlier releases kept in the project, below `.raymond`.

A checkout may have brought them, so nothing is believed and no link is followed.

workflows/ID.jsonl   the journal; ID.lock, held by whoever drives it
blobs/SHA256         sources/SHA256.zip
transcripts/ID/      sessions/ID/      spool/ID/
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

import msgspec

from raymond.digests import digest
from raymond.errors import Error, JournalError, NewerJournal, RunExists, UsageError, WorkflowError
from raymond.machine.run import Run
from raymond.patterns import regex
from raymond.store import journal
from raymond.store.exports import former_journal
from raymond.store.lock import Holder
from raymond.store.project import Project
from raymond.store.run_folder import ID_FORM, RunFolder
from raymond.system import files, folders
from raymond.system.locks import FileLocks

_TOP = ".raymond"
_BLOB = regex(rb'"\\u0000blob:([^"]*)"')
_DIGEST = regex(r"[0-9a-f]{64}")
_MOST = 1 << 30
_DEEPEST = 8
_KEPT = ("transcripts", "sessions", "spool")


def ids(tree: str) -> Iterator[str]:
    """The runs that an earlier release kept in the project at `tree`."""
    with contextlib.suppress(OSError), folders.below(tree, _TOP, "workflows") as fd, os.scandir(fd) as entries:
        for entry in entries:
            id, dot, ending = entry.name.partition(".")
            if dot and ending == "jsonl" and ID_FORM.fullmatch(id) and entry.is_file(follow_symlinks=False):
                yield id


def copy(project: Project, tree: str, id: str) -> tuple[RunFolder, Run]:
    """Copy a run of `tree` into a folder aside and read it there; refused when a file is not what was kept."""
    if project.run(id).exists:
        hint = f"`raymond status {id}` shows it"
        raise RunExists(f"{project.tree} has a run `{id}` already", path=project.run(id).path, hint=hint)
    _check_idle(tree, id)
    project.make()
    aside = RunFolder(project.home, f"{project.runs}/{journal.new_name(id)}", id)
    try:
        os.mkdir(aside.path, 0o700)
        return aside, _fill(tree, aside)
    except OSError as error:
        discard(aside)
        what = error.filename if isinstance(error.filename, str) else former_journal(tree, id)
        why = f"{what}: {(error.strerror or str(error)).lower()}"
        raise _not_kept(tree, id, why) from None
    except BaseException:
        discard(aside)
        raise


def accept(project: Project, tree: str, aside: RunFolder) -> None:
    """Give the copied run its name: from now on it is one of this project."""
    try:
        _check_idle(tree, aside.id)
        if os.lstat(former_journal(tree, aside.id)).st_size != os.lstat(aside.journal).st_size:
            raise _not_kept(tree, aside.id, "its journal was changed meanwhile")
        os.rename(aside.path, project.run(aside.id).path)
        files.sync_folder(project.runs)
    except OSError as error:
        discard(aside)
        raise _not_kept(tree, aside.id, (error.strerror or str(error)).lower()) from None
    except Error:
        discard(aside)
        raise


def put_away(tree: str, id: str) -> None:
    """Rename the journal of a run that was adopted, so that it is not offered again."""
    with contextlib.suppress(OSError), folders.below(tree, _TOP, "workflows") as fd:
        os.rename(f"{id}.jsonl", f"{id}.jsonl.adopted", src_dir_fd=fd, dst_dir_fd=fd)


def discard(aside: RunFolder) -> None:
    """Remove a copied run that nobody wants."""
    with folders.opened(os.path.dirname(aside.path)) as above:
        folders.remove(os.path.basename(aside.path), above)


def _check_idle(tree: str, id: str) -> None:
    """Refuse a run that a process of the earlier release drives."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(f"{tree}/{_TOP}/workflows/{id}.lock", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if FileLocks().is_taken(fd):
                hint = "stop it with the release that started it, or kill the process; then adopt the run"
                raise UsageError(f"process {_pid(fd)} of an earlier release drives {id}", hint=hint)
        finally:
            os.close(fd)


def _pid(fd: int) -> str:
    """The process that signed a lock file, for a message."""
    with contextlib.suppress(OSError, msgspec.DecodeError, RecursionError):
        return str(msgspec.json.decode(os.pread(fd, 4096, 0), type=Holder).pid)
    return "?"


def _fill(tree: str, aside: RunFolder) -> Run:
    with folders.below(tree, _TOP, "workflows") as fd:
        data = _read(f"{aside.id}.jsonl", fd)
    for name in dict.fromkeys(found.decode("utf-8", "replace") for found in _BLOB.findall(data)):
        _copy_blob(tree, aside, name)
    _put(aside.journal, data)
    run = _read_copy(tree, aside)
    _check_places(tree, run)
    _copy_source(tree, aside, run.start.source)
    for name in _KEPT:
        with contextlib.suppress(FileNotFoundError), folders.below(tree, _TOP, name, aside.id) as fd:
            _copy_folder(fd, aside.file(name))
    files.sync_folder(aside.path)
    return run


def _read_copy(tree: str, aside: RunFolder) -> Run:
    """The run in the copy; an error names the files that it was copied from."""
    try:
        return journal.read(aside).run
    except JournalError as error:
        why = str(error).replace(aside.journal, former_journal(tree, aside.id)).replace(aside.path, f"{tree}/{_TOP}")
        refused = _not_kept(tree, aside.id, why)
        hint = error.hint if isinstance(error, NewerJournal) else refused.hint
        raise type(error)(str(refused), path=refused.path, line=error.line, hint=hint) from None


def _check_places(tree: str, run: Run) -> None:
    """Refuse a directory that depends on where the run is resumed, or that cannot be one."""
    agents = [place.cwd for agent in run.agents.values() for place in (agent, *(agent.stack or ())) if place.cwd]
    for path in (run.start.cwd, *run.start.roots, *agents):
        if not path.startswith("/") or "\0" in path:
            why = f"its journal names a directory `{path[:80]}`, which is not an absolute path"
            raise _not_kept(tree, run.start.workflow_id, why)


def _copy_blob(tree: str, aside: RunFolder, name: str) -> None:
    if not _DIGEST.fullmatch(name):
        raise _not_kept(tree, aside.id, f"its journal names a text `{name[:80]}`, which cannot be one of its own")
    with folders.below(tree, _TOP, "blobs") as fd:
        data = _read(name, fd)
    if digest(data) != name:
        raise _not_kept(tree, aside.id, f"the text {name[:16]} was changed after it was kept")
    files.make_private(aside.blobs)
    _put(f"{aside.blobs}/{name}", data)


def _copy_source(tree: str, aside: RunFolder, digest: str) -> None:
    from raymond.store import zips  # commands that only mention such runs do without

    if not _DIGEST.fullmatch(digest):
        raise _not_kept(tree, aside.id, "its journal names no snapshot of a workflow")
    with folders.below(tree, _TOP, "sources") as fd:
        data = _read(f"{digest}.zip", fd)
    try:
        kept = zips.digest(zips.read_snapshot(data, file=f"{digest}.zip"))
    except WorkflowError as error:
        raise _not_kept(tree, aside.id, str(error)) from None
    if kept != digest:
        raise _not_kept(tree, aside.id, f"the snapshot {digest[:16]} of its workflow was changed after it was kept")
    _put(aside.source, data)


def _copy_folder(fd: int, target: str, depth: int = 0) -> None:
    """Copy folders and regular files; anything else stays behind."""
    if depth > _DEEPEST:
        raise OSError(errno.ELOOP, "its folders are too deep", target)
    files.make_private(target)
    for name in os.listdir(fd):
        kind = os.lstat(name, dir_fd=fd).st_mode
        if stat.S_ISDIR(kind):
            with folders.opened(name, inside=fd) as inner:
                _copy_folder(inner, f"{target}/{name}", depth + 1)
        elif stat.S_ISREG(kind):
            _put(f"{target}/{name}", _read(name, fd))


def _read(name: str, folder: int) -> bytes:
    """The content of a file that anybody may have made, of any size."""
    data = files.contents(name, _MOST + 1, inside=folder)
    if len(data) > _MOST:
        raise OSError(errno.EFBIG, "it is too large", name)
    return data


def _put(path: str, data: bytes) -> None:
    with open(path, "xb", buffering=0, opener=files.private) as file:
        files.write_all(file.fileno(), data)
        files.sync(file.fileno())


def _not_kept(tree: str, id: str, why: str) -> JournalError:
    hint = "it was damaged, or it did not come from here; it stays where it is"
    return JournalError(f"{id} cannot be adopted: {why}", path=former_journal(tree, id), hint=hint)
