"""Who answers and who pays: said at the start, journaled, and compared before a run continues by itself."""

import os
import re
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

import raymond
from builders import Play
from raymond import cli
from raymond.backends import claude_bill
from raymond.backends.agent_program import Payer, fingerprint
from raymond.control import programs
from raymond.faces import words
from raymond.machine.events import Program, ProgramAdded, RunResumed, RunStarted, StepFailed, StepStarted
from raymond.store import program_cache
from raymond.store.home import VARIABLE
from running import Room

KEY = "sk-ant-api03-not-a-key"
MARK = sha256(KEY.encode()).hexdigest()[:6]
PAYER = f"the key in ANTHROPIC_API_KEY, fingerprint {MARK}"
ASKS = {
    "START.sh": "echo '<ask next=\"END\">Which?</ask>'",
    "END.sh": "echo '<result>done</result>'",
    "NEVER.md": "reached only if a script names it",
}


def claude(folder: Path, version: str = "2.1.197") -> Path:
    """A program that only tells its version, and counts how often."""
    folder.mkdir(exist_ok=True)
    program = folder / "claude"
    program.write_text(f"#!/bin/sh\necho asked >> {folder}/asked\necho '{version} (Claude Code)'\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    program = claude(tmp_path / "bin")
    room = Room(tmp_path, PATH=f"{program.parent}:/usr/bin:/bin", ANTHROPIC_API_KEY=KEY)
    yield room
    room.clear()


def test_a_fingerprint_tells_keys_apart_and_is_not_the_key() -> None:
    assert fingerprint({"A": KEY}, ("B", "A")) == MARK
    assert fingerprint({"A": "another"}, ("A",)) != MARK
    assert fingerprint({"A": ""}, ("A", "")) == ""


CREDENTIALS = ".credentials.json"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9/"}),
        ({"ANTHROPIC_BASE_URL": "http://a/one"}, {"ANTHROPIC_BASE_URL": "http://a/two"}),
        ({}, {"ANTHROPIC_AUTH_TOKEN": "gateway"}),
        ({"ANTHROPIC_AUTH_TOKEN": "one"}, {"ANTHROPIC_AUTH_TOKEN": "two"}),
        ({"ANTHROPIC_API_KEY": KEY}, {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_AUTH_TOKEN": "two"}),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "work"}),
        ({"CLAUDE_CODE_USE_VERTEX": "1"}, {"CLAUDE_CODE_USE_VERTEX": "1", "ANTHROPIC_VERTEX_PROJECT_ID": "p"}),
    ],
)
def test_another_key_address_or_cloud_account_is_another_payer(
    tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    one, other = (claude_bill.payer_of(environment, str(tmp_path), {}) for environment in (before, after))
    assert one != other
    assert claude_bill.payer_of({}, str(tmp_path), {"env": after}) == other, "the user's settings set variables too"


def test_another_account_that_is_logged_in_is_another_payer_but_fresh_credentials_are_not(tmp_path: Path) -> None:
    def logged_in(account: str, token: str) -> Payer:
        (tmp_path / CREDENTIALS).write_text(token)
        (tmp_path / ".claude.json").write_text(f'{{"oauthAccount": {{"accountUuid": "{account}"}}}}')
        return claude_bill.payer_of({"CLAUDE_CONFIG_DIR": str(tmp_path)}, str(tmp_path), {})

    assert logged_in("a", "1") == logged_in("a", "2") != logged_in("b", "2")
    assert logged_in("a", "1").name == f"the subscription logged in at {tmp_path / CREDENTIALS}"


def test_a_payer_is_shown_without_what_is_secret(tmp_path: Path) -> None:
    environment = {"ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_BASE_URL": f"https://me:{KEY}@gate.example.org/v1?k={KEY}"}
    found = claude_bill.payer_of(environment, str(tmp_path), {})
    assert (found.name, found.key, found.host) == ("the token in ANTHROPIC_AUTH_TOKEN", MARK, "gate.example.org")
    told = words.program(Program(name="claude", payer=found.name, host=found.host))
    assert told == "claude (paid by the token in ANTHROPIC_AUTH_TOKEN, at gate.example.org)"


def test_what_differs_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("PATH", f"{claude(tmp_path / 'bin').parent}:/usr/bin:/bin")
    run = Play({"START.md": "x"}).run
    [now] = programs.current(run.start, ["claude"], {})

    def changed(**fields: str) -> str:
        run.programs = [replace(now, **fields)]
        return programs.difference(run, {})

    assert changed() == ""
    assert changed(path="/a/claude") == (
        f"the run's last driver used /a/claude, and here it would be {tmp_path}/bin/claude"
    )
    assert changed(account="0a1b2c") == (
        "claude would be paid by another account, or elsewhere, than under the run's last driver"
    )
    assert changed(host="a.example.org").startswith(
        f"the run's last driver used claude 2.1.197 (paid by {PAYER}, at a.example.org), and here it would be claude"
    )


def test_a_version_is_asked_for_once_while_the_program_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    (tmp_path / "home").mkdir(0o700)
    program, asked = claude(tmp_path / "bin"), tmp_path / "bin" / "asked"
    for _ in range(2):
        assert program_cache.checked_version(str(program), "Claude Code", (2,), ()) == ("2.1.197 (Claude Code)", "")
    assert asked.read_text().count("asked") == 1
    before = program.stat()
    claude(tmp_path / "bin", "1.9.100")
    os.utime(program, ns=(before.st_atime_ns, before.st_mtime_ns))
    said, problem = program_cache.checked_version(str(program), "Claude Code", (2,), ())
    assert (said, "needs 2 or later" in problem) == ("1.9.100 (Claude Code)", True), "the time alone is not believed"
    program_cache.forget_versions()
    program_cache.checked_version(str(program), "Claude Code", (2,), ())
    assert asked.read_text().count("asked") == 3
    kept = tmp_path / "home" / program_cache.VERSIONS_FILE
    kept.write_text(re.sub(r'"asked":"\d+"', f'"asked":"{int(time.time()) - 601}"', kept.read_text()))
    program_cache.checked_version(str(program), "Claude Code", (2,), ())
    assert asked.read_text().count("asked") == 4, "what a script starts may have changed"


def test_the_first_line_says_who_answers_and_who_pays() -> None:
    one = Program(name="claude", version="2.1.197", payer=PAYER)
    assert words.program(one) == f"claude 2.1.197 (paid by {PAYER})"
    assert words.program(Program(name="mine")) == "mine (nobody is logged in)"
    assert words.line(RunResumed(version="1", programs=[one])) == f"run resumed, claude 2.1.197 (paid by {PAYER})"
    scripted = Program(name="scripted", payer="flow/replies.yaml")
    assert (
        words.line(RunResumed(version="1", programs=[scripted]))
        == "run resumed, answered by scripted replies (flow/replies.yaml)"
    )


def test_resume_all_leaves_out_what_somebody_else_would_pay_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flow").mkdir()
    (tmp_path / "flow" / "START.md").write_text("Do it. <result>done</result>")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{claude(tmp_path / 'bin').parent}:/usr/bin:/bin")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    raymond.start("flow", raymond.Options(id="r", backend="claude"))
    assert cli.main(["resume", "--all", "--dry-run"]) == 0
    assert capsys.readouterr().out == "r\n"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another")
    assert cli.main(["resume", "--all", "--yes"]) == 0
    said = capsys.readouterr()
    left = f"r is left out: the run's last driver used claude 2.1.197 (paid by {PAYER}), and here it would be claude "
    assert (said.out, said.err[: len(left)]) == ("", left)
    assert said.err.endswith("; raymond resume r continues it\n")


@pytest.mark.slow
def test_a_run_that_was_answered_by_somebody_else_is_not_continued(room: Room, tmp_path: Path) -> None:
    asked = tmp_path / "bin" / "asked"
    scripts = {name: text for name, text in ASKS.items() if name.endswith(".sh")}
    assert room.command(scripts, "--id", "s", "--backend", "claude", id="s").code == 3
    assert not asked.exists(), "a run of scripts asks no program"
    ran = room.command({**ASKS, "START.sh": f"{ASKS['START.sh']} # $0"})
    [start] = ran.all(RunStarted)
    path = str(tmp_path / "bin" / "claude")
    assert start.programs == [Program(name="claude", version="2.1.197", payer=PAYER, path=path)]
    assert f", claude 2.1.197 (paid by {PAYER}), budget $10.00 (default)" in ran.err
    assert KEY not in ran.err + "".join(path.read_text("utf-8", "replace") for path in room.folder().rglob("*.jsonl"))
    environment = {"ANTHROPIC_API_KEY": "another"}
    told = room.raymond("answer", "r", "main", "this", environment=environment)
    assert told.returncode == 5, told.stderr
    assert f"the run's last driver used claude 2.1.197 (paid by {PAYER})" in told.stderr
    assert "the answer is kept, nothing was started; to continue: raymond resume r" in told.stderr
    done = room.resume()
    assert (done.code, done.out) == (0, "done\n")
    assert [event.programs for event in done.all(RunResumed)] == [start.programs]
    assert programs.difference(done.run, {}) != "", "here is neither that program nor that key"


MIXED = {
    "START.md": "Say <result>x</result>",
    "EVIL.md": "---\nbackend: claude\nretries: 0\n---\nSay <result>x</result>",
    "replies.yaml": "START: {text: '<goto>EVIL</goto>'}",
}


@pytest.mark.slow
def test_a_program_that_nobody_named_is_told_and_journaled_before_its_first_turn(room: Room, tmp_path: Path) -> None:
    with open(claude(tmp_path / "bin"), "a", encoding="utf-8") as program:
        program.write('[ "$1" = --version ] || exit 9\n')
    ran = room.command(MIXED)
    [start] = ran.all(RunStarted)
    [added] = ran.all(ProgramAdded)
    assert ([one.name for one in start.programs], added.program.name) == (["scripted"], "claude")
    assert [one.name for one in ran.run.programs] == ["scripted", "claude"]
    told = f"claude 2.1.197 (paid by {PAYER}) answers from now on, too"
    assert ran.err.index(told) < ran.err.index("main step 2 failed")
    assert "note:   answered in part by scripted replies" in ran.err
    again = room.resume()
    assert [[one.name for one in event.programs] for event in again.all(RunResumed)] == [["scripted", "claude"]]


LATE = "---\nbackend: {}\n---\nSay <result>x</result>"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "version", "error"),
    [
        ("claude", "1.0.3", "{}/claude is Claude Code 1.0.3; Raymond needs 2.1 or later (claude update)"),
        ("codex", "", "there is no program `no-codex` on the PATH (install Codex, then start it once to log in)"),
        (
            "mine",
            "",
            "there is no program `my-agent` on the PATH (install it, or change [backends.mine] in config.toml)",
        ),
    ],
)
def test_a_turn_of_a_program_that_nobody_named_and_that_cannot_be_used_fails_once_and_says_why(
    room: Room, tmp_path: Path, backend: str, version: str, error: str
) -> None:
    room.settings('[backends.mine]\ncommand = ["my-agent"]\n[backends.codex]\nprogram = "no-codex"\n')
    claude(tmp_path / "bin", version)
    ran = room.command({**MIXED, "EVIL.md": LATE.format(backend)})
    [failed] = ran.all(StepFailed)
    assert (failed.kind, failed.error) == ("setup", error.format(tmp_path / "bin"))
    assert (ran.code, ran.run.cost, ran.all(ProgramAdded)) == (1, 0.0, [])


@pytest.mark.slow
def test_a_program_that_was_installed_since_is_named_and_answers(room: Room, tmp_path: Path) -> None:
    """Also under the driver that had found it missing."""
    room.settings('[backends.mine]\ncommand = ["my-agent"]\n')
    installs = "install -m 755 ../my-agent ../bin/my-agent; echo '<goto>MINE</goto>'"
    (tmp_path / "my-agent").write_text("#!/bin/sh\necho '<result>mine</result>'\n")
    mine = "---\nbackend: mine\non_error: INSTALL\n---\nSay <result>x</result>"
    files = {"START.md": "Say <result>x</result>", "replies.yaml": "START: {text: '<goto>MINE</goto>'}"}
    ran = room.command({**files, "MINE.md": mine, "INSTALL.sh": installs})
    assert (ran.code, ran.out, [one.program.name for one in ran.all(ProgramAdded)]) == (0, "mine\n", ["mine"])
    assert {one.kind for one in ran.all(StepFailed)} == {"setup"}


def test_a_dry_run_says_which_programs_would_answer_and_who_pays(room: Room) -> None:
    ran = room.command({**MIXED, "START.md": "Say <goto>EVIL</goto>"}, "--dry-run")
    told = f"answers:  claude 2.1.197 (paid by {PAYER})\n          scripted replies (flow/replies.yaml)\n"
    assert told in ran.out, ran.out


@pytest.mark.slow
def test_a_program_that_has_become_too_old_or_is_gone_keeps_a_run_from_continuing_until_it_is_mended(
    room: Room, tmp_path: Path
) -> None:
    files = {"START.sh": "echo '<ask next=\"THINK\">Which?</ask>'", "THINK.md": "Think. <result>x</result>"}
    assert room.command(files, "--backend", "claude").code == 3
    claude(tmp_path / "bin", "1.9.100")
    told = room.raymond("answer", "r", "this")
    assert told.returncode == 5, told.stderr
    old = room.resume()
    assert (old.code, old.run.cost, old.all(StepStarted)[1:]) == (5, 0.0, [])
    assert "needs 2.1 or later" in old.err
    assert old.err.endswith("hint: claude update, then: raymond resume r\n")
    (tmp_path / "bin" / "claude").unlink()
    assert "there is no program `claude` on the PATH" in room.resume().err
    assert room.raymond("resume", "r", "--agent", "main", "--result", "enough").stdout == "enough\n"
