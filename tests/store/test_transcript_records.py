"""Records are the same in whatever order they are read, also while the transcript grows."""

from pathlib import Path

from raymond.machine.events import StepInterrupted, StepRefused
from raymond.store import transcripts
from raymond.store.transcripts import Record, TranscriptReader, Transcripts


def step(kept: Transcripts, agent: str, number: int) -> Record:
    record = kept.step(agent, step=number, state="A.sh")
    record.add("out", f"{agent} {number}")
    return record


def test_records_read_in_any_order_are_those_read_alone(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    places = [(agent, step(kept, agent, number).end(exit=0)) for number in range(5) for agent in ("a", "b")]
    kept.close()
    opened = TranscriptReader(str(tmp_path))
    for agent, offset in [*places, *reversed(places), places[3], places[3], ("a", -1), ("b", 10**9)]:
        assert opened.of(agent, offset) == (
            transcripts.read_record(str(tmp_path), agent, offset) if offset >= 0 else []
        )
    assert [line["out"] for line in opened.of("b", places[3][1])] == ["b 1"]


def test_a_record_that_was_half_written_at_the_first_look_is_read_whole_at_the_next(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    first = step(kept, "a", 1).end(exit=0)
    path = tmp_path / "a.jsonl"
    half = path.stat().st_size
    second = step(kept, "a", 2).end(exit=0)
    whole = path.read_bytes()
    opened = TranscriptReader(str(tmp_path))
    for length in (half, half + 7, len(whole)):
        path.write_bytes(whole[:length])
        assert [line["out"] for line in opened.of("a", first)] == ["a 1"]
    assert [line["out"] for line in opened.of("a", second)] == ["a 2"]
    third = step(kept, "a", 3).end(exit=0)
    kept.close()
    assert [line["out"] for line in opened.of("a", third)] == ["a 3"]


TORN = b'{"step":2,"state":"A.sh","out":"half a li'


def test_what_follows_a_torn_line_is_read(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    first = step(kept, "a", 1).end(exit=0)
    kept.close()
    with (tmp_path / "a.jsonl").open("ab") as file:
        file.write(TORN)
    kept = Transcripts(str(tmp_path))
    running = step(kept, "a", 2)
    running.flush()
    assert (tmp_path / "a.jsonl").read_bytes().splitlines()[1] == TORN, "a line of its own"
    opened = TranscriptReader(str(tmp_path))
    assert [line["out"] for line in opened.so_far("a", 2)] == ["a 2"]
    assert [line["out"] for line in opened.of("a", first)] == ["a 1"]
    assert [line.get("out") for line in opened.of("a", running.end(exit=0))] == ["a 2", None]
    kept.close()


def test_a_line_that_makes_no_sense_is_not_mistaken_for_the_next(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    damaged = kept.append("a", TORN + b"\n")
    step(kept, "a", 3).end(exit=0)
    kept.close()
    assert transcripts.read_record(str(tmp_path), "a", damaged) == []


def test_a_turn_without_an_offset_is_told_from_those_before_it_and_read_where_it_was_adopted(tmp_path: Path) -> None:
    kept, opened = Transcripts(str(tmp_path)), TranscriptReader(str(tmp_path))
    first = kept.step("a", step=1, turn=1, state="A.md", sent="the prompt").end(said="no tag")
    refused = StepRefused(agent="a", step=1, offset=first)
    cut = StepInterrupted(agent="a", step=1)
    assert [line["sent"] for line in opened.ended(refused)] == ["the prompt"]
    assert opened.ended(cut) == []
    assert opened.so_far("a", 1, 2) == []
    for driver in ("killed", "adopting"):
        record = kept.step("a", step=1, turn=2, state="A.md", sent=driver)
        record.publish(1.0)
    assert [line["sent"] for line in opened.so_far("a", 1, 2)] == ["adopting"]
    kept.step("a", step=2, state="A.md", sent="another").end()
    kept.close()
    assert [line["sent"] for line in opened.ended(cut)] == ["adopting"]


def test_a_run_of_many_agents_keeps_few_files_open(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    places = {f"a{number}": step(kept, f"a{number}", 1).end() for number in range(100)}
    for agent in places:
        for number in range(2, 4):
            step(kept, agent, number).end()
    kept.close()
    opened = TranscriptReader(str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for agent, offset in places.items():
        assert opened.of(agent, offset)
    assert len(list(Path("/proc/self/fd").iterdir())) - before <= 32
