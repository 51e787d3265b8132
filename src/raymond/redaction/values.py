"""What is secret in an environment: which variables, which parts of a value, and how it may be written."""

import re
from collections.abc import Iterator

import msgspec

from raymond.patterns import regex
from raymond.redaction.escapes import Unescaped
from raymond.redaction.patterns import compiled

LEAST = 12
"""Characters a value must have: shorter ones occur in any text by chance."""

_NAME = regex(
    r"KEY|TOKEN|SECRET|PASS(?!ENGER)|PWD|CREDENTIAL|COOKIE|WEBHOOK|AUTH(?!OR(?!I[ZS]))|(?:^|_)(?:PAT|DSN)(?:_|$)",
    re.IGNORECASE,
)

_HARMLESS = frozenset(("PWD", "OLDPWD", "RAYMOND_STEP_KEY"))
"""Names that look like those of secrets: two directories, and what a step names its work by."""

_PIECES = r'(?:["\r\n]|\\[rn])+'

_FRAME = " \t\r\n\"'\\"
"""Characters around a value that are not part of it: quotation marks from an env file would match those of JSON."""


# A value like this could match across the strings of a JSON line and break its syntax; its pieces still count.
_SYNTAX = r'"\s*[,:\]}\s]|[,:\[{\s]\s*"'

_URL = r"[A-Za-z][A-Za-z0-9+.\-]*://(?:[^\s/:@]*:(?P<password>[^\s/]+)@)?"

_NUMBER = (
    r"[\d\s.,:;_+\-/()\[\]{}%]+|[+\-]?[\d.,_]+[eE][+\-]?\d+|0[xX][0-9a-fA-F]{1,16}"
    r"|\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+\-][\d:]+)?"
)

_HOME = r"~[\w.\-]*/|\.\.?[/\\]|[A-Za-z]:[\\/]|\\\\"

_RANDOM = r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[A-Za-z0-9+=]{16,}"

_KEY = r"(?<=[/=])(?:(?=[A-Za-z_\-]*\d)(?=[\da-z_\-]*[A-Z])[A-Za-z0-9_\-]{20,}|[0-9a-f]{24,})(?=[/?&#]|\Z)"

_WORD = r"[a-z]{1,24}|[A-Z]{1,24}|[A-Z][a-z]{1,23}|[A-Za-z][a-z]{2,}(?:[A-Z][a-z]{2,})+|\d{1,2}|(?:19|20)\d\d"

_WORDS = rf"[\-_./:@,;\s]*(?:(?:{_WORD})(?:[\-_./:@,;\s]+|\Z))+"

_PARTS = rf"(?=.*/)(?:(?:{_WORD}|[a-z]+\d{{1,5}})(?:[\-_./]+|\Z))+"

_UNQUOTED = (
    rb"[^A-Za-z0-9_.~-]",
    rb"[^A-Za-z0-9_.~/-]",
    rb"[^A-Za-z0-9_.~!'()*-]",
    rb"[^A-Za-z0-9_.~!'()*;,/?:@&=+$#-]",
)
"""What is quoted in an address: by the standard, by Python, and by JavaScript for a part and for all of it."""


def is_named(name: str) -> bool:
    """Whether a variable of that name holds a secret."""
    return name not in _HARMLESS and _NAME.search(name) is not None


def parts(value: str) -> Iterator[str]:
    """What is secret in an environment value: all of it, and its lines and quoted texts, which may occur alone."""
    for part in (value, *re.split(_PIECES, value)):
        bare = part.strip(_FRAME)
        address = re.match(_URL, bare)
        for one in _of_address(bare, address) if address else (bare,):
            # Escapes in the value itself are undone like those of the text: enough must remain.
            if len(Unescaped(one).plain) >= LEAST and not is_known(one) and not re.search(_SYNTAX, one):
                yield one


def _of_address(bare: str, address: re.Match[str]) -> list[str]:
    """What is secret in an address: its password, a key in place of a user, and random parts of its path."""
    rest = bare[address.end() :]
    user, at, _ = rest.partition("@")
    keys = re.findall(_KEY, rest)
    return [address["password"] or "", user if at and "/" not in user else "", *keys]


_COMMON = rf"(?:{_NUMBER}|{_WORDS}|{_PARTS})\Z"

_VARIABLE = r"\$(?:[a-z_]+\d{0,2}|[a-z]+(?:[A-Z][a-z]+)+)|\$\(.*\)|%[A-Za-z_]+%"

_PORT = r"(?:\d{1,5}|\$[A-Z_][A-Z0-9_]*)(?:[/?#].*)?"

_STAND_IN = rf"(?:{_VARIABLE}|{_PORT})\Z"


def is_password(value: str) -> bool:
    """Whether what stands in the place of a password is one: not a word, a variable, or the port of a host."""
    return len(value) > 5 and not compiled(_STAND_IN).match(value) and not _is_common(value)


def is_login(value: str) -> bool:
    """Whether `value` is the base64 of a name and a password."""
    from binascii import Error, a2b_base64  # a library of its own, which most texts do not need

    bare = value.rstrip("=")
    try:
        name, colon, password = a2b_base64(bare + "=" * (-len(bare) % 4)).decode().partition(":")
    except (Error, UnicodeDecodeError):
        return False
    return bool(colon and password) and (name + password).isprintable()


def _is_common(value: str) -> bool:
    return len(set(value)) < 5 or compiled(_COMMON).match(value) is not None


def is_known(value: str) -> bool:
    """Whether `value` is a number, words, a path, or almost empty."""
    if _is_common(value):
        return True
    if value.startswith("/"):
        return not value.endswith("=") and not any(re.fullmatch(_RANDOM, part) for part in value.split("/"))
    return re.match(_HOME, value) is not None


def needles(value: str) -> set[str]:
    """The unescaped forms of `value`: an escape can mean something else after a backslash, inside or before it."""
    if value.isascii():
        forms = [value, msgspec.json.encode(value).decode()[1:-1]]
    else:
        import json  # imported here: it takes eleven milliseconds, and most runs do not need it

        forms = [value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    found = {Unescaped(lead + form).plain.lstrip("\\") for form in forms for lead in ("", "\\")}
    return found | _in_addresses(value)


def _in_addresses(value: str) -> set[str]:
    """`value` as it stands in addresses, by the habits of several languages."""
    raw = value.encode("utf-8", "surrogateescape")
    found = set()
    for unquoted in _UNQUOTED:
        quoted = re.sub(unquoted, lambda one: f"%{one[0][0]:02X}".encode(), raw).decode("ascii")
        found |= {quoted, re.sub("%..", lambda one: one[0].lower(), quoted), quoted.replace("%20", "+")}
    return found - {value}


def encoded(value: str) -> set[str]:
    """`value` in base64, wherever it begins there."""
    from binascii import b2a_base64  # as above

    raw = value.encode("utf-8", "surrogateescape")
    found = set()
    for before in range(3):
        # The first and last characters depend on what stands around it.
        text = b2a_base64(bytes(before) + raw[: (len(raw) + before) // 3 * 3 - before], newline=False).decode()
        inner = text[(before * 4 + 2) // 3 :]
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {one for one in found if len(one) >= LEAST}


def spelled(name: str) -> str:
    """A name that breaks neither JSON nor the mark."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "_", name)
