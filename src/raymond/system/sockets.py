"""Unix sockets in folders whose paths may be longer than the address of a socket."""

import contextlib
import errno
import os
import socket
import struct
from collections.abc import Iterator

from raymond.system.processes import PORTABLE

LONGEST = 100
"""Bytes of an address that every system takes."""
_CREDENTIALS = struct.Struct("3i")
_UNKNOWN = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EAFNOSUPPORT}
"""What a system or a file system says that has no sockets; EPERM: the FAT of a memory stick."""


def are_unknown(error: OSError) -> bool:
    """Whether there can be no socket at all, whatever is done about the folder."""
    return error.errno in _UNKNOWN


def listen(path: str) -> socket.socket:
    """A socket at `path` that takes connections of its owner; what is there is replaced, and a folder put aside."""
    try:
        return _listen(path)
    except (IsADirectoryError, PermissionError):
        os.chmod(os.path.dirname(path), 0o700)
        if os.path.isdir(path) and not os.path.islink(path):
            os.rename(path, f"{path}.{os.urandom(4).hex()}.aside")
        return _listen(path)


def _listen(path: str) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _address(path) as address:
            server.bind(address)
        os.chmod(path, 0o600)
        server.listen(16)
        server.setblocking(False)
    except OSError:
        server.close()
        raise
    return server


def tell_senders(folder: str) -> bool:
    """Whether a socket in `folder` tells who asks, or would if nothing were in its way; one is tried and removed."""
    path = f"{folder}/{os.urandom(8).hex()}.try"
    try:
        with contextlib.closing(_listen(path)) as server:
            peer(server)
    except OSError as error:
        return not are_unknown(error)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return True


def connect(path: str, within: float) -> socket.socket:
    """A connection to the socket at `path`, whose calls take at most `within` seconds."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        client.settimeout(within)
        with _address(path) as address:
            client.connect(address)
    except OSError:
        client.close()
        raise
    return client


def peer(connection: socket.socket) -> tuple[int, int]:
    """The process at the other end and its user, from the kernel; OSError where the kernel does not tell."""
    if PORTABLE or not hasattr(socket, "SO_PEERCRED"):
        raise OSError(errno.EOPNOTSUPP, "this system does not tell who is at the other end of a socket")
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


@contextlib.contextmanager
def _address(path: str) -> Iterator[str]:
    """A name for `path` that is short enough: through the open folder when the path itself is too long."""
    if len(os.fsencode(path)) <= LONGEST:
        yield path
        return
    folder, name = os.path.split(path)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{name}"
    finally:
        os.close(fd)
