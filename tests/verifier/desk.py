"""A repository with a check, what an agent does in it, and what the verifier says to that."""

import os
import subprocess
from pathlib import Path
from typing import Any

from raymond.language.check import Check
from raymond.verifier import checks, seal
from raymond.verifier.assignment import Assignment, Found
from raymond.verifier.gate import verify
from raymond.verifier.seal import Seal

ME = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


class Desk:
    """A tree with files, sealed and checked as a run would."""

    def __init__(self, path: Path, files: dict[str, str], *checks: str, repository: bool = True) -> None:
        self.tree = path / "tree"
        self.folder = path / "seals"
        self.checks = checks
        self.seen: dict[str, str] = {"PATH": os.environ["PATH"], "HOME": str(path)}
        self.step = 0
        self.sealed = 0
        self.policy: dict[str, Any] = {}
        self.tree.mkdir()
        for name, text in files.items():
            self.write(name, text)
        if repository:
            self.bash("git init -q . && git add -A && git commit -qm base")

    def write(self, name: str, text: str) -> None:
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def bash(self, script: str) -> None:
        """What an agent does."""
        subprocess.run(["bash", "-ec", script], cwd=self.tree, env={**os.environ, **ME}, check=True)

    def _given(self, **more: Any) -> Assignment:
        self.step += 1
        env = checks.environment_of(self.seen, {}, str(self.folder / "caches"))
        commands = tuple(Check(run=one) for one in self.checks)
        return Assignment(
            checks=commands,
            timeout=60.0,
            reruns=0,
            environment=env,
            folder=str(self.folder),
            step=self.step,
            sealed=self.sealed,
            **self.policy,
            **more,
        )

    def seal(self) -> Seal:
        given = self._given()
        found = seal.seal_here(given, str(self.tree))
        self.sealed = self.step
        return found

    def check(self, **more: Any) -> Found:
        """Run the gate."""
        before = os.getcwd()
        os.chdir(self.tree)
        try:
            return verify(self._given(**more), lambda _: None)
        finally:
            os.chdir(before)

    def after(self, script: str, **more: Any) -> Found:
        """Seal, let the agent work, and run the gate."""
        self.seal()
        self.bash(script)
        return self.check(**more)
