"""Where Raymond keeps things, for the tests that attack them."""

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from crash import record
from running import Live, Room, until

ASKS = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": 'echo "<result>told $RAYMOND_INPUT</result>"'}
"""Asks, and returns what it was told."""


class Place(Room):
    """A room that Raymond has never seen, for a person whose runs are kept in a home of their own."""

    def folder(self, id: str = "r") -> Path:
        """The folder of a run."""
        (found,) = self.home.glob(f"projects/*/runs/{id}")
        return found

    def part(self, name: str, id: str = "r") -> Path:
        """A file or folder of a run: inbox, spool, blobs, state.json and so on."""
        return self.folder(id) / name

    def journal(self, id: str = "r") -> Path:
        return self.folder(id) / "journal.jsonl"

    def sources(self) -> list[Path]:
        """Every snapshot of a workflow."""
        return sorted(self.home.glob("sources/*.zip"))

    def unpacked(self) -> list[Path]:
        """Every unpacked workflow."""
        return sorted(self.home.glob("work/*"))

    def lines(self, id: str = "r") -> list[bytes]:
        """The lines of a journal, without their checksums."""
        return [record.bare(line) for line in self.journal(id).read_bytes().splitlines()]

    def rewrite(self, lines: list[bytes], id: str = "r") -> bytes:
        """Write a journal whose checksums are right; what it holds then."""
        data = b"".join(record.line(line) for line in lines)
        self.journal(id).write_bytes(data)
        return data

    def rows(self, *args: str, **given: Any) -> list[dict[str, Any]]:
        """What `list --json` says."""
        done = self.raymond(*args, "list", "--json", **given)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    def status(self, id: str = "r", **given: Any) -> dict[str, Any]:
        """What `status --json` says."""
        done = self.raymond("status", id, "--json", **given)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    def ask(self, id: str = "r", files: dict[str, str] = ASKS) -> None:
        """A run that asks something and that nobody drives."""
        done = self.command(files, id=id)
        assert done.code == 3, done.err

    def git(self, *args: str, cwd: Path | None = None) -> str:
        who = ("-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "init.defaultBranch=main")
        done = subprocess.run(
            ["git", *who, *args], cwd=cwd or self.path, env=self.environment, text=True, check=True, capture_output=True
        )
        return done.stdout

    def repository(self, text: str = "hello\n") -> "Place":
        """Make the room a repository with one commit."""
        self.git("init", "-q")
        (self.path / "file").write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        return self

    def victim(self) -> Path:
        """A folder that is none of Raymond's business."""
        folder = self.path.parent / "victim"
        (folder / "Documents").mkdir(parents=True)
        (folder / "Documents" / "thesis.txt").write_text("three years of work\n")
        (folder / ".bashrc").write_text("export EDITOR=vi\n")
        return folder

    def ledger(self) -> list[str]:
        """What the scripts wrote into the file `ledger` beside the room."""
        path = self.path.parent / "ledger"
        return path.read_text("utf-8").split() if path.exists() else []

    def noted(self, live: Live, *notes: str) -> None:
        """Wait until the scripts of a run have written all this into the ledger."""
        until(lambda: self.ledger() == [*notes] or live.process.poll() is not None, f"{notes} in the ledger")
        assert self.ledger() == [*notes], live.err


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, and every folder and link as such."""
    return {str(path.relative_to(folder)): _content(path) for path in sorted(folder.rglob("*"))}


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return b"-> " + os.fsencode(os.readlink(path))
    return b"a folder" if path.is_dir() else path.read_bytes() if path.is_file() else b"something else"


def link(path: Path, target: Path) -> None:
    """Put a link where something may be."""
    clear_away(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


def clear_away(path: Path) -> None:
    """Remove something, however it is protected."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        for folder in (str(path.parent), *(below for below, _, _ in os.walk(path))):
            os.chmod(folder, 0o700)
        shutil.rmtree(path)


def pack(path: Path, files: dict[str, str]) -> None:
    """Write a zip."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as zipped:
        for name, text in files.items():
            zipped.writestr(name, text)


def kill(live: Live) -> None:
    """End a driver as a power failure would."""
    live.process.kill()
    live.process.wait()


def no_traceback(done: subprocess.CompletedProcess[str]) -> str:
    """All that was said, by a command that knew what it was doing."""
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode != 70, done.stderr
    return done.stdout + done.stderr
