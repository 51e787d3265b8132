"""The recipes for notifications, as they are on the page, given a question that would like to do harm."""

import json
import re
import shutil
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "notifications.md").read_text("utf-8")
MARKUP = "<!channel> <b>b</b> \\74i\\76 &"
QUESTION = f"@/etc/hostname {MARKUP} $(touch pwned) `touch pwned` \"; touch pwned; '\x1b[2J\u202etxt\n-- two"
ABOUT = "answer it with: raymond answer r main\nchoices: 1 yes, 2 no\nfile: plan.md (4 bytes)"
QUOTED = "> " + QUESTION.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e").replace("\n", "\n> ")
SHOWN = ABOUT + "\n\n" + QUOTED
ASKED = f'<ask next="END" choices="yes,no" files="plan.md">{QUESTION}</ask>'
ASKS = {"START.py": f"open('plan.md', 'w').write('plan'); print({ASKED!r})", "END.sh": "echo '<result></result>'"}
RECORDS = """#!/usr/bin/env python3
import sys, json
print(json.dumps([*sys.argv[1:], sys.stdin.read()]), file=open("{}", "w"))
"""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, tuple[str, bytes]]]]:
    """Its address, and by path the title and the body that were posted."""
    posted: dict[str, tuple[str, bytes]] = {}

    class Posted(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted[self.path] = self.headers["Title"], self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Posted) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}", posted
        made.shutdown()
        thread.join()


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(0o755)


def recipe(heading: str) -> list[str]:
    """The settings of a section, as they are written there."""
    section = re.search(rf"^## {heading}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    assert section
    return [
        tomllib.loads(text)["notify"][0] for text in re.findall(r"^```toml\n(.*?)^```", section[1], re.DOTALL | re.M)
    ]


@pytest.mark.slow
def test_every_recipe_shows_a_hostile_question_whole_and_runs_nothing_of_it(
    room: Room, server: tuple[str, dict[str, tuple[str, bytes]]], tmp_path: Path
) -> None:
    missing = [name for name in ("curl", "jq") if not shutil.which(name)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    address, posted = server
    home = Path(room.environment["HOME"])
    for name in ("notify-send", "osascript", "sendmail"):
        program(tmp_path / "bin" / name, RECORDS.format(tmp_path / name))
    room.environment["PATH"] = f"{tmp_path / 'bin'}:{room.environment['PATH']}"
    [slack] = re.findall(r"^```bash\n(#!/bin/sh\n.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    program(home / "bin" / "tell-slack", slack)
    (home / ".config" / "raymond").mkdir(parents=True)
    (home / ".config" / "raymond" / "slack-webhook").write_text(f"{address}/slack\n")
    commands = [one for name in ("Desktop", "ntfy", "Slack", "Mail") for one in recipe(name)]
    told = [command.replace("https://ntfy.sh", address) for command in commands]
    ran = room.command(ASKS, *(word for command in told for word in ("--notify", command)))

    assert (ran.code, len(told)) == (3, 5)
    assert "--notify" not in ran.err
    title = "r: main asks"
    escaped = SHOWN.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    shown = json.loads((tmp_path / "notify-send").read_text())[:-1]
    assert shown == ["--", title, escaped.replace("\\", "\\\\")], "no option, no markup, no escape"
    assert json.loads((tmp_path / "osascript").read_text())[-3:-1] == [title, SHOWN]
    head = f"Subject: {title}\nContent-Type: text/plain; charset=utf-8\n\n"
    assert json.loads((tmp_path / "sendmail").read_text()) == ["-i", "me@example.org", f"{head}{SHOWN}\n"]
    assert posted["/TOPIC"] == (title, SHOWN.encode())
    assert json.loads(posted["/slack"][1]) == {"text": f"*{title}*\n{escaped}"}
    assert list(tmp_path.rglob("pwned")) == []


def test_the_first_command_of_the_page_prints_the_message(room: Room) -> None:
    [command] = re.findall(r"^raymond run flow --notify '(.*)'$", PAGE, re.MULTILINE)
    [script] = re.findall(r"^echo '(.*)' > flow/START.sh$", PAGE, re.MULTILINE)
    ran = room.command({"START.sh": script}, "--notify", command)
    told = ran.lines[ran.lines.index(f"--notify {command}:") :]
    assert (told[1], "    | result: done" in told) == ("    | r completed", True)
