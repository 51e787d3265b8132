"""What a step told while it ran, from its transcript."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.errors import JournalError
from raymond.faces import history
from raymond.faces.lines import Tail
from raymond.machine.events import AgentMoved, Decision, StepFinished
from raymond.store.transcripts import PIECE, TranscriptReader, Transcripts


@pytest.mark.parametrize("before", [0, PIECE - 4, PIECE])
def test_what_is_printed_is_told_wherever_a_piece_of_the_transcript_ends(tmp_path: Path, before: int) -> None:
    kept = Transcripts(str(tmp_path))
    record = kept.step("main", step=1, state="START.sh")
    text = "." * before + "\n<print>hello</print>\n"
    for at in range(0, len(text), 7):
        record.add("out", text[at : at + 7])
    ended = StepFinished(agent="main", step=1, offset=record.end(exit=0))
    kept.close()
    assert [told for kind, told in history.told_by_step(TranscriptReader(str(tmp_path)), ended) if kind == "print"] == [
        "hello"
    ]


@pytest.mark.parametrize(
    "pieces", [("<print>hello</print>",), ("<pr", "int>hello</print>"), ("<", "print>hello</print>")]
)
def test_logs_show_what_the_last_step_of_an_agent_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pieces: tuple[str, ...]
) -> None:
    kept = Transcripts(str(tmp_path))
    decisions = []
    for step in range(1, 10):
        record = kept.step("main", step=step, state="A.sh")
        for piece in pieces if step == 5 else ("nothing <goto>A</goto>",):
            record.add("out", piece)
            record.flush()
        ended = StepFinished(agent="main", step=step, offset=record.end(exit=0))
        moved = AgentMoved(agent="main", tag="goto", state="A.sh")
        decisions.append(Decision(seq=step, time=0, events=[ended, moved]))
    kept.close()

    printer = history.TextHistory("", str(tmp_path), Tail())
    printer.show(decisions[:3])
    printer.show(decisions[3:])

    told = capsys.readouterr().out.splitlines()
    assert [line for line in told if "(goto)" not in line] == ["#5 main | hello"]
    assert len(told) == 10


@pytest.mark.parametrize("as_json", [False, True])
def test_nothing_is_shown_of_decisions_that_turn_out_to_be_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    def each() -> Iterator[Decision]:
        yield Decision(seq=1, time=0, events=[AgentMoved(agent="main", tag="goto", state="A.sh")])
        raise JournalError("line 3 is damaged")

    printer = history.JsonHistory("", Tail()) if as_json else history.TextHistory("", str(tmp_path), Tail())
    with pytest.raises(JournalError):
        printer.show(each())
    assert capsys.readouterr().out == ""
