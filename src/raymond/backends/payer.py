"""Who pays for turns, told apart without telling a key."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

_DIGITS = 6


class Payer(Struct, frozen=True, kw_only=True):
    """Who pays for turns, and where they are sent."""

    name: str = ""
    """Empty when nobody seems to be logged in."""
    key: str = ""
    """A fingerprint of the key that pays."""
    host: str = ""
    """Where turns are sent, if somebody has set that."""
    account: str = ""
    """A fingerprint of the account, and of everything else that chooses one."""
    needs: tuple[str, ...] = ()
    """Beginnings of the names of the variables that pay."""
    login: str = ""
    """The file of the login that pays, if one does."""


def fingerprint(environment: Mapping[str, str], names: Iterable[str]) -> str:
    """A few digits of the hash of the first of these variables that is set; empty when none is."""
    return digest([next((environment[name] for name in names if name and environment.get(name)), "")])


def chosen(environment: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """Those of these variables that are set, with their values."""
    return [f"{name}={environment[name]}" for name in names if environment.get(name)]


def digest(parts: Iterable[str]) -> str:
    """A few digits of the hash of what of this is not empty; empty when all of it is."""
    given = "\0".join(filter(None, parts))
    if not given:
        return ""
    import hashlib

    return hashlib.sha256(given.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS]


def host(address: str) -> str:
    """The host in an address, without anything that could be a password."""
    return address.rpartition("//")[2].partition("/")[0].partition("?")[0].rpartition("@")[2]
