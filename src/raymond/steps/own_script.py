"""A script that ships with Raymond, as the states of a loop do, run by a copy of the driver.

A Python of its own would load again what is loaded here, which takes several times as long as what such a script does.
"""

import ast
import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import raymond
from raymond.steps.job import ScriptJob
from raymond.steps.script_step import ScriptStep
from raymond.system.files import contents
from raymond.system.processes import HAS_PROC, ends_with_us, fork

_SHIPPED = os.path.dirname(os.path.abspath(raymond.__file__)) + os.sep
_replaced: list[Any] = []
"""The streams of the driver. A copy of it must not let go of them: that would write once more what they hold."""


class OwnScriptStep(ScriptStep):
    """Such a script that runs."""

    def _launch(self, argv: list[str], env: Mapping[bytes, bytes], cwd: str, stdout: int, stderr: int) -> int:
        run = ready(self.job)
        if run is None:
            return super()._launch(argv, env, cwd, stdout, stderr)
        # It has no mark that a later driver could find it by, so it ends for sure when this one does: even one that is
        # stopped, or was started where SIGTERM is ignored.
        return fork(run, env, cwd, stdout=stdout, stderr=stderr, ends_by=signal.SIGKILL)


def ready(job: ScriptJob) -> Callable[[int], None] | None:
    """What a process of its own does with a script; what that imports is loaded now, for the next one too.

    None for a script that is not ours to the byte, or is not run where and by what we are. Without /proc, a script is
    only found by what a shell around it writes down.
    """
    if job.way != "here" or job.python or not job.origin.startswith(_SHIPPED) or not (HAS_PROC and ends_with_us()):
        return None
    try:
        text = contents(job.script)
        if contents(job.origin) != text:
            return None
        tree = ast.parse(text, job.script)
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and node.module:
                import_module(node.module)
    except (OSError, ImportError):  # another version of Raymond was installed meanwhile
        return None
    code = compile(tree, job.script, "exec", dont_inherit=True)

    def run(_: int) -> None:
        _begin(job.script)
        try:
            exec(code, {"__name__": "__main__", "__file__": job.script})
        except SystemExit:
            raise
        except BaseException as error:
            where = error.__traceback__ and error.__traceback__.tb_next
            sys.excepthook(type(error), error.with_traceback(where), where)
            sys.exit(1)
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()

    return run


def _begin(script: str) -> None:
    """Let everything be as in a Python that was started with the script, also for one that takes its place."""
    sys.argv, sys.orig_argv = [script], [sys.executable, "-B", script]
    sys.dont_write_bytecode = True
    _replaced.extend((sys.stdin, sys.stdout, sys.stderr, sys.__stdin__, sys.__stdout__, sys.__stderr__))
    sys.stdin = io.TextIOWrapper(open(0, "rb", closefd=False))
    sys.stdout = io.TextIOWrapper(open(1, "wb", closefd=False), "utf-8", "surrogateescape")
    sys.stderr = io.TextIOWrapper(open(2, "wb", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
