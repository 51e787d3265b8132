"""Which processes a process comes from, and which come from it: on Linux, by /proc."""

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from raymond import errors

_LONGEST = 4096
"""Bytes of a command line that are read."""
_DEEPEST = 256
"""Processes above each other; more of them are not followed."""
_ONE_THREAD = 3
"""The links to the folder of the threads of a process that has only one."""
_PIECE = 1 << 16
_EXEC = 1.0
"""Seconds that we wait for a process that is just starting another program."""
_ENVIRONMENT_END = 48
"""Where, after the name, the address stands at which the environment ends; 0 until there is one."""
_WALKS = 20
"""How often a line is walked while processes in it come and go."""

LOOKS = 5
"""How often no child must be seen until there is none: the kernel may pass over one while others end."""

_NAMES = frozenset(
    {"claude", "codex", "gemini", "opencode", "aider", "cursor-agent", "copilot", "goose", "crush", "qwen"}
)
_PACKAGES = {"claude-code": "claude", "gemini-cli": "gemini", "qwen-code": "qwen"}
"""Folders that they are started from -> their names."""
_INTERPRETERS = ("node", "bun", "deno", "python")
_VALUED = frozenset("-r --require --import --loader --experimental-loader -C --conditions --env-file -W -X".split())
"""Options of theirs that are followed by a value."""
_SUBCOMMANDS = ("run", "x")
_VARIABLES = {
    "CLAUDECODE": "claude",
    "CODEX_SANDBOX": "codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "codex",
    "GEMINI_CLI": "gemini",
    "OPENCODE": "opencode",
    "CURSOR_AGENT": "cursor-agent",
}
"""What they tell the programs that they start."""


# Which processes a process comes from, and what can be seen of them from outside: on Linux, by /proc


class Unseen(OSError):
    """It cannot be seen which processes a process comes from."""


class Process(Struct, frozen=True):
    """A process, as the kernel describes it."""

    pid: int
    parent: int
    group: int
    session: int
    terminal: int
    """The device number of its controlling terminal; 0 for none."""
    foreground: int
    """The process group that has the terminal."""


def look(pid: int) -> Process | None:
    """A process that exists, also one that has ended and was not reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        parent, group, session, terminal, foreground = map(int, fields[1:6])
    except (OSError, ValueError):
        return None
    return Process(pid, parent, group, session, terminal, foreground)


def line(pid: int) -> list[Process]:
    """The process, its parent, and so on up to the first process of the system; nothing where there is no /proc.

    Unseen: the process is gone, or those above it come and go, are too many or hidden. A line that ends too early would
    hide whoever is above.
    """
    if not os.path.lexists("/proc/self"):
        return []
    before: list[int] = []
    for _ in range(_WALKS):
        found = _walk(pid)
        pids = [process.pid for process in found]
        # A parent may end, and another process get its number, while its child is looked at: its child has another
        # parent then, so a second walk goes another way.
        if pids and pids == before:
            return found
        before = pids
    raise Unseen(errno.ESRCH, f"it cannot be seen where process {pid} comes from")


def _walk(pid: int) -> list[Process]:
    """One walk up to the first process; nothing if it does not get there."""
    found: list[Process] = []
    if os.readlink("/proc/self") != str(os.getpid()):
        return []  # this /proc is that of another PID namespace
    while pid:
        process = look(pid)
        if process is None:
            return found if found and _is_hidden(pid) else []
        if len(found) == _DEEPEST:
            raise Unseen(errno.E2BIG, f"process {found[0].pid} has too many processes above it")
        found.append(process)
        pid = process.parent
    return found


def _is_hidden(pid: int) -> bool:
    """Whether another user's process is there that may not be seen; no run of ours is driven above it."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def terminal(process: Process) -> str:
    """The terminal that a process reads, if it is its own and the process is in the foreground there; else nothing."""
    if not process.terminal or process.foreground != process.group:
        return ""
    with contextlib.suppress(OSError):
        stdin = f"/proc/{process.pid}/fd/0"
        if os.stat(stdin).st_rdev == process.terminal:
            return os.fsencode(os.readlink(stdin)).decode("utf-8", "replace")
    return ""


def command(pid: int) -> str:
    """The beginning of a command line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            said = file.read(_LONGEST)
    except OSError:
        return ""
    return said.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")


def variable(pid: int, name: str) -> str:
    """A variable of the environment that a process was started with; empty when it has none."""
    try:
        pairs = environment(pid).split(b"\0")
    except OSError as error:
        _check(error)
        return ""
    begin = f"{name}=".encode()
    return next((pair[len(begin) :].decode("utf-8", "replace") for pair in pairs if pair.startswith(begin)), "")


def environment(pid: int) -> bytes:
    """The environment that a process was started with; nothing if it has ended. OSError: it may not be seen."""
    try:
        found = whole(f"/proc/{pid}/environ") or _environment_soon(pid)
    except ProcessLookupError:
        found = b""
    if found:
        return found
    folder = f"/proc/{pid}/task"
    if os.stat(folder).st_nlink == _ONE_THREAD:
        return b""
    # Its first thread has ended, or is about to: the others tell.
    for thread in os.listdir(folder):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            if found := whole(f"{folder}/{thread}/environ"):
                return found
    return b""


def _environment_soon(pid: int) -> bytes:
    """The environment of a process that may be in the middle of an exec."""
    until = time.monotonic() + _EXEC
    while _starts_another(pid) and time.monotonic() < until:
        time.sleep(0.0005)
    return whole(f"/proc/{pid}/environ")


def _starts_another(pid: int) -> bool:
    """Whether a process is in the middle of an exec: for a moment it has a program and no environment."""
    try:
        fields = whole(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if fields[0] in b"ZX" or fields[_ENVIRONMENT_END] != b"0":
            return False
        # A thread of the kernel never has one.
        return bool(os.readlink(f"/proc/{pid}/exe"))
    except (OSError, IndexError):
        return False


def whole(path: str) -> bytes:
    """The content of a file in /proc, in a quarter of the time that a file object takes."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.read(fd, _PIECE)
        while more := os.read(fd, _PIECE):
            found += more
        return found
    finally:
        os.close(fd)


def open_files(pid: int) -> dict[str, str]:
    """The paths of what a process has open, by the numbers of its descriptors."""
    found: dict[str, str] = {}
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found[name] = os.readlink(f"/proc/{pid}/fd/{name}")
    except OSError as error:
        _check(error)
    return found


def _check(error: OSError) -> None:
    """Do not take a lack of our own for something about the other process."""
    if errors.is_passing_fault(error):
        raise error


# Processes that belong together: what others have started, and whole sessions of theirs


def relatives(roots: Iterable[int], *, sessions: bool = True) -> set[int]:
    """Those of `roots` that exist, and all that come from them; with `sessions`, also what shares one that they began.

    A session is theirs when one of them leads it, or nobody does any more. This process is never among them.
    """
    every = {process.pid: process for process in map(look, _pids()) if process}
    every.pop(os.getpid(), None)
    children = _by(every, lambda one: one.parent)
    members = _by(every, lambda one: one.session) if sessions else {}
    # Our own is not theirs, nor is 0, which stands for all those that began outside of this namespace.
    led = {0, os.getsid(0), *every}
    found, todo = set[int](), [pid for pid in roots if pid in every]
    while todo:
        pid = todo.pop()
        if pid in found:
            continue
        found.add(pid)
        todo += children.get(pid, ())
        session = every[pid].session
        if session == pid or session not in led:
            todo += members.get(session, ())
    return found


def descent(roots: Iterable[int]) -> Iterator[int]:
    """Those of `roots` and all that come from them, each before it is asked what it has started.

    It takes a fraction of the time, but may pass over one whose parent ends meanwhile.
    """
    seen, todo = set[int](), list(roots)
    while todo:
        pid = todo.pop()
        if pid not in seen:
            seen.add(pid)
            yield pid
            todo += children(pid)


def children(pid: int | str = "self") -> list[int]:
    """The children of a process; none where the kernel does not say."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, whole(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _by(every: dict[int, Process], key: Callable[[Process], int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for one in every.values():
        found.setdefault(key(one), []).append(one.pid)
    return found


# The programs of agents: what one of them starts is not typed by a person, whatever terminal it has


def agent_above(line: Iterable[Process], pid: int) -> str:
    """The agent that process `pid` comes from, by its environment and by the `line` above it; empty for none."""
    is_ours = pid == os.getpid()
    for name_of_variable, name in _VARIABLES.items():
        if os.environ.get(name_of_variable) if is_ours else variable(pid, name_of_variable):
            return name
    return next(filter(None, (_agent_of(command(process.pid)) for process in line)), "")


def _agent_of(command: str) -> str:
    """The agent that a command line starts: the program itself, or the file or module that an interpreter is given."""
    first, *rest = command.split(" ")
    is_interpreter = os.path.basename(first).startswith(_INTERPRETERS)
    for word in (first, _given(rest)) if is_interpreter else (first,):
        *folders, name = word.removesuffix(".js").split("/")
        if name in _NAMES:
            return name
        for folder in folders[-2:]:
            if folder in _PACKAGES:
                return _PACKAGES[folder]
    return ""


def _given(words: Iterable[str]) -> str:
    """What an interpreter runs, among its arguments: after its own options."""
    rest = iter(words)
    for word in rest:
        if word == "-m":
            return next(rest, "").partition(".")[0]
        if word in _VALUED:
            next(rest, "")
        elif not word.startswith("-") and word not in _SUBCOMMANDS:
            return word
    return ""
