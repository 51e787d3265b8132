"""A home with a few runs and the project they were started in, and commands that meet them in whatever state they are.

Commands are forked from one process that has imported everything, so that hundreds of them take seconds. One that takes
longer than half a minute hangs, and is killed.
"""

import contextlib
import ctypes
import importlib
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

FLOW = {
    "START.sh": "echo '<fork>TURN.md</fork><wait>ASK.sh</wait>'",
    "TURN.md": "Say something.",
    "ASK.sh": "echo '<ask next=\"END\">W\u00e9ll \u2603?</ask>'",
    "END.sh": 'echo "<result>t\u00f6ld $RAYMOND_INPUT</result>"',
    "replies.yaml": "TURN.md: {text: <result>sm\u00f6ke \u2603</result>, cost: 0.25}\n",
}
DIES = '[ -e "{0}" ] || {{ touch "{0}"; kill -9 $PPID; }}\necho "<result>done</result>"'
"""A script that kills whoever drives it, once: it knows by a file, not by a variable that a situation may take away."""
FAILS = {"START.sh": "exit 7"}
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
TELLING = {"list", "status", "logs", "cost", "config", "doctor", "clean", "trust", "stop", "cancel", "answer"}
"""Commands whose standard output is for people; that of others is the result, or the id, for a program."""
PATIENCE = 30
_PR_SET_CHILD_SUBREAPER = 36


class Said(Struct):
    """What came of a command."""

    command: str
    code: int
    out: str
    err: str

    @property
    def is_a_bug(self) -> bool:
        """It says so, it hangs, or it does not say what is wrong."""
        told = self.code in (0, 3) or (self.out + self.err).strip()
        return self.code in (70, -signal.SIGALRM) or "Traceback" in self.err or not told or self.sends_controls

    @property
    def sends_controls(self) -> bool:
        """It prints something for a person that a terminal would obey, or that turns text round."""
        words = self.command.strip("'\"").split()
        for_programs = "--json" in words or not {*words[:1]} & {*TELLING}
        return bool(CONTROLS.search(self.err if for_programs else self.out + self.err))


class World:
    """The folder that all of it is in, and what commands find there."""

    def __init__(self, folder: Path, *, project: str = "project", home: str = "home") -> None:
        self.folder = folder
        self.home = f"{folder}/{home}"
        self.project = f"{folder}/{project}"
        self.cwd = self.project
        self.flow = f"{folder}/flow"
        self.environment: dict[str, str] = {}
        self.encoding = "utf-8"
        self.before: Callable[[], None] = lambda: None
        """Done in the process of each command, just before it."""
        self.replaced: dict[str, str] = {}
        """Words of the commands, and what stands there instead."""
        self.more: list[list[str]] = []
        """Commands that make sense in this situation only."""
        for name, files in {"flow": FLOW, "fails": FAILS}.items():
            (folder / name).mkdir(exist_ok=True)
            for file, content in files.items():
                (folder / name / file).write_text(content, "utf-8")
        (folder / "file").write_text("from a file", "utf-8")
        os.mkdir(self.project)

    def furnish(self) -> "World":
        """Start runs of every kind: one that is done, one that asks, one that failed, and one whose driver was killed."""
        self.asking("done")
        self.run(["answer", "done", "yes", "--no-resume"])
        self.run(["resume", "done"])
        self.asking("asks")
        self.run(["run", f"{self.folder}/fails", "--id", "failed"])
        self.killed("killed")
        return self

    def asking(self, id: str) -> None:
        self.run(["run", self.flow, "--id", id])

    def killed(self, id: str) -> None:
        flow = self.folder / f"dies {id}"
        flow.mkdir()
        (flow / "START.sh").write_text(DIES.format(f"{self.folder}/{id} died"), "utf-8")
        self.run(["run", str(flow), "--id", id])

    def run_folder(self, id: str) -> Path:
        (found,) = Path(self.home).glob(f"projects/*/runs/{id}")
        return found

    def run(self, args: list[str]) -> Said:
        """One command in a process of its own."""
        out, err = (self.folder / name for name in ("stdout", "stderr"))
        pid = os.fork()
        if not pid:
            os._exit(self._run(args, out, err))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        # What it left in the background has become a child of this process.
        with contextlib.suppress(ChildProcessError):
            while True:
                behind = os.waitstatus_to_exitcode(os.waitpid(-1, 0)[1])
                code = behind if behind == 70 else code
        said = [path.read_text("utf-8", "replace")[-3000:] for path in (out, err)]
        return Said(ascii(" ".join(args))[:200], code, *said)

    def _run(self, args: list[str], out: Path, err: Path) -> int:
        from raymond import cli
        from raymond.cli import terminal

        signal.alarm(PATIENCE)
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdout = open(1, "w", encoding=self.encoding, errors="strict")
        sys.stderr = open(2, "w", encoding=self.encoding, errors="backslashreplace")
        os.environ.update({"RAYMOND_HOME": self.home, **self.environment})
        os.chdir(self.cwd)
        self.before()
        terminal.guard()
        code = cli.main(args)
        cli.flush()
        return code

    def all(self, commands: list[list[str]], *, put_back: bool) -> list[Said]:
        """All these commands; each of them finds the home and the project as they are now when what was is put back."""
        kept = [(path, f"{self.folder}/kept {path.rpartition('/')[2]}") for path in {self.home, self.project}]
        kept = [(path, copy) for path, copy in kept if os.path.isdir(path)] if put_back else []
        for path, copy in kept:
            _copy(path, copy)
        said = []
        for args in commands:
            said.append(self.run([self._filled(arg) for arg in args]))
            for path, copy in kept:
                clear(Path(path))
                _copy(copy, path)
        for _, copy in kept:
            clear(Path(copy))
        return said

    def _filled(self, arg: str) -> str:
        words = {"FLOW": self.flow, "FILE": f"{self.folder}/file", "REPLIES": f"{self.flow}/replies.yaml"}
        words |= {"OUT": f"{self.folder}/out", "LOG": f"{self.folder}/log"} | self.replaced
        at = "@" if arg.startswith("@") else ""
        head, slash, tail = arg.removeprefix(at).partition("/")
        return f"{at}{words.get(head, head)}{slash}{words.get(tail, tail)}"


def commands(text: str) -> list[list[str]]:
    """Commands with a semicolon between them."""
    return [one.split() for one in text.split(";") if one.strip()]


def _copy(path: str, to: str) -> None:
    subprocess.run(["cp", "-a", "--", path, to], check=True)


def clear(path: Path) -> None:
    """Remove whatever is there."""
    if path.is_dir() and not path.is_symlink():
        for below, _, _ in os.walk(path):
            os.chmod(below, 0o700)  # what is unpacked is read-only
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def prepare() -> None:
    """Import what commands need, once, and be the parent of what they leave in the background."""
    import raymond

    for module in pkgutil.walk_packages(raymond.__path__, "raymond."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
