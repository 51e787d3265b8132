"""Nothing secret gets past the door: not into a journal, a transcript, a log, a prompt or onto the terminal."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Room

TOKEN = "zq8Vw2Lk9Xp4Rt6Yb1Nm"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nq2Vv8Lk1Zx0Cc9Bb\n-----END PRIVATE KEY-----"
QUOTED = 'pa"ss\\word/9 with ünïcode'


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(
        tmp_path, MY_API_TOKEN=TOKEN, SIGNING_KEY=KEY, DB_PASSWORD=QUOTED, SHORT_KEY="abc123", KEY_PATH="/etc/ssl/keys"
    )
    yield room
    room.clear()


def leaks(room: Room, *needles: str) -> list[str]:
    """Files in which one of these stands, as it is or as JSON would write it; sources and programs' own sessions apart."""
    forms = {
        form for one in needles for form in (one, json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1])
    }
    found = []
    written = [path for top in (room.home, room.path / ".raymond") for path in top.rglob("*") if path.is_file()]
    for path in written:
        if not {"sources", "work", "sessions", "source.zip"} & set(path.parts):
            text = path.read_bytes()
            found += [f"{path.name}: {form}" for form in forms if form.encode() in text]
    return found


SAYS_IT = """
import os, sys, time
token, key, quoted = os.environ["MY_API_TOKEN"], os.environ["SIGNING_KEY"], os.environ["DB_PASSWORD"]
sys.stderr.write(f"stderr has {token}\\n{key}\\n{quoted}\\n")
for piece in ("half a ", token[:7], token[7:], " in pieces\\n", "and ", quoted[:5], quoted[5:], "\\n"):
    sys.stdout.write(piece)
    sys.stdout.flush()
    time.sleep(0.03)
print(f"<print>printed {token}</print>")
print(key)
print(f'<goto input="given {token}">NEXT</goto>')
"""


def test_what_a_script_says_is_cleaned_wherever_it_goes(room: Room) -> None:
    ran = room.command({"START.py": SAYS_IT, "NEXT.sh": 'echo "<result>got: $RAYMOND_INPUT</result>"'}, "--debug")
    assert (ran.code, ran.result) == (0, "got: given [secret MY_API_TOKEN]")
    lines = [line for line in KEY.splitlines() if "PRIVATE" not in line]
    assert leaks(room, TOKEN, QUOTED, *lines) == []
    written = {line.partition(":")[0] for line in leaks(room, "[secret MY_API_TOKEN]")}
    assert {"journal.jsonl", "main.jsonl", "main_START_001.json"} <= written, "what is looked at is what was written"
    assert TOKEN not in ran.err + ran.out
    [first, _] = ran.transcript()
    assert "half a [secret MY_API_TOKEN] in pieces\nand [secret DB_PASSWORD]\n" in first["out"]
    assert "stderr has [secret MY_API_TOKEN]\n" in first["err"]


def test_an_error_is_cleaned(room: Room) -> None:
    ran = room.command({"START.sh": 'echo "bad token $MY_API_TOKEN" >&2; exit 1'})
    assert ran.run.agents["main"].error == "ended with exit code 1: bad token [secret MY_API_TOKEN]"
    assert leaks(room, TOKEN) == []


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["scripted-program", "mine"])
def test_what_an_agent_says_is_cleaned(room: Room, backend: str) -> None:
    """Its reply, its tools and what it is asked for in the end; the program is a real process."""
    (room.path / ".raymond").mkdir(exist_ok=True)
    agent = 'import os; print("the token is", os.environ["MY_API_TOKEN"], "<result>" + os.environ["MY_API_TOKEN"] + "</result>")'
    (room.path / "agent.py").write_text(agent)
    room.settings('[backends.mine]\ncommand = ["python3", "agent.py"]\n')
    said = {
        "text": f"the token is {TOKEN} <result>{TOKEN}</result>",
        "tools": [{"name": "Bash", "input": {"command": f"curl -H {TOKEN}"}}],
    }
    files = {"START.md": "Go.", "replies.yaml": json.dumps({"START": said})}
    ran = room.command(files, "--backend", backend, "--debug")
    assert (ran.code, ran.result) == (0, "[secret MY_API_TOKEN]")
    [raw] = (room.path / ".raymond" / "debug").rglob("main_step_001.raw")
    assert "the token is [secret MY_API_TOKEN]" in raw.read_text(), "what the program printed, line by line"
    assert TOKEN not in ran.err + ran.out
    assert leaks(room, TOKEN) == []
    assert ran.transcript()[0]["said"] == "the token is [secret MY_API_TOKEN] <result>[secret MY_API_TOKEN]</result>"


@pytest.mark.slow
def test_short_values_paths_and_words_are_left_alone(room: Room) -> None:
    ran = room.command({"START.sh": 'echo "<result>$SHORT_KEY $KEY_PATH</result>"'})
    assert ran.result == "abc123 /etc/ssl/keys"


def test_a_token_is_known_by_its_looks(room: Room) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    ran = room.command({"START.sh": f'echo "<result>{token[:8]}""{token[8:]}</result>"'})
    assert (ran.code, ran.result) == (0, "[secret]")
    assert leaks(room, token) == []


@pytest.mark.parametrize(
    ("flags", "what"),
    [(["--input", f"use {TOKEN}"], "--input"), (["--var", f"token={TOKEN}"], "--var token")],
    ids=["input", "var"],
)
def test_a_secret_that_would_be_stored_is_refused(room: Room, flags: list[str], what: str) -> None:
    flow = room.flow({"START.sh": "echo '<result></result>'"})
    done = room.raymond("run", flow, *flags)
    assert (done.returncode, done.stderr) == (
        2,
        (
            f"error: {what} contains the value of MY_API_TOKEN\n"
            "hint: it would be stored: a step reads secrets from its environment\n"
        ),
    )
    assert room.project.ids() == []


@pytest.mark.slow
def test_an_answer_with_a_secret_is_refused_and_the_question_stays(room: Room) -> None:
    room.command({"START.sh": "echo '<ask next=\"NEXT\">token?</ask>'", "NEXT.sh": "echo '<result>x</result>'"})
    done = room.raymond("answer", "r", TOKEN, "--no-resume")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: the answer contains the value of MY_API_TOKEN")
    assert "asking" in room.raymond("status", "r").stdout
    assert leaks(room, TOKEN) == []


def test_a_state_with_a_token_in_it_is_refused_without_showing_it(room: Room) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    done = room.raymond(
        "run", room.flow({"START.md": f"Use this:\n  {token}\n", "replies.yaml": "START: <result>x</result>"})
    )
    assert (done.returncode, done.stderr) == (
        6,
        (
            "error: this looks like a GitHub token\n --> ../flow/START.md:2:3\n"
            "hint: set it in the environment that Raymond starts in, and read it from there\n"
        ),
    )


def test_a_run_that_was_killed_has_the_same_words_in_its_journal(room: Room) -> None:
    files = {
        "START.sh": 'echo "<print>$MY_API_TOKEN</print><goto input=\\"$MY_API_TOKEN\\">NEXT</goto>"',
        "NEXT.sh": '[ -e gone ] || { touch gone; kill -9 $PPID; sleep 30; }\necho "<result>$RAYMOND_INPUT</result>"',
    }
    killed = room.command(files)
    assert killed.code == -9
    resumed = room.resume()
    assert (resumed.code, resumed.result) == (0, "[secret MY_API_TOKEN]")
    assert leaks(room, TOKEN) == []


@pytest.mark.slow
def test_a_private_key_over_several_lines_of_an_answer_is_cleaned(room: Room) -> None:
    body = "".join(f"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC{number}\n" for number in range(3))
    pem = f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"
    (room.path / "agent.py").write_text(f"print({pem!r}, '<result>ok</result>')")
    room.settings('[backends.mine]\ncommand = ["python3", "agent.py"]\n')
    ran = room.command({"START.md": "Go."}, "--backend", "mine")
    assert ran.result == "ok"
    assert leaks(room, *body.split()) == []


@pytest.mark.slow
def test_scripted_replies_pass_the_door_too(room: Room) -> None:
    said = {"text": f"it is {TOKEN} <result>{TOKEN}</result>", "tools": [{"name": "Bash", "input": {"command": TOKEN}}]}
    ran = room.command({"START.md": "Go.", "replies.yaml": json.dumps({"START": said})})
    assert (ran.result, TOKEN in ran.err + ran.out) == ("[secret MY_API_TOKEN]", False)
    assert leaks(room, TOKEN) == []


def test_a_state_with_the_value_of_a_variable_in_it_is_refused(room: Room) -> None:
    done = room.raymond("run", room.flow({"START.sh": f"echo {TOKEN}"}))
    assert (done.returncode, done.stderr) == (
        6,
        "error: START.sh contains the value of MY_API_TOKEN\n --> ../flow/START.sh\nhint: a step reads secrets from its environment\n",
    )
