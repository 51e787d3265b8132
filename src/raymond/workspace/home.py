"""The home of a step that works isolated: its variables, what of the person's it is lent, its program's own folder."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence

from raymond.errors import UsageError, WorkspaceError
from raymond.patterns import regex
from raymond.redaction.values import is_named
from raymond.system import folders
from raymond.system.files import make_private, private, regular, replace

_VARIABLE = regex(r"[A-Z_][A-Z0-9_]*")
_LOGIN = regex(r"://[^\s/@:]*:[^\s/@]+@")
"""A password in an address."""
_AGENT = "SSH_AUTH_SOCK"
_KNOWN = {
    "ssh": ("~/.ssh", _AGENT),
    "gh": ("~/.config/gh", "GH_TOKEN", "GITHUB_TOKEN"),
    "docker": ("/run/docker.sock", "~/.docker", "DOCKER_HOST"),
}
"""What `lend:` knows by name: folders, sockets and variables."""
_MEANS = {"docker": "docker is lent: whoever can use it is root on this machine"}
"""What lending a thing means, where that is not obvious."""
_OF_A_PLACE = ("TMPDIR", "TMP", "TEMP", "TEMPDIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", _AGENT, "SSH_AGENT_PID")
"""Variables that name what is not there inside."""
_MOST_BYTES, _MOST_FILES, _DEEPEST = 256 << 20, 20_000, 30
"""What is copied into the folder of a program at most."""


def check(lend: Iterable[str]) -> None:
    """Refuse what cannot be lent."""
    for one in lend:
        if one in _KNOWN:
            continue
        if _VARIABLE.fullmatch(one):
            if one not in os.environ:
                raise UsageError(f"lend: the variable {one} is not set", hint="set it, or remove it from `lend`")
            continue
        if one.startswith(("/", "~/")):
            if not os.path.exists(os.path.expanduser(one)):
                raise UsageError(f"lend: {one} does not exist", hint="make it, or remove it from `lend`")
            continue
        hint = f"one of {', '.join(_KNOWN)}, a variable such as DATABASE_URL, or a path such as ~/.aws"
        raise UsageError(f"lend: `{one}` cannot be lent", hint=hint)


def warnings(lend: Iterable[str]) -> list[str]:
    """What a person should know of what they lend."""
    return [_MEANS[one] for one in lend if one in _MEANS]


def _things(lend: Iterable[str]) -> list[str]:
    return [thing for one in lend for thing in _KNOWN.get(one, (one,))]


def lent(lend: Iterable[str], environment: Mapping[bytes, bytes]) -> dict[str, bool]:
    """The files and folders that are lent; those that do not exist are left out."""
    paths = [os.path.expanduser(one) for one in _things(lend) if one.startswith(("/", "~"))]
    if _AGENT in _things(lend):
        paths.append(os.fsdecode(environment.get(_AGENT.encode(), b"")))
    paths = [os.path.abspath(one) for one in paths if one and os.path.exists(one)]
    return {place: False for one in paths for place in (os.path.realpath(one), one)}


def environment(given: Mapping[bytes, bytes], lend: Iterable[str], needs: Iterable[str]) -> dict[bytes, bytes]:
    """The variables of a step: those of the person, without secrets but for what is lent or its program `needs`."""
    allowed = set(_things(lend))
    found = {}
    for raw, value in given.items():
        name = os.fsdecode(raw)
        is_secret = is_named(name) or _LOGIN.search(os.fsdecode(value)) or name in _OF_A_PLACE
        is_secret = is_secret or name.startswith(("GIT_", "DBUS_"))
        if not is_secret or name in allowed or name.startswith(tuple(needs)):
            found[raw] = value
    return found


# --- the folder of an agent's program


def furnish(folder: str, source: str, names: Iterable[str], written: Mapping[str, bytes] = {}) -> None:
    """Make the folder of a program, once: copies of what has these names in `source`, and files as they are given.

    It is whole or not there at all. What a link leads to is copied, not the link.
    """
    if os.path.isdir(folder):
        return
    above, name = os.path.split(folder)
    aside = f"{name}.new"
    make_private(above)
    with folders.opened(above) as fd:
        folders.remove(aside, fd)
        make_private(f"{above}/{aside}")
        copies = _Copies(source)
        for one in names:
            copies.add(os.path.join(source, one), os.path.join(above, aside, one))
        for one, data in written.items():
            replace(os.path.join(above, aside, one), data)
        os.rename(aside, name, src_dir_fd=fd, dst_dir_fd=fd)


class _Copies:
    """Copies files and folders until there are too many."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._bytes = self._files = 0

    def add(self, source: str, target: str, above: tuple[tuple[int, int], ...] = ()) -> None:
        """Copy a file or a folder; one that is not there, or not readable, is left out."""
        with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
            status = os.stat(source)
            if stat.S_ISDIR(status.st_mode):
                self._add_folder(source, target, above, (status.st_dev, status.st_ino))
            elif stat.S_ISREG(status.st_mode):
                self._count(status.st_size)
                with regular(os.path.realpath(source)) as file, open(target, "xb", opener=private) as copy:
                    shutil.copyfileobj(file, copy)
                    os.fchmod(copy.fileno(), 0o700 if status.st_mode & 0o100 else 0o600)

    def _add_folder(self, source: str, target: str, above: tuple[tuple[int, int], ...], own: tuple[int, int]) -> None:
        if own in above or len(above) > _DEEPEST:
            return  # a link that leads to a folder above it
        names = os.listdir(source)
        os.mkdir(target, 0o700)
        for name in names:
            self.add(os.path.join(source, name), os.path.join(target, name), (*above, own))

    def _count(self, size: int) -> None:
        self._bytes += size
        self._files += 1
        if self._bytes > _MOST_BYTES or self._files > _MOST_FILES:
            most = f"{_MOST_BYTES >> 20} MB or {_MOST_FILES:,} files"
            raise WorkspaceError(f"the settings in {self._source} are too large for a workspace: more than {most}")


def content(folder: str, names: Sequence[str], most: int) -> bytes:
    """A file of at most `most` bytes in a folder that an agent can write; no link is followed, empty without one."""
    with contextlib.suppress(OSError), folders.below(folder, *names[:-1]) as fd, regular(names[-1], inside=fd) as file:
        if os.fstat(file.fileno()).st_size <= most:
            return file.read(most)
    return b""


def bring(source: str, target: str, names: Sequence[str], most: int) -> bool:
    """Copy a file of at most `most` bytes to the same place in another folder, unless one is there; whether one is.

    No link in either folder is followed.
    """
    with contextlib.suppress(OSError):
        make_private(target)
        with (
            folders.below(source, *names[:-1]) as given,
            regular(names[-1], inside=given) as file,
            folders.below(target, *names[:-1], make=True) as taken,
        ):
            if os.fstat(file.fileno()).st_size > most:
                return False
            _add(taken, names[-1], file.read(most))
            return True
    return False


def _add(folder: int, name: str, data: bytes) -> None:
    """Add a file in one go; one that is there stays as it is."""
    aside = f".{name}.{os.urandom(4).hex()}.tmp"
    try:
        folders.append(folder, aside, data, new=True)
        with contextlib.suppress(FileExistsError):
            os.link(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside, dir_fd=folder)
