"""Secrets that pass through the real Claude Code and the scripts beside it: none is left in what Raymond writes."""

import json
import secrets
import shlex
import shutil
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Error, Mute, Slow, Text, Tool, program, results
from raymond.machine.events import Decision, RunResumed
from raymond.store.journal import decisions
from running import Ran, alive, until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]


def random(size: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(secrets.choice(letters) for _ in range(size - 3)) + "aZ7"


TOKEN = random(24)
ODD = random(12) + '"\\/<é>&\t' + random(8)
"""Every writer of JSON escapes this in a way of its own."""
KEY = "\n".join(["-----BEGIN PRIVATE KEY-----", random(64), random(64), random(30), "-----END PRIVATE KEY-----"])
PLANTED = {"API_TOKEN": TOKEN, "DB_PASSWORD": ODD, "PRIVATE_KEY": KEY}
HARMLESS = {"CACHE_KEY": "v2-small", "TOKEN_FILE": "/usr/share/keys/some-token", "SECRET_WORD": "open sesame please"}
"""Names of the same kind, whose values anybody may see."""

LOOK = Tool("Bash", {"command": 'printf "%s\\n" "$API_TOKEN" "$DB_PASSWORD" "$PRIVATE_KEY"'}, text="I look.")
USE = Tool("Bash", {"command": f"true {shlex.quote(TOKEN)} {shlex.quote(ODD)}"}, text=f"I use {TOKEN}.")
SAID = f"plain {TOKEN}, odd {ODD}, as JSON {json.dumps(ODD)}, twice {json.dumps(json.dumps(ODD))}, a key:\n{KEY}\n"
CLEANED = (
    'plain [secret API_TOKEN], odd [secret DB_PASSWORD], as JSON "[secret DB_PASSWORD]", '
    'twice "\\"[secret DB_PASSWORD]\\"", a key:\n[secret PRIVATE_KEY]\n'
)
ALONE = f"These are nobody's: {', '.join(HARMLESS.values())}.\n"

SCRIPT = """\
printf 'out %s' "${API_TOKEN:0:9}"; printf 'err %s' "${API_TOKEN:0:9}" >&2
sleep 0.1
printf '%s\\n' "${API_TOKEN:9}"; printf '%s\\n' "${API_TOKEN:9}" >&2
printf '%s\\n' "$DB_PASSWORD" "$PRIVATE_KEY" >&2
echo "<print>printed $API_TOKEN</print><goto>FAIL</goto>"
"""
FILES = {
    "START.md": "prompt START",
    "WORK.md": "prompt WORK: {{input}}",
    "SCRIPT.sh": SCRIPT,
    "FAIL.md": "---\nretries: 0\non_error: END\n---\nprompt FAIL",
    "END.md": "prompt END: {{error}}",
}


@pytest.fixture
def mute() -> Mute:
    """The reply in whose middle Raymond is killed."""
    return Mute(text=f"{SAID}{ALONE}<goto input={json.dumps(TOKEN)}>WORK</goto>")


@pytest.fixture
def room(desk: Callable[..., Desk], mute: Mute) -> Desk:
    made = desk(
        {
            "prompt START": [LOOK, USE, mute],
            # In pieces, so that each secret is cut somewhere.
            "prompt WORK": Slow(0.1, f"{SAID}<goto>SCRIPT</goto>"),
            "prompt FAIL": Error(400, f"your key {TOKEN} is odd"),
            "prompt END": Text(f"{ALONE}<result>the token is {TOKEN}</result>"),
        }
    )
    made.environment |= PLANTED | HARMLESS
    return made


def written(room: Desk) -> Iterator[tuple[Path, bytes]]:
    """Every file that Raymond wrote, but for the copies of workflows."""
    for path in sorted([*room.home.rglob("*"), *(room.path / ".raymond").rglob("*")]):
        if path.is_file() and not {"sources", "source.zip"} & set(path.parts):
            yield path, path.read_bytes()


def forms() -> dict[str, bytes]:
    """How the secrets might stand there: as they are, as JSON and as JSON in JSON; of each also its lines and halves."""
    parts = {TOKEN, TOKEN[:16], TOKEN[8:], ODD, ODD[:12], ODD[-8:], *KEY.split("\n")[1:-1]}
    found = {}
    for part in parts:
        for text in (part, json.dumps(part)[1:-1], json.dumps(part, ensure_ascii=False)[1:-1]):
            for form in (text, json.dumps(text)[1:-1]):
                found[form] = form.encode()
    return found


def nothing_is_left(room: Desk, told: dict[str, bytes]) -> None:
    """No secret stands in a file or in what was told, in any form."""
    files = {str(path): content for path, content in written(room)}
    assert len(files) > 2
    for place, content in {**files, **told}.items():
        for form, needle in forms().items():
            assert needle not in content, f"{form!r} stands in {place}"
    assert [path for path in files if "/spool/" in path] == []


def journaled(room: Desk, id: str) -> list[object]:
    """What was decided, without what differs from run to run."""
    apart = {"workflow_id", "key", "session", "base", "offset", "cost", "cap", "notify", "recording"}
    events = [event for decision in decisions(room.project.run(id)) for event in _events(decision)]
    return [{name: value for name, value in event.items() if name not in apart} for event in events]


def _events(decision: Decision) -> list[dict[str, object]]:
    return [msgspec.to_builtins(event) for event in decision.events if not isinstance(event, RunResumed)]


def transcripts(ran: Ran) -> list[dict[str, Any]]:
    apart = {"time", "session", "base", "step", "cost"}
    return [{name: value for name, value in one.items() if name not in apart} for one in ran.transcript()]


def test_no_secret_is_left_and_a_run_that_was_killed_has_the_same_text(room: Desk, mute: Mute) -> None:
    with room.start(*room.begin(FILES, "--allow-tool", "Bash")) as live:
        mute.gate.meet()
        room.kill(live)
        first = live.err
        with room.start("resume", "r") as resumed:
            resumed.sees("run resumed")
            mute.gate.open()
            killed = resumed.wait()
    heard = ("--log-file", "log", "--notify", f"cat >> {room.path}/notified")
    whole = room.command(FILES, "--backend", "claude", "--allow-tool", "Bash", *heard, id="s")
    assert (killed.code, whole.code) == (0, 0)
    assert killed.out == whole.out == "the token is [secret API_TOKEN]\n"

    # The model saw what it was shown, and was told nothing that had been taken out.
    looked = results(room.server.requests[1])[0]
    assert all(value in looked for value in (TOKEN, ODD, KEY))
    assert [request.prompt for request in room.server.requests if "WORK" in request.prompt] == [
        "prompt WORK: [secret API_TOKEN]"
    ] * 2

    told = {"the terminal": "".join((first, killed.err, whole.err)).encode()}
    told |= {name: (room.path / name).read_bytes() for name in ("log", "notified")}
    told |= {name: room.raymond(name, "r").stdout.encode() for name in ("logs", "status", "cost")}
    assert all(told.values())
    nothing_is_left(room, told)

    assert journaled(room, "r") == journaled(room, "s")
    assert transcripts(killed) == transcripts(whole)
    start, work, script, fail, end = transcripts(whole)
    assert start["said"] == f'{CLEANED}{ALONE}<goto input="[secret API_TOKEN]">WORK</goto>'
    assert start["tools"].splitlines()[1] == "Bash true [secret API_TOKEN] '[secret DB_PASSWORD]'"
    assert work["said"] == f"{CLEANED}<goto>SCRIPT</goto>"
    assert script["out"].startswith("out [secret API_TOKEN]\n<print>printed [secret API_TOKEN]</print>")
    assert script["err"] == "err [secret API_TOKEN]\n[secret DB_PASSWORD]\n[secret PRIVATE_KEY]\n"
    assert fail["error"] == "API Error: 400 your key [secret API_TOKEN] is odd"
    assert ALONE in end["said"]
    assert "main | printed [secret API_TOKEN]" in whole.lines


def test_a_reply_that_is_recalled_from_the_conversation_is_cleaned_too(room: Desk, mute: Mute) -> None:
    """The program keeps what was said as it was; what is taken from there passes the same door."""
    with room.start(*room.begin({**FILES, "WORK.md": "prompt END"}, "--allow-tool", "Bash")) as live:
        mute.gate.meet()
        leader = room.leader("1.1")
        room.kill(live)
        mute.gate.open()
        until(lambda: not alive(leader), "the end of the turn")
    shutil.rmtree(room.project.run("r").spool)
    ran = room.resume()
    assert ran.out == "the token is [secret API_TOKEN]\n"
    assert transcripts(ran)[0]["said"].startswith(CLEANED)
    kept = "".join(path.read_text("utf-8") for path in room.user.glob("claude/projects/*/*.jsonl"))
    assert TOKEN in kept, "else this proves nothing"
    nothing_is_left(room, {"the terminal": ran.err.encode()})
