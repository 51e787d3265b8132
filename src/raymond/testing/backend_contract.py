"""What every backend has to do, as a suite: inherit from it, say how the program is made to answer, run pytest.

    class TestMine(BackendContract):
        def make(self):
            return Mine(Setup(name="mine"))

        def expect(self, text): ...     # the next turn is answered with this text
        def seen(self): ...             # all that the model saw in the last turn, as one text

The turns are real: processes, a prompt on stdin, output that is read line by line. What the program cannot do,
by its `can`, is not tested.
"""

import os
import tempfile
import uuid
from collections.abc import Mapping

from raymond.backends import Backend, Command, Found, Observation, Reader, Reply, Trouble, Turn
from raymond.machine.failures import REPORTED
from raymond.machine.inputs import Spending
from raymond.steps import probe

GARBAGE = (b"", b"{", b"}", b"null", b"[]", b"7", b'"text"', b"\xff\xfe\x00", b'{"type":', b'{"type":null}', b"{}" * 99)
"""Lines that no program should print, and some do."""
ODD = (
    "quotes \" ' and \\ and $HOME and `date`\n\n  blanks, a tab\t, a tag <goto>X</goto>, \u00fcml\u00e4ut, \U0001f980\n"
)


class BackendContract:
    """Facts that hold for every backend."""

    def make(self) -> Backend:
        """The backend."""
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        """The environment its program is started in."""
        return os.environ

    def expect(self, text: str) -> None:
        """Let the next turn be answered with `text`."""
        raise NotImplementedError

    def seen(self) -> str:
        """All that the model saw in the last turn: the conversation before, and the prompt."""
        raise NotImplementedError

    # --- what the tests are written with

    def take(self, prompt: str, answer: str, *, base: Reply | None = None) -> "Taken":
        """One turn, which continues `base` when that is given."""
        self.expect(answer)
        recorded = Recorded(self.make())
        with tempfile.TemporaryDirectory() as cwd:
            before = {"base": base.session, "meter": base.spent.meter} if base else {}
            turn = probe.turn(prompt, cwd=cwd, session=str(uuid.uuid4()), **before)  # type: ignore[arg-type]
            seen: list[Observation] = []
            ending = probe.take(recorded, turn, environment=self.environment(), see=seen.extend)
        return Taken(turn, ending, recorded.lines, seen)

    # --- the facts

    def test_it_is_there(self) -> None:
        """`look` finds nothing wrong, and costs nothing."""
        found = self.make().look()
        assert found.program
        assert not found.problem

    def test_a_prompt_is_answered(self) -> None:
        """The reply is exactly the text the model gave."""
        taken = self.take("Say hello.", "hello\n\n<goto>NEXT.md</goto>")
        assert taken.reply.text == "hello\n\n<goto>NEXT.md</goto>"

    def test_a_prompt_arrives_as_it_was_written(self) -> None:
        """Whatever it contains, it is not an argument and no shell sees it."""
        self.take(ODD, "ok")
        assert ODD.strip() in self.seen()

    def test_a_long_prompt_arrives_whole(self) -> None:
        """Longer than an argument or a pipe can be."""
        lines = "".join(f"line {number}\n" for number in range(20_000))
        self.take(lines, "ok")
        assert lines.strip() in self.seen()

    def test_a_fresh_turn_remembers_nothing(self) -> None:
        """Two conversations do not know each other."""
        self.take("The word is amber.", "ok")
        self.take("What is the word?", "ok")
        assert "amber" not in self.seen()

    def test_a_turn_that_continues_remembers(self) -> None:
        """Both what was asked and what was answered."""
        if self.make().can.continues:
            first = self.take("The word is amber.", "And mine is basalt.")
            second = self.take("Which are they?", "ok", base=first.reply)
            third = self.take("Again?", "ok", base=second.reply)
            assert third.reply.text == "ok"
            assert all(word in self.seen() for word in ("amber", "basalt", "Which are they?", "Again?"))

    def test_a_branch_leaves_what_it_came_from(self) -> None:
        """Two turns that continue the same one do not see each other."""
        if self.make().can.branches:
            first = self.take("The word is amber.", "ok")
            one = self.take("Now it is basalt.", "ok", base=first.reply)
            other = self.take("What is it?", "ok", base=first.reply)
            assert "amber" in self.seen()
            assert "basalt" not in self.seen()
            assert len({first.reply.session, one.reply.session, other.reply.session}) == 3

    def test_a_conversation_has_the_name_it_was_given(self) -> None:
        """Where the program takes names; else it reports its own while the turn runs."""
        can = self.make().can
        taken = self.take("Say hello.", "hello")
        if can.takes_session_ids and can.continues:
            assert taken.reply.session == taken.turn.session
        elif can.continues:
            assert Observation("session", taken.reply.session) in taken.observations

    def test_a_lost_reply_is_recalled(self) -> None:
        """From the program's own record, with the conversation it belongs to."""
        if self.make().can.recalls:
            taken = self.take("Say hello.", "hello, I was lost")
            named = {"session": taken.reply.session}
            recalled = self.make().recall(probe.turn("Say hello.", cwd=taken.turn.cwd, **named))
            assert recalled
            assert (recalled.text, recalled.session) == ("hello, I was lost", taken.reply.session)

    def test_what_was_not_said_is_not_recalled(self) -> None:
        """A turn that never began has no reply."""
        assert self.make().recall(probe.turn("Say hello.", cwd="/", session=str(uuid.uuid4()))) is None

    def test_a_turn_costs_something_or_nothing(self) -> None:
        """Never less; and a turn that continues is not charged for the one before."""
        taken = self.take("Say hello.", "hello")
        assert taken.reply.spent.cost >= 0
        assert taken.reply.spent.tokens_in >= 0
        if self.make().can.continues:
            second = self.take("Say hello.", "hello", base=taken.reply)
            assert second.reply.spent.tokens_out <= taken.reply.spent.tokens_out * 3 + 10

    def test_output_that_is_cut_off_anywhere_is_a_failure(self) -> None:
        """Every prefix of what the program printed, except the whole, ends in a known failure class."""
        taken = self.take("Say hello.", "hello")
        for stop in range(len(taken.lines)):
            reader = self.make().reader(taken.turn)
            for line in taken.lines[:stop]:
                reader.feed(line)
            if reader.ending is None:
                _is_trouble(reader.close(1, "killed"))
                assert reader.spent().cost >= 0

    def test_the_same_output_means_the_same_twice(self) -> None:
        """What is in the spool is read again after a restart."""
        taken = self.take("Say hello.", "hello")
        again = self.make().reader(taken.turn)
        for line in taken.lines:
            again.feed(line)
        assert (again.ending or again.close(0, "")) == taken.ending

    def test_garbage_is_survived(self) -> None:
        """No line makes a reader raise, and garbage alone is a failure."""
        reader = self.make().reader(probe.turn("Say hello.", cwd="/", session=str(uuid.uuid4())))
        for line in GARBAGE:
            assert all(isinstance(seen, Observation) for seen in reader.feed(line))
            assert isinstance(reader.tool, str)
        _is_trouble(reader.close(1, "it broke"))

    def test_a_program_that_says_nothing_has_failed(self) -> None:
        """Whatever its exit code is."""
        for code in (0, 1, -9, None):
            reader = self.make().reader(probe.turn("Say hello.", cwd="/", session=str(uuid.uuid4())))
            _is_trouble(reader.close(code, ""))

    def test_the_command_names_only_itself(self) -> None:
        """A prompt is not part of a command line, which everybody on the machine can see."""
        command = self.make().command(probe.turn("a prompt", cwd="/", session=str(uuid.uuid4())))
        assert command.argv[0]
        assert not any("a prompt" in part for part in command.argv)


class Taken:
    """A turn that was taken."""

    def __init__(
        self, turn: Turn, ending: Reply | Trouble, lines: list[bytes], observations: list[Observation]
    ) -> None:
        self.turn = turn
        self.ending = ending
        self.lines = lines
        self.observations = observations

    @property
    def reply(self) -> Reply:
        """What it replied; a failure is shown."""
        assert isinstance(self.ending, Reply), self.ending
        return self.ending


class Recorded:
    """A backend whose output is kept."""

    def __init__(self, backend: Backend) -> None:
        self.name, self.paid, self.can = backend.name, backend.paid, backend.can
        self.lines: list[bytes] = []
        self._backend = backend

    def look(self) -> Found:
        """As the backend does."""
        return self._backend.look()

    def command(self, turn: Turn) -> Command:
        """As the backend does."""
        return self._backend.command(turn)

    def reader(self, turn: Turn) -> Reader:
        """The backend's reader, listened to."""
        return RecordedReader(self._backend.reader(turn), self.lines)

    def recall(self, turn: Turn) -> Reply | None:
        """As the backend does."""
        return self._backend.recall(turn)


class RecordedReader:
    """A reader whose lines are kept."""

    def __init__(self, reader: Reader, lines: list[bytes]) -> None:
        self._reader = reader
        self._lines = lines

    @property
    def ending(self) -> Reply | Trouble | None:
        """As the reader says."""
        return self._reader.ending

    @property
    def tool(self) -> str:
        """As the reader says."""
        return self._reader.tool

    def feed(self, line: bytes) -> list[Observation]:
        """Keep the line."""
        self._lines.append(line)
        return self._reader.feed(line)

    def close(self, exit_code: int | None, errors: str) -> Reply | Trouble:
        """As the reader does."""
        return self._reader.close(exit_code, errors)

    def spent(self) -> Spending:
        """As the reader says."""
        return self._reader.spent()


def _is_trouble(ending: Reply | Trouble) -> None:
    assert isinstance(ending, Trouble), ending
    assert ending.kind in REPORTED
    assert ending.error
