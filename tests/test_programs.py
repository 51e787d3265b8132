"""The agents' programs as `doctor` finds them: real ones played by small scripts."""

import json
from pathlib import Path

import pytest

from running import Room

SAYS_VERSION = "#!/bin/sh\necho '2.1.325 (Claude Code)'\n"


@pytest.fixture
def room(tmp_path):
    room = Room(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"):
        room.environment.pop(name, None)
    (tmp_path / "bin").mkdir()
    room.environment["PATH"] = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    yield room
    room.clear()


def claude(room: Room, text: str = SAYS_VERSION) -> Path:
    path = room.path.parent / "bin" / "claude"
    path.write_text(text)
    path.chmod(0o755)
    return path


def finding(room: Room) -> dict[str, object]:
    [found] = [one for one in json.loads(room.raymond("doctor", "--json").stdout) if one["what"] == "claude"]
    return found


def test_a_program_that_is_not_there_is_no_fault_unless_it_is_wanted(room):
    assert finding(room) == {
        "what": "claude",
        "found": "not installed; `--backend claude` needs it",
        "ok": True,
        "hint": "",
    }
    room.environment["RAYMOND_BACKEND"] = "claude"
    wanted = finding(room)
    assert (wanted["ok"], wanted["hint"]) == (False, "install Claude Code, and log in")
    assert room.raymond("doctor").returncode == 1


@pytest.mark.parametrize(
    ("variable", "payer"),
    [
        ("ANTHROPIC_API_KEY", "the key in ANTHROPIC_API_KEY"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "the subscription of CLAUDE_CODE_OAUTH_TOKEN"),
        ("CLAUDE_CODE_USE_BEDROCK", "the cloud account of CLAUDE_CODE_USE_BEDROCK"),
        ("", "nobody is logged in"),
    ],
)
def test_who_pays_is_said(room, variable, payer):
    path = claude(room)
    if variable:
        room.environment[variable] = "1"
    assert finding(room)["found"] == (
        f"2.1.325 (Claude Code) at {path}; conversations branch, and are deleted after 30 days; pays: {payer}"
    )


def test_a_login_and_how_long_conversations_are_kept_are_found_in_its_folder(room):
    claude(room)
    folder = room.path.parent / "settings"
    folder.mkdir()
    (folder / ".credentials.json").write_text("{}")
    (folder / "settings.json").write_text('{"cleanupPeriodDays": 90}')
    room.environment["CLAUDE_CONFIG_DIR"] = str(folder)
    said = str(finding(room)["found"])
    assert said.endswith(f"deleted after 90 days; pays: the subscription logged in at {folder}/.credentials.json")


def test_a_program_that_cannot_be_started_says_so(room):
    path = claude(room, "not a program")
    path.chmod(0o755)
    assert "exec format error" in str(finding(room)["found"])
