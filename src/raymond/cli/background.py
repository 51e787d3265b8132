"""Drive a run in the background: its log, and its early errors told before the terminal is let go."""

import os
import sys
from typing import Any

from raymond.cli import foreground
from raymond.control.drive import hold
from raymond.errors import Error
from raymond.faces import errors, lines
from raymond.store.loader import Loaded
from raymond.store.project import Project


def start(
    project: Project,
    id: str,
    given: dict[str, Any],
    *,
    loaded: Loaded | None = None,
    restart: bool = False,
    force: bool = False,
) -> int:
    """Go on in a process of its own; print the id when it drives, or its error."""
    project.folder("logs")
    log = project.path("logs", f"{id}.log")
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader) as pipe:
            code, _, trouble = pipe.read().partition("\n")
        if code != "0":
            print(trouble or "error: the process in the background ended before it drove the run", file=sys.stderr)
            return int(code or 70)
        if not given.get("quiet"):
            print(f"in the background; its log is {log}", file=sys.stderr)
        print(f'{{"workflow_id":"{id}"}}' if given.get("as_json") else id)
        return 0
    os.close(reader)
    os._exit(_child(project, id, given, log, writer, loaded, restart, force))


def _child(
    project: Project,
    id: str,
    given: dict[str, Any],
    log: str,
    writer: int,
    loaded: Loaded | None,
    restart: bool,
    force: bool,
) -> int:
    try:
        os.setsid()
        faces = foreground.faces_of(project, id, given, lines.Lines())
        held = hold(project, id, faces, loaded=loaded, force=force)
        faces.notify(foreground.targets(held.driver.run, given))
        _redirect(log)
        os.write(writer, b"0\n")
        os.close(writer)
    except (Error, OSError) as error:
        known = error if isinstance(error, Error) else Error(f"{log}: {error.strerror}")
        os.write(writer, f"{known.exit_code}\n{errors.error(known)}".encode())
        return 1
    try:
        code = foreground.finish(held, faces, given, restart=restart)
    except Error as error:
        print(errors.error(error), file=sys.stderr)
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _redirect(log: str) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, fd), (2, fd)):
        os.dup2(source, target)
