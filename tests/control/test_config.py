"""Settings: where they come from and which one counts; and the completion of shells."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raymond.control import config
from raymond.control.settings import KEYS, SiteRules
from raymond.control.start import Choices, Options, configured, prepare
from raymond.errors import UsageError
from raymond.machine.events import RunStarted
from raymond.store import loader
from running import Room

DONE = {"START.sh": "echo '<result>done</result>'"}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    return done.returncode, done.stdout, done.stderr


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def of_project(room: Room, text: str) -> Path:
    return write(room.path / ".raymond" / "config.toml", text)


def of_user(room: Room, text: str) -> Path:
    return write(Path(room.environment["HOME"]) / ".config" / "raymond" / "config.toml", text)


def test_a_flag_comes_before_the_environment_and_that_before_the_files(room: Room) -> None:
    of_user(room, 'budget = 2\nmodel = "user"\neffort = "user"\nkeep = "7d"\n')
    of_project(room, "budget = 1\n")
    room.raymond(
        "run",
        room.flow(DONE),
        "--id",
        "r",
        "--budget",
        "4",
        environment={"RAYMOND_BUDGET": "3", "RAYMOND_MODEL": "env"},
    )
    start = next(event for event in room.events() if isinstance(event, RunStarted))
    assert (start.budget, start.model, start.effort) == (4.0, "env", "user")


@pytest.mark.slow
def test_config_show_says_every_key_and_where_it_was_set(room: Room) -> None:
    user = of_user(room, 'notify = ["tell me"]\nkeep = "7d"\nbudget = 4\n[backends.mine]\ncommand = ["my-agent"]\n')
    project = of_project(room, "budget = 2.5\n")
    environment = {"RAYMOND_TIMEOUT": "90s", "RAYMOND_ALLOW_TOOLS": "Read, Bash(make)"}
    done = room.raymond("config", "show", "--origin", environment=environment)
    assert told(done) == (
        0,
        (
            "backend           = not set  # default\n"
            "model             = not set  # default\n"
            "small_model       = not set  # default\n"
            "effort            = not set  # default\n"
            f"budget            = 2.5  # {project}\n"
            "max_iterations    = not set  # default\n"
            "max_time          = not set  # default\n"
            "max_turns         = not set  # default\n"
            'timeout           = "90s"  # RAYMOND_TIMEOUT\n'
            'tool_timeout      = "30m"  # default\n'
            'max_wait          = "1d"  # default\n'
            'patience          = "6h"  # default\n'
            "retryable         = not set  # default\n"
            "max_parallel      = 4 turns, and scripts for twice the number of cores  # default\n"
            "may_change        = not set  # default\n"
            'decide_by         = "terminal"  # default\n'
            'permission_mode   = "acceptEdits"  # default\n'
            'allow_tools       = ["Read","Bash(make)"]  # RAYMOND_ALLOW_TOOLS\n'
            f'notify            = ["tell me"]  # {user}\n'
            "unknown_turn_cost = 0.5  # default\n"
            "prices            = not set  # default\n"
            f'backends          = {{"mine":{{"command":["my-agent"]}}}}  # {user}\n'
            'durability        = "normal"  # default\n'
            'transcripts       = "full"  # default\n'
            f'keep              = "7d"  # {user}\n'
        ),
        "",
    )
    plain = room.raymond("config", "show", environment=environment).stdout
    assert plain.splitlines() == [line.partition("  # ")[0] for line in done.stdout.splitlines()]
    assert room.raymond("config", environment=environment).stdout == plain
    found = json.loads(room.raymond("config", "show", "--json", environment=environment).stdout)
    assert list(found) == list(KEYS)
    assert found["budget"] == {"value": 2.5, "origin": str(project), "unused": None}
    assert found["timeout"] == {"value": 90.0, "origin": "RAYMOND_TIMEOUT", "unused": None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("notify", '["rm -rf x"]'),
        ("permission_mode", '"plan"'),
        ("allow_tools", "[]"),
        ("model", '"opus"'),
        ("effort", '"high"'),
        ("backend", '"claude"'),
        ("retryable", "[]"),
    ],
)
def test_a_project_cannot_set_what_a_person_has_to_agree_to(room: Room, name: str, value: str) -> None:
    path = of_project(room, f"{name} = {value}\n")
    user = Path(room.environment["HOME"]) / ".config" / "raymond" / "config.toml"
    error = f"error: {path}: `{name}` is for a person to set, not for a project\nhint: remove it there; {user} is the place for it\n"
    for args in (("run", room.flow(DONE)), ("config", "show")):
        assert told(room.raymond(*args)) == (2, "", error)
    assert room.project.ids() == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("bugdet = 5", "error: PATH: there is no key `bugdet`\nhint: did you mean `budget`?"),
        ("zzz = 5", f"error: PATH: there is no key `zzz`\nhint: there are: {', '.join(KEYS)}"),
        ("[budget]\nusd = 5", "error: PATH: `budget` must be a number of dollars, 0 or more\nhint: budget = 5.00"),
        ("timeout = 5", 'error: PATH: `timeout` must be a duration, like 90s, 10m or 2h\nhint: timeout = "10m"'),
        ("max_parallel = 0", "error: PATH: `max_parallel` must be a whole number, 1 or more\nhint: max_parallel = 4"),
        (
            "max_parallel = true",
            "error: PATH: `max_parallel` must be a whole number, 1 or more\nhint: max_parallel = 4",
        ),
        (
            "model = 3",
            'error: PATH: `model` must be a name, of letters, digits and _.:/@+[]-, beginning with a letter or a digit\nhint: model = "sonnet"',
        ),
        ("durability = 1", 'error: PATH: `durability` must be one of: normal, strict\nhint: durability = "strict"'),
        (
            "tool_timeout = 5",
            'error: PATH: `tool_timeout` must be a duration, like 90s, 10m or 2h\nhint: tool_timeout = "30m"',
        ),
        ("max_turns = 0", "error: PATH: `max_turns` must be a whole number, 1 or more\nhint: max_turns = 500"),
        (
            "unknown_turn_cost = -1",
            "error: PATH: `unknown_turn_cost` must be a number of dollars, 0 or more\nhint: unknown_turn_cost = 0.50",
        ),
        ("retryable = 5", 'error: PATH: `retryable` must be a list of texts\nhint: retryable = ["upstream .* reset"]'),
        (
            'retryable = ["ok", "("]',
            (
                "error: PATH: `retryable` must be regular expressions; `(` is not one: missing ), unterminated subpattern at "
                'position 0\nhint: retryable = ["upstream .* reset"]'
            ),
        ),
        (
            'allow_tools = ["Read", "Bash("]',
            (
                "error: PATH: `allow_tools` must be names of tools; `Bash(` is empty or lacks a bracket\n"
                'hint: allow_tools = ["Bash(npm test)"]'
            ),
        ),
        *(
            (
                text,
                (
                    "error: PATH: `backends` must be tables, one for each backend, named with letters, digits, _ and -\n"
                    'hint: backends = {mine = {command = ["my-agent"]}}'
                ),
            )
            for text in ('backends = ["mine"]', "backends.mine = 3", '[backends."my agent"]\ncommand = ["x"]')
        ),
        (
            "prices = 3",
            (
                "error: PATH: `prices` must be tables, one for each model\n"
                "hint: prices = {my-model = {input = 1.25, output = 10.00}}"
            ),
        ),
        *(
            (
                f"[prices.{model}]\n{table}",
                (
                    f"error: PATH: `prices` must be `input` and `output`, and optionally `cached`, in dollars per million tokens "
                    f"(`{model}`)\nhint: prices = {{my-model = {{input = 1.25, output = 10.00}}}}"
                ),
            )
            for model, table in (("small", "input = 1"), ("small", "input = 1\noutput = 1\nthinking = 1"), ("x", ""))
        ),
        (
            '[prices.small]\ninput = "much"\noutput = 1',
            (
                "error: PATH: `prices` must be a number of dollars, 0 or more (`small`)\n"
                "hint: prices = {my-model = {input = 1.25, output = 10.00}}"
            ),
        ),
        ("budget = ", "error: PATH is not TOML: invalid value (at end of document)\nhint: budget = 5.00"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_with_the_way_out(room: Room, text: str, error: str) -> None:
    path = of_user(room, text)
    assert told(room.raymond("config", "show")) == (2, "", error.replace("PATH", str(path)) + "\n")


def test_the_tables_of_a_person_reach_the_run(room: Room) -> None:
    of_user(
        room,
        """
        [backends.mine]
        command = ["mine"]
        [prices.big]
        input = 10
        output = 20.5
        cached = 0.1
        """,
    )
    found = json.loads(room.raymond("config", "show", "--json").stdout)
    assert found["backends"]["value"] == {"mine": {"command": ["mine"]}}
    assert found["prices"]["value"] == {"big": {"input": 10.0, "output": 20.5, "cached": 0.1}}
    room.raymond("run", room.flow(DONE), "--id", "r")
    start = next(event for event in room.events() if isinstance(event, RunStarted))
    assert {model: (price.input, price.output) for model, price in start.prices.items()} == {"big": (10.0, 20.5)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '[backends.claude]\nprogram = "./evil"',
        '[backends.mine]\ncommand = ["./evil"]',
        "[prices.big]\ninput = 0\noutput = 0",
        "unknown_turn_cost = 0",
    ],
)
def test_a_project_names_no_programs_and_no_prices(room: Room, text: str) -> None:
    """Whoever runs a workflow of their own in a foreign checkout would run its programs, or count its prices."""
    path = of_project(room, text)
    user = Path(room.environment["HOME"]) / ".config" / "raymond" / "config.toml"
    key = re.split(r"[.\] ]", text.lstrip("["))[0]
    error = f"error: {path}: `{key}` is for a person to set, not for a project\nhint: remove it there; {user} is the place for it\n"
    for command in (("config", "show"), ("run", room.flow(DONE))):
        assert told(room.raymond(*command)) == (2, "", error)
    path.unlink()
    of_user(room, text)
    assert room.raymond("config", "show").returncode == 0


@pytest.mark.parametrize("name", ["RAYMOND_BACKENDS", "RAYMOND_PRICES"])
def test_no_variable_of_the_environment_sets_a_table(room: Room, name: str) -> None:
    plain = told(room.raymond("config", "show", "--origin"))
    assert told(room.raymond("config", "show", "--origin", environment={name: "mine"})) == plain


def test_new_limits_come_from_the_configuration_into_the_run(room: Room) -> None:
    of_user(room, 'tool_timeout = "5m"\nmax_turns = 7\nunknown_turn_cost = 0.25\nretryable = ["upstream .* reset"]\n')
    room.raymond("run", room.flow(DONE), "--id", "r", "--max-turns", "9")
    start = next(event for event in room.events() if isinstance(event, RunStarted))
    assert (start.tool_timeout, start.max_turns, start.unknown_turn_cost) == (300.0, 9, 0.25)
    assert start.retryable == ["upstream .* reset"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "flags", "said"),
    [
        (DONE, (), "budget $2.50 (PATH)"),
        (DONE, ("--budget", "4"), "budget $4.00 (--budget)"),
        (DONE, ("--budget", "0"), "no budget (--budget)"),
        # What a person set comes before what a workflow asks for.
        ({**DONE, "workflow.yaml": "budget: 1.5\n"}, (), "budget $1.50 (the workflow)"),
    ],
)
def test_the_first_line_says_the_budget_and_where_it_comes_from(
    room: Room, files: dict[str, str], flags: tuple[str, ...], said: str
) -> None:
    path = of_project(room, "budget = 2.5\n")
    ran = room.command(files, *flags)
    assert ran.lines[0] == f"run r started here: flow at START.sh, {said.replace('PATH', str(path))}"


@pytest.mark.slow
def test_the_budget_of_a_workflow_counts_when_nobody_set_another(room: Room) -> None:
    ran = room.command({**DONE, "workflow.yaml": "budget: 1.5\n"})
    assert ran.lines[0] == "run r started here: flow at START.sh, budget $1.50 (the workflow)"


def test_a_wrong_value_in_the_environment_names_the_variable(room: Room) -> None:
    assert told(room.raymond("config", "show", environment={"RAYMOND_BUDGET": "much"})) == (
        2,
        "",
        "error: the environment: RAYMOND_BUDGET: `budget` must be a number of dollars, 0 or more\nhint: RAYMOND_BUDGET=5.00\n",
    )


@pytest.mark.slow
def test_a_person_without_a_home_has_no_settings_of_their_own(room: Room) -> None:
    of_user(room, "budget = 1")
    of_project(room, "max_turns = 7")
    del room.environment["HOME"]
    room.environment["RAYMOND_HOME"] = str(room.home)
    found = json.loads(room.raymond("config", "show", "--json").stdout)
    assert (found["budget"]["value"], found["max_turns"]["value"]) == (10.0, 7)
    assert room.raymond("run", room.flow(DONE)).returncode == 0
    path = of_project(room, "notify = []")
    assert told(room.raymond("config", "show")) == (
        2,
        "",
        (
            f"error: {path}: `notify` is for a person to set, not for a project\n"
            "hint: remove it there; ~/.config/raymond/config.toml is the place for it\n"
        ),
    )


class Policy:
    """A policy file, and what follows from it."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = write(path / "policy.toml", text)

    def load(self, **flags: Any) -> config.Config:
        return config.load("", flags=flags, environment={}, policy_file=str(self.path))

    def refuses(self, **flags: Any) -> tuple[str, str]:
        with pytest.raises(UsageError) as caught:
            self.load(**flags)
        return str(caught.value).replace(str(self.path), "POLICY"), caught.value.hint


def test_the_policy_file_lowers_a_budget_nobody_asked_for_and_refuses_one_that_was_asked_for(tmp_path: Path) -> None:
    policy = Policy(tmp_path, "max_budget = 5")
    assert policy.load().settings["budget"] == config.Setting(5.0, str(policy.path))
    assert policy.load(budget=4.0)["budget"] == 4.0
    for over in (6.0, 0.0):
        assert policy.refuses(budget=over) == ("POLICY allows a budget of at most $5.00", "--budget 5")
    low = config.load("", environment={"RAYMOND_BUDGET": "99"}, policy_file=str(policy.path))
    assert low.settings["budget"] == config.Setting(5.0, str(policy.path))


def test_the_policy_file_names_the_backends_and_models_there_are(tmp_path: Path) -> None:
    policy = Policy(tmp_path, 'backends = ["claude"]\nmodels = ["sonnet", "opus"]')
    assert policy.refuses(model="haiku") == ("POLICY allows no model `haiku`", "one of: sonnet, opus")
    assert policy.refuses(backend="scripted") == ("POLICY allows no backend `scripted`", "one of: claude")
    found = policy.load(model="opus")
    assert (found["backend"], found["model"], policy.load()["model"]) == ("claude", "opus", "sonnet")


def test_the_policy_file_is_checked_like_every_other(tmp_path: Path) -> None:
    assert Policy(tmp_path, "budget = 5").refuses() == (
        "POLICY: there is no key `budget`",
        "did you mean `max_budget`?",
    )
    assert Policy(tmp_path, 'allow_skip_permissions = "no"').refuses() == (
        "POLICY: `allow_skip_permissions` must be true or false",
        "allow_skip_permissions = false",
    )
    assert (
        config.site_rules(str(write(tmp_path / "p.toml", "allow_skip_permissions = false"))).allow_skip_permissions
        is False
    )


def test_the_policy_file_can_forbid_a_flag(tmp_path: Path) -> None:
    rules = config.site_rules(str(write(tmp_path / "policy.toml", "allow_skip_permissions = false")))
    with pytest.raises(UsageError) as caught:
        configured(Options(skip_permissions=True), config.load("", environment={}, policy_file=""), rules)
    assert (str(caught.value), caught.value.hint) == (
        "/etc/raymond/policy.toml does not allow --dangerously-skip-permissions",
        "name the tools: --allow-tool",
    )


@pytest.mark.parametrize(
    ("key", "rule", "error"),
    [
        ("backend", {"backends": ["claude"]}, "allows no backend `scripted`, which START.md names"),
        ("model", {"models": ["sonnet"]}, "allows no model `scripted`, which START.md names"),
    ],
)
def test_the_policy_file_holds_for_what_a_workflow_names(
    room: Room, key: str, rule: dict[str, Any], error: str
) -> None:
    flow = room.flow({"START.md": f"---\n{key}: scripted\n---\n", "replies.yaml": "START: x"})
    with pytest.raises(UsageError, match=error):
        prepare(loader.load(flow), Choices(rules=SiteRules(**rule)))


# --- completion


@pytest.mark.parametrize(
    ("shell", "line"), [("bash", "complete -o nosort"), ("zsh", "#compdef raymond"), ("fish", "complete --no-files")]
)
def test_every_shell_has_its_completion_script(room: Room, shell: str, line: str) -> None:
    done = room.raymond("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert line in done.stdout
    assert "_RAYMOND_COMPLETE" in done.stdout
