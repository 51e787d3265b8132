"""Drive a run in the foreground: its faces, its ending, its exit code."""

import os
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from raymond.cli import terminals
from raymond.cli.flags import ShowFlags
from raymond.control import runs
from raymond.control.drive import AS_IT_IS, UNRECORDED, HeldRun, Recording, Resumption, hold
from raymond.control.handle import RunHandle
from raymond.errors import UsageError
from raymond.faces import lines, summary, words
from raymond.faces.fanout import Faces
from raymond.faces.foreign_text import said
from raymond.faces.lines import LogFile
from raymond.text import is_text
from raymond.views.status import exit_code

if TYPE_CHECKING:
    from raymond import Run
    from raymond.faces import Face


def check(show: ShowFlags, *, dry: bool = False) -> None:
    """Refuse a log file that cannot be written before the run begins or continues."""
    if show.log_file:
        (lines.check_log_file_dry if dry else lines.check_log_file)(show.log_file)


def drive(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> int:
    """Drive a run until nothing is left to do; the exit code."""
    faces = faces_of(handle, show, terminals.face(quiet=show.quiet, plain=show.as_json))
    try:
        held = take(handle, faces, show, how)
        faces.notify(targets(held.run, show))
    except BaseException:
        faces.close()
        raise
    if held.run.is_over:
        ended = held.clear()
        held.close()
        faces.close()
        return _tell_ended(held, show, ended)
    return finish(held, faces, show, how)


def take(handle: RunHandle, faces: Faces, show: ShowFlags, how: Resumption) -> HeldRun:
    """Hold the run, to drive it in this process; a loop only where no other one runs."""
    held = hold(
        handle.project,
        handle.id,
        faces,
        loaded=handle.loaded,
        force=how.force,
        trusts_now=handle.trusts_now,
        alone=True,
        by_itself=how.by_itself,
        recording=recording(show),
    )
    if held.run.start.loop and not held.run.is_over:
        from raymond.loops import resuming, starting
        from raymond.loops.loop_run import LoopRun

        try:
            loop = LoopRun(held.project, held.run)
            starting.check_alone(held.project, loop.checkout, loop.settings, handle.id)
            resuming.note(held.project, held.run)
        except BaseException:
            held.close()
            raise
    return held


def recording(show: ShowFlags) -> Recording:
    """What the journal says of the log file and the debug folder."""
    path = os.path.abspath(show.log_file) if show.log_file else ""
    if not is_text(path) or not (path or show.debug):
        return UNRECORDED
    return Recording(log_file=path, log_format=show.log_format, debug=show.debug)


def as_before(handle: RunHandle, show: ShowFlags) -> ShowFlags:
    """Add the log file and the debug folder of the run's last driver, which nobody can name while it continues."""
    kept = handle.read().recording
    show = replace(show, debug=show.debug or kept.debug)
    if show.log_file or not kept.log_file:
        return show
    before = replace(show, log_file=kept.log_file, log_format=kept.log_format)
    try:
        check(before)
    except UsageError as error:
        print(said(f"{error}; nothing more is written there", sys.stderr), file=sys.stderr)
        return show
    return before


def _tell_ended(held: HeldRun, show: ShowFlags, ended: int) -> int:
    """Nothing is left to resume, and nothing is written; `ended` processes of it were still there."""
    run = held.run
    left = f", but {words.many(ended, 'process')} of it still ran: ended now" if ended else ""
    how = "was cancelled" if run.final_status == "cancelled" else "has ended"
    print(f"{run.start.workflow_id} {how}: nothing to resume{left}", file=sys.stderr)
    if advice := summary.instead_of_resume(run):
        print(said(f"hint: {advice}", sys.stderr), file=sys.stderr)
    return summary.tell_ending(run, runs.undriven_status(run), as_json=held.whole if show.as_json else None)


def finish(held: HeldRun, faces: Faces, show: ShowFlags, how: Resumption) -> int:
    """Drive what is held, tell how it ended; the exit code."""
    try:
        held.drive(how)
    finally:
        held.close()
        faces.close()
    run = held.run
    try:
        return _tell(held, show)
    finally:
        faces.tell_end(run, exit_code(run, held.signal))


def _tell(held: HeldRun, show: ShowFlags) -> int:
    """How it ended, in the words that fit it; the exit code."""
    run = held.run
    if run.start.loop:
        from raymond.loops import ending

        return ending.tell(held.project, run, signal=held.signal, as_json=show.as_json)
    return summary.tell_ending(
        run, runs.undriven_status(run), as_json=held.whole if show.as_json else None, signal=held.signal
    )


def targets(run: "Run", show: ShowFlags) -> list[str]:
    """Who is notified: the targets given now, else those given when the run began."""
    return list(show.notify or run.start.notify)


def faces_of(handle: RunHandle, show: ShowFlags, first: "Face") -> Faces:
    """Everybody who is told: the terminal, the log file, the debug folder."""
    faces = [first]
    if loop := handle.start.loop:
        from raymond.loops import telling

        faces = telling.beside(first, handle.project, handle.id, loop)
    if show.log_file:
        faces.append(LogFile(show.log_file, show.log_format))
    if show.debug:
        from raymond.faces import debug_folder

        faces.append(debug_folder.Folder.beside(handle.project, handle.id))
    return Faces(faces)
