"""SHA-256 and SHA-1 of a few short contents: the library of OpenSSL is twice as fast, but loading it takes longer."""

from collections.abc import Callable
from importlib import import_module
from typing import Protocol


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
