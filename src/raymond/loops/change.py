"""Change: a file that two trees do not have alike, as git tells it."""

import os

from msgspec import Struct

MODULE = "160000"
"""The mode of a submodule."""
_LINK, _FOLDER = "120000", "040000"


class Change(Struct, frozen=True):
    """A file that two trees do not have alike."""

    path: str
    status: str
    """A, M, D or T, as git says it."""
    old: str
    """The object before; only zeros when there was none."""
    new: str
    old_mode: str
    mode: str

    @property
    def is_module(self) -> bool:
        """Whether it is a submodule."""
        return MODULE in (self.old_mode, self.mode)

    @property
    def had_content(self) -> bool:
        """Whether it was a file or a link."""
        return self.status != "A" and self.old_mode != MODULE

    @property
    def has_content(self) -> bool:
        """Whether it is now a file or a link."""
        return self.status != "D" and self.mode != MODULE

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, before or now: git tells of those only where it is asked to."""
        return _FOLDER in (self.old_mode, self.mode)

    @property
    def is_file(self) -> bool:
        """Whether it is now a file with content."""
        return self.status != "D" and self.mode not in (_LINK, MODULE)


def read_changes(raw: bytes) -> list[Change]:
    """What git says that differs."""
    parts, found = raw.split(b"\0"), []
    for head, path in zip(parts[::2], parts[1::2], strict=False):
        old_mode, mode, old, new, status = head.decode("ascii", "replace").lstrip(":").split(" ")
        found.append(Change(os.fsdecode(path), status, old, new, old_mode, mode))
    return found
