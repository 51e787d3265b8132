"""The ids of conversations."""

from raymond.machine.run import Run


def session_of(run: Run, step: int, turn: int) -> str:
    """The id of the conversation that a turn writes; never the same twice, as steps are not (`JournalCut`)."""
    from uuid import UUID, uuid5  # a run that has only scripts starts without it

    return str(uuid5(UUID(run.start.key), f"{step}.{turn}"))
