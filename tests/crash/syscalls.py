"""System calls as strace prints them: what one is about, whether it changes anything, and how it can fail.

A call that only reads, or that changes only the process itself (its memory, descriptors, handlers, directory), leaves
nothing behind when the process dies: a crash at it leaves the same world as a crash at the next call that changes
something. So only the latter are worth a crash. Whatever is not known here counts as one of them.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

KILL = "KILL"
CODE = "code"
"""What a call is about that imports a module. The files that Python compiles are its own affair."""
_LINE = re.compile(r"(\w+)\((.*)\)\s+= (.*)")
_STRINGS = re.compile(r'(\d+|AT_FDCWD)<([^>]*)>|"([^"]*)"')
_TAKES_TEXT = frozenset("write pwrite64 writev sendto sendmsg recvfrom recvmsg read pread64".split())

_READS = frozenset(
    """access faccessat faccessat2 stat fstat lstat newfstatat statx statfs fstatfs read readv pread64 preadv lseek
    readlink readlinkat getdents64 getcwd getpid getppid gettid getuid geteuid getgid getegid getgroups getsid getpgrp
    getpgid getrandom uname sysinfo times getrusage clock_gettime clock_getres gettimeofday getsockopt getsockname
    getpeername getxattr lgetxattr fgetxattr listxattr sched_getaffinity sched_getparam getpriority poll ppoll select
    pselect6 epoll_wait epoll_pwait epoll_pwait2 clock_nanosleep nanosleep capget getresuid getresgid""".split()
)
_OWN = frozenset(
    """brk mmap munmap mremap mprotect madvise mlock set_tid_address set_robust_list rseq arch_prctl futex membarrier
    close close_range dup dup2 dup3 pipe pipe2 epoll_create1 epoll_ctl eventfd2 timerfd_create timerfd_settime
    pidfd_open rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack restart_syscall chdir fchdir umask prctl
    sched_yield socket setsockopt fadvise64 execve""".split()
)
_HARMLESS = {
    "fcntl": ("F_GETF", "F_SETF", "F_DUPFD", "F_OFD_GETLK", "F_GETLK"),
    "ioctl": ("TCGETS", "TIOCGWINSZ", "FIOCLEX", "FIONCLEX", "FIONBIO", "FIONREAD"),
    "prlimit64": (", NULL, ",),
    "wait4": ("WNOHANG, NULL) = 0",),
}
"""Arguments with which a call changes nothing that others see."""

_ERRORS = {
    "openat": "EMFILE EIO EACCES ENOMEM EINTR",
    "read": "EIO EINTR",
    "getdents64": "EIO",
    "newfstatat": "EIO EACCES",
    "write": "EIO ENOSPC EDQUOT EINTR",
    "fsync": "EIO ENOSPC EDQUOT EROFS",
    "fdatasync": "EIO ENOSPC EDQUOT EROFS",
    "ftruncate": "EIO EROFS EINTR",
    "rename": "EIO ENOSPC EDQUOT EROFS EACCES",
    "renameat": "EIO ENOSPC EDQUOT EROFS EACCES",
    "link": "EIO ENOSPC EDQUOT EROFS EACCES",
    "mkdir": "EIO ENOSPC EDQUOT EROFS EACCES",
    "mkdirat": "EIO ENOSPC EDQUOT EROFS EACCES",
    "unlink": "EIO EROFS EACCES",
    "unlinkat": "EIO EROFS EACCES",
    "rmdir": "EIO EROFS EACCES",
    "chmod": "EIO EROFS EACCES",
    "fchmod": "EIO EROFS",
    "utimensat": "EIO EROFS EACCES",
    "clone3": "EAGAIN ENOMEM",
    "clone": "EAGAIN ENOMEM",
    "vfork": "EAGAIN ENOMEM",
    "wait4": "EINTR",
    "waitid": "EINTR",
    "kill": "EPERM ESRCH",
    "pidfd_open": "EMFILE ENOMEM",
    "pipe2": "EMFILE",
    "epoll_create1": "EMFILE ENOMEM",
    "epoll_ctl": "ENOMEM ENOSPC",
    "epoll_wait": "EINTR",
    "socket": "EMFILE ENOMEM",
    "bind": "EACCES EROFS ENOMEM",
    "listen": "EADDRINUSE",
    "accept4": "EMFILE ENOMEM EINTR",
    "recvfrom": "EIO EINTR",
    "sendto": "EIO EINTR ENOMEM",
    "chdir": "EACCES EIO",
    "getcwd": "ENOENT",
    "flock": "EINTR ENOMEM",
    "fcntl": "ENOMEM",
    "exit_group": "",
}
"""What each call can really come back with, the likely first."""
_CREATES = "ENOSPC EMFILE EACCES EROFS EDQUOT EIO ENOMEM EINTR"
_ANY = "EIO ENOMEM"
"""Of calls that change something and do not stand above."""


class Call(Struct, frozen=True):
    """One system call."""

    name: str
    about: str
    """The files and strings in it, without what differs from run to run."""
    number: int
    """Counts the calls of this name and about."""
    when: int
    """Counts the calls of this name, as strace does."""
    args: str
    result: str

    @property
    def changes(self) -> bool:
        """Whether somebody else could see that it was made."""
        if self.name in _READS or self.name in _OWN or self.result.startswith("-1 "):
            return False
        if self.name == "openat":
            return "O_CREAT" in self.args or "O_TRUNC" in self.args
        whole = f"{self.args}) = {self.result}"
        return not any(one in whole for one in _HARMLESS.get(self.name, ()))

    @property
    def errors(self) -> list[str]:
        """What it can come back with."""
        if self.name == "openat" and "O_CREAT" in self.args:
            return _CREATES.split()
        if (self.name == "fcntl" and not self.changes) or "AT_EMPTY_PATH" in self.args:
            return []  # of a descriptor that is there
        return _ERRORS.get(self.name, _ANY if self.changes else "").split()

    @property
    def kind(self) -> tuple[str, str, bool]:
        """What it has in common with the calls that are made by the same code."""
        about = self.about
        for form, instead in _ALIKE:
            about = form.sub(instead, about)
        return self.name, about, self.changes

    @property
    def struck(self) -> bool:
        """Whether this is where strace struck."""
        return self.result == "?" or self.result.endswith("(INJECTED)")


def parse(trace: Path, folder: Path) -> list[Call]:
    """The calls in what strace wrote of a command in `folder`."""
    return read(trace.read_text("utf-8", "replace").splitlines(), str(folder))


def read(lines: Iterable[str], folder: str) -> list[Call]:
    """The calls in these lines."""
    seen: Counter[str] = Counter()
    calls = []
    for line in lines:
        found = _LINE.fullmatch(line)
        if found:
            name, args, result = found.groups()
            about = _about(name, args, folder)
            seen[name] += 1
            seen[f"{name} {about}"] += 1
            calls.append(Call(name, about, seen[f"{name} {about}"], seen[name], args, result))
    return calls


def _about(name: str, args: str, folder: str) -> str:
    parts = []
    for number, path, text in _STRINGS.findall(args):
        if path and number != "AT_FDCWD":
            parts.append(plain(path, folder))
        elif text and name not in _TAKES_TEXT:
            parts.append(plain(text, folder))
    return ",".join(parts)


_PLAIN = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,27}"), "ID"),
    (re.compile(r"[0-9a-f]{64}"), "DIGEST"),
    (re.compile(r"-[0-9a-f]{12}(?=/|$)"), ""),
    (re.compile(r"^.*/raymond-r-[0-9a-f]{8}(?=/|$)"), "CGROUP"),
    (re.compile(r"\.[0-9a-f]{12}(?=\.(?:out|jsonl)$)"), ".X"),
    (re.compile(r"/proc/(\d+|self)(/task/\d+)?"), "/proc/N"),
    (re.compile(r"[0-9a-f]{8}\.(tmp|new|old|dropped)"), r"X.\1"),
    (re.compile(r"(?<=/probe-)[a-z0-9_]{8}(?=/|$)"), "X"),
    (re.compile(r"(?<=/git/index\.)[0-9a-f]{8}(?=$|\.)"), "X"),
    (re.compile(r"(pipe|socket|anon_inode|UNIX\S*):?\[[^]]*\]"), r"\1"),
    (re.compile(r"^.*/(lib/python3|site-packages|src($|/raymond)).*|.*\.so(\.[\d.]+)?$"), CODE),
    (re.compile(r"[\s:]"), "_"),
)


def plain(path: str, folder: str) -> str:
    """A path without the parts that differ from run to run."""
    if folder.startswith(path):
        return "above"
    path = path.removeprefix(f"{folder}/")
    for form, instead in _PLAIN:
        path = form.sub(instead, path)
    return path


_ALIKE = (
    (re.compile(r"[A-Z]+\.(sh|md)"), r"STATE.\1"),
    (re.compile(r"(replies|workflow)\.yaml|lib/note.sh"), "FILE"),
    (re.compile(r"main(_work1)?(?=[./]|$)"), "AGENT"),
    (re.compile(r"\d+"), "N"),
)


def begun(calls: Iterable[Call], home: str) -> list[Call]:
    """The calls from the first that is about the home on: what comes before is Python importing us."""
    rest = list(calls)
    for at, call in enumerate(rest):
        if call.about.startswith(home):
            return rest[at:]
    return []
