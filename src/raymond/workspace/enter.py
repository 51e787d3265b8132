"""Enter a workspace and become a command there.

A step that works isolated is started through this file. It runs before the command, outside of everything that an agent
can write. The plan (a file, see plan.py) says what the command sees; nothing here knows what a project or an agent is.

It needs the standard library alone, and of that only what costs next to nothing: to import `json`, `signal` and
`socket` would take longer than everything that is done here.

Two processes stay while the command runs. The *outer* one holds the lock of the tree and has the pid that the driver
knows. Its child is pid 1 of a pid namespace: when it ends, for whatever reason, the kernel ends everything that the
command has started. If the outer one is killed, the kernel kills its child.
"""

import ctypes
import fcntl
import marshal
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

FAILED = 125
"""The exit code when the workspace could not be entered; the report says why: a number of the system, and words."""

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
_DETACH = 2  # MNT_DETACH
_NOSUID_NODEV = 2 | 4
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT, _SETATTR = 428, 429, 430, 431, 432, 442
_CLONE, _CLOEXEC, _RECURSIVE, _EMPTY_PATH = 1, os.O_CLOEXEC, 0x8000, 0x1000
_HERE = -100  # AT_FDCWD
_READ_ONLY, _NO_DEVICES = 1, 4
_PDEATHSIG, _DUMPABLE, _NO_NEW_PRIVS, _DROP_BOUND = 1, 4, 38, 24
_KEPT = (0, 1, 3, 4, 5, 6, 7)
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID and SETUID: what root needs for tar, chown and su."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_SET_FLAGS, _UP_AND_RUNNING = 0x8914, 0x1 | 0x40
_HANGUP, _INTERRUPT, _QUIT, _KILL, _PIPE, _TERMINATE = 1, 2, 3, 9, 13, 15
_ENDING = (_HANGUP, _INTERRUPT, _QUIT, _TERMINATE)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class Unusable(Exception):
    """The workspace cannot be entered."""


def main() -> "NoReturn":
    """Become the command that follows the path of the plan."""
    with open(sys.argv[1], "rb") as file:
        plan = marshal.loads(file.read())
    report = os.open(plan["report"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        status = _outer(plan, sys.argv[2:], report)
    except (OSError, Unusable) as error:
        _fail(report, error)
    _end_like(status)


def _outer(plan: "dict[str, Any]", argv: list[str], report: int) -> int:
    """Hold the lock while the command runs; its wait status."""
    lock = os.open(plan["lock"], os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    fcntl.flock(lock, fcntl.LOCK_SH)  # a person may be bringing work home, which takes a moment
    inside = os.open(plan["inside"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    _unshare(_NEWUSER | _NEWNS | _NEWPID | _NEWIPC | (_NEWNET if plan["net"] == "off" else 0))
    # A group's signals reach the command by themselves.
    for number in _ENDING:
        _libc.signal(number, 1)
    go_read, go_write = os.pipe()
    status_read, status_write = os.pipe()
    init = os.fork()
    if init == 0:
        os.close(lock)
        os.close(inside)
        os.close(go_write)
        os.close(status_read)
        try:
            _init(plan, argv, go_read, status_write, report)
        except (OSError, Unusable) as error:
            _fail(report, error)
        finally:
            os._exit(FAILED)
    os.close(status_write)
    # Whoever wants the tree for itself looks here, too: the lock is free a moment before the last process is gone.
    os.write(inside, f"{init} {_began(init)}\n".encode())
    os.write(go_write, b"!")
    said = os.read(status_read, 4)
    _, status = os.waitpid(init, 0)
    return struct.unpack("=i", said)[0] if len(said) == 4 else status


def _unshare(flags: int) -> None:
    """Enter namespaces in which we have our own ids; as root, all of them."""
    user, group = os.geteuid(), os.getegid()
    if user != 0:
        _call("unshare", _libc.unshare(flags))
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
        return
    me = os.getpid()
    wait_read, wait_write = os.pipe()
    mapper = os.fork()
    if mapper == 0:
        # Only a process outside may map more than one id.
        code = FAILED
        try:
            os.close(wait_write)
            if os.read(wait_read, 1):
                _write(f"/proc/{me}/uid_map", "0 0 4294967295")
                _write(f"/proc/{me}/gid_map", "0 0 4294967295")
                code = 0
        finally:
            os._exit(code)
    os.close(wait_read)
    try:
        _call("unshare", _libc.unshare(flags))
        os.write(wait_write, b"!")
    finally:
        os.close(wait_write)
        code = os.waitstatus_to_exitcode(os.waitpid(mapper, 0)[1])
    if code != 0:
        raise Unusable("the ids of this user cannot be mapped")


def _init(plan: "dict[str, Any]", argv: list[str], go: int, status: int, report: int) -> None:
    """Pid 1: lay out what the command sees, start it, reap whatever ends, and end with it."""
    _libc.prctl(_PDEATHSIG, _KILL, 0, 0, 0)
    _libc.prctl(_DUMPABLE, 0, 0, 0, 0)
    if not os.read(go, 1):
        os._exit(FAILED)  # the outer one was killed before we asked to be killed with it
    os.close(go)
    # With a cgroup namespace of its own, a step could mount the control groups of this user, and end what is in them.
    _write("/proc/sys/user/max_cgroup_namespaces", "0")
    _lay_out(plan)
    if plan["net"] == "off":
        _loopback()
    os.chdir(plan["cwd"])
    _drop_rights()
    child = os.fork()
    if child == 0:
        try:
            for number in (*_ENDING, _PIPE):
                _libc.signal(number, 0)
            os.execvp(argv[0], argv)
        except OSError as error:
            _fail(report, OSError(error.errno, f"cannot start {argv[0]}: {(error.strerror or '').lower()}"))
        finally:
            os._exit(FAILED)
    os.close(report)
    for fd in (0, 1, 2):
        os.close(fd)  # a pipe ends with the command and what it started, not with us
    while True:
        pid, ended = os.wait()
        if pid == child:
            os.write(status, struct.pack("=i", ended))
            os._exit(0)


def _lay_out(plan: "dict[str, Any]") -> None:
    """Make everything read-only but for what the plan lends."""
    _call("mount", _libc.mount(b"none", b"/", None, _PRIVATE, None))
    # Sources first: what hides something may hide them, too.
    opened = [(one, _source(one)) for one in plan["mounts"] if one["kind"] == "bind" and _is_wanted(one)]
    layered = [pair for overlay in plan["overlays"] for pair in _overlaid(overlay)]
    devices = [(name, _opened(f"/dev/{name}")) for name in _DEVICES]
    for _, fd in devices:
        _restrict(fd, "", _READ_ONLY, _EMPTY_PATH)  # what is written to a device is not written to a file system
    _restrict(_HERE, "/", _READ_ONLY | _NO_DEVICES, _RECURSIVE)
    places = [*opened, *layered, *((one, -1) for one in plan["mounts"] if one["kind"] == "empty")]
    places += [({"kind": "dev", "at": "/dev"}, -1), ({"kind": "proc", "at": "/proc"}, -1)]
    for one, fd in sorted(places, key=lambda place: place[0]["at"].split("/")):
        _place(one, fd, devices)
    for one in plan["mounts"]:
        if one["kind"] == "empty" and not one["write"]:
            _restrict(_HERE, one["at"], _READ_ONLY, 0)


def _is_wanted(one: "dict[str, Any]") -> bool:
    """Whether something is to be shown: what is only convenient may have gone since the plan was made."""
    return not one["optional"] or os.path.exists(one["source"])


def _source(one: "dict[str, Any]") -> int:
    """A detached copy of what is bound somewhere."""
    fd = _opened(one["source"])
    _restrict(fd, "", _NO_DEVICES | (0 if one["write"] else _READ_ONLY), _EMPTY_PATH | _RECURSIVE)
    return fd


def _opened(path: str) -> int:
    return _call(f"open {path}", _libc.syscall(_OPEN_TREE, _HERE, os.fsencode(path), _CLONE | _CLOEXEC | _RECURSIVE))


def _overlaid(overlay: "dict[str, Any]") -> "list[tuple[dict[str, Any], int]]":
    """Folders of one overlay, each a mount of its own."""
    context = _call("overlay", _libc.syscall(_FSOPEN, b"overlay", 1))
    os.makedirs(overlay["work"], mode=0o700, exist_ok=True)
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    options = {"lowerdir": overlay["lower"], "upperdir": [overlay["upper"]], "workdir": [overlay["work"]]}
    folders = []
    for name, paths in options.items():
        opened = [os.open(path, flags) for path in paths]
        folders += opened
        # An option holds 256 characters.
        _configure(context, 1, name, ":".join(f"/proc/self/fd/{fd}" for fd in opened))
    _configure(context, 0, "userxattr", None)
    _configure(context, 6, None, None)
    mounted = _call("overlay", _libc.syscall(_FSMOUNT, context, 1, 0))
    # Only what is attached somewhere can be cloned; this place is hidden later.
    _move(mounted, "/tmp")
    try:
        found = [(name, at) for name, at in overlay["folders"].items() if os.path.isdir(f"/tmp/{name}")]
        carried = {"kind": "bind", "is_file": False, "optional": True}
        return [({**carried, "at": at}, _opened(f"/tmp/{name}")) for name, at in found]
    finally:
        _call("umount", _libc.umount2(b"/tmp", _DETACH))
        for fd in (context, mounted, *folders):
            os.close(fd)


def _configure(context: int, command: int, key: str | None, value: str | None) -> None:
    raw = [None if one is None else one.encode() for one in (key, value)]
    _call(f"overlay {key or ''}", _libc.syscall(_FSCONFIG, context, command, *raw, 0))


def _place(one: "dict[str, Any]", fd: int, devices: list[tuple[str, int]]) -> None:
    at = one["at"]
    if one["kind"] == "bind":
        if not one["optional"] or _is_free(at, is_file=one["is_file"]):
            if not os.path.lexists(at):
                _make(at, is_file=one["is_file"])
            _move(fd, at)
        os.close(fd)
        return
    os.makedirs(at, mode=0o755, exist_ok=True)
    if one["kind"] == "proc":
        # Root may write much there that concerns the whole machine. An ordinary user may not, and needs to write
        # there for namespaces of its own, which root cannot have inside.
        read_only = 1 if os.geteuid() == 0 else 0
        _mount("proc", at, read_only | 8 | _NOSUID_NODEV, "")  # and MS_NOEXEC
    elif one["kind"] == "dev":
        _mount("tmpfs", at, 2, "mode=755,size=64k")
        _fill_devices(at, devices)
        _restrict(_HERE, at, _READ_ONLY, 0)
    else:
        _mount("tmpfs", at, _NOSUID_NODEV, one["options"])


def _fill_devices(at: str, devices: list[tuple[str, int]]) -> None:
    for name, fd in devices:
        _make(f"{at}/{name}", is_file=True)
        _move(fd, f"{at}/{name}")
        os.close(fd)
    for name, link in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{link}", f"{at}/{name}")
    os.symlink("pts/ptmx", f"{at}/ptmx")
    os.mkdir(f"{at}/pts")
    _mount("devpts", f"{at}/pts", 8 | 2, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir(f"{at}/shm")
    _mount("tmpfs", f"{at}/shm", _NOSUID_NODEV, "mode=1777")


def _is_free(path: str, *, is_file: bool) -> bool:
    """Whether something can be mounted in a tree, where an agent may have put what it likes."""
    above = path
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if os.path.realpath(above) != above:
        return False  # a link, or one on the way
    return os.path.isdir(above) != (is_file and above == path)


def _make(path: str, *, is_file: bool) -> None:
    """Something to mount on."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    if is_file:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    else:
        os.makedirs(path, mode=0o755, exist_ok=True)


def _move(fd: int, at: str) -> None:
    # The empty path of the source: F_EMPTY_PATH.
    _call(f"mount at {at}", _libc.syscall(_MOVE_MOUNT, fd, b"", _HERE, os.fsencode(at), 4))


def _mount(kind: str, at: str, flags: int, options: str) -> None:
    done = _libc.mount(kind.encode(), os.fsencode(at), kind.encode(), flags, options.encode())
    _call(f"mount {kind} at {at}", done)


def _restrict(fd: int, path: str, attributes: int, flags: int) -> None:
    given = struct.pack("=QQQQ", attributes, 0, 0, 0)
    _call(f"restrict {path or 'it'}", _libc.syscall(_SETATTR, fd, os.fsencode(path), flags, given, len(given)))


def _loopback() -> None:
    fd = _call("socket", _libc.socket(2, 2, 0))  # AF_INET, SOCK_DGRAM
    try:
        fcntl.ioctl(fd, _SET_FLAGS, struct.pack("=16sh14x", b"lo", _UP_AND_RUNNING))
    finally:
        os.close(fd)


def _drop_rights() -> None:
    """Keep nothing that could undo the layout."""
    kept = _KEPT if os.geteuid() == 0 else ()
    for number in range(64):
        if number not in kept:
            _libc.prctl(_DROP_BOUND, number, 0, 0, 0)
    mask = sum(1 << number for number in kept)
    header = struct.pack("=Ii", 0x20080522, 0)
    data = struct.pack("=IIIIII", mask, mask, 0, 0, 0, 0)
    _call("capset", _libc.capset(header, data))
    _call("no_new_privs", _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))


def _call(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number).lower()}")
    return result


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)


def _began(pid: int) -> str:
    """The start time of a process, which tells it from a later one with its pid."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()


def _fail(report: int, error: Exception) -> "NoReturn":
    number, text = 0, str(error)
    if isinstance(error, OSError) and error.strerror:
        number = error.errno or 0
        text = f"{error.filename}: {error.strerror.lower()}" if error.filename else error.strerror
    text = f"{number} {text}"
    os.write(report, text.encode("utf-8", "replace"))
    os._exit(FAILED)


def _end_like(status: int) -> "NoReturn":
    """End as the command did, so that the driver sees its exit code or its signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        _libc.prctl(_DUMPABLE, 0, 0, 0, 0)  # one core is enough
        _libc.signal(number, 0)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


if __name__ == "__main__":
    main()
