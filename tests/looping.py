"""A repository in which a loop runs for the tests: real git, the real command, agents that are scripts."""

import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from running import Ran, Room

LOG = "docs/session_logs/20250117_0900_session.md"
QUEUE = "1. [VERIFY: sh check.sh] Write the answer\n"
CHECK = "grep -q 42 answer.txt\n"
HONEST = "echo 42 > answer.txt; echo '## Summary'; echo 'I wrote it.'; echo ITERATION_COMPLETE"
LOOPS = ("continuous-session", "task-loop", "story-loop")
WAY = "copy"
"""Where agents of these tests work: apart from the checkout, and able to find the files of the test."""
SIGNED = "echo '[GNUPG:] SIG_CREATED D' >&2; echo '-----BEGIN PGP SIGNATURE-----'\n"
"""What a script does at its end that stands for gpg."""
WAIT = "while [ ! -e $TEST_ROOM/../go ]; do sleep 0.02; done\n"
"""A line of an agent that waits until the test has made the file `go`."""


class LoopRoom(Room):
    """A room whose loops work in a copy, unless a command says otherwise."""

    def argv(self, *args: str) -> list[str]:
        starts = "ralph" in args and not set(args) & {"status", "stop", "resume", "eject", "--help"}
        starts = starts or ("start" in args and bool(set(args) & set(LOOPS)))
        says = "--workspace" in args or ("ralph" in args and {"--no-commit", "never"} & set(args))
        more = ["--workspace", WAY] if starts and not says else []
        return super().argv(*args, *more)


class Repository:
    """A room that is a repository, with an agent that does what a script says."""

    def __init__(self, path: Path, agent: str) -> None:
        self.room = LoopRoom(path)
        self.path = self.room.path
        self.git("init", "-q", "-b", "main", ".")
        self.git("config", "user.name", "Ada")
        self.git("config", "user.email", "ada@example.com")
        self.agent(agent)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    def agent(self, script: str) -> None:
        """Let every agent do this; `$1` is the attempt, the prompt is in the file `$PROMPT`."""
        program = self.path.parent / "agent"
        head = 'PROMPT=$(mktemp); cat > "$PROMPT"; log=$(ls docs/session_logs/*.md | tail -n 1)\n'
        program.write_text(head + dedent(script) + "\n", "utf-8")
        if not (self.path.parent / "home/.config/raymond/config.toml").exists():
            self.room.settings(f'backend = "mine"\n[backends.mine]\ncommand = ["bash", "{program}"]\ncost = 0.01\n')

    def git(self, *args: str) -> str:
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            env=self.room.environment,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            check=True,
        )
        return done.stdout.strip()

    def text_at(self, commit: str, name: str) -> str:
        """What a file says in a commit."""
        return self.git("cat-file", "blob", f"{commit}:{name}") + "\n"

    def git_at_work(self) -> "subprocess.Popen[bytes]":
        """A git that works in the repository until the `with` around it ends."""
        return subprocess.Popen(["git", "cat-file", "--batch"], cwd=self.path, stdin=subprocess.PIPE)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")


class Night(Repository):
    """A repository with a queue."""

    def __init__(self, path: Path, queue: str = QUEUE, agent: str = HONEST, **files: str) -> None:
        super().__init__(path, agent)
        self.write({"check.sh": CHECK, "README.md": "# Room\n", LOG: f"# Session: plan\n\n## Next Steps\n\n{queue}"})
        self.write({name.replace("__", "/"): text for name, text in files.items()})
        self.commit("start")

    def loop(self, *args: str, verb: str = "start", loop: str = "continuous-session") -> Ran:
        """One command of the loop, to its end."""
        more = ["--id", "n", "--pause", "0s"] if verb == "start" and "--id" not in args else []
        done = self.room.raymond(loop, verb, *more, *args)
        id = args[args.index("--id") + 1] if "--id" in args else "n"
        return Ran(self.room, id, done.returncode, done.stdout, done.stderr)

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "docs/.continuous-session-state.json").read_text("utf-8"))
        return found

    @property
    def subjects(self) -> list[str]:
        """The subjects of all commits on the loop's branch, oldest first."""
        return self.git("log", "--reverse", "--format=%s", self.tip).splitlines()

    @property
    def tip(self) -> str:
        """The last commit of the loop that began last; HEAD where none has a branch."""
        asked = ("for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/raymond/*/tip")
        return next(iter(self.git(*asked).splitlines()), "HEAD")

    def text(self, name: str) -> str:
        """What a file says at the tip; a state file is in the checkout."""
        if name.endswith("-state.json"):
            return (self.path / name).read_text("utf-8")
        return self.text_at(self.tip, name)

    def has(self, name: str) -> bool:
        """Whether there is such a file at the tip."""
        return bool(self.git("ls-tree", "--name-only", self.tip, name))

    @property
    def logs(self) -> list[str]:
        """The names of the session logs at the tip, oldest first."""
        found = self.git("ls-tree", "--name-only", self.tip, "docs/session_logs/").splitlines()
        return sorted(one.rpartition("/")[2] for one in found)


def killed(night: Night, *, stopping: bool = False, files: Mapping[str, str] = {}) -> None:
    """A loop whose process was killed while its agent worked, or after it was asked to stop; the agent too."""
    night.agent(f"echo half > half.txt; touch $TEST_ROOM/../half\n{WAIT}{HONEST}")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Selected item")
        while not (night.path.parent / "half").exists():
            assert live.process.poll() is None
        if stopping:
            assert night.loop(verb="stop").out.startswith("Stopping n. Session 1 ends first")
        live.signal(signal.SIGKILL)
        live.process.wait()
        night.room.clear()
    night.write(files)
    night.agent(HONEST)
    (night.path.parent / "go").touch()
