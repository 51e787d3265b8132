"""One run of a project: drive it, follow it, ask things of it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from raymond.control import runs
from raymond.errors import Diagnostic, Error, JournalError, RunBusy, UsageError

if TYPE_CHECKING:
    from raymond.control.request import Delivery
    from raymond.control.reviews import Review
    from raymond.control.runs import RunRow
    from raymond.machine.events import Decision, Event, RunStarted
    from raymond.machine.run import Run
    from raymond.store.loader import Loaded
    from raymond.store.project import Project
    from raymond.views.questions import Question


class RunHandle:
    """A run, by its project and id. Nothing is kept open: every call looks at the journal again."""

    def __init__(
        self,
        project: "Project",
        id: str,
        loaded: "Loaded | None" = None,
        *,
        trusts_now: bool = False,
        warnings: "Sequence[Diagnostic]" = (),
    ) -> None:
        self.project = project
        self.id = id
        self.loaded = loaded
        """The workflow, when this process has just started the run: the first driver need not read it again."""
        self.trusts_now = trusts_now
        """Agents' programs may use the project's own settings this time, trusted or not."""
        self.warnings = warnings
        """What is doubtful about the workflow, when this process has just started the run."""

    def __repr__(self) -> str:
        return f"RunHandle({self.id!r})"

    @property
    def transcripts(self) -> str:
        """The folder with what each step was sent and said."""
        return self.project.run(self.id).transcripts

    def drive(self) -> str:
        """Let a process of its own drive it until nothing is left that it could do; the status it has then."""
        from raymond.control import reviews

        if self.read().is_over or reviews.nothing_else(self.project, self.id):
            return self.status()
        self.detach()
        try:
            return self.wait()
        except KeyboardInterrupt:
            self.stop()
            raise

    def detach(self) -> None:
        """Let a process of its own drive it; returns once that process does.

        Only a process that does nothing else can end what a step has started and let go of.
        """
        import subprocess
        import sys

        _check_rest(self)
        argv = [
            sys.executable,
            "-P",
            "-m",
            "raymond",
            "-C",
            self.project.tree,
            "resume",
            self.id,
            "--detach",
            "--quiet",
        ]
        argv += ["--trust-project"] if self.trusts_now else []
        # Away from the project: a PYTHONPATH may have an entry that means the current directory.
        done = subprocess.run(argv, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if done.returncode:
            what, _, hint = done.stderr.strip().removeprefix("error: ").partition("\nhint: ")
            raise Error(what or f"the background process ended with exit code {done.returncode}", hint=hint)

    def wait(self, timeout: float | None = None) -> str:
        """Wait until no process drives it, or for `timeout` seconds; the status it has then."""
        from raymond.control.follow import Follower

        Follower(self.project, self.id).rest(timeout)
        return self.status()

    @property
    def start(self) -> "RunStarted":
        """What it was started with."""
        from raymond.store import journal

        try:
            return journal.first(self.project.run(self.id))
        except JournalError:
            return self.read().start  # which says more about what is wrong

    def read(self) -> "Run":
        """Everything its journal says so far."""
        return runs.look(self.project, self.id).run

    def status(self) -> str:
        """running, stopping, waiting, paused, stopped, interrupted, answered, completed, failed or cancelled."""
        return runs.look(self.project, self.id).status

    @property
    def result(self) -> str | None:
        """What the main agent returned; None before that."""
        from raymond.views.status import main_result

        return main_result(self.read())

    def events(self) -> "Iterator[Event]":
        """Every event so far."""
        for decision in self.decisions():
            yield from decision.events

    def decisions(self) -> "list[Decision]":
        """Every decision so far. Provisional."""
        from raymond.store import journal

        return journal.decisions(self.project.run(self.id))

    def follow(self) -> "Iterator[Decision]":
        """Every decision from the first, as they come, until no process runs it."""
        from raymond.control.follow import Follower

        for decisions in Follower(self.project, self.id).watch():
            yield from decisions

    def answer(self, agent: str, text: str, *, question: int = 0) -> bool:
        """Answer `agent`, or the only one asking (""), if it still asks `question`; 0 stands for what it asks now.

        Whether it was received already. Provisional.
        """
        from raymond.control import request

        return _is_taken(request.answer(self.project, self.id, agent, text, question=question))

    def stop(self, *, now: bool = False) -> bool:
        """Start nothing new, and with `now` stop what runs; whether that was received already."""
        from raymond.control import request

        return _is_taken(request.stop(self.project, self.id, now=now))

    def cancel(self) -> bool:
        """End it and its running steps for good; whether that was received already."""
        from raymond.control import request

        return _is_taken(request.cancel(self.project, self.id))

    def questions(self) -> "list[Question]":
        """The questions that wait for an answer."""
        from raymond.views.questions import open_questions

        return open_questions(self.read())

    def reviews(self) -> "list[Review]":
        """The green checks that count only when a person has seen what changed."""
        from raymond.control import reviews

        return reviews.of_run(self.project, self.id)

    def accept(self, review: "Review") -> bool:
        """Let the check of `review` count; refused when the change is another one by now."""
        return self._decide(review, accepted=True, reason="")

    def reject(self, review: "Review", reason: str) -> bool:
        """Send the agent of `review` back, and tell it why."""
        return self._decide(review, accepted=False, reason=reason)

    def _decide(self, review: "Review", *, accepted: bool, reason: str) -> bool:
        from raymond.control import reviews

        return _is_taken(reviews.decide(self.project, self.id, review, accepted=accepted, reason=reason))


def _is_taken(delivery: "Delivery") -> bool:
    from raymond.control.request import Left
    from raymond.language.refusal import Refusal

    if isinstance(delivery, Refusal):
        raise UsageError(delivery.reason, hint=delivery.hint)
    return not isinstance(delivery, Left)


def find(id: str | None = None, *, changes: bool = False, verb: str = "") -> RunHandle:
    """The run `id` names, here or in any project; without one, the latest here, or what `verb` acts on. Provisional."""
    from raymond.control import naming

    return RunHandle(*naming.named(id, changes=changes, verb=verb))


def from_row(row: "RunRow") -> RunHandle:
    """The run of a row."""
    return RunHandle(runs.project_of(row), row.workflow_id)


def resume(id: str | None = None) -> RunHandle:
    """A run that can be driven again; refused when it has completed or another process drives it."""
    handle = find(id, changes=True, verb="resume")
    _check_rest(handle)
    return handle


def _check_rest(handle: RunHandle) -> None:
    """Refuse to drive a run that is driven, or has ended."""
    seen = runs.look(handle.project, handle.id)
    if seen.pid:
        path = handle.project.run(handle.id).journal
        raise RunBusy(f"process {seen.pid} drives {handle.id}", path=path, pid=seen.pid, hint="follow it, or stop it")
    if seen.run.is_over:
        from raymond.faces import summary

        how = "was cancelled" if seen.run.final_status == "cancelled" else "has ended"
        hint = summary.instead_of_resume(seen.run) or f"`raymond logs {handle.id}` shows what happened"
        raise UsageError(f"{handle.id} {how}: nothing to resume", hint=hint)
