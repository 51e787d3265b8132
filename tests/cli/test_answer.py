"""Answering: what is an answer and what only selects, what is shown, and what is typed at a terminal."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from raymond import cli
from raymond.control import candidates, questions
from raymond.machine.events import AskEnded, StepRefused
from raymond.store import journal
from raymond.store.home import Home
from raymond.store.project import Project
from raymond.views.times import instant
from running import GO, Room, as_anyone, until
from typist import Typist

ASK = "echo '<ask next=\"END\">Release 2.1?\nAll 14 tests are green.</ask>'"
END = 'printf "<result>told %s</result>" "$RAYMOND_INPUT"'
ASKS = {"START.sh": ASK, "END.sh": END}
BOTH = {"START.sh": "echo '<fork>ASK</fork><fork>ASK</fork><wait>END</wait>'", "ASK.sh": ASK, "END.sh": END}

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def raymond(room: Room, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command in this process: its exit code, and what it says."""
    monkeypatch.chdir(room.path)
    monkeypatch.setenv("RAYMOND_HOME", str(room.home))

    def call(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main([*args])
        told = capsys.readouterr()
        return code, told.out, told.err

    return call


def answers(room: Room, id: str = "r") -> list[str]:
    return [event.answer for event in room.events(id) if isinstance(event, AskEnded)]


QUESTION = ["  | Release 2.1?", "  | All 14 tests are green."]


@pytest.mark.parametrize("words", [(), ("review-1",), ("rev",), ("main",), ("review-1", "main")])
def test_what_names_a_run_or_an_agent_is_no_answer_but_shows_the_question(
    room: Room, raymond: Command, words: tuple[str, ...]
) -> None:
    room.drive(ASKS, id="review-1")
    code, out, err = raymond("answer", *words)
    first, second, *rest = out.splitlines()
    assert (code, rest) == (2, QUESTION)
    assert re.fullmatch(r"main of review-1 asks \(question 1, \d+s ago\):", first)
    assert second == f"  in START.sh of the run in {room.path}"
    assert err == (
        "error: there is no answer, and no terminal to type it on\nhint: raymond answer review-1 main TEXT\n"
    )
    assert answers(room, "review-1") == []


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("reveiw-1", "did you mean `review-1`?"),
        ("Leave it out.", "to answer: raymond answer review-1 main TEXT"),
        ("yes", "to answer: raymond answer review-1 main TEXT"),
        ("Notea", "to answer: raymond answer review-1 main TEXT"),
        ("notez", "did you mean `notes`?"),
    ],
)
def test_one_word_is_never_an_answer(room: Room, raymond: Command, word: str, hint: str) -> None:
    room.drive({"START.sh": "echo '<result></result>'"}, id="notes")
    room.drive({**ASKS, "START.sh": ASK.replace("<ask ", '<ask choices="yes,notea" ')}, id="review-1")
    told = f"error: there is no run `{word}` here or in any other project\nhint: {hint}\n"
    assert raymond("answer", word) == (2, "", told)
    assert answers(room, "review-1") == []


def test_the_id_of_a_run_is_no_answer_to_another_one(room: Room, raymond: Command) -> None:
    room.drive(ASKS)
    room.drive({"START.sh": END}, id="done")
    told = "error: `done` is the id of a run\nhint: if it is the answer: raymond answer r main done\n"
    assert raymond("answer", "r", "done", "--no-resume") == (2, "", told)
    assert raymond("answer", "r", "main", "done", "--no-resume")[0] == 0
    assert answers(room) == ["done"]


LABELS = {
    "START.sh": """echo '<fork label="yes">E</fork><fork label="a b">ASK</fork><fork label="same">ASK</fork>'
    echo '<fork label="same">ASK</fork><wait>END</wait>'""",
    "E.sh": "echo '<result></result>'",
    "ASK.sh": ASK,
    "END.sh": END,
}


def test_what_an_agent_is_called_is_no_answer_to_another_one(room: Room, raymond: Command) -> None:
    room.drive(LABELS)
    room.drive({"START.sh": ASK, "END.sh": END}, id="other")
    ways = " or ".join(f"raymond answer r main_ask{number} yes" for number in "234")
    ended = (
        f"error: `yes` is the label of main_e1, which is not waiting for an answer\nhint: if it is the answer: {ways}\n"
    )
    assert sorted_ways(raymond("answer", "r", "yes")) == (2, "", ended)
    for words in (("r", "same"), ("r", "same", "yes"), ("same",), ("same", "yes")):
        code, _, err = raymond("answer", *words)
        assert (code, err) == (
            2,
            "error: 2 agents have the label `same`: main_ask3, main_ask4\nhint: name one of them\n",
        )
    assert "main_ask2 (a b) of r asks" in raymond("answer", "r", "a b")[1], "it asks, so its question is shown"
    assert answers(room) == []
    assert raymond("answer", "r", "a b", "yes", "--no-resume")[0] == 0
    assert answers(room) == ["yes"]


def sorted_ways(told: tuple[int, str, str]) -> tuple[int, str, str]:
    """What was told, with its commands in order: forks ask in any order."""
    ways = re.findall(r"raymond answer r main_ask\d yes", told[2])
    rest = iter(sorted(ways))
    return told[0], told[1], re.sub(r"raymond answer r main_ask\d yes", lambda _: next(rest), told[2])


def test_a_label_names_an_agent_for_every_command(room: Room, raymond: Command) -> None:
    room.drive(LABELS)
    shown = raymond("logs", "r", "--agent", "a b")
    assert shown == raymond("logs", "r", "--agent", "main_ask2")
    assert shown[0] == 0
    code, _, err = raymond("logs", "r", "--agent", "b a")
    named = "main, main_e1 (yes), main_ask2 (a b), main_ask3 (same), main_ask4 (same)"
    assert (code, err) == (2, f"error: there is no agent `b a` in r\nhint: its agents: {named}\n")
    several = "error: 2 agents have the label `same`: main_ask3, main_ask4"
    for words in (("logs", "r", "--agent", "same"), ("stop", "r", "--agent", "same")):
        assert raymond(*words)[2].splitlines()[0] == several
    assert raymond("resume", "r", "--agent", "same", "--give-up")[2].splitlines()[0] == several
    code, _, err = raymond("stop", "r", "--agent", "a b")
    assert (code, err) == (2, "error: main_ask2 is asking: there is nothing to pause\n")
    assert raymond("resume", "r", "--agent", "a b", "--result", "so")[0] == 3
    assert "main_ask2 (a b) done" in raymond("logs", "r")[1]


SPOOFS = {
    "START.sh": 'echo \'<fork next="W" label="main">ASK</fork>\'',
    "W.sh": "echo '<wait>END</wait>'",
    "ASK.sh": ASK,
    "END.sh": END,
}


@pytest.mark.parametrize("word", ["main_as", "Main_Ask1", "main_ask9", "MAIN", "review2"])
def test_a_name_with_a_typing_error_is_no_answer(room: Room, raymond: Command, word: str) -> None:
    room.drive(SPOOFS, id="review-2")
    code, _, err = raymond("answer", "review-2", word, "--no-resume")
    assert (code, answers(room, "review-2")) == (2, []), err
    assert f"hint: if it is the answer: raymond answer review-2 main_ask1 {word}" in err
    assert raymond("answer", "review-2", "may be", "--no-resume")[0] == 0


def test_a_label_that_reads_like_the_name_of_another_agent_gets_no_answer(room: Room, raymond: Command) -> None:
    room.drive(SPOOFS)
    code, _, err = raymond("answer", "r", "main", "yes", "--no-resume")
    assert (code, answers(room)) == (2, []), err
    assert raymond("answer", "r", "main_ask1", "yes", "--no-resume")[0] == 0
    assert answers(room) == ["yes"]


@pytest.mark.parametrize("words", [("",), ("r", " "), ("r", "main", "")])
def test_an_empty_word_is_no_answer(room: Room, raymond: Command, words: tuple[str, ...]) -> None:
    room.drive(ASKS)
    code, _, err = raymond("answer", *words)
    assert (code, err.splitlines()[0]) == (2, "error: an empty word is neither an id, nor an agent, nor an answer")
    assert answers(room) == []


def test_the_beginning_of_several_ids_is_no_answer(room: Room, raymond: Command) -> None:
    room.drive(ASKS, id="yes-1")
    room.drive(ASKS, id="yes-2")
    code, _, err = raymond("answer", "yes")
    assert (code, err.splitlines()[0]) == (2, "error: `yes` is the beginning of 2 runs")
    assert answers(room, "yes-1") == answers(room, "yes-2") == []


@pytest.mark.slow
def test_several_questions_are_named_where_nobody_can_be_asked(room: Room, raymond: Command) -> None:
    room.drive(BOTH)
    for words in ((), ("r",)):
        code, out, err = raymond("answer", *words)
        assert (code, out) == (2, "")
        first = re.search(r"raymond answer r (main_ask[12]) TEXT\n", err)
        assert first, err
        other = {"main_ask1": "main_ask2", "main_ask2": "main_ask1"}[first[1]]
        assert err == (
            f"error: several agents are waiting for an answer: {first[1]} of r, {other} of r\n"
            f"hint: say which one: raymond answer r {first[1]} TEXT\n"
        )
    code, _, err = raymond("answer", "main_ask2", "two", "--no-resume")
    assert (code, err.splitlines()[-1]) == (0, "1 question is still open: raymond answer r")
    assert raymond("answer", "r", "one", "--no-resume")[0] == 0, "it is the only question that is left"
    assert answers(room) == ["two", "one"]


def test_a_text_that_comes_from_elsewhere_loses_one_line_break(room: Room, raymond: Command, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("yes\n\n", "utf-8")
    (tmp_path / "blank").write_text("\n", "utf-8")
    (tmp_path / "large").write_bytes(b"x" * ((1 << 20) + 1))
    refused = {
        "/dev/zero": "error: `/dev/zero` is not a regular file",
        str(tmp_path / "blank"): "error: the answer is empty",
        str(tmp_path / "large"): f"error: `{tmp_path / 'large'}` is larger than 1 MiB",
    }
    room.drive(ASKS)
    for path, why in refused.items():
        code, _, err = raymond("answer", "r", "--file", path)
        assert (code, err.splitlines()[0]) == (2, why)
    (tmp_path / "quoted").write_text('"' * (1 << 20), "utf-8")
    code, _, err = raymond("answer", "r", "--file", str(tmp_path / "quoted"))
    hint = "put it into a file, and give the path of the file instead of its text"
    assert (code, err) == (2, f"error: the answer is longer than 1 MiB\nhint: {hint}\n")
    assert raymond("answer", "r", "--file", str(tmp_path / "text"), "--no-resume")[0] == 0
    room.drive(ASKS, id="two")
    assert raymond("answer", "two", f"@{tmp_path / 'text'}", "--no-resume")[0] == 0
    assert answers(room) == answers(room, "two") == ["yes\n"]


SHOWS = {
    "START.sh": r"""printf 'one\n\377\033[2Jend' > report.md
    echo '<ask next="END" choices="Yes,no" files="report.md">Release?</ask>'
    """,
    "END.sh": END,
}


def test_a_question_is_shown_with_its_choices_and_its_files(room: Room, raymond: Command) -> None:
    room.drive(SHOWS)
    file = ["file report.md (12 bytes, no line break at the end):", "  | one", r"  | \xff\x1b[2Jend"]
    assert raymond("answer", "r")[1].splitlines()[2:] == ["  | Release?", *file, "choices: 1 Yes, 2 no"]
    named = ["choices: 1 Yes, 2 no", "file: report.md (12 bytes)"]
    assert [line.strip() for line in raymond("status")[1].splitlines()[5:7]] == named
    code, _, err = raymond("answer", "r", "perhaps")
    assert (code, err.splitlines()[0]) == (2, "error: `perhaps` is not one of: 1 Yes, 2 no")
    before = (room.path / "report.md").read_bytes()
    (room.path / "report.md").write_text("other\n", "utf-8")
    code, _, err = raymond("answer", "r", "yes")
    assert (code, err.splitlines()[0]) == (2, "error: report.md changed since it asked")
    assert "file report.md (6 bytes, CHANGED SINCE IT ASKED):" in raymond("answer", "r")[1]
    assert answers(room) == []
    (room.path / "report.md").write_bytes(before)
    assert raymond("answer", "r", "YES", "--no-resume")[0] == 0
    assert answers(room) == ["Yes"], "as the choice is written"


@pytest.mark.slow
def test_an_agent_is_reminded_of_a_file_that_it_has_not_written(room: Room) -> None:
    ask = '<ask next="END" files="report.md">Release?</ask>'
    ran = room.drive({"START.md": ask, "END.sh": END, "replies.yaml": f"START.md: ['{ask}', '<goto>END</goto>']"})
    why = "<ask> cannot show a file: `report.md` cannot be read: no such file or directory"
    assert {event.reason for event in ran.all(StepRefused)} == {why}


# What follows


@pytest.mark.slow
def test_an_answer_continues_the_run_in_the_background(room: Room) -> None:
    room.drive(ASKS)
    done = room.raymond("answer", "r", "yes")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == "answered; r continues in the background: raymond attach r"
    assert room.raymond("wait", "r").stdout == "told yes\n"
    room.nothing_runs()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has /dev/full")
def test_an_answer_continues_the_run_although_nobody_can_be_told(room: Room) -> None:
    room.drive(ASKS)
    with open("/dev/full", "wb") as full:
        assert room.raymond("answer", "r", "yes", stderr=full).returncode == 0
    assert room.raymond("wait", "r").stdout == "told yes\n"
    room.nothing_runs()


def test_an_answer_is_kept_although_the_run_cannot_continue(room: Room, raymond: Command) -> None:
    kept = "the answer is kept, nothing was started; to continue: raymond resume"
    room.drive(ASKS, id="stopped")
    assert raymond("stop", "stopped")[0] == 0
    code, _, err = raymond("answer", "stopped", "yes")
    assert (code, err.splitlines()[-2:]) == (5, ["stopped is stopped, so it was not continued", f"{kept} stopped"])
    room.drive(ASKS, id="limit", max_iterations=1)
    code, _, err = raymond("answer", "limit", "yes")
    assert (code, err.splitlines()[-1]) == (5, f"{kept} limit --max-iterations 2")
    room.drive(ASKS, id="broken")
    (room.path / ".raymond").mkdir(exist_ok=True)
    (room.path / ".raymond" / "config.toml").write_text("durability = 7\n", "utf-8")
    code, _, err = raymond("answer", "broken", "yes")
    assert (code, err.splitlines()[-1]) == (5, f"{kept} broken")
    assert "config.toml" in err
    assert answers(room, "stopped") == answers(room, "broken") == ["yes"]
    room.nothing_runs()


def test_nobody_is_asked_with_on_ask_fail(room: Room, raymond: Command) -> None:
    ran = room.drive(ASKS, on_ask="fail")
    assert ran.code == 1
    assert "main failed (asked): question 1 was not answered: the run has --on-ask fail" in ran.lines
    code, _, err = raymond("resume", "r", "--on-ask", "wait")
    assert (code, err.splitlines()[-1]) == (3, "next:   raymond answer r")
    code, _, err = raymond("resume", "r", "--on-ask", "fail")
    assert (code, err.splitlines()[-1]) == (1, "next:   raymond resume r --on-ask wait")


EXPIRES = {
    "START.sh": 'echo \'<ask next="END" timeout="1s" timeout_next="END">Release?</ask>\'',
    "END.sh": END,
}


@pytest.mark.slow
def test_nobody_is_offered_a_question_whose_time_is_over(room: Room, raymond: Command) -> None:
    with room.start("run", room.flow(EXPIRES), "--id", "r") as live:
        live.sees("main asks")
        live.signal(signal.SIGKILL)
    deadline = journal.read(room.project.run("r")).run.agents["main"].visit.wake_at
    until(lambda: time.time() > deadline or None, "its time is over")
    assert raymond("inbox") == (0, "", "no agent is waiting for an answer\n")
    assert json.loads(raymond("list", "--json")[1])[0]["questions"] == 0
    assert raymond("status")[1].splitlines()[-1] == "next: raymond resume r"
    late = f"error: the question of main could be answered until {instant(deadline)}\n"
    hint = "hint: raymond resume r continues without an answer\n"
    for words in (("r",), ("r", "main"), ("r", "yes"), ("r", "main", "yes")):
        assert raymond("answer", *words, "--no-resume") == (2, "", late + hint)
    assert room.raymond("resume", "r").stdout == "told \n"


def test_a_run_that_was_cancelled_asks_nothing(room: Room, raymond: Command) -> None:
    room.drive(ASKS)
    assert raymond("cancel", "r")[0] == 0
    status = raymond("status", "r")[1]
    assert ("  main  START.sh  was asking\n" in status, "raymond answer" in status) == (True, False), status
    assert "asks" not in raymond("list")[1]
    assert json.loads(raymond("list", "--json")[1])[0]["questions"] == 0
    assert (candidates.agents("r", asking=True), candidates.ids("answer")) == ([], [])


@pytest.mark.parametrize("words", [("answer", "r", "yes"), ("stop", "r"), ("cancel", "r")])
@pytest.mark.parametrize("room_left", [True, False])
def test_what_a_full_disk_did_not_take_is_to_be_asked_again(
    room: Room, raymond: Command, words: tuple[str, ...], room_left: bool
) -> None:
    """Whether or not there is room for the name of the command, which it can do without."""
    room.drive(ASKS)
    book = Path(room.project.run("r").journal)
    before = book.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5 if room_left else 0, hard))
    try:
        code, out, err = raymond(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    told = f"error: {book}: file too large"
    assert (code, out, err.splitlines()) == (
        1,
        "",
        [told, "hint: nothing was recorded: fix this, then run the same command again"],
    )
    assert book.read_bytes() == before


@pytest.mark.parametrize("words", [("answer", "r", "yes", "--no-resume"), ("stop", "r", "--now"), ("cancel", "r")])
def test_what_fits_into_the_journal_is_taken_where_no_other_file_can_be_made(
    room: Room, words: tuple[str, ...]
) -> None:
    """As on a disk that is full: the last block of the journal often has room for a line."""
    before = as_anyone()
    room.drive(ASKS)
    folder = Path(room.project.run("r").path)
    folder.chmod(0o500)
    try:
        argv = [*before, sys.executable, "-m", "raymond", *words]
        done = subprocess.run(argv, cwd=room.path, env=room.environment, text=True, capture_output=True, check=False)
    finally:
        folder.chmod(0o700)
    assert done.returncode == 0, done.stderr
    assert not (folder / "driver.json").exists()
    assert f"{words[0]} " in done.stderr.splitlines()[0]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("answer", "r", "yes", "--no-resume"), 0),
        (("resume", "r"), 3),
        (("stop", "r", "--now"), 0),
        (("cancel", "r"), 0),
        (("clean", "--force", "r"), 0),
    ],
)
def test_a_folder_in_the_place_of_driver_json_is_in_the_way_of_no_command(
    room: Room, raymond: Command, words: tuple[str, ...], code: int
) -> None:
    """Any step can put it there."""
    room.drive(ASKS)
    Path(room.project.run("r").driver, "deep").mkdir(parents=True)
    done = raymond(*words)
    assert done[0] == code, done


# All questions


def test_the_inbox_has_every_open_question_whole_with_the_command_that_answers_it(
    room: Room, raymond: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert raymond("inbox") == (0, "", "no agent is waiting for an answer\n")
    room.drive(SHOWS, id="first")
    room.drive({"START.sh": "echo '<result>done</result>'"}, id="done")
    room.drive(ASKS, id="second")
    room.drive(ASKS, id="broken")
    Path(room.project.run("broken").journal).write_text("no journal\n{}\n{}\n", "utf-8")
    told = [
        "main of first asks (question 1, T ago):",
        f"  in START.sh of the run in {room.path}",
        "  | Release?",
        "choices: 1 Yes, 2 no",
        "file: report.md (12 bytes)",
        "answer: raymond answer first main",
        "",
        "main of second asks (question 1, T ago):",
        f"  in START.sh of the run in {room.path}",
        *QUESTION,
        "answer: raymond answer second main",
    ]
    monkeypatch.chdir(tmp_path)
    code, out, err = raymond("inbox")
    assert (code, re.sub(r"\d+s ago", "T ago", out).splitlines()) == (0, told)
    assert err.startswith(f"broken in {room.path} cannot be read: ")
    assert raymond("inbox", "--here") == (0, "", "no agent is waiting for an answer\n")
    listed = json.loads(raymond("inbox", "--json")[1])
    assert [(one["workflow_id"], one["agent"], one["choices"]) for one in listed] == [
        ("first", "main", ["Yes", "no"]),
        ("second", "main", []),
    ]


def test_without_an_id_only_this_project_is_asked_unless_it_has_no_runs(
    room: Room, raymond: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    room.drive(ASKS)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert "main of r asks" in raymond("answer")[1], "no run was ever started here"
    flow = room.flow({"START.sh": "echo '<result>done</result>'"}, "quick")
    assert raymond("run", flow, "--id", "mine", "-q")[0] == 0
    hint = "raymond inbox lists the questions of all projects"
    told = f"error: no agent is waiting for an answer in this project\nhint: {hint}\n"
    assert raymond("answer") == (2, "", told)


def test_a_question_can_be_answered_wherever_its_command_is_typed(room: Room, raymond: Command, tmp_path: Path) -> None:
    here, there = room.project, Project(Home(str(room.home)), str(tmp_path / "it's there"))
    room.drive(ASKS, id="same")
    asked = questions.of_run(here, "same").asked[0]
    assert questions.way(asked) == "raymond answer same main"
    os.makedirs(there.run("same").path)
    shutil.copy(here.run("same").journal, there.run("same").journal)
    there.make()
    assert questions.way(asked) == f"raymond -C {room.path} answer same main"


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["runs/u1", "."])
def test_what_cannot_be_read_is_said_and_nothing_is_the_only_one_beside_it(room: Room, closed: str) -> None:
    room.drive(ASKS, id="u1")
    room.drive(ASKS, id="u2")
    folder = Path(room.project.root, closed)

    def told(*args: str) -> tuple[int, str]:
        argv = [*as_anyone(), sys.executable, "-m", "raymond", *args]
        done = subprocess.run(
            argv, cwd=room.path, env=room.environment, capture_output=True, text=True, input="yes", check=False
        )
        return done.returncode, done.stdout + done.stderr

    folder.chmod(0)
    try:
        listed = json.loads(told("list", "--json")[1])
        read = [(row["workflow_id"], row["status"]) for row in sorted(listed, key=lambda row: row["workflow_id"])]
        assert read == ([("u1", "unreadable"), ("u2", "waiting")] if closed != "." else [("", "unreadable")])
        assert "permission denied" in told("list")[1]
        assert "permission denied" in told("inbox")[1]
        code, said = told("resume", "--all")
        assert (code, "permission denied" in said) == (1, True), said
        if closed != ".":
            code, said = told("answer", "-")
            first = f"error: u2 may not be the only one that asks: u1 in {room.path} cannot be read"
            assert (code, said.splitlines()[0]) == (2, first)
            for verb in ("stop", "resume"):
                code, said = told(verb)
                assert (code, said.splitlines()[0]) == (2, "error: u2 may not be the only one: u1 cannot be read")
            assert told("status", "u1")[0] == 1, "there is such a run"
    finally:
        folder.chmod(0o700)
    assert answers(room, "u1") == answers(room, "u2") == []


@pytest.mark.parametrize("attach", [False, True])
def test_an_answer_to_a_run_whose_project_was_moved_names_one_way_on(room: Room, attach: bool) -> None:
    room.drive(ASKS)
    moved = room.path.parent / "moved"
    room.path.rename(moved)
    done = room.raymond("answer", "r", "yes", *(["--attach"] if attach else []), cwd=moved)
    assert (done.returncode, done.stderr.splitlines()[-2:]) == (
        5,
        ["hint: if the project was moved: raymond resume r --cd DIR", "the answer is kept, nothing was started"],
    )


# At a terminal


@pytest.mark.slow
def test_a_person_is_asked_until_there_is_an_answer(room: Room) -> None:
    room.drive(ASKS)
    person = Typist(room, "answer", "r", "--attach")
    person.type("typed too early\n")
    shown = person.sees(r"Ctrl-D:\n> ")
    assert "\n".join(QUESTION) in shown
    for nothing in ("\r", "  \r"):
        person.type(nothing)
        person.sees(r"> ")
    person.type("two lines\rthat nobody marked as pasted")
    person.sees(r"several lines came at once(.|\n)*> ")
    person.type("\x1b[200~yes,\nbut not today\x1b[201~\r")
    assert person.end() == 0, person.said
    told = "result:\n        | told yes,\n        | but not today\n"
    assert person.said.endswith(told), "it continued here"
    assert answers(room) == ["yes,\nbut not today"]


@pytest.mark.slow
def test_who_attaches_to_a_run_that_waits_for_an_answer_is_asked(room: Room) -> None:
    room.drive(ASKS)
    person = Typist(room, "attach", "r")
    assert "\n".join(QUESTION) in person.sees(r"Ctrl-D:\n> ")
    person.type("\x04")
    assert person.end() == 3, person.said
    person = Typist(room, "attach", "r")
    person.sees(r"Ctrl-D:\n> ")
    person.type("yes\r")
    assert person.end() == 0, person.said
    assert person.said.endswith("told yes\n"), "it continued here"
    assert answers(room) == ["yes"]


@pytest.mark.slow
def test_who_watches_a_run_is_asked_when_it_comes_to_rest_on_a_question(room: Room) -> None:
    """Its process is gone then: what is typed would otherwise go to the shell, as a command."""
    flow = room.flow({**ASKS, "START.sh": f"{GO}; {ASK}"})
    assert room.raymond("run", flow, "--id", "r", "-d").returncode == 0
    person = Typist(room, "attach", "r")
    person.sees(r"watching r; Ctrl-C leaves it running")
    room.go()
    assert "\n".join(QUESTION) in person.sees(r"Ctrl-D:\n> ")
    person.type("yes\r")
    assert person.end() == 0, person.said
    assert person.said.endswith("told yes\n"), "it continued here"
    assert answers(room) == ["yes"]


@pytest.mark.slow
def test_a_person_is_told_that_there_is_nothing_to_resume_and_cron_is_not(room: Room) -> None:
    """cron mails whatever is printed."""
    person = Typist(room, "resume", "--all")
    assert (person.end(), person.said) == (0, "nothing to resume\n")
    done = room.raymond("resume", "--all")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_person_who_sees_that_a_file_changed_may_answer_all_the_same(room: Room) -> None:
    room.drive(SHOWS)
    (room.path / "report.md").write_text("other\n", "utf-8")
    person = Typist(room, "answer", "r", "--no-resume")
    assert "CHANGED SINCE IT ASKED" in person.sees(r"Ctrl-D:\n> ")
    (room.path / "report.md").write_text("and again\n", "utf-8")
    person.type("yes\r")
    assert "  | and again\n" in person.sees(r"choices: 1 Yes, 2 no\n> "), "what nobody has seen is not approved"
    person.type("perhaps\r")
    again = person.sees(r"is not one of(.|\n)*\n> ")
    assert "and again" not in again, "it has not changed once more"
    assert "hint:" not in again, "the question is on the screen"
    (room.path / "report.md").unlink()
    person.type("2\r")
    person.sees(r"cannot be read: no such file(.|\n)*\n> ")
    person.type("2\r")
    assert "answer r --unseen" in person.sees(r"hint: (.|\n)*\n> "), "nobody approves what they cannot see"
    person.type("\x04")
    assert person.end() == 3, person.said
    assert answers(room) == []


def test_what_changed_is_approved_on_a_terminal_only_and_every_hint_says_so(room: Room, raymond: Command) -> None:
    room.drive(SHOWS)
    (room.path / "report.md").write_text("other\n", "utf-8")
    way = "answer on a terminal, which shows it first, or bring it back as it was: raymond answer r"
    for words in (("r", "yes"), ("r", "main", "yes", "--unseen")):
        assert raymond("answer", *words) == (2, "", f"error: report.md changed since it asked\nhint: {way}\n")
    code, _, err = raymond("answer", "r")
    assert (code, err.splitlines()[-1]) == (2, f"hint: report.md changed since it asked: {way}")
    assert answers(room) == []


def test_who_must_type_an_answer_in_a_terminal_is_told_the_whole_command(room: Room, raymond: Command) -> None:
    room.drive({**ASKS, "START.sh": ASK.replace("<ask ", '<ask approve="person" ')})
    code, _, err = raymond("answer", "r", "yes")
    way = "type it in a terminal (ssh -t), with no pipe: raymond answer r main TEXT"
    assert (code, err.splitlines()[-1]) == (2, f"hint: {way}")


def test_what_cannot_be_shown_is_approved_by_those_who_say_so(room: Room, raymond: Command) -> None:
    room.drive(SHOWS)
    (room.path / "report.md").unlink()
    code, _, err = raymond("answer", "r", "yes")
    why = "error: `report.md` cannot be read: no such file or directory, so it cannot be shown"
    assert (code, err.splitlines()[0]) == (2, why)
    code, _, err = raymond("answer", "r", "--unseen")
    assert (code, err.splitlines()[-1]) == (2, "hint: raymond answer r main TEXT --unseen"), "there is no terminal"
    (room.path / "report.md").write_text("other\n", "utf-8")
    assert raymond("answer", "r", "yes", "--unseen")[0] == 2, "what can be shown must have been seen"
    (room.path / "report.md").unlink()
    assert raymond("answer", "r", "yes", "--unseen", "--no-resume")[0] == 0
    assert answers(room) == ["Yes"]


@pytest.mark.slow
def test_a_person_says_which_question_and_may_leave_it_open_on_a_narrow_terminal(room: Room) -> None:
    long: Mapping[str, str] = {**BOTH, "ASK.sh": f"echo '<ask next=\"END\">{'word ' * 20}</ask>'"}
    room.drive(long)
    person = Typist(room, "answer", columns=10)
    for typed in ("7\r", "main_ask2\r"):
        person.sees("which one")
        person.type(typed)
    lines = person.sees(r":\n> ").rpartition("main_ask2\n")[2].splitlines()
    assert [line for line in lines if len(line) > 10 and not line.startswith("  raymond answer r ")] == []
    assert ("word " * 20).strip() in "".join(line.removeprefix("  | ") for line in lines)
    person.type("\x04")
    assert person.end() == 3
    assert answers(room) == []


@pytest.mark.slow
def test_who_asks_and_the_choices_are_seen_beside_the_prompt_however_long_a_question_is(room: Room) -> None:
    ask = 'seq 30 > plan.md; echo \'<ask next="END" choices="yes,no" approve="person" files="plan.md">\'; seq 32; echo \'</ask>\''
    room.drive({**ASKS, "START.sh": ask})
    person = Typist(room, "answer", "r")
    screen = person.sees(r"Ctrl-D:\n> ").splitlines()[-24:]
    assert [re.sub(r"\d+ lines", "N lines", line) for line in screen[-5:]] == [
        "choices: 1 yes, 2 no",
        "main of r asks this, in START.sh; needs a person at a terminal",
        "its N lines from the top: raymond answer r main 2>&1 | less",
        "answer main, or leave the question open with Ctrl-D:",
        "> ",
    ]
    person.type("\x04")
    assert person.end() == 3
    again = room.raymond("answer", "r", "main", stderr=subprocess.STDOUT).stdout.splitlines()
    assert again[:3] == [again[0], again[1], "  | 1"]
    assert again[65] == "choices: 1 yes, 2 no"


@pytest.mark.slow
def test_nothing_of_a_label_is_at_the_beginning_of_a_line_of_a_narrow_terminal(room: Room) -> None:
    label = "first " + "second asks: " * 2
    fork = f"echo '<fork label=\"{label}\">ASK</fork><fork>ASK</fork><wait>END</wait>'"
    ask = 'echo \'<ask next="END" choices="yes,second asks: who knows what">Release?</ask>\''
    room.drive({**BOTH, "START.sh": fork, "ASK.sh": ask})
    person = Typist(room, "answer", columns=20)
    shown = person.sees("which one(.|\n)*> ")
    person.type("1\r")
    shown += person.sees(r"D:\n> ")
    person.type("perhaps\r")
    shown += person.sees(r"error:(.|\n)*\n> ")
    person.type("\x04")
    assert person.end() == 3
    lines = shown.splitlines()
    assert [line for line in lines if line.startswith(("second", "asks", "who", "first"))] == []
    # Whether the question has more lines than the terminal depends on its age, which is one of them.
    whole = "  raymond answer r main_ask1 2>&1 | less"
    assert {line for line in lines if len(line) > 20} <= {whole}
    assert {line for line in lines if line.startswith("  raymond")} <= {whole}, "never cut"
    assert any(line.startswith("  | ") and "second" in line for line in lines)
