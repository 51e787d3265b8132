"""docs/night.md: what is to be copied from it, the recipes for notifications given a hostile question, and every undo."""

import configparser
import json
import os
import plistlib
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from looping import LOG, Night
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "night.md").read_text("utf-8")
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


def section(heading: str) -> str:
    """What stands below a heading, up to the next one."""
    found = re.search(rf"^{heading}\n(.*?)(?=^##+ )", PAGE, re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def fences(language: str, text: str = PAGE) -> list[str]:
    """The blocks in this language, also those of a list."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]


def recipe(heading: str) -> list[str]:
    """The settings of a section, as they are written there."""
    return [tomllib.loads(text)["notify"][0] for text in fences("toml", section(f"### {heading}"))]


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


# --- what is to be copied


def test_what_is_to_be_copied_from_the_page_can_be_parsed() -> None:
    [plist] = fences("xml")
    assert plistlib.loads(plist.encode())["ProgramArguments"][1:] == ["resume", "--all"]
    units = fences("ini")
    assert len(units) == 4
    for unit in units:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string(unit)
        assert "Unit" in parser
    [job] = fences("yaml")
    steps = yaml.safe_load(job)["jobs"]["night"]["steps"]
    for script in (*fences("bash"), *(step["run"] for step in steps if "run" in step)):
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


# --- undo

ITEMS = "".join(f"{number}. [VERIFY: grep -q {number} {number}.txt] Write {number}\n" for number in (1, 2, 3))
WRITES = (
    'n=$(grep -o "Write [0-9]" "$PROMPT" | head -n 1 | cut -c 7); echo $n > $n.txt; '
    "if [ $n = 1 ]; then echo changed > README.md; fi; echo ITERATION_COMPLETE"
)
REMOVES, UNDOES = fences("bash", section("## How do I undo a night"))
CONTINUES = "it continues what night did, which is not merged"


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """A repository in which the agent does every item, and `raymond` on the path."""
    command = tmp_path / "bin" / "raymond"
    program(command, f'#!/bin/sh\nexec "{sys.executable}" -m raymond "$@"\n')
    night = Night(tmp_path, ITEMS, WRITES)
    night.room.environment["PATH"] = f"{command.parent}{os.pathsep}{night.room.environment['PATH']}"
    yield night
    night.room.clear()


def worked(night: Night, *args: str) -> None:
    """Let the loop do two of its three items."""
    ran = night.loop("--id", "night", "--pause", "0s", "--max-sessions", "2", *args)
    assert ran.code == 0, ran.err


def undo(begins: str, **words: str) -> str:
    """The command of the page below the comment that begins so."""
    [command] = re.findall(rf"^# {re.escape(begins)}.*\n(.*)$", UNDOES, re.MULTILINE)
    return replaced(command, words)


def replaced(command: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        assert word in command
        command = command.replace(word, value)
    return command


def type_(night: Night, commands: str) -> None:
    subprocess.run(["bash", "-ec", commands], cwd=night.path, env=night.room.environment, check=True)


def looks(night: Night) -> tuple[str, str]:
    """What the checkout has: the tree of HEAD, and what is not committed."""
    return night.git("rev-parse", "HEAD^{tree}"), night.git("status", "--porcelain")


def planned(night: Night) -> str:
    """What the next night would do."""
    return night.loop("--dry-run").out


@pytest.mark.slow
def test_a_night_that_was_not_taken_over_is_removed_by_the_commands_of_the_page(night: Night) -> None:
    worked(night)
    branch, rest = REMOVES.split("\n", 1)
    type_(night, branch)
    assert CONTINUES in planned(night), "the branch alone is not enough"
    assert CONTINUES not in night.loop("--dry-run", "--from", "HEAD").out
    run, references = rest.split("\n", 1)
    type_(night, run)
    assert night.git("for-each-ref", "refs/raymond/night") != "", "clean leaves the references alone"
    type_(night, references)
    assert night.git("for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert json.loads(night.room.raymond("list", "--json").stdout) == []
    assert "1. Write 1: " in planned(night)


@pytest.mark.slow
def test_applied_work_is_undone_and_what_a_person_has_changed_stays(night: Night) -> None:
    worked(night)
    night.write({"mine.txt": "mine\n"})
    before = looks(night)
    for _ in range(2):
        assert night.room.raymond("apply", "night").returncode == 0
        assert looks(night) != before
        type_(night, undo("applied"))
        assert looks(night) == before


@pytest.mark.slow
def test_merged_work_is_undone(night: Night) -> None:
    worked(night)
    before = looks(night)
    type_(night, "git merge -q raymond/night")
    assert looks(night) != before
    type_(night, undo("merged just now"))
    assert looks(night) == before
    assert CONTINUES in planned(night)

    type_(night, "git merge -q raymond/night")
    [item] = re.findall(r"Write 1 \(passed.* commit (\w+)", night.room.raymond("summary", "night").stdout)
    type_(night, undo("one item", COMMIT=item))
    assert sorted(night.git("status", "--porcelain").split()) == ["1.txt", "D", "M", "README.md"]
    type_(night, "git checkout -q .")

    type_(night, undo("merged and pushed"))
    assert looks(night) == before
    assert CONTINUES not in planned(night)


@pytest.mark.slow
def test_a_merge_commit_is_undone(night: Night) -> None:
    worked(night)
    night.write({"mine.txt": "mine\n"})
    night.commit("of a person")
    before = looks(night)
    type_(night, "git merge -q --no-edit raymond/night")
    [command] = re.findall(r"of a merge commit: (.*)$", UNDOES, re.MULTILINE)
    type_(night, replaced(command, {"MERGE": "HEAD"}))
    assert looks(night) == before
    assert CONTINUES not in planned(night)


@pytest.mark.slow
def test_a_night_on_the_current_branch_is_undone(night: Night) -> None:
    before = looks(night)
    worked(night, "--branch", "current")
    assert looks(night) != before
    type_(night, undo("merged by --branch current"))
    assert looks(night) == before


@pytest.mark.slow
def test_a_night_in_the_checkout_is_undone(night: Night) -> None:
    night.write({LOG: f"# Session: plan\n\n## Next Steps\n\n{ITEMS}- [BLOCKED: later] More\n"})
    before = looks(night)
    worked(night, "--workspace", "here")
    [row] = re.findall(r"^\| `--workspace here` \|.*", PAGE, re.MULTILINE)
    type_(night, "\n".join(re.findall(r"`(git .*?)`", row)))
    assert looks(night) == before


@pytest.mark.slow
def test_a_night_without_commits_is_undone(night: Night) -> None:
    before = looks(night)
    worked(night, "--no-commit")
    assert looks(night) != before
    type_(night, undo("applied"))
    assert looks(night) == before

    type_(night, references_removed())
    worked(night, "--no-commit", "--workspace", "here", "--id", "other")
    assert looks(night) != before
    type_(night, undo("applied", applied="tip", night="other"))
    assert looks(night) == before


def references_removed() -> str:
    """The commands that remove the night, which has no branch."""
    return REMOVES.split("\n", 1)[1]
