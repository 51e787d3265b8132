"""Pipes in the place of files that git reads: it would wait for them for ever, and no git has a use for them."""

import contextlib
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping

from raymond.system import git

_SOON = 3.0
"""Seconds after which it is looked for what git may be waiting for."""
_HELD = 4096
"""Bytes that every pipe holds."""
_READ = (".gitignore", ".gitattributes", ".gitmodules")
"""What git reads by itself in a work tree."""


def run(
    argv: list[str],
    top: str,
    removed: list[str],
    *,
    within: float,
    env: Mapping[str, str],
    given: bytes = b"",
    cwd: str | None = None,
    own_session: bool = False,
    umask: int = -1,
) -> subprocess.CompletedProcess[bytes]:
    """Run git over the work tree at `top`, as `subprocess.run` does, and remove the pipes that it waits for.

    They are added to `removed`.
    """
    with (
        _source(given) as source,
        subprocess.Popen(
            argv,
            env=env,
            cwd=cwd,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=own_session,
            umask=umask,
        ) as process,
    ):
        try:
            try:
                told = given if source == subprocess.PIPE else None
                out, err = process.communicate(told, timeout=min(_SOON, within))
            except subprocess.TimeoutExpired:
                removed += _remove(top)
                out, err = process.communicate(timeout=max(0.0, within - _SOON))
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


@contextlib.contextmanager
def _source(given: bytes) -> Iterator[int]:
    """Where git reads what it is given. Of what no pipe holds, the rest would not be written after the first wait."""
    if len(given) <= _HELD:
        yield subprocess.PIPE if given else subprocess.DEVNULL
        return
    import tempfile  # hardly any command is given so much

    with tempfile.TemporaryFile() as file:
        file.write(given)
        file.flush()
        file.seek(0)
        yield file.fileno()


def _remove(top: str) -> list[str]:
    """Remove the pipes that git would read; whoever waits for one goes on."""
    found = list(_found(top))
    for path in found:
        with contextlib.suppress(OSError):
            # Whoever opens it has somebody at the other end now, and reads its end when that is closed.
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.unlink(path)
            finally:
                os.close(fd)
    return [os.path.relpath(path, top) for path in found]


def _found(top: str) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = [one for one in folders if one != ".git"]
        yield from (path for name in _READ if name in names and _is_pipe(path := os.path.join(folder, name)))
    for own in dict.fromkeys(one for one in git.directories(top) if one):
        for folder, folders, names in os.walk(own):
            folders[:] = [one for one in folders if one not in ("objects", "modules", "worktrees")]
            yield from (path for name in names if _is_pipe(path := os.path.join(folder, name)))


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.lstat(path).st_mode)
    except OSError:
        return False
