"""Whether strace is here."""

import os
import shutil
import subprocess

import pytest


def check_strace() -> None:
    """Without strace that may trace there is nothing to do."""
    if not shutil.which("strace"):
        pytest.skip("strace is not here (apt-get install strace)")
    done = subprocess.run(["strace", "-o", os.devnull, "true"], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
