"""Calls of git for a loop.

Nothing here runs a hook or a monitor of the repository by the way: hooks run only where `hook` is called. Filters do
run, because without them a file would not be committed as the project wants it.
"""

import os
import signal
import subprocess
from collections.abc import Mapping
from functools import cached_property

from raymond.errors import Error
from raymond.system import git, pipes

PATIENCE = 600.0
"""Seconds for one command: a first look at a large repository reads all of it."""
SIGNING = 60.0
"""Seconds to sign a commit: a prompt that nobody answers must not hold up a night."""
_SETTINGS = ("core.fsmonitor=false", "core.commitGraph=false", "gc.auto=0")
"""A commit graph is a file of the repository that git believes: it could tell of another history than the commits."""
_QUIET = ("--no-pager", "--literal-pathspecs", *(word for one in _SETTINGS for word in ("-c", one)))
_PLAIN = tuple(one for one in _QUIET if one != "--literal-pathspecs")
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")
_OURS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
"""The history is that of the commits, whatever stands in for them."""
_KEPT = ("GIT_CONFIG_", "GIT_EXEC_PATH", "GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_SSH")
_MOST_PRINTED = 1 << 20
_NO = 1
"""The exit code of git when it was asked whether there is something, and there is not."""


class GitError(Error):
    """Git did not do what was asked of it."""

    lasts = False
    """Whether it would not do it a moment later either."""


class GitCalls:
    """Git in the work tree at `top`; `index` is a file of our own in which trees are made."""

    def __init__(self, top: str, index: str) -> None:
        self.top = top
        self.index = index
        self.removed: list[str] = []
        """Pipes that git would have waited for."""

    @cached_property
    def _kept(self) -> dict[str, str]:
        """The environment, without what would lead git to another repository."""
        kept = {key: one for key, one in os.environ.items() if not key.startswith("GIT_") or key.startswith(_KEPT)}
        return kept | _OURS

    def _environment(self, *, index: bool) -> dict[str, str]:
        return {**self._kept, "GIT_INDEX_FILE": self.index} if index else self._kept

    def said(self, *args: str, index: bool = False) -> str:
        """What git printed; empty when it says that there is nothing, GitError when it failed."""
        done = self.run(*args, index=index)
        if done.returncode not in (0, _NO):
            raise wrong(args[0], done)
        return done.stdout.strip().decode("utf-8", "surrogateescape") if done.returncode == 0 else ""

    def ask(self, *args: str, index: bool = False, given: bytes = b"", umask: int = -1) -> bytes:
        """What git printed; GitError when it failed."""
        done = self.run(*args, index=index, given=given, umask=umask)
        if done.returncode:
            raise wrong(args[0], done)
        return done.stdout

    def run(
        self,
        *args: str,
        index: bool = False,
        given: bytes = b"",
        more: Mapping[str, str] = {},
        hooks: bool = False,
        plain: bool = False,
        within: float = PATIENCE,
        umask: int = -1,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git, whatever comes of it."""
        try:
            return pipes.run(
                ["git", *(_PLAIN if plain else _QUIET), *(() if hooks else _NO_HOOKS), "-C", self.top, *args],
                self.top,
                self.removed,
                env={**self._environment(index=index), **more},
                given=given,
                within=within,
                own_session=True,  # without a terminal, nothing can ask for a password and wait for it
                umask=umask,
            )
        except subprocess.TimeoutExpired:
            raise GitError(f"`git {args[0]}` took longer than {within:.0f} s") from None
        except OSError as error:
            raise _without_git(error) from None

    def hooks_folder(self) -> str:
        """Where git would look for hooks."""
        said = self.run("rev-parse", "--git-path", "hooks", hooks=True)
        if said.returncode:  # no folder would mean no hooks
            raise wrong("rev-parse", said)
        return os.path.join(self.top, os.fsdecode(said.stdout.strip()))

    def hook(self, folder: str, name: str, *args: str) -> tuple[int, str]:
        """Run a hook in this folder, on the tree that was made last: its exit code, and what it printed.

        Without one, nothing happens. What it leaves in the background is not waited for.
        """
        if not os.path.lexists(os.path.join(folder, name)):
            return 0, ""
        hooks = ("-c", f"core.hooksPath={folder}")  # the settings may name another one by now
        argv = ["git", *_QUIET, *hooks, "-C", self.top, "hook", "run", "--ignore-missing", name, "--", *args]
        environment = {**self._environment(index=True), "GIT_EDITOR": ":"}
        import tempfile  # most projects have no hooks

        with tempfile.TemporaryFile() as printed:
            done = subprocess.Popen(
                argv,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )
            try:
                code = done.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(done.pid, signal.SIGKILL)
                done.wait()
                return 1, f"the hook {name} did not end within {PATIENCE:.0f} s"
            printed.seek(0)
            return code, printed.read(_MOST_PRINTED).decode("utf-8", "replace").strip() or f"exit code {code}"


def _without_git(error: OSError) -> GitError:
    return GitError(f"git cannot be started: {(error.strerror or '').lower()}", hint="install git")


def wrong(command: str, done: subprocess.CompletedProcess[bytes]) -> GitError:
    """The error for a command of git that failed."""
    told = git.lines(done.stderr.strip().decode("utf-8", "replace"))
    what = told[-1] if told else f"exit code {done.returncode}"
    return GitError(f"`git {command}` failed: {what}")
