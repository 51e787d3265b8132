"""The person's repository, for runs whose agents work in a workspace: only references of Raymond's are new in it."""

import hashlib
import os
import subprocess
from pathlib import Path
from random import Random

from raymond.workspace.slot import Slot

LEDGER = "ledger"
"""The file of the project that the scripts of such a run write their notes to."""
_SET = ("-c", "user.name=A Person", "-c", "user.email=person@example.org", "-c", "gc.auto=0")


def blob(text: str) -> str:
    """A file of this content, as git lists it."""
    data = text.encode()
    name = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    return f"100644 blob {name}"


class Person:
    """A checkout with something in it that is not committed."""

    def __init__(self, room: Path, workspace: str, *, id: str = "r") -> None:
        self.room = room
        self.id = id
        self.slot = Slot(f"{workspace}/1")
        if not (room / ".git").exists():
            self._make()
        self.before = self.standing()
        """What was the person's at first."""

    def _make(self) -> None:
        self.git("init", "-q", "-b", "main")
        (self.room / "sub").mkdir(exist_ok=True)
        (self.room / "sub" / "file").write_text("committed\n", "utf-8")
        (self.room / "old").write_text("committed\n", "utf-8")
        self.git("add", "sub", "old")
        self.git("commit", "-qm", "first")
        self.git("branch", "other")
        (self.room / "old").write_text("changed\n", "utf-8")
        (self.room / "new").write_text("untracked\n", "utf-8")

    def git(self, *args: str) -> str:
        """What git printed."""
        done = subprocess.run(
            ["git", *_SET, *args], cwd=self.room, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout

    def standing(self) -> dict[str, str]:
        """Everything of the person's: branches, HEAD, the index and the files of the checkout."""
        found = {"refs": self.git("for-each-ref", "refs/heads", "refs/tags"), "HEAD": self.git("symbolic-ref", "HEAD")}
        found |= {
            "index": self.git("ls-files", "--stage"),
            "status": self.git("status", "--porcelain", "--ignored", "--", ".", ":!.raymond"),
        }
        for path in self._files():
            found[str(path.relative_to(self.room))] = path.read_text("utf-8")
        return found

    def _files(self) -> list[Path]:
        apart = (self.room / ".git", self.room / ".raymond")
        files = [path for path in sorted(self.room.rglob("*")) if path.is_file()]
        return [path for path in files if not any(path.is_relative_to(one) for one in apart)]

    def is_there(self, reference: str) -> bool:
        """Whether the repository has a reference."""
        return bool(self.git("for-each-ref", reference))

    @property
    def tip(self) -> str:
        """What holds the work of the run."""
        return f"refs/raymond/{self.id}/tip"

    def read(self, path: str) -> str:
        """A file of the project as the run left it: from its tree, or from what was saved of it."""
        if os.path.exists(f"{self.slot.path}/whole"):
            found = Path(self.slot.tree, path)
            return found.read_text("utf-8") if found.exists() else ""
        if not self.is_there(self.tip) or not self.git("ls-tree", self.tip, path):
            return ""
        return self.git("show", f"{self.tip}:{path}")

    def work(self) -> dict[str, str]:
        """Every file of the work that was saved, and what is in it; the notes of scripts differ from run to run."""
        return {path: about for path, about in self._listed(self.tip).items() if path != LEDGER}

    def _listed(self, reference: str) -> dict[str, str]:
        lines = self.git("ls-tree", "-r", reference).splitlines() if self.is_there(reference) else []
        return {path: about for about, _, path in (line.partition("\t") for line in lines)}

    @property
    def taken(self) -> dict[str, str]:
        """What the run has taken along, in the same form."""
        return self._listed(f"refs/raymond/{self.id}/base")

    def act(self, chance: Random) -> None:
        """Do something that a person does meanwhile."""
        what = chance.choice(("gc", "commit", "dirty", "branch"))
        if what == "gc":
            self.git("gc", "-q", "--prune=now")
        elif what == "branch":
            self.git("branch", f"b{chance.randrange(10**9)}")
        else:
            (self.room / "old").write_text(f"{chance.random()}\n", "utf-8")
            (self.room / "own").write_text(f"{chance.random()}\n", "utf-8")
            if what == "commit":
                self.git("add", "own")
                self.git("commit", "-qm", "another", "--no-verify")
        self.stand_still()

    def check(self) -> None:
        """Nothing of the person's is changed, the repository is sound, and the run has no tree any more."""
        assert self.standing() == self.before, "the person's own"
        self.check_sound()
        assert not os.path.exists(os.path.dirname(self.slot.path)), "a slot is left"

    def check_sound(self) -> None:
        """The repository has nothing that is broken, and no lock of a git that was killed."""
        assert self.git("fsck", "--no-dangling", "--no-progress", "--strict") == ""
        assert [str(path) for path in (self.room / ".git").rglob("*.lock")] == []
        names = self.git("for-each-ref", "--format=%(refname)").splitlines()
        ours = {f"refs/raymond/{self.id}/{name}" for name in ("base", "tip", "applied")}
        assert {one for one in names if one.startswith("refs/raymond/")} <= ours

    def stand_still(self) -> None:
        """From here on, what is there now is the person's."""
        self.before = self.standing()
