"""The agents' programs as `doctor` finds them: real ones played by small scripts."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.control import doctor
from raymond.machine.events import AgentPaused, LimitsChanged
from raymond.system import programs
from running import Room

SAYS_VERSION = "#!/bin/sh\necho '2.1.325 (Claude Code)'\n"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
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
    """What is said of the program first: more may follow about its login."""
    found: list[dict[str, object]] = json.loads(room.raymond("doctor", "--json").stdout)
    return next(one for one in found if one["what"] == "claude")


@pytest.mark.slow
def test_a_program_that_is_not_there_is_no_fault_unless_it_is_wanted(room: Room) -> None:
    assert finding(room) == {
        "what": "claude",
        "found": "not installed",
        "ok": True,
        "hint": "it is the default: install Claude Code, then start it once to log in; without an account: write replies.yaml beside the workflow, e.g. `START: <result>done</result>`",
        "backend": None,
        "needed": True,
    }
    assert "-    claude: not installed" in room.raymond("doctor").stdout.splitlines()
    room.environment["RAYMOND_BACKEND"] = "claude"
    wanted = finding(room)
    assert (wanted["ok"], wanted["hint"]) == (
        False,
        "install Claude Code, then start it once to log in; without an account: write replies.yaml beside the workflow, e.g. `START: <result>done</result>`",
    )
    shown = room.raymond("doctor")
    assert shown.returncode == 1
    assert "BAD  claude: there is no program `claude` on the PATH" in shown.stdout.splitlines()


@pytest.mark.slow
def test_a_backend_of_the_configuration_that_is_not_there_says_which_program_is_missing(room: Room) -> None:
    of_a_person(room, '[backends.mine]\ncommand = ["no-such-agent"]\n')
    shown = room.raymond("doctor").stdout.splitlines()
    assert "-    mine: unavailable: there is no program `no-such-agent` on the PATH" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "payer"),
    [
        ("ANTHROPIC_API_KEY", "the key in ANTHROPIC_API_KEY"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "the subscription of CLAUDE_CODE_OAUTH_TOKEN"),
        ("CLAUDE_CODE_USE_BEDROCK", "the cloud account of CLAUDE_CODE_USE_BEDROCK"),
        ("", "nobody is logged in"),
    ],
)
def test_who_pays_is_said(room: Room, variable: str, payer: str) -> None:
    path = claude(room)
    if variable:
        room.environment[variable] = "1"
    assert finding(room)["found"] == (
        f"2.1.325 (Claude Code) at {path}; conversations branch, and are deleted after 30 days; paid by: {payer}"
    )


def test_a_login_and_how_long_conversations_are_kept_are_found_in_its_folder(room: Room) -> None:
    claude(room)
    folder = room.path.parent / "settings"
    folder.mkdir()
    (folder / ".credentials.json").write_text("{}")
    (folder / "settings.json").write_text('{"cleanupPeriodDays": 90}')
    room.environment["CLAUDE_CONFIG_DIR"] = str(folder)
    said = str(finding(room)["found"])
    assert said.endswith(f"deleted after 90 days; paid by: the subscription logged in at {folder}/.credentials.json")


def test_a_program_that_cannot_be_started_says_so(room: Room) -> None:
    path = claude(room, "not a program")
    path.chmod(0o755)
    assert "exec format error" in str(finding(room)["found"])


def of_a_person(room: Room, text: str) -> None:
    """Their config.toml."""
    path = Path(room.environment["HOME"], ".config", "raymond", "config.toml")
    path.parent.mkdir(parents=True)
    path.write_text(text)


def test_a_person_can_say_where_the_program_is(room: Room) -> None:
    path = claude(room).rename(room.path.parent / "bin" / "claude-next")
    of_a_person(room, f'[backends.claude]\nprogram = "{path}"\n')
    assert str(finding(room)["found"]).startswith(f"2.1.325 (Claude Code) at {path}; ")


@pytest.mark.slow
def test_a_table_of_a_program_that_says_anything_else_is_refused(room: Room) -> None:
    claude(room)
    of_a_person(room, '[backends.claude]\ncommand = ["my-claude"]\n')
    error = "[backends.claude] accepts only `program`, `args`, `setting_sources`, not `command`"
    hint = "to define a backend of your own, give it another name"
    assert finding(room) == {
        "what": "claude",
        "found": error,
        "ok": False,
        "hint": hint,
        "backend": None,
        "needed": True,
    }
    ran = room.command({"START.md": "<result>x</result>"})
    path = Path(room.environment["HOME"], ".config", "raymond", "config.toml")
    assert (ran.code, ran.err) == (2, f"error: {path}: {error}\nhint: {hint}\n")


@pytest.mark.slow
def test_hooks_and_plug_ins_of_the_person_are_pointed_out_unless_they_are_left_out(room: Room) -> None:
    claude(room)
    settings = Path(room.environment["HOME"], ".claude", "settings.json")
    settings.parent.mkdir()
    settings.write_text(
        json.dumps({"hooks": {"Stop": [], "PreToolUse": []}, "enabledPlugins": {"tidy@here": True, "off@here": False}})
    )
    (line,) = [line for line in room.raymond("doctor").stdout.splitlines() if "act in every turn" in line]
    assert line == "note claude: your hooks (Stop, PreToolUse) and plug-ins (tidy@here) act in every turn"
    of_a_person(room, '[backends.claude]\nsetting_sources = ["project"]\n')
    assert "act in every turn" not in room.raymond("doctor").stdout


# --- the version


def test_a_program_is_too_old_only_by_its_numbers() -> None:
    assert [
        programs.numbers(said) for said in ("2.1.325 (Claude Code)", "codex-cli 0.166.0", "v10.2", "7", "none", "")
    ] == [
        (2, 1, 325),
        (0, 166, 0),
        (10, 2),
        (),
        (),
        (),
    ]


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("FOLDER/gone", "there is no program FOLDER/gone"),
        ("FOLDER", "FOLDER is a directory"),
        ("FOLDER/text", "FOLDER/text is not executable: chmod +x FOLDER/text"),
        ("FOLDER/program", ""),
    ],
)
def test_a_program_by_its_whole_path_has_to_be_one(tmp_path: Path, path: str, problem: str) -> None:
    (tmp_path / "text").write_text("")
    (tmp_path / "program").touch(0o755)
    named = path.replace("FOLDER", str(tmp_path))
    there = "" if path.endswith("gone") else named
    assert programs.locate(named) == (there, problem.replace("FOLDER", str(tmp_path)))


def test_the_first_program_on_the_path_that_can_be_started_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, mode in (("a", 0o644), ("b", 0o755), ("c", 0o755)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "some-agent").touch(mode)
    monkeypatch.setenv("PATH", f"{tmp_path}/a:{tmp_path}/b:{tmp_path}/c")
    assert programs.locate("some-agent") == (f"{tmp_path}/b/some-agent", "")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "other-agent").touch(0o644)
    monkeypatch.setenv("PATH", f"{tmp_path}/c:{tmp_path}/d")
    path = f"{tmp_path}/d/other-agent"
    assert programs.locate("other-agent") == (path, f"{path} is not executable: chmod +x {path}")


def test_a_program_that_was_moved_on_the_path_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("old", "new"):
        (tmp_path / folder).mkdir()
    (tmp_path / "old" / "moved-agent").touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/old:{tmp_path}/new")
    assert programs.locate("moved-agent") == (f"{tmp_path}/old/moved-agent", "")
    (tmp_path / "old" / "moved-agent").rename(tmp_path / "new" / "moved-agent")
    assert programs.locate("moved-agent") == (f"{tmp_path}/new/moved-agent", "")


@pytest.mark.slow
def test_what_an_outer_claude_code_says_is_not_said_to_the_program_that_is_asked_for_its_version(room: Room) -> None:
    claude(room, '#!/bin/sh\necho "2.1.5${CLAUDECODE:+ inside}"\n')
    room.environment["CLAUDECODE"] = "1"
    assert str(finding(room)["found"]).startswith("2.1.5 at ")


# --- doctor


@pytest.mark.slow
def test_a_program_that_is_too_old_is_a_fault_although_nobody_named_it(room: Room) -> None:
    path = claude(room, "#!/bin/sh\necho '1.0.3 (Claude Code)'\n")
    assert finding(room) == {
        "what": "claude",
        "found": f"{path} is Claude Code 1.0.3; Raymond needs 2.1 or later",
        "ok": False,
        "hint": "claude update",
        "backend": None,
        "needed": True,
    }


@pytest.mark.slow
def test_nobody_logged_in_is_a_fault_when_a_run_here_would_use_the_program(room: Room) -> None:
    claude(room)
    found = finding(room)
    way = "start `claude` once and log in, or set ANTHROPIC_API_KEY"
    assert (found["ok"], found["needed"], found["hint"]) == (False, True, way), "it is the default"
    room.environment["RAYMOND_BACKEND"] = "scripted"
    found = finding(room)
    assert (found["ok"], found["needed"], found["hint"]) == (True, False, way)
    shown = room.raymond("doctor")
    assert shown.returncode == 0
    assert "note claude: " in shown.stdout


@pytest.mark.slow
def test_what_is_broken_and_not_needed_is_told_and_no_reason_to_fail(room: Room) -> None:
    of_a_person(room, '[backends.mine]\ncomand = ["my-agent"]\n')
    room.drive({"START.sh": "echo '<result>x</result>'"}, id="bad")
    path = Path(room.project.run("bad").journal)
    first, second, *rest = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([first, second, b"damage\n", *rest]))
    shown = room.raymond("doctor")
    assert shown.returncode == 0, shown.stdout
    lines = shown.stdout.splitlines()
    assert "BAD  mine: [backends.mine]: there is no key `comand`" in lines
    [at] = [number for number, line in enumerate(lines) if line.startswith("BAD  run: bad cannot be read: ")]
    assert "raymond doctor --repair bad" in lines[at + 1]
    room.environment["RAYMOND_BACKEND"] = "mine"
    assert room.raymond("doctor").returncode == 1


@pytest.mark.parametrize("kind", ["file", "locked"])
def test_a_project_that_runs_cannot_write_to_is_a_fault(room: Room, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("RAYMOND_HOME", str(room.home))
    monkeypatch.chdir(room.path)
    assert [one.ok for one in doctor.examine() if one.what == "project"] == [True]
    if kind == "file":
        (room.path / ".raymond").touch()
        told = f"{room.path}/.raymond is not a folder"
    else:
        monkeypatch.setattr(os, "access", lambda path, mode: path != str(room.path))
        told = f"{room.path} cannot be written"
    [found] = [one for one in doctor.examine() if one.what == "project"]
    assert (found.ok, found.needed, found.found) == (False, True, told)


ANSWERS = """\
#!/bin/sh
if [ "$1" = --version ]; then echo 2.1.325; exit; fi
cat > "$TEST_ROOM/asked"
echo '{"type":"result","is_error":false,"result":"ready","total_cost_usd":0.0123}'
"""
FAILS = """\
#!/bin/sh
if [ "$1" = --version ]; then echo 2.1.325; exit; fi
echo '{"type":"result","is_error":true,"api_error_status":401,"result":"Please run /login","total_cost_usd":0}'
exit 1
"""


@pytest.mark.slow
def test_doctor_asks_nothing_that_costs_without_a_word(room: Room) -> None:
    claude(room, ANSWERS)
    room.environment["ANTHROPIC_API_KEY"] = "1"
    assert room.raymond("doctor").returncode == 0
    assert not (room.path / "asked").exists()


@pytest.mark.slow
def test_a_probe_is_one_real_turn(room: Room) -> None:
    claude(room, ANSWERS)
    done = room.raymond("doctor", "--probe")
    last = re.sub(r"after [\d.]+ s", "after T s", done.stdout.splitlines()[-1])
    assert (done.returncode, done.stderr) == (0, "asking claude ...\n")
    assert last == "ok   probe: claude answered after T s for $0.0123: ready"
    assert (room.path / "asked").read_text() == "Reply with the single word: ready"
    assert room.project.ids() == []
    found = json.loads(room.raymond("doctor", "--probe", "--json").stdout)[-1]
    assert (found["what"], found["ok"]) == ("probe", True)


@pytest.mark.slow
def test_a_probe_that_fails_says_how_and_ends_with_1(room: Room) -> None:
    claude(room, FAILS)
    done = room.raymond("doctor", "--probe", "--backend", "claude")
    *_, last, hint = re.sub(r"after [\d.]+ s", "after T s", done.stdout).splitlines()
    assert (done.returncode, last, hint) == (
        1,
        "BAD  probe: claude failed after T s for $0.0000 (auth): Please run /login (start `claude` once and log in, or set ANTHROPIC_API_KEY)",
        "     hint: start `claude` once and log in, or set ANTHROPIC_API_KEY",
    )


@pytest.mark.slow
def test_a_probe_of_a_program_that_is_not_there_asks_nobody(room: Room) -> None:
    done = room.raymond("doctor", "--probe")
    *_, last, hint = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (1, "")
    assert last == "BAD  probe: claude: there is no program `claude` on the PATH"
    assert (
        hint
        == "     hint: install Claude Code, then start it once to log in; without an account: write replies.yaml beside the workflow, e.g. `START: <result>done</result>`"
    )


@pytest.mark.slow
def test_a_probe_can_ask_a_program_of_ones_own(room: Room) -> None:
    room.settings('[backends.mine]\ncommand = ["cat"]\n')
    done = room.raymond("doctor", "--probe", "--backend", "mine")
    last = re.sub(r"after [\d.]+ s", "after T s", done.stdout.splitlines()[-1])
    assert last == "ok   probe: mine answered after T s for ~$0.5000: Reply with the single word: ready"


@pytest.mark.slow
def test_a_probe_asks_the_backend_that_is_set(room: Room) -> None:
    room.settings('backend = "mine"\n[backends.mine]\ncommand = ["cat"]\n')
    assert "probe: mine answered" in room.raymond("doctor", "--probe").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (
            ("--backend", "claude"),
            2,
            "error: --backend goes with --probe\nhint: raymond doctor --probe --backend claude\n",
        ),
        (
            ("--probe", "--backend", "scripted"),
            2,
            "error: scripted has no model to ask\nhint: raymond doctor --probe --backend claude\n",
        ),
        (
            ("--probe", "--backend", "telepathy"),
            5,
            "error: there is no backend `telepathy`\nhint: there are: scripted, scripted-program, claude, codex\n",
        ),
        (
            ("--probe", "--backend", "cluade"),
            5,
            (
                "error: there is no backend `cluade`\n"
                "hint: did you mean `claude`? there are: scripted, scripted-program, claude, codex\n"
            ),
        ),
    ],
)
def test_a_probe_of_what_cannot_be_asked_is_refused(room: Room, args: tuple[str, ...], code: int, error: str) -> None:
    done = room.raymond("doctor", *args)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", error)


# --- a tool that is refused, and allowed later

REFUSES = """\
#!/bin/sh
if [ "$1" = --version ]; then echo 2.1.325; exit; fi
case "$*" in
*"--allowedTools Bash(npm test:*)"*) denied= ;;
*) denied='{"tool_name":"Bash","tool_use_id":"1","tool_input":{"command":"npm test 2>&1 | tail"}}' ;;
esac
printf '{"type":"result","is_error":false,"result":"<result>done</result>","total_cost_usd":0.1,'
printf '"permission_denials":[%s]}\\n' "$denied"
"""
FLAG = "--allow-tool 'Bash(npm test:*)'"


@pytest.mark.slow
def test_a_refused_tool_is_shown_with_its_flag_and_counted_at_the_end_and_in_status(room: Room) -> None:
    claude(room, REFUSES)
    ran = room.command({"START.md": "Test it. <result>x</result>"})
    assert (ran.code, ran.out) == (0, "done\n")
    assert f"main * was denied: Bash npm test 2>&1 | tail ({FLAG} would allow it)" in ran.lines
    counted = f"denied: Bash(npm test:*) 1 time ({FLAG} would allow it)"
    assert ran.lines[-2:] == [counted, "next:   raymond logs r"]
    assert counted in room.raymond("status", "r").stdout.splitlines()
    assert json.loads(room.raymond("wait", "r", "--json").stdout)["denied"] == {"Bash(npm test:*)": 1}


@pytest.mark.slow
def test_a_run_that_pauses_for_a_refused_tool_goes_on_when_it_is_allowed(room: Room) -> None:
    claude(room, REFUSES)
    ran = room.command({"START.md": "---\non_denied: pause\n---\nTest it. <result>x</result>"})
    [paused] = ran.all(AgentPaused)
    assert ran.code == 3
    assert paused == AgentPaused(agent="main", kind="denied", tools=["Bash(npm test:*)"])
    assert "main paused: denied tools it needs: Bash(npm test:*)" in ran.lines
    assert ran.lines[-1] == f"next:   raymond resume r {FLAG}"
    again = room.resume("--allow-tool", "Bash(npm test:*)")
    assert (again.code, again.out, again.run.rights.allowed) == (0, "done\n", ("Bash(npm test:*)",))
    # Once given, a tool is given: a later resume need not say it again.
    assert again.all(LimitsChanged)[-1].allowed_tools == ["Bash(npm test:*)"]


# --- backends of other packages

MODULE = """
from raymond.backends import Setup
from raymond.backends.command import CommandBackend


def make(setup):
    options = {"command": ["/bin/sh", "-c", "echo '<result>of the package</result>'"], "cost": 0.5}
    return CommandBackend(Setup(name=setup.name, options=options | setup.options))
"""


def package(room: Room, points: str, module: str = MODULE) -> None:
    """A package of somebody else's, as an installer leaves it."""
    folder = room.path.parent / "packages"
    about = folder / "raymond_other-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "raymond_other.py").write_text(module)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: raymond-other\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[raymond.backends]\n{points}\n")
    room.environment["PYTHONPATH"] = str(folder)


@pytest.mark.slow
def test_a_backend_of_another_package_is_found_by_its_name(room: Room) -> None:
    package(room, "other = raymond_other:make")
    ran = room.command({"START.md": ""}, "--backend", "other")
    assert (ran.code, ran.out, ran.run.cost) == (0, "of the package\n", 0.5)
    found = {one["what"]: one["found"] for one in json.loads(room.raymond("doctor", "--json").stdout)}
    assert found["other"] == "/bin/sh; conversations are not kept; paid by: whoever that program charges"
    wrong = room.command({"START.md": ""}, "--backend", "another", id="w")
    assert wrong.err.endswith("did you mean `other`? there are: scripted, scripted-program, claude, codex, other\n")


@pytest.mark.slow
def test_a_backend_of_another_package_gets_its_table(room: Room) -> None:
    package(room, "other = raymond_other:make")
    of_a_person(room, "[backends.other]\ncost = 0.25\n")
    assert room.command({"START.md": ""}, "--backend", "other").run.cost == 0.25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "module", "why"),
    [
        ("other = raymond_missing:make", "", "No module named 'raymond_missing'"),
        ("other = raymond_other:made", MODULE, "module 'raymond_other' has no attribute 'made'"),
        ("other = raymond_other:make", "import a_thing_not_here", "No module named 'a_thing_not_here'"),
    ],
)
def test_a_backend_of_another_package_that_cannot_be_loaded_says_why(
    room: Room, point: str, module: str, why: str
) -> None:
    package(room, point, module)
    ran = room.command({"START.md": ""}, "--backend", "other")
    assert (ran.code, ran.err) == (5, f"error: the backend `other` cannot be loaded: {why}\n")
    [found] = [one for one in json.loads(room.raymond("doctor", "--json").stdout) if one["what"] == "other"]
    assert (found["ok"], found["found"]) == (False, f"the backend `other` cannot be loaded: {why}")
    # Whoever does not need it is not held up.
    needs_none = room.flow({"START.sh": "echo '<result>done</result>'"}, "needs none")
    assert room.raymond("run", needs_none).stdout == "done\n"
