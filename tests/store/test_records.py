"""Records are the same in whatever order they are read, also while the transcript grows."""

from pathlib import Path

from raymond.store import records
from raymond.store.records import Records
from raymond.store.transcripts import Record, Transcripts


def step(kept: Transcripts, agent: str, number: int) -> Record:
    record = kept.step(agent, step=number, state="A.sh")
    record.add("out", f"{agent} {number}")
    return record


def test_records_read_in_any_order_are_those_read_alone(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    places = [(agent, step(kept, agent, number).end(exit=0)) for number in range(5) for agent in ("a", "b")]
    kept.close()
    opened = Records(str(tmp_path))
    for agent, offset in [*places, *reversed(places), places[3], places[3], ("a", -1), ("b", 10**9)]:
        assert opened.of(agent, offset) == (records.read(str(tmp_path), agent, offset) if offset >= 0 else [])
    assert [line["out"] for line in opened.of("b", places[3][1])] == ["b 1"]


def test_a_record_that_was_half_written_at_the_first_look_is_read_whole_at_the_next(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    first = step(kept, "a", 1).end(exit=0)
    path = tmp_path / "a.jsonl"
    half = path.stat().st_size
    second = step(kept, "a", 2).end(exit=0)
    whole = path.read_bytes()
    opened = Records(str(tmp_path))
    for length in (half, half + 7, len(whole)):
        path.write_bytes(whole[:length])
        assert [line["out"] for line in opened.of("a", first)] == ["a 1"]
    assert [line["out"] for line in opened.of("a", second)] == ["a 2"]
    third = step(kept, "a", 3).end(exit=0)
    kept.close()
    assert [line["out"] for line in opened.of("a", third)] == ["a 3"]


def test_a_run_of_many_agents_keeps_few_files_open(tmp_path: Path) -> None:
    kept = Transcripts(str(tmp_path))
    places = {f"a{number}": step(kept, f"a{number}", 1).end() for number in range(100)}
    for agent in places:
        for number in range(2, 4):
            step(kept, agent, number).end()
    kept.close()
    opened = Records(str(tmp_path))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for agent, offset in places.items():
        assert opened.of(agent, offset)
    assert len(list(Path("/proc/self/fd").iterdir())) - before <= 32
