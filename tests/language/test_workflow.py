"""A definition as values: states, entry, names, workflow.yaml."""

import subprocess
import sys
from typing import Any

import pytest

from raymond.errors import Diagnostic
from raymond.language import workflow
from raymond.language.policy import Policy
from raymond.language.refusal import Refusal
from raymond.language.settings import Settings
from raymond.language.workflow import Workflow


def build(*names: str, **more: Any) -> Workflow:
    return workflow.build("review", dict.fromkeys(names, "text"), **more)


def settings(text: str) -> Settings:
    made = workflow.build("review", {"START.md": "", "workflow.yaml": text})
    assert made.diagnostics == []
    return made.settings


def wrong(made: Workflow) -> Diagnostic:
    [found] = made.diagnostics
    return found


# States


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("A.md", True),
        ("A.sh", True),
        ("A.py", True),
        ("A.ps1", True),
        ("A.bat", True),
        ("A b.md", True),
        ("A.txt", False),
        ("A.MD", False),
        ("A", False),
        ("README.md", False),
        ("readme.md", False),
        ("CHANGELOG.md", False),
        ("CLAUDE.md", False),
        ("AGENTS.md", False),
        ("README.sh", True),
        ("lib/A.md", False),
        (".A.md", False),
        (".md", False),
        ("workflow.yaml", False),
    ],
)
def test_a_state_is_a_file_at_the_top_with_a_known_extension(path: str, expected: bool) -> None:
    assert workflow.is_state(path) is expected
    assert (path in build("START.md", path).states) is expected


def test_a_state_is_a_prompt_or_a_script() -> None:
    made = workflow.build("review", {"START.md": "---\nmodel: opus\n---\nbody", "B.sh": "echo", "lib/r.md": "rules"})
    start, script = made.states["START.md"], made.states["B.sh"]
    assert (start.kind, start.body, start.line, start.policy) == ("prompt", "body", 4, Policy(model="opus"))
    assert (script.kind, script.body, script.line, script.policy) == ("script", "echo", 1, Policy())
    assert made.lib == {"r.md": "rules"}


def test_a_byte_order_mark_does_not_hide_frontmatter() -> None:
    made = workflow.build("review", {"START.md": "\ufeff---\nmodel: opus\n---\nbody"})
    assert made.states["START.md"].policy.model == "opus"


def test_a_mistake_in_a_state_is_kept_and_the_rest_is_read() -> None:
    made = workflow.build("review", {"START.md": "---\nmodle: x\n---\n", "B.md": "---\nmodel: opus\n---\n"})
    assert (wrong(made).file, wrong(made).id) == ("START.md", "unknown-key")
    assert made.states["B.md"].policy.model == "opus"


@pytest.mark.parametrize("name", ["a\\b.md", "C:x.md", "a\0.md"])
def test_a_file_whose_name_is_unsafe_is_no_state(name: str) -> None:
    made = build("START.md", name)
    assert list(made.states) == ["START.md"]
    assert wrong(made) == Diagnostic(
        id="unsafe-target", message=f"`{name}` cannot be the name of a state", file=name, hint="rename the file"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [("review", "review"), ("my flow (2)", "my-flow-2"), ("", "workflow"), ("ü", "workflow"), ("a" * 90, "a" * 80)],
)
def test_the_name_can_stand_in_the_id_of_a_run(name: str, expected: str) -> None:
    assert workflow.build(name, {"START.md": ""}).name == expected


# Entry


@pytest.mark.parametrize(
    ("names", "entry", "expected"),
    [
        (["START.md", "B.md"], None, "START.md"),
        (["1_START.md", "B.md"], None, "1_START.md"),
        (["START.py", "B.md"], None, "START.py"),
        (["ONLY.sh"], None, "ONLY.sh"),
        (["ONLY.sh", "README.md"], None, "ONLY.sh"),
        (["START.sh", "START.bat"], None, "START.sh"),
        (["ONLY.sh", "ONLY.bat"], None, "ONLY.sh"),
        (["START.md", "B.md"], "B.md", "B.md"),
        (["START.md", "B.md"], "B", "B.md"),
        (["START.md", "1_START.md"], "START.md", "START.md"),
    ],
)
def test_the_entry_is_what_was_given_or_start_or_the_only_state(
    names: list[str], entry: str | None, expected: str
) -> None:
    made = build(*names, entry=entry)
    assert (made.entry, made.diagnostics) == (expected, [])


@pytest.mark.parametrize(
    ("names", "entry", "id", "message", "hint"),
    [
        (
            ["START.md", "1_START.md"],
            None,
            "ambiguous-entry",
            "both `1_START.md` and `START.md` could start",
            "keep one, or name the one to start: review/1_START.md",
        ),
        (
            ["START.md", "START.sh"],
            None,
            "ambiguous-entry",
            "both `START.md` and `START.sh` could start",
            "keep one, or name the one to start: review/START.md",
        ),
        (
            ["START.md", "START.sh", "1_START.md"],
            None,
            "ambiguous-entry",
            "`1_START.md`, `START.md` and `START.sh` could all start",
            "keep one, or name the one to start: review/1_START.md",
        ),
        (
            [],
            None,
            "no-entry",
            "there is no state in this workflow",
            "add START.md; a state is a file that ends in .md .sh .py .ps1 .bat",
        ),
        (
            ["B.md", "A.sh"],
            None,
            "no-entry",
            "there is no `1_START` or `START`, and there is more than one state",
            "rename the one to begin with to START, or name it: review/A.sh; the states are: A.sh, B.md",
        ),
        (
            [f"S{number}.md" for number in range(10)],
            None,
            "no-entry",
            "there is no `1_START` or `START`, and there is more than one state",
            (
                "rename the one to begin with to START, or name it: review/S0.md; "
                "the states are: S0.md, S1.md, S2.md, S3.md, S4.md, S5.md, S6.md, S7.md and 2 more"
            ),
        ),
        ([], "START.md", "no-entry", "there is no state `START.md`", ""),
        (["START.md"], "STRAT.md", "no-entry", "there is no state `STRAT.md`", "did you mean `START.md`?"),
        (
            ["START.md"],
            "../x.md",
            "unsafe-target",
            "`../x.md` is not the name of a state",
            "name a state of this workflow",
        ),
        (
            ["START.bat", "B.md"],
            None,
            "wrong-platform",
            "`START.bat` cannot run on this machine (linux)",
            "it needs Windows; or add `START.py`, which runs everywhere",
        ),
        (
            ["ONLY.bat"],
            None,
            "wrong-platform",
            "`ONLY.bat` cannot run on this machine (linux)",
            "it needs Windows; or add `ONLY.py`, which runs everywhere",
        ),
    ],
)
def test_a_workflow_without_one_entry_says_what_is_there(
    names: list[str], entry: str | None, id: str, message: str, hint: str
) -> None:
    made = build(*names, entry=entry)
    assert made.entry == ""
    assert wrong(made) == Diagnostic(id=id, message=message, file="review", hint=hint)


# Names


@pytest.mark.parametrize(
    ("names", "target", "platform", "expected"),
    [
        (["A.md"], "A.md", "linux", "A.md"),
        (["A.md"], "A", "linux", "A.md"),
        (["A.sh", "A.bat"], "A", "linux", "A.sh"),
        (["A.sh", "A.bat"], "A", "darwin", "A.sh"),
        (["A.sh", "A.bat"], "A", "win32", "A.bat"),
        (["A.md", "A.sh"], "A.sh", "linux", "A.sh"),
        (["A.md.sh"], "A.md.sh", "linux", "A.md.sh"),
        (["v1.2.md"], "v1.2", "linux", "v1.2.md"),
        (["A.ps1"], "A", "linux", "A.ps1"),
    ],
)
def test_a_target_may_leave_out_the_extension(names: list[str], target: str, platform: str, expected: str) -> None:
    assert workflow.resolve(build("START.py", *names, platform=platform), target) == expected


@pytest.mark.parametrize(
    ("names", "target", "expected"),
    [
        (
            ["A.md", "A.sh"],
            "A",
            Refusal("ambiguous_state", "`A` could be `A.md` or `A.sh`", "write the extension: `A.md` or `A.sh`"),
        ),
        (
            ["A.bat"],
            "A",
            Refusal(
                "wrong_platform",
                "`A.bat` cannot run on this machine (linux)",
                "it needs Windows; or add `A.py`, which runs everywhere",
            ),
        ),
        (
            ["A.bat", "A.sh"],
            "A.bat",
            Refusal(
                "wrong_platform",
                "`A.bat` cannot run on this machine (linux)",
                "it needs Windows; or add `A.py`, which runs everywhere",
            ),
        ),
        (["A.sh"], "A.md", Refusal("unknown_state", "there is no state `A.md`", "did you mean `A.sh`?")),
        (
            ["A.md.sh"],
            "A.md",
            Refusal("unknown_state", "there is no state `A.md`", "the states are: A.md.sh, START.py"),
        ),
        (
            ["REVIEW.md"],
            "revew",
            Refusal("unknown_state", "there is no state `revew`", "did you mean `REVIEW.md`?"),
        ),
        (
            ["REVIEW.md"],
            "review.md",
            Refusal("unknown_state", "there is no state `review.md`", "did you mean `REVIEW.md`?"),
        ),
        (["A.md"], "zzz", Refusal("unknown_state", "there is no state `zzz`", "the states are: A.md, START.py")),
        (
            ["README.md"],
            "README.md",
            Refusal("unknown_state", "there is no state `README.md`", "the states are: START.py"),
        ),
    ],
)
def test_a_target_that_leads_nowhere_says_why(names: list[str], target: str, expected: Refusal) -> None:
    assert workflow.resolve(build("START.py", *names), target) == expected


@pytest.mark.parametrize("target", [".hidden", "../A.md", "lib/A.md", "a\\b", "A\0", "C:A.md", "/A.md", "..."])
def test_an_unsafe_name_is_refused_wherever_it_comes_from(target: str) -> None:
    found = workflow.resolve(build("START.md"), target)
    assert found == Refusal("unsafe_name", f"`{target}` is not the name of a state", "name a state of this workflow")


def test_what_can_run_may_be_said_from_outside() -> None:
    made = build("START.md", "A.ps1", "B.sh", runnable=frozenset({".md", ".py"}))
    assert workflow.resolve(made, "A") == Refusal(
        "wrong_platform",
        "`A.ps1` cannot run on this machine (linux)",
        "it needs PowerShell (pwsh); or add `A.py`, which runs everywhere",
    )
    found = workflow.resolve(made, "B.sh")
    assert isinstance(found, Refusal)
    assert found.hint == "it needs bash; or add `B.py`, which runs everywhere"


# workflow.yaml


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("name: other", {"name": "other"}),
        ("description: what", {"description": "what"}),
        ("input: the issue", {"input_hint": "the issue"}),
        ("input: {description: the issue, required: true}", {"input_hint": "the issue", "input_required": True}),
        ("input: {required: false}", {}),
        ("budget: 5", {"budget": 5.0}),
        ("budget: 0", {"budget": 0.0}),
        ("max_iterations: 9", {"max_iterations": 9}),
        ("max_parallel: 2", {"max_parallel": 2}),
        ("max_agents: 3", {"max_agents": 3}),
        ("roots: [/srv, /data]", {"roots": ("/srv", "/data")}),
        ("python: .venv/bin/python", {"python": ".venv/bin/python"}),
        ("small_model: gpt-5-mini", {"small_model": "gpt-5-mini"}),
        ("include: [data, '*.json']", {"include": ("data", "*.json")}),
        ("lint: {ignore: {missing-target: made later}}", {"lint_ignore": {"missing-target": "made later"}}),
        ("model: opus\ntimeout: 5m", {"defaults": {"model": "opus", "timeout": 300.0}}),
    ],
)
def test_every_setting_is_read(text: str, fields: dict[str, Any]) -> None:
    assert settings(text) == Settings(**fields)


def test_the_name_of_the_settings_is_the_name_of_the_workflow() -> None:
    assert workflow.build("review", {"START.md": "", "workflow.yaml": "name: other"}).name == "other"


def test_policy_keys_of_the_settings_are_defaults_of_every_state() -> None:
    files = {"START.md": "---\nmodel: haiku\n---\n", "B.sh": "", "workflow.yaml": "model: opus\nretries: 2\nbudget: 5"}
    made = workflow.build("review", files)
    assert made.states["START.md"].policy == Policy(model="haiku", retries=2)
    assert made.states["B.sh"].policy == Policy(model="opus", retries=2)


def test_a_name_becomes_what_fits_the_id_of_a_run() -> None:
    assert workflow.build("x", {"START.md": "", "workflow.yaml": "name: My flow, v2!"}).name == "My-flow-v2"


@pytest.mark.parametrize("name", ["SKILL.md", "Skill.md", "README.md", "AGENTS.md"])
def test_a_file_for_people_or_programs_is_no_state(name: str) -> None:
    assert not workflow.is_state(name)


def test_a_start_in_lower_case_is_recognized() -> None:
    [wrong] = workflow.build("x", {"start.md": "", "B.md": ""}).diagnostics
    assert wrong.hint == "rename `start.md` to `START.md`"


@pytest.mark.parametrize(
    ("text", "id", "message", "hint"),
    [
        ("naem: x", "unknown-key", "there is no key `naem`", "did you mean `name`?"),
        ("retires: 1", "unknown-key", "there is no key `retires`", "did you mean `retries`?"),
        ("name: '???'", "bad-value", "`name` needs a letter or a digit", "name: review"),
        ("name: 5", "bad-value", "`name` must be text", 'put it in quotes: "5"'),
        ("input: 5", "bad-value", "`input` must be text", 'put it in quotes: "5"'),
        ("input: {required: yes}", "bad-value", "`required` must be true or false", "write true or false"),
        ("input: {requird: true}", "unknown-key", "`input` has no `requird`", "did you mean `required`?"),
        ("input: {zz: true}", "unknown-key", "`input` has no `zz`", "one of: description, required"),
        ("max_iterations: 0", "bad-value", "`max_iterations` must be a whole number, 1 or more", "max_iterations: 3"),
        ("budget: x", "bad-value", "`budget` must be a number of dollars, 0 or more", "budget: 0.50"),
        ("timeout: 5", "bad-value", "`timeout` has no unit", "5 what? write 5s or 5m"),
        (
            "lint: off",
            "bad-value",
            "`lint` takes `ignore`, with a reason for each finding",
            "lint: {ignore: {missing-target: a script writes it}}",
        ),
        (
            "lint: {ignore: {}, level: x}",
            "bad-value",
            "`lint` takes `ignore`, with a reason for each finding",
            "lint: {ignore: {missing-target: a script writes it}}",
        ),
        (
            "lint: {ignore: {missing-target: }}",
            "bad-ignore",
            "ignoring `missing-target` needs a reason",
            "missing-target: why it is not a mistake here",
        ),
        (
            "a: b: c",
            "bad-frontmatter",
            "YAML: mapping values are not allowed in this context",
            "put a value that contains `: ` in quotes",
        ),
    ],
)
def test_a_bad_setting_is_refused_once_and_at_its_place(text: str, id: str, message: str, hint: str) -> None:
    found = wrong(workflow.build("review", {"START.md": "", "B.md": "", "workflow.yaml": text}))
    assert (found.file, found.id, found.message, found.hint) == ("workflow.yaml", id, message, hint)
    assert (found.line, found.source) == (1, text)


# --set


@pytest.mark.parametrize("name", ["START", "START.md"])
def test_a_state_is_changed_from_outside(name: str) -> None:
    made = build("START.md", "B.md", overrides={name: {"retries": 7}})
    assert made.diagnostics == []
    assert made.states["START.md"].policy.retries == 7
    assert made.states["B.md"].policy.retries is None


def test_changing_a_state_that_is_not_there_is_refused() -> None:
    found = wrong(build("START.md", overrides={"STRAT": {"retries": 7}}))
    assert (found.file, found.id, found.message) == ("--set", "missing-target", "there is no state `STRAT`")
    assert found.hint == "did you mean `START.md`?"


def test_a_bad_change_from_outside_is_refused() -> None:
    found = wrong(build("START.md", overrides={"START": {"retires": 7}}))
    assert (found.file, found.id, found.hint) == ("--set", "unknown-key", "did you mean `retries`?")


# Cost


def test_states_without_a_policy_need_no_yaml() -> None:
    program = (
        "import sys; from raymond.language import lint, workflow\n"
        "made = workflow.build('x', {'START.md': 'a', **{f'S{n}.sh': 'echo' for n in range(1000)}})\n"
        "assert lint.errors(made) == [] and len(made.states) == 1001\n"
        "print(sorted({'yaml', 'difflib', 'zipfile'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
