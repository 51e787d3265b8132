"""One turn of a backend: what it shows on the way, how its reply is read, and what follows from its end."""

import os
import re

from msgspec.structs import replace

from raymond import pasted
from raymond.backends import Observation, Reply, Trouble
from raymond.language.evaluator import Evaluator, first_line
from raymond.language.policy import Policy, keeps_output, with_line
from raymond.machine import evaluators
from raymond.machine.decide import meant
from raymond.machine.inputs import Failure, Interruption, Judged, Output, Spending
from raymond.steps.evaluation import chosen
from raymond.steps.job import TurnJob
from raymond.steps.output import Answer, glimpse
from raymond.steps.step import Host, Step
from raymond.steps.talk import Talk, one_use
from raymond.steps.working_directory import directories, shown_files
from raymond.store.transcripts import PUBLISH_EVERY

_MATCHED = 500
"""Characters of an error that patterns are tried on: a slow one must not hold up the run."""


class TurnStep(Step):
    """What every turn has, in this process or in another."""

    job: TurnJob

    def __init__(self, host: Host, job: TurnJob) -> None:
        super().__init__(host, job)
        self._denied: list[str] = []
        """What would allow the tools that were denied."""
        self._concluding: tuple[Reply, Answer] | None = None
        """The reply that ends the turn while it is read."""
        self._words: list[str] = []
        """Pieces of a text that were not shown yet."""
        self._door = host.secrets.stream()
        turn = job.invocation
        self.turn = replace(turn, spool=os.path.join(host.spool, turn.spool), isolated=job.way == "isolated")
        if job.way == "copy":
            self.turn = replace(self.turn, cwd=self.outside(turn.cwd))
        self.session = turn.session
        """The conversation, as the program calls it."""
        self._record = host.transcripts.step(
            job.agent,
            step=job.step,
            turn=job.turn,
            state=job.state,
            attempt=job.attempt,
            time=host.clock(),
            session=turn.session,
            base=turn.base,
            sent=host.secrets.clean(turn.prompt),
            **({"evaluator": True, "judge": turn.state} if job.evaluator else {}),
        )
        self._talk = Talk(self._record)

    def start(self) -> None:
        """Make the folder the agent keeps files in; a subclass starts what answers."""
        self.make_task_folder()

    def see(self, observations: list[Observation]) -> None:
        """Show what the program does as it happens."""
        for raw in observations:
            if self.job.evaluator and raw.kind in ("words", "text"):
                continue  # the agent does not say it
            if raw.kind == "words":
                self._words.append(raw.text)
                continue
            if raw.kind == "text":
                self._forget_words()
            text = glimpse(self.host.secrets, raw.text)
            seen = replace(raw, text=one_use(text) if raw.kind in ("tool", "denied") else text)
            if seen.kind == "context":
                self.host.show(self.agent, "context", seen.text)
            if seen.kind in ("tool", "text"):
                self.host.show(self.agent, seen.kind, seen.text)
                self._talk.add(seen.kind, seen.text)
            if seen.kind == "tool":
                self._record.add("tools", seen.text + "\n")
            if seen.kind == "denied":
                flags = " ".join(pasted.flag("--allow-tool", tool, "TOOL") for tool in seen.allow)
                flag = f" ({flags} would allow it)" if flags else ""
                self.host.show(self.agent, "note", f"was denied: {seen.text}{flag}")
                self._record.add("denied", seen.text + "\n")
                # Only what a flag would allow is worth asking a person for.
                self._denied += seen.allow
            if seen.kind == "note":
                self.host.show(self.agent, "note", seen.text)
                self._record.add("note", seen.text + "\n")
            if seen.kind == "session":
                self.session = seen.text
            if seen.kind == "session" and seen.text != self.turn.session:
                self.host.named(self.agent, seen.text)

    def show_words(self) -> None:
        """Show what the model has written since the last time; what may be half of a secret waits for the rest."""
        if self._words:
            shown = self._door.feed("".join(self._words))
            self._words.clear()
            if shown:
                self.host.show(self.agent, "words", shown)

    def _forget_words(self) -> None:
        self._words.clear()
        self._door = self.host.secrets.stream()

    def conclude(self, ending: Reply | Trouble) -> None:
        """Report how the turn ended; a long reply is read slice by slice first."""
        if isinstance(ending, Trouble):
            self._give_up(ending)
            return
        # Cleaned again as a whole: a secret may span several of the lines that were cleaned one by one.
        self._concluding = ending, Answer(self.host.secrets, ending.text)
        self.go_on()

    def deadline(self) -> float:
        """At once while the reply is read."""
        return 0.0 if self._concluding else super().deadline()

    def check(self, now: float) -> None:
        """Read on in the reply, or look at the limits."""
        self.publish(now)
        if self._concluding:
            self.go_on()
        else:
            super().check(now)

    def publish(self, now: float) -> None:
        """Let others read what a turn that lasts was sent, and what it has done so far."""
        if now >= self.began + PUBLISH_EVERY:
            self._record.publish(now)

    def settle(self) -> None:
        """Read the rest of the reply now."""
        while self._concluding:
            self.go_on()

    def go_on(self) -> None:
        """Read the next slice of the reply; after the last, report it."""
        if not self._concluding:
            return
        ending, answer = self._concluding
        if not answer.go_on():
            self.host.soonest = 0.0
            return
        self._concluding = None
        reading = with_line(self.job.policy, answer.reading, answer.text)
        self._talk.end(answer.text)
        self._record.add("said", answer.text)
        offset = self._record.end(cost=ending.spent.cost)
        if self.job.evaluator:
            self._judge(self.job.evaluator, answer.text, _at(ending.spent, offset))
            return
        for shown in reading.prints:
            self.host.show(self.agent, "print", shown)
        asked = meant(self.job.policy, reading)
        output = Output(
            time=self.host.clock(),
            agent=self.agent,
            reading=reading,
            spent=_at(ending.spent, offset),
            session=ending.session,
            denied=tuple(self._denied),
            directories=directories(self.job, asked, self.host.place),
            files=shown_files(self.job.cwd, self.outside(self.job.cwd), asked),
            text=answer.text[-evaluators.LONGEST :] if _is_kept(self.job.policy) else "",
        )
        self.host.report(self, output)

    def _judge(self, evaluator: Evaluator, text: str, spent: Spending) -> None:
        """Report the word of a judge; tags in what it says are nobody's."""
        said = first_line(text)
        asked = chosen(evaluator, said)
        judged = Judged(
            time=self.host.clock(),
            agent=self.agent,
            said=said,
            spent=spent,
            denied=tuple(self._denied),
            directories=directories(self.job, asked, self.host.place),
            files=shown_files(self.job.cwd, self.outside(self.job.cwd), asked),
        )
        self.host.report(self, judged)

    def _give_up(self, trouble: Trouble) -> None:
        if self.is_cut:
            self.interrupted(trouble.spent)
            return
        kind, error = trouble.kind, self.host.secrets.clean(trouble.error)
        if kind == "crash" and any(re.search(pattern, trouble.error[:_MATCHED]) for pattern in self.job.retryable):
            kind = "overload"
        self._talk.end()
        offset = self._record.end(failed=kind, error=error)
        failure = Failure(
            time=self.host.clock(),
            agent=self.agent,
            kind=kind,
            error=error,
            spent=_at(trouble.spent, offset),
            retry_at=trouble.retry_at or (self.host.clock() + trouble.retry_after if trouble.retry_after else 0.0),
            only_model=trouble.only_model,
            session=trouble.session,
            denied=tuple(self._denied),
        )
        self.host.report(self, failure)

    def interrupted(self, spent: Spending, *, by_death: bool = False) -> None:
        """Report that the turn was cut off."""
        self._talk.end()
        offset = self._record.end(interrupted=True)
        cut = Interruption(time=self.host.clock(), agent=self.agent, spent=_at(spent, offset), by_death=by_death)
        self.host.report(self, cut)


def _is_kept(policy: Policy) -> bool:
    """Whether somebody needs the final message."""
    return policy.evaluator is not None or keeps_output(policy)


def _at(spent: Spending, offset: int) -> Spending:
    return replace(spent, offset=offset)
