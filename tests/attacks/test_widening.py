"""Nobody but the person widens what a run may do: not a gate, not a workflow's settings, not a tag, not a checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from builders import Play, head, place, start
from raymond.backends import Reply, Setup, Spending, Trouble, registry
from raymond.backends.claude import Claude
from raymond.backends.codex import Codex
from raymond.backends.codex_events import CodexReader
from raymond.backends.guard import Guarded, sound
from raymond.control import config, preflight
from raymond.control.preflight import Proposal
from raymond.control.settings import KEYS, SiteRules
from raymond.errors import Diagnostic, UsageError
from raymond.language import policy
from raymond.language.check import Check
from raymond.machine import limits
from raymond.machine.events import LimitsChanged, RunStarted, StepRefused
from raymond.steps import probe
from raymond.steps.spool import turn_of
from raymond.store.loader import Loaded
from trust.places import Place

# --- gates


@pytest.mark.parametrize("command", ["python3", "bash", "curl", "env", "make test"])
def test_a_gate_gives_the_agent_no_right(command: str) -> None:
    person = limits.rights_of(start(place({"START.md": ""}, "START.md"), permission_mode="dontAsk"))
    read = policy.parse(head(f"gate: {command}"), file="A.md", script=False).policy
    assert read.gate == (Check(run=command),)
    assert limits.narrowed_rights(person, read) == limits.Rights("dontAsk", (), (), False)


# --- directories


def asked(cwd: Path, roots: str, *, given: list[Path]) -> list[Diagnostic]:
    workspace = place({"START.md": "", "workflow.yaml": f"roots: {roots}"}, "START.md")
    loaded = Loaded(workspace.workflow, "", {}, "")
    begun = start(workspace, cwd=str(cwd))
    return list(preflight.wider_roots(Proposal(loaded, begun, {}, SiteRules(), roots=[str(one) for one in given])))


def test_a_workflow_opens_no_directory_by_naming_it(tmp_path: Path) -> None:
    (work := tmp_path / "work").mkdir()
    (secret := tmp_path / "secret").mkdir()
    os.symlink(secret, work / "link")
    found = asked(work, f"[{secret}, ../secret, link, sub, .]", given=[])
    assert [one.id for one in found] == ["wider-permission"] * 3
    assert found[0].message == f"the workflow wants to enter {secret}, which was not opened to it"
    assert found[0].hint == f"--root {secret}, if you mean it"
    assert (found[2].file, found[2].line, found[2].source) == (
        "workflow.yaml",
        1,
        f"roots: [{secret}, ../secret, link, sub, .]",
    )


def test_a_directory_beside_an_open_one_stays_closed(tmp_path: Path) -> None:
    for name in ("work", "open", "open-too"):
        (tmp_path / name).mkdir()
    found = asked(tmp_path / "work", "[../open, ../open/deep, ../open-too]", given=[tmp_path / "open"])
    assert [one.hint for one in found] == [f"--root {tmp_path}/open-too, if you mean it"]


def test_a_root_that_is_replaced_by_a_link_later_leads_nowhere_new(room: Place) -> None:
    """What counts is what the person opened at the start; a workflow's own folder is open because it is below the run's."""
    (room.path.parent / "secret").mkdir()
    (room.path / "sub").mkdir()
    ran = room.drive(
        {
            "START.sh": "rmdir sub && ln -s ../secret sub && echo '<reset cd=\"sub\">END</reset>'",
            "END.sh": 'echo "<result>$PWD</result>"',
            "workflow.yaml": "roots: [sub]",
        }
    )
    assert ran.code == 1
    assert f"{room.path.parent}/secret is outside {room.path}" in ran.err


@pytest.mark.slow
def test_a_person_opens_a_directory_to_a_run_that_needs_it(room: Place) -> None:
    other = room.path.parent / "other"
    other.mkdir()
    ran = room.command(
        {"START.sh": "echo '<reset cd=\"../other\">END</reset>'", "END.sh": 'echo "<result>$PWD</result>"'}
    )
    assert ran.code == 1
    assert f"{other} is outside {room.path}" in ran.err
    assert room.resume().code == 1
    again = room.resume("--root", "../other")
    assert (again.code, again.out) == (0, f"{other}\n"), again.err
    assert [one.roots for one in again.all(LimitsChanged)] == [[str(other)]]


# --- models

FLOW = {"START.md": "", "SUB.md": "", "END.md": ""}


def refusals(play: Play) -> list[StepRefused]:
    return [event for event in play.events if isinstance(event, StepRefused)]


def test_a_tag_cannot_name_a_model_that_the_site_does_not_allow() -> None:
    play = Play(FLOW, model="haiku")
    play.workspace = replace(play.workspace, models=("haiku", "sonnet"))
    play.say('<function return="END" model="opus">SUB</function>')
    [refused] = refusals(play)
    assert (refused.reason, refused.hint) == (
        "the model `opus` is not allowed here",
        "leave it out, or use: haiku, sonnet",
    )
    play.say('<function return="END" model="sonnet">SUB</function>')
    assert (play.main.state, play.main.model) == ("SUB.md", "sonnet")


def test_the_rules_of_today_hold_for_a_model_that_was_chosen_before() -> None:
    play = Play(FLOW, model="haiku")
    play.say('<function return="END" model="opus">SUB</function>')
    workflow = play.workspace.workflow
    with pytest.raises(UsageError, match="allows no model `opus`"):
        preflight.check_site(play.run, SiteRules(models=["haiku"]), workflow)
    preflight.check_site(play.run, SiteRules(models=["haiku", "opus"]), workflow)


@pytest.mark.parametrize("said", ["model: opus", "evaluator: {prompt: SUB.md, model: opus, verdicts: {'yes': keep}}"])
def test_the_rules_of_today_hold_for_a_model_that_a_state_names(said: str) -> None:
    play = Play({**FLOW, "END.md": head(said)}, model="haiku")
    with pytest.raises(UsageError, match="allows no model `opus`"):
        preflight.check_site(play.run, SiteRules(models=["haiku"]), play.workspace.workflow)


@pytest.mark.parametrize("backend", ["claude", "codex"])
def test_the_rules_of_today_hold_for_the_model_that_judges(backend: str) -> None:
    judged = head("evaluator: {prompt: SUB.md, verdicts: {'yes': keep}}")
    play = Play({**FLOW, "END.md": judged}, model="sonnet", backend=backend, small_model="mini")
    model = "haiku" if backend == "claude" else "mini"
    with pytest.raises(UsageError, match=f"allows no model `{model}`"):
        preflight.check_site(play.run, SiteRules(models=["sonnet"]), play.workspace.workflow)
    preflight.check_site(play.run, SiteRules(models=["sonnet", model]), play.workspace.workflow)


def test_a_state_fixes_the_model_of_a_transition() -> None:
    fixed = "allowed_transitions: [{tag: function, target: SUB.md, return: END.md, model: haiku}]"
    play = Play({**FLOW, "START.md": head(fixed)})
    play.say('<function return="END" model="opus">SUB</function>')
    play.say('<function return="END">SUB</function>')
    assert [one.reason.partition("` is ")[2].partition(";")[0] for one in refusals(play)] == ["not allowed here"] * 2
    play.say('<function return="END" model="haiku">SUB</function>')
    assert (play.main.state, play.main.model) == ("SUB.md", "haiku")


def under_rules(room: Place, rules: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """Run a command where an administrator has written these rules: in a mount namespace with another /etc."""
    etc = room.path.parent / "etc"
    (etc / "raymond").mkdir(parents=True, exist_ok=True)
    (etc / "raymond" / "policy.toml").write_text(rules)
    enter = 'mount --bind "$0" /etc && exec "$@"'
    argv = ["unshare", "-m", "sh", "-c", enter, str(etc), sys.executable, "-m", "raymond", *args]
    done = subprocess.run(argv, cwd=room.path, env=room.environment, text=True, check=False, capture_output=True)
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip("only root can have a mount namespace here")
    return done


@pytest.mark.slow
def test_the_policy_file_of_a_machine_reaches_tags_and_what_is_resumed(room: Place) -> None:
    chosen = """START: <function return="END" model="opus">SUB</function>\nSUB: <ask next="END">?</ask>"""
    flow = room.flow({**FLOW, "replies.yaml": chosen})
    refused = under_rules(room, 'models = ["haiku"]', "run", flow)
    assert (refused.returncode, "the model `opus` is not allowed here" in refused.stderr) == (1, True), refused.stderr
    assert under_rules(room, 'models = ["haiku", "opus"]', "run", flow, "--id", "r").returncode == 3
    again = under_rules(room, 'models = ["haiku"]', "resume", "r")
    assert (again.returncode, again.stderr.partition("\n")[0]) == (
        2,
        "error: /etc/raymond/policy.toml allows no model `opus`",
    )


# --- names that become arguments of a program

REAL = [
    "opus",
    "claude-opus-4-1[1m]",
    "us.anthropic.claude-sonnet-4-20250514-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-3-7:0",
    "claude-sonnet-4@20250514",
    "openai/gpt-5.2-codex",
    "llama3:8b-instruct-q4_K_M",
]
FLAGS = ["--dangerously-skip-permissions", "-c", "a b", "a\tb", "$(id)", "a;id", "a\u202eb", "x" * 201]


@pytest.mark.parametrize("model", FLAGS)
def test_a_model_that_looks_like_a_flag_is_refused_wherever_it_is_said(model: str, tmp_path: Path) -> None:
    written = json.dumps(model)
    assert [one.id for one in policy.parse(head(f"model: {written}"), file="A.md", script=False).diagnostics] == [
        "bad-value"
    ]
    fixed = f"allowed_transitions: [{{tag: function, target: A.md, return: A.md, effort: {written}}}]"
    assert [one.id for one in policy.parse(head(fixed), file="A.md", script=False).diagnostics] == ["bad-value"]
    with pytest.raises(UsageError, match="must be a name"):
        config.load("", flags={"model": model}, environment={}, policy_file=str(tmp_path / "none"))
    play = Play(FLOW)
    play.say(f'<function return="END" model="{model}">SUB</function>')
    assert [one.reason for one in refusals(play)] == ["`model` and `effort` of `<function>` must be plain names"]


@pytest.mark.parametrize("model", REAL)
def test_the_names_that_models_really_have_are_taken(model: str, tmp_path: Path) -> None:
    assert policy.parse(head(f'model: "{model}"'), file="A.md", script=False).diagnostics == []
    none = str(tmp_path / "none")
    assert config.load("", flags={"model": model}, environment={}, policy_file=none)["model"] == model
    play = Play(FLOW)
    play.say(f'<function return="END" model="{model}">SUB</function>')
    assert play.main.model == model


# --- settings of a checkout

OWN = """
budget = 5
max_iterations = 50
max_time = "1h"
max_turns = 50
max_parallel = 2
timeout = "5m"
tool_timeout = "5m"
max_wait = "1h"
patience = "1h"
keep = "7d"
durability = "strict"
"""
WIDE = """
budget = 0
max_iterations = 1000000
max_time = "300d"
max_turns = 1000000
max_parallel = 1000
timeout = "300d"
tool_timeout = "300d"
max_wait = "300d"
patience = "300d"
keep = "0s"
durability = "normal"
"""
NARROW = """
budget = 1
max_iterations = 5
max_time = "1m"
max_turns = 5
max_parallel = 1
timeout = "1m"
tool_timeout = "1m"
max_wait = "0s"
patience = "0s"
keep = "300d"
durability = "strict"
"""


class Desk:
    """The files of a person and of a checkout, and what follows from them."""

    def __init__(self, path: Path, own: str, project: str) -> None:
        self.user, self.project = path / "xdg/raymond/config.toml", path / "checkout/.raymond/config.toml"
        self.none = str(path / "none")
        for file, text in ((self.user, own), (self.project, project)):
            file.parent.mkdir(parents=True)
            file.write_text(text, "utf-8")

    def load(self, **environment: str) -> config.Config:
        tree, place = str(self.project.parent.parent), {"XDG_CONFIG_HOME": str(self.user.parent.parent)}
        return config.load(tree, environment={**place, **environment}, policy_file=self.none)


@pytest.mark.parametrize("own", [OWN, ""], ids=["set by the person", "default"])
def test_a_checkout_lifts_no_limit(tmp_path: Path, own: str) -> None:
    desk = Desk(tmp_path, own, WIDE)
    found, origin = desk.load(), str(desk.user) if own else "default"
    wide = [name for name in KEYS if name in WIDE]
    # Without a limit of the person's, any limit is lower than none; strictness has no more than two values.
    free = [] if own else ["max_iterations", "max_time", "max_turns", "durability"]
    assert {name: one.origin for name, one in found.settings.items() if name in wide} == {
        name: str(desk.project) if name in free else origin for name in wide
    }
    assert list(found.unused) == [
        line.split(" ")[0] for line in WIDE.split("\n") if line and line.split(" ")[0] not in free
    ]


def test_a_checkout_may_ask_for_less(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OWN, NARROW)
    found = desk.load()
    narrow = {name: one for name, one in found.settings.items() if name in NARROW}
    assert len(narrow) == 11
    assert {one.origin for one in narrow.values()} == {str(desk.project)}
    assert (found["budget"], found["max_wait"], found["keep"], found.unused) == (1.0, 0.0, 300 * 86400.0, {})


def test_a_checkout_cannot_exchange_the_files_that_may_change(tmp_path: Path) -> None:
    """Which of two lists of patterns allows more cannot be told, so the person's stays."""
    assert Desk(tmp_path, "", 'may_change = ["src/**"]').load()["may_change"] == ["src/**"]
    own = 'may_change = ["src/**"]'
    wide = Desk(tmp_path / "wide", own, 'may_change = ["**"]').load()
    assert (wide["may_change"], wide.unused["may_change"].value) == (["src/**"], ["**"])
    assert Desk(tmp_path / "same", own, own).load().unused == {}


def test_the_persons_own_word_comes_before_the_checkout(tmp_path: Path) -> None:
    found = Desk(tmp_path, OWN, NARROW).load(RAYMOND_BUDGET="20", RAYMOND_PATIENCE="2d")
    assert (found["budget"], found["patience"]) == (20.0, 2 * 86400.0)


@pytest.mark.slow
def test_a_run_says_in_one_line_what_a_checkout_does_not_get(room: Place) -> None:
    path = room.path / ".raymond" / "config.toml"
    path.parent.mkdir()
    path.write_text('budget = 50\nmax_wait = "48h"\ntimeout = "20m"\nmax_time = "1h"\n')
    flow = room.flow({"START.sh": "echo '<result>x</result>'"})
    rest = 'max_wait = "2d", timeout = "20m" are ignored: a project can only make settings stricter'
    cases = {
        (): f"{path}: budget = 50.0, {rest}",
        ("--dry-run",): f"{path}: budget = 50.0, {rest}",
        ("--budget", "60"): f"{path}: {rest}",
        ("-q",): f"{path}: budget = 50.0, {rest}",
    }
    for flags, line in cases.items():
        done = room.raymond("run", flow, *flags)
        assert done.returncode == 0, done.stderr
        assert [one for one in done.stderr.splitlines() if "ignored" in one] == [line] * bool(line), flags


def test_config_show_says_what_a_checkout_does_not_get(room: Place) -> None:
    room.settings("budget = 5\n")
    path = room.path / ".raymond" / "config.toml"
    path.parent.mkdir()
    path.write_text('budget = 0\nmax_time = "300d"\ntimeout = "1m"\n')
    said = room.raymond("config", "show")
    assert "budget            = 5.0\n" in said.stdout
    assert said.stderr == f"{path}: budget = 0.0 is ignored: a project can only make settings stricter\n"
    values = json.loads(room.raymond("config", "show", "--json").stdout)
    assert values["budget"]["unused"] == {"value": 0.0, "origin": str(path)}
    assert values["timeout"]["unused"] is None


# --- patterns


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a*)*b", "((a+))+", "(a|aa)+$", "(a?){50}", "(?:x|y)*z", r"(\d+\s?)+", "(?:(?:a{2,})b)*"]
)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="repeats a group that varies"):
        config.load("", flags={"retryable": [pattern]}, environment={}, policy_file="")


@pytest.mark.parametrize(
    "pattern", ["upstream .* reset", "5[0-9]{2}", r"(ab)+\(x+\)+", "([(+])?", "(?:502|503) bad", "(?i)reset+"]
)
def test_an_ordinary_pattern_is_taken(pattern: str) -> None:
    assert config.load("", flags={"retryable": [pattern]}, environment={}, policy_file="")["retryable"] == [pattern]


# --- ids of conversations

FORGED = ["--dangerously-bypass-approvals-and-sandbox", "-c", "a b", "../../x", "a\nb", "$(id)", "x" * 201]


@pytest.mark.parametrize("session", FORGED)
def test_a_conversation_that_looks_like_a_flag_is_trouble_of_its_turn_and_no_argument_of_the_next(session: str) -> None:
    spent = Spending(cost=1.5)
    ended = sound(Reply(text="done", session=session, spent=spent))
    assert isinstance(ended, Trouble)
    assert (ended.kind, ended.session, ended.spent) == ("crash", "", spent), "what it cost counts all the same"
    assert sound(Trouble(kind="cap", error="", session=session)).session == ""
    reader = CodexReader(turn := probe.turn("hi", cwd="/", session="s"))
    line = json.dumps({"type": "thread.started", "thread_id": session}).encode()
    assert [one.text for one in reader.feed(line) if one.kind == "session"] == [session], "the program's own word"
    guarded = Guarded(Codex(Setup(name="codex")), turn)
    assert [one for one in guarded.feed(line) if one.kind == "session"] == []


@pytest.mark.parametrize("given", [{"base": FORGED[0]}, {"session": "-c"}, {"model": "--yolo"}, {"effort": "a b"}])
def test_a_journal_that_holds_a_flag_starts_no_program_with_it(given: dict[str, str]) -> None:
    turn = replace(probe.turn("hi", cwd="/", session="s"), **given)
    refused = Guarded(Codex(Setup(name="codex")), turn).command()
    assert isinstance(refused, Trouble)
    assert refused.kind == "setup"
    assert refused.error.endswith(" cannot be passed to a program")


@pytest.mark.parametrize(("project", "counts"), [(40, 3), (2, 2)])
def test_a_checkout_does_not_lift_a_limit_of_the_workflow(room: Place, project: int, counts: int) -> None:
    (room.path / ".raymond").mkdir()
    (room.path / ".raymond" / "config.toml").write_text(f"max_iterations = {project}\nbudget = {project}.0\n")
    files = {"workflow.yaml": "max_iterations: 3\nbudget: 3\n", "START.sh": "echo '<goto>START</goto>'\n"}
    done = room.command(files)
    assert done.code == 4, done.err
    [begun] = [event for event in room.events() if isinstance(event, RunStarted)]
    assert (begun.max_iterations, begun.budget) == (counts, counts)


def test_the_settings_of_a_person_are_closed_to_agents(room: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that works in the home of the person would reach them."""
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    play = Play({"START.md": "go"}, backend="claude")
    backend = registry.make(room.project, play.run, play.workspace, {})["claude"]
    assert isinstance(backend, Claude)
    argv = backend.command(turn_of(play.run, play.workspace, play.main, "/spool")).argv
    rules = json.loads(argv[argv.index("--settings") + 1])["permissions"]
    assert "Edit(//home/somebody/.config/raymond)" in rules["deny"]
