"""Everything Raymond raises on purpose.

Error                     str() is one sentence; .hint is what to do
├── WorkflowError         the author's files are wrong          diagnostics   exit 6
├── BackendError          the agent's program failed            backend       exit 5
├── JournalError          the journal cannot be used            path, line    exit 1
│   ├── OtherFormat       another version of Raymond wrote it                 exit 1
│   ├── RunNotFound       no such run                                         exit 2
│   ├── RunExists         a run has this id already                           exit 2
│   └── RunBusy           another process holds it              pid, host     exit 1
│       └── RunDriven     and drives it                                       exit 1
├── WorkspaceError        a workspace cannot be used                          exit 1
├── NotContinued          a run is left to its owner                          exit 5
└── UsageError            the command makes no sense                          exit 2
    └── WrongDirectory    it would elsewhere                    directory     exit 2
"""

import errno
from collections.abc import Callable
from typing import Any, TypeGuard

from msgspec import Struct

_FAULTS = {errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETXTBSY}
"""Too many processes or open files, no memory, a program that is just being written: all of them pass."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""No room on a disk: that does not pass unless somebody makes some."""


def is_passing_fault(error: BaseException | None) -> TypeGuard[OSError]:
    """Whether waiting helps: the same may work later, although nobody changes it."""
    return isinstance(error, OSError) and error.errno in _FAULTS


class Diagnostic(Struct, frozen=True, kw_only=True):
    """One finding in the author's files: what is wrong, where, and how to fix it."""

    id: str
    message: str
    file: str
    severity: str = "error"
    line: int = 0
    """Counted from 1; 0 for the whole file."""
    column: int = 0
    source: str = ""
    """The text of that line, shown with a caret under it."""
    length: int = 1
    hint: str = ""
    lines: tuple[str, ...] = ()
    """The hint in lines, if it has several that are ours; in any other, a line break was quoted from somewhere."""


class Error(Exception):
    """Base of every deliberate error."""

    exit_code = 1
    lines: tuple[str, ...] = ()
    """The hint in lines, if it has several that are ours; in any other, a line break was quoted from somewhere."""

    def __init__(self, message: str, *, hint: str = "", again: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.again = again
        """The command with which a run continues, if the hint ends in it."""

    def __reduce__(self) -> tuple[Callable[..., "Error"], tuple[Any, ...], dict[str, Any]]:
        """For another process: an error is made again from what it has, whatever its class is made with."""
        return _remade, (type(self), self.args), self.__dict__


def _remade(kind: type[Error], args: tuple[Any, ...]) -> Error:
    return kind.__new__(kind, *args)


class WorkflowError(Error):
    """The author's files are wrong."""

    exit_code = 6

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(diagnostics[0].message, hint=diagnostics[0].hint)
        self.diagnostics = diagnostics


class WorkflowNotFound(WorkflowError):
    """There is nothing at the path that was given."""

    exit_code = 2


class BackendError(Error):
    """An agent's program cannot be used."""

    exit_code = 5

    def __init__(self, message: str, *, backend: str, hint: str = "", again: str = "") -> None:
        super().__init__(message, hint=f"{hint}, then: {again}" if again else hint, again=again)
        self.backend = backend


class JournalError(Error):
    """The journal of a run cannot be read or written."""

    def __init__(self, message: str, *, path: str = "", line: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.path = path
        self.line = line


class OtherFormat(JournalError):
    """Another version of Raymond wrote the journal: it is left as it is."""


class RunNotFound(JournalError):
    """There is no such run."""

    exit_code = 2


class RunExists(JournalError):
    """A run with this id exists already."""

    exit_code = 2


class RunBusy(JournalError):
    """Another process holds the lock of the run, if only for a moment to write something down."""

    def __init__(self, message: str, *, path: str, pid: int = 0, host: str = "", hint: str = "") -> None:
        super().__init__(message, path=path, hint=hint)
        self.pid = pid
        self.host = host


class RunDriven(RunBusy):
    """Another process drives the run: it takes requests, as only a driver does."""


class WorkspaceError(Error):
    """A workspace cannot be made, read or brought home; nothing in it is lost."""


class NotContinued(Error):
    """A run is left to its owner, because nobody asked for it to be resumed as it is now."""

    exit_code = 5

    def __init__(self, message: str, *, again: str = "") -> None:
        super().__init__(f"{message}: {again}" if again else message)
        self.again = again


class UsageError(Error):
    """The command makes no sense."""

    exit_code = 2


class WrongDirectory(UsageError):
    """The command would make sense in another directory."""

    def __init__(self, message: str, *, directory: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.directory = directory
