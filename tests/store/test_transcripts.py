"""Transcripts: append only, one file per agent, rolled when long, read back by offset."""

import os
import resource
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from raymond.errors import JournalError
from raymond.machine.agent import file_name
from raymond.store import transcripts
from raymond.store.transcripts import Transcripts
from running import Room


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "transcripts" / "r")


@pytest.fixture
def kept(folder: str) -> Iterator[Transcripts]:
    kept = Transcripts(folder)
    yield kept
    kept.close()


def texts(folder: str, agent: str, offset: int, name: str = "out") -> str:
    return "".join(str(line.get(name, "")) for line in transcripts.read_record(folder, agent, offset))


def test_a_record_is_read_back_from_where_it_begins(kept: Transcripts, folder: str) -> None:
    offsets = []
    for step in (1, 2, 3):
        record = kept.step("main", step=step, state="A.sh")
        record.add("out", f"said in {step}")
        offsets.append(record.end(exit=0))
    assert offsets[0] == 0
    assert [transcripts.read_record(folder, "main", offset) for offset in offsets] == [
        [{"step": step, "state": "A.sh", "out": f"said in {step}", "exit": 0}] for step in (1, 2, 3)
    ]


def test_where_only_ends_are_kept_the_beginning_is_nowhere(folder: str) -> None:
    kept = Transcripts(folder, tails=True)
    record = kept.step("main", step=1, state="A.sh")
    record.add("out", "secret plan\n")
    for number in range(20_000):
        record.add("out", f"{number}\n")
        record.publish(float(number))
    offset = record.end(exit=0)
    kept.close()
    found = texts(folder, "main", offset)
    assert (len(found), found.endswith("\n19999\n")) == (transcripts.TAIL, True)
    assert b"secret" not in b"".join(path.read_bytes() for path in Path(folder).iterdir())


def test_turns_of_one_step_are_records_of_their_own(kept: Transcripts, folder: str) -> None:
    """A reminder is another turn of the same step."""
    first = kept.step("main", step=1, turn=1, state="A.md", sent="the prompt").end(said="no tag")
    second = kept.step("main", step=1, turn=2, state="A.md", sent="a reminder").end(said="a tag")
    assert [line["sent"] for line in transcripts.read_record(folder, "main", first)] == ["the prompt"]
    assert [line["sent"] for line in transcripts.read_record(folder, "main", second)] == ["a reminder"]


def test_long_output_is_written_as_it_comes_and_not_held(kept: Transcripts, folder: str) -> None:
    record = kept.step("main", step=1, state="A.sh")
    record.add("out", "x" * (transcripts.PIECE + 1))
    assert os.path.getsize(f"{folder}/main.jsonl") > transcripts.PIECE
    record.add("out", "y")
    offset = record.end(exit=0)
    assert offset == 0
    assert texts(folder, "main", offset) == "x" * (transcripts.PIECE + 1) + "y"


def test_what_is_held_can_be_written_at_any_time(kept: Transcripts, folder: str) -> None:
    record = kept.step("main", step=1, state="A.sh")
    record.flush()
    assert not os.path.exists(folder), "nothing was said yet"
    record.add("out", "so far")
    record.flush()
    assert texts(folder, "main", 0) == "so far"


def test_output_and_errors_stay_apart(kept: Transcripts, folder: str) -> None:
    record = kept.step("main", step=1, state="A.sh")
    for number in range(3):
        record.add("out", f"o{number}")
        record.add("err", f"e{number}")
    record.end()
    assert (texts(folder, "main", 0), texts(folder, "main", 0, "err")) == ("o0o1o2", "e0e1e2")


def test_agents_have_files_of_their_own(kept: Transcripts, folder: str) -> None:
    one = kept.step("main", step=1, state="A.sh").end(exit=0)
    two = kept.step("main_a1", step=2, state="B.sh").end(exit=0)
    assert (one, two) == (0, 0)
    assert sorted(os.listdir(folder)) == ["main.jsonl", "main_a1.jsonl"]


def test_more_agents_than_files_may_be_open_lose_nothing(kept: Transcripts, folder: str) -> None:
    offsets = {}
    for step in range(200):
        agent = f"main_a{step % 70}"
        record = kept.step(agent, step=step, state="A.sh")
        record.add("out", f"{step}")
        offsets[agent, step] = record.end()
    assert all(texts(folder, agent, offset) == str(step) for (agent, step), offset in offsets.items())
    assert len(os.listdir(f"/proc/{os.getpid()}/fd")) < 200


def test_a_later_driver_goes_on_where_the_last_one_stopped(kept: Transcripts, folder: str) -> None:
    kept.step("main", step=1, state="A.sh").end(exit=0)
    kept.close()
    later = Transcripts(folder)
    record = later.step("main", step=2, state="B.sh")
    record.add("out", "later")
    offset = record.end(exit=0)
    later.close()
    assert offset > 0
    assert texts(folder, "main", offset) == "later"


def test_a_line_torn_by_a_kill_does_not_hide_what_comes_after_it(kept: Transcripts, folder: str) -> None:
    first = kept.step("main", step=1, state="A.sh").end(exit=0)
    kept.close()
    with open(f"{folder}/main.jsonl", "ab") as file:
        file.write(b'{"step":2,"state":"B.sh","out":"half a li')
    later = Transcripts(folder)
    record = later.step("main", step=2, state="B.sh")
    record.add("out", "again")
    offset = record.end(exit=0)
    later.close()
    assert texts(folder, "main", offset) == "again"
    assert [line["step"] for line in transcripts.read_record(folder, "main", first)] == [1]


def test_a_line_that_is_nested_too_deeply_is_like_any_that_makes_no_sense(kept: Transcripts, folder: str) -> None:
    offset = kept.step("main", step=1, state="A.sh").end(out="said\n")
    kept.append("main", b'{"step":1,"x":' + b"[" * 1500 + b"]" * 1500 + b"}\n")
    assert transcripts.last_line(folder, "main") == "said"
    assert texts(folder, "main", offset) == "said\n"


def test_a_hole_of_terabytes_at_the_end_is_no_line(
    kept: Transcripts, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "LONGEST", 1 << 20)
    offset = kept.step("main", step=1, state="A.sh").end(out="said\n")
    os.truncate(f"{folder}/main.jsonl", 8 << 40)
    assert texts(folder, "main", offset) == "said\n"
    assert transcripts.last_line(folder, "main") == ""
    assert transcripts.find_last((b"not there",), folder, "main", offset) > offset, (
        "it may be there: nobody searches that"
    )


def test_nobody_else_can_read_a_transcript(kept: Transcripts, folder: str) -> None:
    kept.step("main", step=1, state="A.sh").end()
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{folder}/main.jsonl").st_mode) == 0o600


def test_an_offset_that_is_not_there_reads_as_nothing(kept: Transcripts, folder: str) -> None:
    kept.step("main", step=1, state="A.sh").end()
    assert transcripts.read_record(folder, "main", 1_000_000) == []
    assert transcripts.read_record(folder, "nobody", 0) == []
    assert transcripts.read_record(folder + "/nowhere", "main", 0) == []


# Rolled files


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are rolled at 1,000 bytes, pieces written at 100 characters."""
    monkeypatch.setattr(transcripts, "ROLL_AT", 1000)
    monkeypatch.setattr(transcripts, "PIECE", 100)


def test_a_long_file_is_rolled_and_offsets_go_on(small: None, kept: Transcripts, folder: str) -> None:
    offsets = []
    for step in range(40):
        record = kept.step("main", step=step, state="A.sh")
        record.add("out", f"{step} " * 10)
        offsets.append(record.end(exit=0))
    names = sorted(os.listdir(folder))
    assert len(names) >= 3
    assert names[0] == "main.000000000000.jsonl"
    assert offsets == sorted(set(offsets))
    assert [texts(folder, "main", offset) for offset in offsets] == [f"{step} " * 10 for step in range(40)]


def test_a_record_that_goes_over_several_files_is_read_whole(small: None, kept: Transcripts, folder: str) -> None:
    kept.step("main", step=1, state="A.sh").end()
    record = kept.step("main", step=2, state="B.sh")
    said = "".join(f"line {number}\n" for number in range(500))
    for start in range(0, len(said), 77):
        record.add("out", said[start : start + 77])
    offset = record.end(exit=0)
    kept.step("main", step=3, state="C.sh").end()
    assert len(os.listdir(folder)) > 4
    assert texts(folder, "main", offset) == said
    assert transcripts.read_record(folder, "main", offset)[-1]["exit"] == 0


@pytest.mark.parametrize("at_once", [1, 7, 64, 1 << 20])
def test_the_last_of_some_words_is_found_in_all_files(
    small: None, kept: Transcripts, folder: str, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(transcripts, "_SEARCHED", at_once)
    offsets = []
    for step in range(40):
        record = kept.step("main", step=step, state="A.sh")
        record.add("out", "needle" if step == 17 else "<p" if step in (3, 30) else "hay" * 10)
        offsets.append(record.end(exit=0))
    words = (b"needle", b"<p")
    assert len(os.listdir(folder)) >= 3
    assert offsets[30] < transcripts.find_last(words, folder, "main", 0) < offsets[31]
    assert offsets[30] < transcripts.find_last(words, folder, "main", offsets[30]) < offsets[31]
    assert transcripts.find_last(words, folder, "main", offsets[31]) == -1
    assert offsets[17] < transcripts.find_last(words[:1], folder, "main", offsets[4]) < offsets[18]
    assert transcripts.find_last(words, folder, "nobody", 0) == -1


def test_a_later_driver_counts_the_files_that_were_rolled(small: None, kept: Transcripts, folder: str) -> None:
    record = kept.step("main", step=1, state="A.sh")
    record.add("out", "x" * 2000)
    record.end()
    kept.close()
    later = Transcripts(folder)
    record = later.step("main", step=2, state="B.sh")
    record.add("out", "later")
    offset = record.end()
    later.close()
    assert offset > 2000
    assert texts(folder, "main", offset) == "later"


def test_rolled_files_of_an_agent_with_a_longer_name_are_not_mixed_in(
    small: None, kept: Transcripts, folder: str
) -> None:
    for agent in ("main", "main_a1"):
        record = kept.step(agent, step=1, state="A.sh")
        record.add("out", agent * 1000)
        record.end()
    record = kept.step("main", step=2, state="B.sh")
    record.add("out", "mine")
    assert texts(folder, "main", record.end()) == "mine"


# Trouble


def test_a_folder_that_cannot_be_written_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError) as caught:
        Transcripts(str(tmp_path / "file" / "r")).step("main", step=1).end()
    assert str(caught.value) == f"{tmp_path}/file/r: not a directory"
    assert caught.value.hint == "nothing already written is lost: fix this, then try again"


def test_the_hint_names_the_run_that_can_be_resumed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError) as caught:
        Transcripts(str(tmp_path / "file" / "folder"), "my-run").step("main", step=1).end()
    assert caught.value.hint == "nothing already written is lost: fix this, then `raymond resume my-run`"


def test_a_text_with_every_kind_of_character_is_kept(kept: Transcripts, folder: str) -> None:
    text = '\0 \ud7ff \ufffd 🦊 \u2028 \\n " \x1b[31m'
    record = kept.step("main", step=1, state="A.sh")
    record.add("out", text)
    assert texts(folder, "main", record.end()) == text
    with open(f"{folder}/main.jsonl", "rb") as file:
        assert msgspec.json.decode(file.read())["out"] == text


def test_an_agent_with_a_very_long_name_has_a_file(kept: Transcripts, folder: str) -> None:
    """The name of a fork of a fork of a fork grows; a file name may have 255 bytes."""
    one, other = "main" + "_worker1" * 100, "main" + "_worker1" * 99 + "_worker2"
    offsets = {}
    for agent in (one, other):
        record = kept.step(agent, step=1, state="A.sh")
        record.add("out", agent)
        offsets[agent] = record.end()
    assert texts(folder, one, offsets[one]) == one
    assert texts(folder, other, offsets[other]) == other
    assert file_name("main_worker1") == "main_worker1"
    assert len(file_name("\N{SNOWMAN}" * 100).encode()) < 200


@pytest.mark.slow
def test_a_chain_of_40_forks_runs(tmp_path: Path) -> None:
    script = """
    n=${RAYMOND_VAR_n:-0}; touch "$RAYMOND_TASK_FOLDER/here"
    if [ $n = 40 ]; then echo "<result>$RAYMOND_AGENT_ID</result>"
    else echo "<fork n=\\"$((n + 1))\\">WORKER</fork><wait>END</wait>"; fi
    """
    ran = Room(tmp_path).drive({"START.sh": script, "WORKER.sh": script, "END.sh": "echo '<result></result>'"})
    assert ran.code == 0
    deepest = "main" + "_worker1" * 40
    assert ran.run.outcomes[deepest].result == deepest


def test_a_record_is_written_although_the_files_of_other_agents_are_all_that_may_be_open(
    kept: Transcripts, folder: str
) -> None:
    kept.step("main", step=1, state="A.sh").end()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        kept.step("main_a1", step=2, state="A.sh").end()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert Path(folder, "main_a1.jsonl").exists()
