"""Drive a run in the foreground: its face, its ending, its exit code."""

import os
import sys
from typing import Any

from raymond.cli import ending
from raymond.control.drive import HeldRun, hold
from raymond.drivers.face import Face
from raymond.faces.fanout import Faces
from raymond.faces.lines import Lines
from raymond.faces.log_file import LogFile
from raymond.machine.run import Run
from raymond.redaction import Secrets
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.views.status import exit_code


def check(given: dict[str, Any]) -> None:
    """Say what nobody can be told to before the run begins or goes on."""
    if given.get("log_file"):
        LogFile(given["log_file"], given["log_format"]).close()


def drive(
    project: Project,
    id: str,
    given: dict[str, Any],
    *,
    loaded: Loaded | None = None,
    restart: bool = False,
    force: bool = False,
) -> int:
    """Take up run `id` and drive it to its end; the exit code."""
    faces = faces_of(project, id, given, _first_face(given))
    try:
        held = hold(project, id, faces, loaded=loaded, force=force)
        faces.notify(targets(held.driver.run, given))
    except BaseException:
        faces.close()
        raise
    if held.driver.run.ended == "completed":
        held.close()
        faces.close()
        return tell_ended(held.driver.run, given)
    return finish(held, faces, given, restart=restart)


def tell_ended(run: Run, given: dict[str, Any]) -> int:
    """Nothing is left to take up, and nothing is written."""
    print(f"{run.start.workflow_id} has ended: nothing to resume", file=sys.stderr)
    return ending.tell(run, as_json=given.get("as_json", False))


def finish(held: HeldRun, faces: Faces, given: dict[str, Any], *, restart: bool = False) -> int:
    """Drive what is held, tell how it ended; the exit code."""
    driver = held.driver
    try:
        driver.drive(restart=restart, at_once=given.get("at_once", False), fresh=given.get("fresh", False))
    finally:
        held.close()
        faces.close()
    run = driver.run
    try:
        return ending.tell(run, as_json=given.get("as_json", False), signal=driver.signal)
    finally:
        if targets(run, given):
            from raymond.faces import notify

            notify.ended(run, exit_code(run, driver.signal), targets(run, given))


def targets(run: Run, given: dict[str, Any]) -> list[str]:
    """Who is notified: as said now, else as said when the run began."""
    return list(given.get("notify") or run.start.notify)


def faces_of(project: Project, id: str, given: dict[str, Any], first: Face) -> Faces:
    """Everybody who is told: the terminal, the log file, the debug folder."""
    faces = [first]
    if given.get("log_file"):
        faces.append(LogFile(given["log_file"], given["log_format"]))
    if given.get("debug"):
        from raymond.faces import debug_folder

        faces.append(debug_folder.Folder.beside(project, id))
    return Faces(faces)


def _first_face(given: dict[str, Any]) -> Face:
    if sys.stderr.isatty() and not given.get("quiet") and not given.get("as_json"):
        from raymond.faces.live import Live, usable

        if usable(sys.stderr):
            return Live(sys.stderr, stdin=0 if os.isatty(0) else -1, refuses=Secrets.of(os.environ).find)
    return Lines(quiet=bool(given.get("quiet")))
