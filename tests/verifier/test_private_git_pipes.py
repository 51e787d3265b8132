"""Git that waits for a pipe goes on, and gets all that it is given."""

import os
import sys
from pathlib import Path

import pytest

from raymond.verifier import private_git

WAITS = "import sys; open('.gitignore').read(); print(len(sys.stdin.buffer.read()))"
"""As git does: it waits for a pipe in the place of a file before it reads the rest of what it is given."""


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 10, 4096, 4097, 1_000_000])
def test_whoever_waited_for_a_pipe_is_given_all_of_it(tmp_path: Path, size: int) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    removed: list[str] = []
    argv = [sys.executable, "-c", WAITS]
    done = private_git.run_without_pipes(
        argv, str(tmp_path), removed, within=60.0, env=os.environ, given=b"x" * size, cwd=str(tmp_path)
    )
    assert (done.returncode, done.stdout, removed) == (0, f"{size}\n".encode(), [".gitignore"])
