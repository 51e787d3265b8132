"""The references under refs/raymond/ that keep what an item left, and a note of those that Raymond made."""

import json

from msgspec import Struct

from raymond.loops.git_calls import GitError
from raymond.loops.repository import Repository
from raymond.system import files


class Saved(Struct, frozen=True):
    """What Raymond saved of one item: nobody else may make, move or remove such a reference."""

    path: str
    """The file with the note."""
    repository: Repository
    prefix: str
    """Of all references of the run: `refs/raymond/ID/`."""
    step: str
    """The key of the step that saves now."""

    def noted(self) -> dict[str, str]:
        """The references that were made for the item, and what they name."""
        return {name: commit for name, (commit, _) in self._read().items()}

    def keep(self, name: str, commit: str) -> None:
        """Let a reference name a commit, once it is noted that it is ours."""
        before = self._read()
        self._write({**before, name: (commit, self.step)})
        try:
            self.repository.move(name, commit)
        except GitError:
            self._write(before)
            raise

    def _write(self, noted: dict[str, tuple[str, str]]) -> None:
        files.replace(self.path, json.dumps(noted).encode(), durable=True)

    def _read(self) -> dict[str, tuple[str, str]]:
        try:
            found: dict[str, tuple[str, str]] = json.loads(files.contents(self.path))
        except OSError:
            return {}
        return found
