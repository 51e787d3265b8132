"""The warnings about a start: told before the first turn, refused with --strict."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import head, start
from builders import place as make
from raymond import cli
from raymond.control import preflight
from raymond.store.loader import Loaded
from running import Room

END = "<result>x</result>"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def found(files: dict[str, str], **said: str) -> list[tuple[str, int, str, str]]:
    workspace = make(files, next(iter(files)))
    loaded = Loaded(workspace.workflow, "/flow", {name: text.encode() for name, text in files.items()}, "")
    return [
        (one.file, one.line, one.id, one.hint) for one in preflight.start_warnings(loaded, start(workspace, **said))
    ]


def test_replies_for_states_that_do_not_exist_are_found_when_replies_answer() -> None:
    files = {"START.md": END, "replies.yaml": "START: x\nmain/START.md: x\nSTRAT: x\nmain/NOPE: x\n"}
    assert found(files, backend="scripted") == [
        ("replies.yaml", 3, "unknown-reply", "did you mean `START.md`?"),
        ("replies.yaml", 4, "unknown-reply", "the states are: START.md"),
    ]
    assert found(files, backend="claude") == []


def test_an_effort_that_no_program_knows_is_found_for_programs_whose_efforts_are_known() -> None:
    files = {"START.md": head("effort: hihg") + "<function return='START' effort='hardest'>START</function>"}
    hint = "one of: minimal, low, medium, high, xhigh, max"
    assert found(files, backend="claude") == [
        ("START.md", 2, "unknown-effort", hint),
        ("START.md", 4, "unknown-effort", hint),
    ]
    assert found(files, backend="mine") == []
    assert found({"START.md": END}, backend="codex", effort="hihg") == [("--effort", 0, "unknown-effort", hint)]
    assert found({"START.md": END}, backend="codex", effort="high") == []


def test_a_setting_that_is_misspelt_in_the_environment_is_found_and_nothing_else_is() -> None:
    fine = (
        "RAYMOND_BUDGET",
        "RAYMOND_HOME",
        "RAYMOND_VAR_BUDGTE",
        "RAYMOND_STATE",
        "RAYMOND_TOKEN",
        "BUDGTE",
        "RAYMOND_",
    )
    environment = dict.fromkeys((*fine, "RAYMOND_BUDGTE", "RAYMOND_MAX_ITERATION"), "1")
    assert [(one.source, one.hint) for one in preflight.environment_warnings(environment)] == [
        ("RAYMOND_BUDGTE", "did you mean `RAYMOND_BUDGET`?"),
        ("RAYMOND_MAX_ITERATION", "did you mean `RAYMOND_MAX_ITERATIONS`?"),
    ]


def test_only_scripts_that_are_reached_are_shown_to_bash() -> None:
    files = {"START.sh": f"echo '{END}'", "OTHER.sh": "if"}
    assert found(files) == []
    assert found({"START.sh": f"if\necho '{END}'\n"})[0][:3] == ("START.sh", 3, "bash-syntax")


# The commands

DOUBTFUL = {"START.md": f"{{{{inptu}}}} <gotoo>END</gotoo>\n{END}", "END.md": END, "replies.yaml": f"START: {END}"}
FIRST = """\
warning: `{{inptu}}` has no value [unbound-variable]
 --> ../flow/START.md:1:1
  |
1 | {{inptu}} <gotoo>END</gotoo>
  | ^^^^^^^^^
hint: did you mean {{input}}?
"""


def run(room: Room, monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    monkeypatch.setenv("HOME", room.environment["HOME"])
    with contextlib.chdir(room.path):
        return cli.main(["run", *args])


def test_a_strict_start_is_refused_and_a_dry_run_lists_everything(
    room: Room, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = room.flow(DOUBTFUL)
    for more in ((), ("--dry-run",)):
        assert run(room, monkeypatch, flow, "--strict", *more) == 6
        assert capsys.readouterr().err.startswith("error: `{{inptu}}` has no value\n --> ../flow/START.md:1:1\n")
    assert not room.home.exists()
    assert run(room, monkeypatch, flow, "--dry-run") == 0
    assert FIRST in capsys.readouterr().out
    for code, more in ((0, ()), (6, ("--strict",))):
        assert run(room, monkeypatch, flow, "--dry-run", "--json", *more) == code
        listed = json.loads(capsys.readouterr().out)["warnings"]
        assert [(one["id"], one["file"], one["line"], one["column"]) for one in listed] == [
            ("unbound-variable", "../flow/START.md", 1, 1),
            ("misspelt-tag", "../flow/START.md", 1, 11),
        ]
    fine = room.flow({"START.sh": f"echo '{END}'"}, "fine")
    assert run(room, monkeypatch, fine, "--dry-run", "--json", "--strict") == 0


ERRORS = [
    (
        {"START.md": f"{{{{inptu}}}} <goto>NOWHERE</goto> {END}", "NEXT.md": END, "replies.yaml": "{}"},
        (),
        6,
        [("missing-target", "there is no state `NOWHERE`", "../flow/START.md", 1)],
        ["unbound-variable"],
    ),
    ({"START.md": f"---\nmodle: x\n---\n{END}"}, (), 6, [("unknown-key", "there is no key `modle`", "../flow/START.md", 2)], []),
    ({"START.md": END, "replies.yaml": "\nSTART: 7"}, (), 6, [("bad-reply", "the reply for START cannot be used: it is neither text nor a mapping", "../flow/replies.yaml", 2)], []),
    ({"START.md": f"{{{{inptu}}}} {END}"}, ("--cd", "nowhere"), 2, [(None, "--cd nowhere: no such file or directory", "", 0)], ["unbound-variable"]),
    ({"START.md": f"{{{{inptu}}}} {END}"}, ("--cd", "nowhere", "--var", "inptu=1"), 2, [(None, "--cd nowhere: no such file or directory", "", 0)], []),
    ({"START.md": END}, ("--backend", "nobody"), 5, [(None, "there is no backend `nobody`", "", 0)], []),
]  # fmt: skip


@pytest.mark.parametrize(("files", "flags", "code", "errors", "warnings"), ERRORS)
def test_a_dry_run_that_is_refused_says_so_in_its_document(
    files: dict[str, str],
    flags: tuple[str, ...],
    code: int,
    errors: list[tuple[str | None, str, str, int]],
    warnings: list[str],
    room: Room,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    flow = room.flow(files)
    assert run(room, monkeypatch, flow, "--dry-run", "--json", *flags) == code
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert [(one["id"], one["message"], one["file"], one["line"]) for one in document["errors"]] == errors
    assert ([one["id"] for one in document["warnings"]], said.err) == (warnings, "")
    assert run(room, monkeypatch, flow, "--dry-run", *flags) == code
    assert capsys.readouterr().out == ""
    assert not room.home.exists()


def test_a_dry_run_of_nothing_says_so_in_its_document(
    room: Room, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(room, monkeypatch, "nothing/here", "--dry-run", "--json") == 2
    document = json.loads(capsys.readouterr().out)
    assert [(one["id"], one["file"]) for one in document["errors"]] == [("not-found", "nothing/here")]
    assert {key for key, value in document.items() if value} == {"errors"}


def test_a_prompt_written_for_a_shell_loop_is_refused_with_the_loop_that_works(
    room: Room, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in {
        "PROMPT.md": "Do the next thing in fix_plan.md.",
        "fix_plan.md": "- [ ] a",
        "old.py": "print 1",
    }.items():
        (room.path / name).write_text(text, "utf-8")
    assert run(room, monkeypatch, "PROMPT.md", "--backend", "claude") == 6
    said = capsys.readouterr().err
    assert said.startswith("error: PROMPT.md has no tag\n --> PROMPT.md:1:1\n")
    assert 'raymond ralph PROMPT.md --gate "make test"\n' in said
    assert not room.home.exists()


@pytest.mark.slow
def test_warnings_are_told_once_before_the_first_turn_and_a_strict_resume_is_refused(room: Room) -> None:
    many = "".join(f"{{{{inptu}}}} {'x' * at}\n" for at in range(12))
    ran = room.command({**DOUBTFUL, "START.md": f"{many}{END}"})
    assert ran.code == 0
    assert ran.err.count("warning: `{{inptu}}` has no value [unbound-variable]\n") == 10
    before, _, after = ran.err.partition(
        f"warning: and 2 more; raymond run {room.path.parent}/flow --dry-run lists all\n"
    )
    assert before.startswith("warning: ")
    assert "run r started" in after
    quiet = room.command(
        {
            **DOUBTFUL,
            "START.md": "{{inptu}} <ask next='END'>Why?</ask>",
            "replies.yaml": "START: <ask next='END'>Why?</ask>",
        },
        "-q",
        id="q",
    )
    assert quiet.err.startswith("warning: `{{inptu}}` has no value [unbound-variable]\n")
    assert "run q started" not in quiet.err
    refused = room.resume("--strict", id="q")
    assert (refused.code, refused.err.partition("\n")[0]) == (6, "error: `{{inptu}}` has no value")
