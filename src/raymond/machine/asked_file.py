"""A file that is shown with a question."""

from msgspec import Struct


class AskedFile(Struct, frozen=True):
    """What the file was when the agent asked: whoever answers sees that, or is told that it is another one."""

    path: str
    """Relative to the directory of the agent."""
    size: int
    sha256: str
    folder: str = ""
    """That directory on this machine, if the agent finds it at another path."""
