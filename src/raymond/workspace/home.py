"""The home of a step that works isolated: which variables it keeps, and what of the person's it is lent."""

import os
from collections.abc import Iterable, Mapping

from raymond.errors import UsageError
from raymond.patterns import regex
from raymond.redaction.values import is_named

_VARIABLE = regex(r"[A-Z_][A-Z0-9_]*")
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


def check(lend: Iterable[str]) -> None:
    """Refuse what cannot be lent."""
    for one in lend:
        if one in _KNOWN or _VARIABLE.fullmatch(one) or one.startswith(("/", "~/")):
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
    return {os.path.realpath(one): False for one in paths if one and os.path.exists(one)}


def environment(given: Mapping[bytes, bytes], lend: Iterable[str], needs: Iterable[str]) -> dict[bytes, bytes]:
    """The variables of a step: those of the person, without secrets but for what is lent or its program `needs`."""
    allowed = set(_things(lend))
    found = {}
    for raw, value in given.items():
        name = os.fsdecode(raw)
        is_secret = is_named(name) or name in _OF_A_PLACE or name.startswith(("GIT_", "DBUS_"))
        if not is_secret or name in allowed or name.startswith(tuple(needs)):
            found[raw] = value
    return found
