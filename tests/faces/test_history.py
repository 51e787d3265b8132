"""What a step told while it ran, from its transcript."""

from pathlib import Path

import pytest

from raymond.faces import history
from raymond.machine.events import StepFinished
from raymond.store.records import Records
from raymond.store.transcripts import PIECE, Transcripts


@pytest.mark.parametrize("before", [0, PIECE - 4, PIECE])
def test_what_is_printed_is_told_wherever_a_piece_of_the_transcript_ends(tmp_path: Path, before: int) -> None:
    kept = Transcripts(str(tmp_path))
    record = kept.step("main", step=1, state="START.sh")
    text = "." * before + "\n<print>hello</print>\n"
    for at in range(0, len(text), 7):
        record.add("out", text[at : at + 7])
    ended = StepFinished(agent="main", step=1, offset=record.end(exit=0))
    kept.close()
    assert [told for kind, told in history.told(Records(str(tmp_path)), ended) if kind == "print"] == ["hello"]
