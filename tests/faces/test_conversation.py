"""What was said in a run, step by step."""

import re
import time
from pathlib import Path

import pytest

from raymond.control import history, request
from raymond.drivers.face import Quiet
from raymond.errors import UsageError
from raymond.faces import debug_folder
from raymond.faces.fanout import Faces
from raymond.faces.history import Conversation, turn_in_full
from raymond.faces.lines import Tail
from raymond.machine.events import (
    AgentFailed,
    AgentStarted,
    AskEnded,
    Decision,
    Event,
    RequestTaken,
    RunStopped,
    StepFinished,
    StepStarted,
)
from raymond.machine.run import Run
from raymond.machine.sender import Sender
from raymond.steps.talk import Talk, one_use
from raymond.store import journal, transcripts
from raymond.store.transcripts import Transcripts
from running import GO, Room, until

SAYS = {
    "START.md": "Look\tat it.\n\nThen ask.",
    "CHECK.sh": "echo checking; echo 'no \x1b[2Jtests' >&2; exit 3",
    "replies.yaml": (
        'START: [[no tag, {text: "Fine. <ask next=\\"CHECK\\">Ship it?</ask>", cost: 0.25,'
        " tools: [{name: Read, input: {file_path: x.py}}]}]]"
    ),
}


def spoken(room: Room, capsys: pytest.CaptureFixture[str], most: int = 0, **given: int | str) -> str:
    folder = room.project.run("r")
    decisions = list(journal.decisions(folder))
    Conversation(folder.transcripts, Tail(most), **given).show(decisions)  # type: ignore[arg-type]
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", capsys.readouterr().out)
    return re.sub(r"after \d+s", "after 0s", text)


CHECKED = """\
step 2: main in CHECK.sh, TIME, failed (script: ended with exit code 3: no \\x1b[2Jtests) after 0s
stdout:
  checking
stderr:
  no \\x1b[2Jtests

"""


def test_a_conversation_has_prompts_replies_tools_answers_and_the_output_of_scripts(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    room.drive(SAYS)
    request.answer(room.project, "r", "main", "yes\nbut\x1b[2J slowly", question=1)
    room.again()
    whole = spoken(room, capsys)
    first, second, answer, third = re.split(r"(?m)^(?=step |answer )", whole)[1:]
    assert first == (
        "step 1: main in START.md, TIME, rejected (the output has no transition) after 0s\n"
        "prompt:\n  Look    at it.\n\n  Then ask.\nsaid:\n  no tag\n\n"
    )
    assert second.startswith("step 1: main in START.md, TIME, finished after 0s, $0.25*\nprompt:\n  I could not act on")
    assert second.endswith('tools:\n  Read x.py\nsaid:\n  Fine. <ask next="CHECK">Ship it?</ask>\n\n')
    assert answer == "answer to main, TIME:\n  yes\n  but\\x1b[2J slowly\n\n"
    assert third == CHECKED
    assert spoken(room, capsys, 1) == third, "the last step"
    assert spoken(room, capsys, step=2, agent="main").endswith(third)
    assert spoken(room, capsys, agent="another") == ""
    [asked] = [one for one in room.events() if isinstance(one, AskEnded)]
    assert asked.answer == "yes\nbut\x1b[2J slowly"


@pytest.mark.slow
def test_logs_since_a_time_leave_out_what_is_older(room: Room) -> None:
    room.drive(SAYS)
    assert room.raymond("logs", "--since", "2999-01-01").stdout == ""
    assert room.raymond("logs", "--since", "1h").stdout.count("\n") == 5
    done = room.raymond("logs", "--since", "yesterday")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: `yesterday` is not a time")
    assert room.raymond("logs", "--text", "--json").returncode == 2
    text = room.raymond("logs", "--text", "-f", "--tail", "1", "--agent", "main").stdout
    assert text.startswith("step 1: main in START.md")
    assert text.count("step 1") == 1


NOON = 1_768_651_200.0
"""2026-01-17T12:00:00Z"""


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("10m", 600),
        ("1d", 86400),
        ("11:30", 1800),
        ("11:59:30", 30),
        ("12:30", 23.5 * 3600),
        ("2026-01-17", 12 * 3600),
        ("2026-01-17T11:00", 3600),
        ("2026-01-17T12:00+02:00", 7200),
        ("2026-01-17T11:00:00Z", 3600),
    ],
)
def test_a_time_is_how_long_ago_or_a_time_of_day_or_a_date(
    text: str, before: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        assert history.moment(text, NOON) == NOON - before
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "soon", "25:00", "-1m", "10", "2026-13-01", "1:2:3:4", "\x1b"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        history.moment(text, NOON)


def talk(folder: Path, *seen: tuple[str, str], reply: str | None) -> object:
    kept = Transcripts(str(folder))
    record = kept.step("main", step=1, state="START.md")
    talked = Talk(record)
    for kind, text in seen:
        talked.add(kind, text)
    talked.end(reply)
    offset = record.end()
    kept.close()
    return transcripts.read_record(str(folder), "main", offset)[0].get("talk")


def test_what_an_agent_says_on_the_way_is_kept_among_its_tools_without_the_reply(tmp_path: Path) -> None:
    tool, done = ("tool", "Read x.py"), ("text", "Done.\n<result>x</result>")
    reply = "Done.\n<result>x</result>"
    assert talk(tmp_path, tool, done, reply=reply) is None
    assert talk(tmp_path, done, reply=reply) is None
    said = talk(tmp_path, tool, ("text", "I see.\nNow"), tool, tool, done, reply=reply)
    assert said == "* Read x.py\n  I see.\n  Now\n* Read x.py\n* Read x.py\n"
    assert talk(tmp_path, tool, ("text", "I see."), reply=None) == "* Read x.py\n  I see.\n", "it was cut off"
    assert talk(tmp_path, ("text", "I see."), ("text", " "), reply=reply) == "  I see.\n"


def test_a_command_of_several_lines_is_one_tool(tmp_path: Path) -> None:
    use = one_use("Bash true\nRead docs/README.md\n")
    said = talk(tmp_path, ("tool", use), ("text", "I see."), reply=None)
    assert said == "* Bash true\n    Read docs/README.md\n  I see.\n"


def test_nothing_in_the_log_of_transitions_is_an_entry_of_its_own_or_obeyed_by_a_terminal(tmp_path: Path) -> None:
    folder = debug_folder.Folder(str(tmp_path / "debug"), str(tmp_path))
    false = "bad\n\n2026-11-16 22:00:00 [main] P.md -> (result, ended)\n\x1b[2J\x1b]0;PWN\x07"
    failed = AgentFailed(agent="main", kind="script", error=false)
    stopped = RunStopped(kind="limit", limit="wait", backend=false)
    folder.write([Decision(seq=1, time=0.0, events=[failed, stopped])])
    text = (tmp_path / "debug" / "transitions.log").read_text()
    assert len(text.split("\n\n")) == 3, "two entries, and the end"
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("sender", "by"),
    [
        (Sender(way="face", terminal="/dev/pts/1"), " by a person"),
        (Sender(way="command"), ""),
        (Sender(way="socket", terminal="/dev/pts/1", steps=["k"]), " by a step"),
        (Sender(way="inbox"), " by an unknown process"),
    ],
)
def test_transitions_tell_who_answered_and_not_what(sender: Sender, by: str, tmp_path: Path) -> None:
    folder = debug_folder.Folder(str(tmp_path / "debug"), str(tmp_path))
    begun: list[Event] = [AgentStarted(agent="main", state="START.md")]
    taken = RequestTaken(request="1", kind="answer", sender=sender)
    answered: list[Event] = [taken, AskEnded(agent="main", state="END.md", answer="hunter2")]
    folder.write([Decision(seq=1, time=0.0, events=begun), Decision(seq=2, time=0.0, events=answered)])
    entry = (tmp_path / "debug" / "transitions.log").read_text().split("\n\n")[1]
    assert entry == f"1970-01-01 00:00:00 [main] START.md -> END.md (answered{by})"


def test_raw_lines_are_kept_whole_and_pieces_of_texts_are_not(tmp_path: Path) -> None:
    folder = debug_folder.Folder(str(tmp_path / "debug"), str(tmp_path))
    faces = Faces([Quiet(), folder])
    assert faces.wants_raw
    faces.on_decisions(Run(), [Decision(seq=1, time=0.0, events=[StepStarted(agent="main", step=7)])])
    faces.on_output("main", "raw", '{"type":"stream_event","event":{"delta":{"text":"half a sec"}}}')
    faces.on_output("main", "raw", '{"uuid": "1", "type": "stream_event", "event": {"delta": {"text": "half"}}}')
    faces.on_output("main", "raw", '{"type":"assistant"}')
    faces.on_output("main", "raw", "not json")
    faces.on_output("main", "text", "hello")
    faces.close()
    assert [path.name for path in (tmp_path / "debug").iterdir()] == ["main_step_007.raw"]
    assert (tmp_path / "debug" / "main_step_007.raw").read_text() == '{"type":"assistant"}\nnot json\n'
    assert not Faces([Quiet()]).wants_raw


@pytest.mark.slow
def test_a_conversation_names_the_label_of_an_agent(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    room.drive(
        {
            "START.sh": "echo '<fork file=\"a.py\">WORK</fork><wait>END</wait>'",
            "WORK.sh": "echo '<ask next=\"END\">ok?</ask>'",
            "END.sh": "echo '<result>x</result>'",
        }
    )
    request.answer(room.project, "r", "main_work1", "yes", question=1)
    room.again()
    whole = spoken(room, capsys)
    assert "step 2: main_work1 (a.py) in WORK.sh, " in whole
    assert "answer to main_work1 (a.py), TIME:\n  yes\n" in whole


def test_what_a_running_step_was_sent_and_has_said_is_shown_as_it_comes_and_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, talk = Transcripts(str(tmp_path)), Conversation(str(tmp_path), Tail())
    begun = AgentStarted(agent="main", state="START.md"), StepStarted(agent="main", step=1, backend="claude")
    record = kept.step("main", step=1, state="START.md", sent="Look at it.")

    def shown(*events: Event) -> list[str]:
        talk.show([Decision(seq=1, time=60.0, events=[*events])])
        return capsys.readouterr().out.splitlines()

    assert shown(*begun) == ["step 1: main in START.md, running since 1970-01-01T00:01:00Z", ""]
    record.publish(1.0)
    assert shown() == ["step 1: main in START.md, continued", "prompt:", "  Look at it.", ""]
    record.add("tools", "Read x.py\n")
    record.publish(1.5)
    assert shown() == [], "not more often than once a second"
    record.publish(2.0)
    assert shown() == ["step 1: main in START.md, continued", "tools:", "  Read x.py", ""]
    record.add("talk", "* Read x.py\n  I have read it.\n")
    record.add("said", "<result>fine</result>")
    ended = StepFinished(agent="main", step=1, offset=record.end())
    assert shown(ended)[1:] == ["worked:", "    I have read it.", "said:", "  <result>fine</result>", ""]
    again = kept.step("main", step=2, state="START.md", sent="Again.")
    assert shown(StepStarted(agent="main", step=2)) == []
    again.publish(3.0)
    assert shown() == ["step 2: main in START.md, running since 1970-01-01T00:01:00Z", "prompt:", "  Again.", ""]
    kept.close()


DID = [
    ("tool", "Read a.py"),
    ("text", "I see.\n  * x"),
    ("tool", "Bash true\nRead b.py"),
    ("tool", "Read c.py"),
    ("text", "Nearly."),
    ("text", "Now."),
    ("tool", "Read a.py"),
    ("text", "Done."),
]


def done(folder: str, looks: int) -> None:
    """Show a turn that does all this to somebody who looks after the acts whose bits are set."""
    kept, shown = Transcripts(folder), Conversation(folder, Tail())
    record = kept.step("main", step=1, state="START.md")
    talked = Talk(record)
    begun = AgentStarted(agent="main", state="START.md"), StepStarted(agent="main", step=1, backend="claude")
    shown.show([Decision(seq=1, time=60.0, events=[*begun])])
    for number, (kind, raw) in enumerate(DID):
        text = one_use(raw) if kind == "tool" else raw
        talked.add(kind, text)
        if kind == "tool":
            record.add("tools", f"{text}\n")
        if looks >> number & 1:
            record.publish(10.0 * number)
            shown.show([])
    talked.end("Done.")
    record.add("said", "Done.")
    ended = StepFinished(agent="main", step=1, offset=record.end())
    shown.show([Decision(seq=2, time=60.0, events=[ended])])
    kept.close()


@pytest.mark.slow
def test_what_a_turn_did_is_shown_once_and_in_order_whenever_somebody_looked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acts = [line.strip() for _, text in DID for line in text.splitlines()]
    for looks in range(1 << len(DID)):
        done(str(tmp_path / str(looks)), looks)
        told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
        assert [line.removeprefix("  ").removeprefix("* ").strip() for line in told] == acts, f"looked at {looks:b}"


@pytest.mark.slow
def test_a_turn_and_a_script_that_last_can_be_read_along(room: Room) -> None:
    files = {
        "START.md": "Look at it.",
        "CHECK.sh": f"echo busy >&2; {GO}; echo '<result>x</result>'",
        "replies.yaml": "START: {text: <goto>CHECK</goto>, delay: 1.5s}",
    }
    room.raymond("run", room.flow(files), "--id", "r", "-d")
    until(lambda: "prompt:\n  Look at it." in room.raymond("logs", "r", "--text").stdout, "the prompt")
    until(lambda: "stderr:\n  busy\n" in room.raymond("logs", "r", "--text").stdout, "the output")
    room.go()
    room.raymond("wait", "r")


@pytest.mark.parametrize("kept", [0, 20])
def test_a_step_whose_transcript_is_gone_says_so_and_tells_nothing_of_its_agent(
    room: Room, capsys: pytest.CaptureFixture[str], tmp_path: Path, kept: int
) -> None:
    room.drive({"START.sh": "echo '<goto>B.sh</goto>'", "B.sh": "echo '<result>x</result>'"})
    folder = room.project.run("r")
    transcript = Path(folder.transcripts, "main.jsonl")
    transcript.write_bytes(transcript.read_bytes()[:kept])
    assert spoken(room, capsys) == (
        "step 1: main in START.sh, TIME, finished after 0s\nits transcript is gone\n\n"
        "step 2: main in B.sh, TIME, finished after 0s\nits transcript is gone\n\n"
    )
    decisions = list(journal.decisions(folder))
    [one] = history.step(room.project, "r", decisions, 2)
    assert turn_in_full(one.begun, one.ended, one.transcript, state=one.state) == (
        "step 2: main in B.sh, finished\nits transcript is gone"
    )
    debug_folder.Folder(str(tmp_path / "debug"), folder.transcripts).write(decisions)
    log = (tmp_path / "debug/transitions.log").read_text()
    assert [line for line in log.splitlines() if "requested:" in line] == [
        "  requested: unknown, its transcript is gone"
    ] * 2
