"""What bash said about scripts, remembered by their text: asking takes a while, and it is told at every start."""

import contextlib
import os
from collections.abc import Mapping

import msgspec

from raymond.digests import sha256
from raymond.errors import Error
from raymond.store import home
from raymond.system import bash, files

NAME = "scripts.json"
_MOST = 1 << 20
_MOST_SCRIPTS = 2000


def complaints(texts: Mapping[str, str]) -> dict[str, str]:
    """What bash says about each script it does not like; it is asked about those that it has not read yet."""
    known = _known()
    keys = {name: _key(text) for name, text in texts.items()}
    new = bash.verdicts({name: text for name, text in texts.items() if keys[name] not in known})
    if new:
        known |= {keys[name]: said for name, said in new.items()}
        _keep(dict(list(known.items())[-_MOST_SCRIPTS:]))
    return {name: said for name, key in keys.items() if (said := known.get(key, ""))}


def _key(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _file() -> str:
    return f"{home.find().path}/{NAME}"


def _known() -> dict[str, str]:
    """The hash of a script -> what bash said; nothing for one that is well."""
    try:
        return msgspec.json.decode(files.contents(_file(), _MOST), type=dict[str, str])
    except (OSError, msgspec.DecodeError, Error):
        return {}


def _keep(known: dict[str, str]) -> None:
    """Only a cache: where it cannot be written, bash is asked again."""
    with contextlib.suppress(OSError, Error):
        if os.path.isdir(os.path.dirname(_file())):
            files.replace(_file(), msgspec.json.encode(known))
