"""What a person or a program gave, checked before it is journaled: texts, paths, and whom to notify."""

import os
import re

from raymond.errors import UsageError
from raymond.text import is_text

_RELATIVE_PROGRAM = r"\s*(?!/|~)([\w.+@%-]*/[\w.+@%/-]*)(?=\s|[;|&<>]|$)"
"""A command that begins with a program in a folder, named from the directory that one is in."""
_RELATIVE_PATH = r"(?<![\w./~-])\.\.?/[\w.+@%/-]+"
"""A path in the rest of a command that is named from the directory that one is in."""


# Texts that will be journaled, shown and sent to a model: refused when they contain a secret


def check_text(text: str, what: str) -> str:
    """`text`, unless it contains a secret; `what` names it in the error."""
    if not isinstance(text, str):
        raise UsageError(f"{what} must be text, not {type(text).__name__}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{what} is not text that can be stored: it has half a surrogate pair") from None
    if text:
        from raymond.redaction import Secrets

        found = Secrets.of(os.environ).find(text)
        if found:
            raise UsageError(
                f"{what} contains {found}", hint="it would be stored: a step reads secrets from its environment"
            )
    return text


def check_variable(name: str) -> None:
    """Refuse what cannot be the name of a variable in a state."""
    if not name.isidentifier():
        hint = "use letters, digits and _, and do not begin with a digit"
        raise UsageError(f"`{name}` cannot be the name of a variable", hint=hint)


# Paths that will be journaled: refused when they are not text


def check_path(path: str, what: str, hint: str = "rename it") -> str:
    """`path`, if it is UTF-8; `what` names it in the error."""
    if not is_text(path):
        raise UsageError(f"{what} is not UTF-8: {path}", hint=hint)
    return path


def real_root(root: str) -> str:
    """The real path of a directory that is opened to agents with `--root`; refused when there is none."""
    if not os.path.isdir(root):
        raise UsageError(f"there is no directory `{root}`", hint="--root names one that agents may `cd` to")
    return check_path(os.path.realpath(root), "--root")


# Whom a run notifies, as it was meant where it was said


def notify_target(target: str) -> str:
    """`target` with the path of its program written in full, since commands run in the person's home."""
    if not target.strip():
        raise UsageError("--notify is empty", hint="give a command or a URL: --notify 'CMD' or --notify https://...")
    if target.startswith(("http://", "https://")):
        return target
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", target)
    if scheme:
        hint = "give a command, or a URL that begins with https:// or http://"
        raise UsageError(f"--notify {target}: {scheme[1]} is not supported", hint=hint)
    found = re.match(_RELATIVE_PROGRAM, target)
    other = re.search(_RELATIVE_PATH, target[found.end() :] if found else target)
    if other and not re.search(r"\bcd\s", target):
        hint = f"notify commands run in your home directory; write the whole path: {os.path.abspath(other[0])}"
        raise UsageError(f"--notify {target}: {other[0]} is relative", hint=hint)
    if not found:
        return target
    import shlex

    path = os.path.abspath(found[1])
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        what = "is not executable" if os.path.isfile(path) else "does not exist"
        raise UsageError(f"--notify {target}: {path} {what}", hint="name a program that can be started")
    return shlex.quote(path) + target[found.end() :]
