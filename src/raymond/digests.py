"""SHA-256 and SHA-1 without OpenSSL: its library is twice as fast, but loading it takes longer than a few digests."""

from collections.abc import Callable
from importlib import import_module
from typing import Literal, Protocol


class Digest(Protocol):
    """A content whose digest is made."""

    def update(self, data: bytes, /) -> None:
        """Add to the content."""

    def hexdigest(self) -> str:
        """The digest of all of it."""


def _found(name: str, *modules: str) -> Callable[[bytes], Digest]:
    """A function of Python's own; where it is depends on the version, and `hashlib` always has it."""
    for module in modules:
        try:
            found: Callable[[bytes], Digest] = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
        return found
    raise ImportError(name)


sha256 = _found("sha256", "_sha2", "_sha256", "hashlib")
sha1 = _found("sha1", "_sha1", "hashlib")
_SHORT = 100_000
"""Bytes from which on OpenSSL is worth its loading."""


def begun(length: int, kind: Literal["sha1", "sha256"] = "sha256") -> Digest:
    """A digest for a content of about so many bytes."""
    if length < _SHORT:
        return (sha1 if kind == "sha1" else sha256)(b"")
    import hashlib

    return hashlib.new(kind, usedforsecurity=False)


def digest(content: bytes) -> str:
    """The SHA-256 of a content of any length."""
    found = begun(len(content))
    found.update(content)
    return found.hexdigest()
