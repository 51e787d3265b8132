"""Drive a run, in the foreground or in the background: its faces, its ending, its exit code."""

import os
import sys
from typing import TYPE_CHECKING

from msgspec.structs import replace

from raymond.cli import terminal
from raymond.cli.flags import ShowFlags
from raymond.control import left_requests, runs
from raymond.control.drive import AS_IT_IS, UNRECORDED, HeldRun, Recording, Resumption, hold
from raymond.control.handle import RunHandle
from raymond.errors import Error, NotContinued, UsageError
from raymond.faces import lines, summary, words
from raymond.faces.fanout import Faces
from raymond.faces.foreign_text import said
from raymond.faces.lines import LogFile
from raymond.text import is_text
from raymond.views.status import exit_code

if TYPE_CHECKING:
    from raymond import Run
    from raymond.faces import Face

_DRIVEN = b"driven"
"""What a process in the background says to the one that waits; anything else is its error."""


def warn_of_company(run: RunHandle) -> None:
    """Say that other runs are working in the same directory."""
    found = runs.neighbours(run.project, run.start)
    if found:
        some = ", ".join(found[:3]) + (f" and {len(found) - 3} more" if len(found) > 3 else "")
        what = f"{some} {'is' if len(found) == 1 else 'are'} running in this directory too"
        hint = (
            "agents that change the same files get in each other's way: --cd DIR, or another worktree, keeps them apart"
        )
        print(f"warning: {what}; {hint}", file=sys.stderr)


def warn(run: RunHandle) -> None:
    """Say what is wrong with the place where a run begins: agents reach what is kept about them, or are not alone."""
    if run.project.holds_home:
        what = f"runs are kept in {run.project.home.path}, inside the project, where agents can change them"
        print(f"warning: {what}; set RAYMOND_HOME to a folder outside of it", file=sys.stderr)
    warn_of_company(run)


def check_log_file(show: ShowFlags, *, dry: bool = False) -> None:
    """Refuse a log file that cannot be written before the run begins or continues."""
    if show.log_file:
        (lines.check_log_file_dry if dry else lines.check_log_file)(show.log_file)


def go(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> int:
    """Drive a run here, or in the background if that is asked for; the exit code."""
    return (start_in_background if show.detach else drive)(handle, show, how)


def drive(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> int:
    """Drive a run until nothing is left to do; the exit code."""
    faces = faces_of(handle, show, terminal.face(quiet=show.quiet, plain=show.as_json))
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
        return _tell_ended(handle, held.run, show, ended)
    return finish(handle, held, faces, show, how)


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
        recording=recording_of(show),
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


def recording_of(show: ShowFlags) -> Recording:
    """What the journal says of the log file and the debug folder."""
    path = os.path.abspath(show.log_file) if show.log_file else ""
    if not is_text(path) or not (path or show.debug):
        return UNRECORDED
    return Recording(log_file=path, log_format=show.log_format, debug=show.debug)


def with_last_log(handle: RunHandle, show: ShowFlags) -> ShowFlags:
    """Add the log file and the debug folder of the run's last driver, which nobody can name while it continues."""
    kept = handle.read().recording
    show = replace(show, debug=show.debug or kept.debug)
    if show.log_file or not kept.log_file:
        return show
    before = replace(show, log_file=kept.log_file, log_format=kept.log_format)
    try:
        check_log_file(before)
    except UsageError as error:
        print(said(f"{error}; nothing more is written there", sys.stderr), file=sys.stderr)
        return show
    return before


def _tell_ended(handle: RunHandle, run: "Run", show: ShowFlags, ended: int) -> int:
    """Nothing is left to resume; `ended` processes of it were still there.

    A loop that was cut off while it ended comes to its end now.
    """
    if run.start.loop:
        from raymond.loops import ending
        from raymond.loops.loop_run import LoopRun

        ending.is_concluded(LoopRun(handle.project, run))
    left = f", but {words.many(ended, 'process')} of it still ran: ended now" if ended else ""
    how = "was cancelled" if run.final_status == "cancelled" else "has ended"
    print(f"{handle.id} {how}: nothing to resume{left}", file=sys.stderr)
    if advice := summary.instead_of_resume(run):
        print(said(f"hint: {advice}", sys.stderr), file=sys.stderr)
    return tell_ending(handle, run, as_json=show.as_json)


def finish(handle: RunHandle, held: HeldRun, faces: Faces, show: ShowFlags, how: Resumption) -> int:
    """Drive what is held, tell how it ended; the exit code."""
    try:
        held.drive(how)
    finally:
        held.close()
        faces.close()
    run, signal = held.run, held.signal
    try:
        if run.start.loop:
            from raymond.loops import ending

            return ending.tell(held.project, run, signal=signal, as_json=show.as_json)
        return tell_ending(handle, run, as_json=show.as_json, signal=signal)
    finally:
        faces.tell_end(run, exit_code(run, signal))


def tell_ending(handle: RunHandle, run: "Run", *, as_json: bool = False, signal: int = 0) -> int:
    """Tell how a run without a driver ended, and which requests were left for it; the exit code."""
    left = left_requests.of(handle.project, run)
    return summary.tell_ending(
        run,
        runs.undriven_status(run),
        as_json=runs.whole(handle.project, handle.id) if as_json else None,
        signal=signal,
        left=left.lines(),
        then=left.next_command,
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


# In the background


def start_in_background(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> int:
    """Drive the run in a new process; print its id once it is driven."""
    if handle.loaded and not show.quiet:
        print_first_line(handle)
    try:
        launch(handle, show, how)
    except NotContinued as left:
        print(left, file=sys.stderr)
    else:
        announce(handle, show)
    return 0


def print_first_line(handle: RunHandle) -> None:
    """The first line of a run that begins: who answers, who pays and up to what, which its log would keep to itself."""
    first, told = handle.decisions()[0], lines.Lines()
    told.add(replace(first, events=first.events[:1]), {}, "")
    told.refresh()


def announce(handle: RunHandle, show: ShowFlags) -> None:
    """Say that the run is driven in the background, and print its id."""
    tell_log(handle, show)
    print(f'{{"workflow_id":"{handle.id}"}}' if show.as_json else handle.id)


def tell_log(handle: RunHandle, show: ShowFlags) -> None:
    """Say where a run in the background writes what it says."""
    if not show.quiet:
        log = handle.project.run(handle.id).log
        print(said(f"running in the background; log: {log}", sys.stderr), file=sys.stderr)


def launch(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> None:
    """Drive the run in a new process; returns once it does. What is in the way there is raised here."""
    log = handle.project.run(handle.id).log
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read()
        if said != _DRIVEN:
            raise _not_started(said, handle.id)
        return
    os.close(reader)
    os._exit(_child(handle, show, how, log, writer))


def _not_started(said: bytes, id: str) -> Error:
    """The error of the background process."""
    if not said:
        what = "the background process was ended before it could drive the run"
        return Error(what, hint=f"raymond resume {id}")
    import pickle  # from our own fork, over a pipe that no other process has

    error: Error = pickle.loads(said)
    return error


def _child(handle: RunHandle, show: ShowFlags, how: Resumption, log: str, writer: int) -> int:
    try:
        os.setsid()
        faces = faces_of(handle, show, lines.Lines())
        held = take(handle, faces, show, how)
        if held.run.is_over:
            held.close()
            raise NotContinued(f"{handle.id} has ended: nothing to resume")
        faces.notify(targets(held.run, show))
        _redirect(log)
        _tell_parent(writer, _DRIVEN)
    except (Error, OSError) as error:
        import pickle

        return _tell_parent(writer, pickle.dumps(error if isinstance(error, Error) else _refused(error, handle.id)))
    try:
        code = finish(handle, held, faces, show, how)
    except Error as error:
        from raymond.faces import errors

        print(errors.error(error), file=sys.stderr)
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _tell_parent(writer: int, said: bytes) -> int:
    """Tell the process that waits what became of it here."""
    os.write(writer, said)
    os.close(writer)
    return 0


def _refused(error: OSError, id: str) -> Error:
    what = f"{error.filename or 'the system refused a call'}: {(error.strerror or '').lower()}"
    return Error(what, hint=f"nothing already written is lost: fix this, then `raymond resume {id}`")


def _redirect(log: str) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, fd), (2, fd)):
        os.dup2(source, target)
