"""What a notification is given reaches it whole."""

import os
import subprocess
import sys

GREEDY = """
import contextlib, fcntl, os, sys
from raymond.faces import notify
pipes = [os.pipe() for _ in range(200)]
for _, writer in pipes:
    with contextlib.suppress(OSError):
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 1 << 20)
pipes += [os.pipe() for _ in range(20)]
data = b"x" * 60_000
reader = notify._opened(data)
sys.exit(os.read(reader, 1 << 20) != data)
"""


def test_a_document_is_whole_although_the_system_gives_only_small_pipes() -> None:
    """As it does to a user whose programs have many."""
    drop = ["setpriv", "--bounding-set=-sys_resource,-sys_admin", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*drop, sys.executable, "-c", GREEDY], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
