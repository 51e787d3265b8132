"""Lines of a loop's log, for people and for programs that watch it."""

from datetime import UTC, datetime

from raymond.loops.formats.foreign_text import one_line

LOOP = "ralph-loop"


def line(when: datetime, text: str, loop: str = LOOP) -> str:
    """One line of the log, without its ending."""
    return f"[{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}] {loop}: {one_line(text)}"


def starting(iteration: int, iterations: int, *, again: bool = False) -> str:
    """`iterations` is 0 when there is no limit; `again`: another try, which does not count as one more."""
    most = f"/{iterations}" if iterations else ""
    return f"Starting iteration {iteration}{most}{' (again)' if again else ''}"


def selected(title: str) -> str:
    """Which item is next."""
    return f'Selected item: "{one_line(title)}"'


def implemented() -> str:
    """The agent is done."""
    return "Implementation complete"


def verifying(command: str) -> str:
    """The check begins."""
    return f"Running verification: {one_line(command)}"


def verified(exit_code: int) -> str:
    """The check ended."""
    return f"Verification {'FAILED' if exit_code else 'PASSED'} (exit {exit_code})"


def committing() -> str:
    """The changes are kept."""
    return "Committing changes"


def completed(iteration: int, seconds: float) -> str:
    """The iteration ended."""
    return f"Iteration {iteration} complete ({lasted(seconds)})"


def lasted(seconds: float) -> str:
    """`3m 48s`: hours and minutes only where they are needed, seconds always."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}h {minutes}m {whole % 60}s"
    return f"{minutes}m {whole % 60}s" if minutes else f"{whole}s"
