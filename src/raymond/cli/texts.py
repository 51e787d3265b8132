"""The texts that flags and arguments give or name."""

import os
import stat

from raymond.control import arguments
from raymond.errors import UsageError
from raymond.language.tags import BUILT_IN
from raymond.text import visible

MOST = 16 << 20
"""Bytes of a text that is read from a file or from stdin."""
SENT = 1 << 20
"""Bytes of a text that is sent to a run: an answer, a result, an input."""


def text(given: str, what: str, most: int = MOST) -> str:
    """The text itself, that of a file with @FILE, or stdin with - or @-; `what` names it in errors.

    One line break at the end of a file or of stdin is dropped, as a shell does.
    """
    if given in ("-", "@-"):
        return arguments.check_text(stdin(most), what)
    if given == "@":
        raise UsageError("@ does not name a file", hint="write @FILE, e.g. @notes.md")
    return arguments.check_text(_trimmed(read(given[1:], most)) if given.startswith("@") else given, what)


def stdin(most: int = MOST) -> str:
    """The text on stdin, whatever is in it."""
    import sys

    return _trimmed(_decoded(sys.stdin.buffer.read(most + 1), "stdin", most))


def file(path: str, what: str, most: int = MOST) -> str:
    """The text of a regular file, without the line break at its end."""
    return arguments.check_text(_trimmed(read(path, most, pipes=False)), what)


def read(path: str, most: int = MOST, *, pipes: bool = True) -> str:
    """The text in a file that a flag names.

    A device is refused, which may have no end, and so is a named pipe: whoever opens one waits for somebody to write.
    """
    try:
        kind = os.stat(path).st_mode
        is_open = pipes and stat.S_ISFIFO(kind) and _is_open(path)
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind) and not is_open:
            raise UsageError(f"`{path}` is not a regular file", hint="name a file with a text in it")
        with open(path, "rb") as opened:
            return _decoded(opened.read(most + 1), f"`{path}`", most).replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        why = (error.strerror or "").lower()
        raise UsageError(f"`{path}` cannot be read: {why}", hint="paths are relative to this directory") from None
    except ValueError:
        raise UsageError(f"`{visible(path)}` is not a path: it contains a NUL") from None


def _is_open(path: str) -> bool:
    """Whether a pipe is one that this process was started with, as `@<(command)` in a shell."""
    return os.path.dirname(os.path.abspath(path)) in ("/dev/fd", "/proc/self/fd")


def _decoded(data: bytes, what: str, most: int) -> str:
    if len(data) > most:
        raise UsageError(
            f"{what} is larger than {most >> 20} MiB", hint="give the path of the file instead of its text"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} is not UTF-8 (byte {error.start + 1})", hint="save it as UTF-8") from None


def _trimmed(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def variable(given: str) -> tuple[str, str]:
    """The name and the value of `--var K=V`."""
    key, equals, value = given.partition("=")
    if not equals or not key:
        raise UsageError(f"`{given}` is not a variable", hint="--var name=value")
    arguments.check_variable(key)
    if key in BUILT_IN:
        hint = "--input TEXT" if key in ("input", "run_input") else "choose another name"
        raise UsageError(f"--var cannot set `{key}`, a built-in variable", hint=hint)
    return key, arguments.check_text(value, f"--var {key}")


def overrides(given: tuple[str, ...] | list[str]) -> dict[str, dict[str, object]]:
    """`STATE.KEY=VALUE` -> {STATE: {KEY: VALUE}}; the value is YAML."""
    found: dict[str, dict[str, object]] = {}
    for one in given:
        left, equals, value = arguments.check_text(one, "--set").partition("=")
        state, dot, key = left.rpartition(".")
        if equals and not state:
            raise UsageError(f"`{one}` does not name a state", hint="--set REVIEW.md.max_visits=5")
        if not equals or not dot:
            raise UsageError(f"`{one}` is not STATE.KEY=VALUE", hint="--set REVIEW.md.max_visits=5")
        from raymond.language import frontmatter

        document = frontmatter.load(f"{key}: {value}", file="--set")
        if document.diagnostics or key not in document.values:
            raise UsageError(f"`{value}` cannot be read as a value of {key}", hint="--set REVIEW.md.max_visits=5")
        found.setdefault(state, {})[key] = document.values[key]
    return found
