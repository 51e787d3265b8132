"""What is found in a definition before it runs: the exact words and places."""

from typing import Any

import pytest

from raymond.errors import Diagnostic
from raymond.language import lint, workflow

NEXT = {"NEXT.md": "", "B.sh": ""}


UNSAID = ("dead-end", "empty-state", "no-transition")
"""What most of these prompts lack."""


def check(body: str, **files: str) -> list[Diagnostic]:
    others = {name.replace("_", "."): text for name, text in files.items()}
    found = lint.check(workflow.build("review", {"START.md": body, **NEXT, **others}))
    return [one for one in found if one.id not in UNSAID]


def one(body: str, **files: str) -> Diagnostic:
    [found] = check(body, **files)
    return found


def picture(found: Diagnostic) -> str:
    """An error as a person sees it."""
    caret = " " * (found.column - 1) + "^" * found.length
    return (
        f"{found.severity}: {found.message}\n --> {found.file}:{found.line}:{found.column}\n"
        f"{found.source}\n{caret}\nhint: {found.hint}"
    )


# Tags in prompts


@pytest.mark.parametrize(
    "body",
    [
        "<goto>NEXT.md</goto>",
        "<goto>NEXT</goto>",
        "<goto>\n  NEXT.md\n</goto>",
        '<goto after="5m" input="x">B</goto>',
        '<goto after="{{delay}}">B</goto>',
        '<wait timeout="{{t}}" timeout_next="B">NEXT</wait>',
        '<reset cd="x">NEXT</reset>',
        '<call return="NEXT">B</call>',
        '<call return="{{back}}">B</call>',
        '<function return="NEXT" model="haiku">B</function>',
        '<fork next="NEXT" part="1">B</fork>',
        "<fork>B</fork> and then <wait>NEXT</wait>",
        "<fork>B</fork>\n<goto>NEXT</goto>",
        '<fork next="NEXT">B</fork>\n<fork>B</fork>',
        '<fork next="NEXT">B</fork>\nor else\n<fork next="B">B</fork>',
        '<ask next="NEXT">Is <goto>this</goto> right?</ask>',
        "<result>...</result>",
        "<result></result>",
        "<print>anything</print>",
        "<goto>{{state}}</goto>",
        "<goto>...</goto> or <goto>…</goto>",
        "```\n<goto>NOWHERE</goto>\n```",
        "<!-- <goto>NOWHERE</goto> -->",
        "<goto>NOWHERE",
    ],
)
def test_what_an_author_may_write_is_not_found(body: str) -> None:
    assert check(body) == []


@pytest.mark.parametrize(
    ("body", "id", "expected"),
    [
        (
            "text\n<call>NEXT.md</call>",
            "missing-return",
            (
                "error: `<call>` needs a `return` attribute\n --> START.md:2:1\n<call>NEXT.md</call>\n^^^^^^\n"
                'hint: <call return="NEXT.md">NEXT.md</call>'
            ),
        ),
        (
            '<function model="m" return="">B</function>',
            "missing-return",
            (
                "error: `<function>` needs a `return` attribute\n --> START.md:1:1\n"
                '<function model="m" return="">B</function>\n^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n'
                'hint: <function return="NEXT.md" model="m">B</function>'
            ),
        ),
        (
            "Say <fork>B</fork>.",
            "missing-next",
            (
                "error: `<fork>` needs a `next` attribute\n --> START.md:1:5\nSay <fork>B</fork>.\n    ^^^^^^\n"
                'hint: <fork next="NEXT.md">B</fork>'
            ),
        ),
        (
            "<ask>Why?</ask>",
            "missing-next",
            (
                "error: `<ask>` needs a `next` attribute\n --> START.md:1:1\n<ask>Why?</ask>\n^^^^^\n"
                'hint: <ask next="NEXT.md">Why?</ask>'
            ),
        ),
        (
            "<goto>NXET.md</goto>",
            "missing-target",
            (
                "error: there is no state `NXET.md`\n --> START.md:1:7\n<goto>NXET.md</goto>\n      ^^^^^^^\n"
                "hint: did you mean `NEXT.md`?"
            ),
        ),
        (
            "Use `<goto>ZZZ.md</goto>`",
            "missing-target",
            (
                "error: there is no state `ZZZ.md`\n --> START.md:1:12\nUse `<goto>ZZZ.md</goto>`\n           ^^^^^^\n"
                "hint: the states are: B.sh, NEXT.md, START.md"
            ),
        ),
        (
            "---\nmodel: opus\n---\n\n<goto>\n ZZZ\n</goto>",
            "missing-target",
            "error: there is no state `ZZZ`\n --> START.md:6:2\n ZZZ\n ^^^\nhint: the states are: B.sh, NEXT.md, START.md",
        ),
        (
            "<call return='ZZZ'>B</call>",
            "missing-target",
            (
                "error: there is no state `ZZZ`\n --> START.md:1:7\n<call return='ZZZ'>B</call>\n      ^^^^^^^^^^^^\n"
                "hint: the states are: B.sh, NEXT.md, START.md"
            ),
        ),
        (
            '<wait timeout="5m" timeout_next="ZZZ">B</wait>',
            "missing-target",
            (
                'error: there is no state `ZZZ`\n --> START.md:1:20\n<wait timeout="5m" timeout_next="ZZZ">B</wait>\n'
                "                   ^^^^^^^^^^^^^^^^^^\nhint: the states are: B.sh, NEXT.md, START.md"
            ),
        ),
        (
            "<goto>lib/x.md</goto>",
            "unsafe-target",
            (
                "error: `lib/x.md` is not the name of a state\n --> START.md:1:7\n<goto>lib/x.md</goto>\n      ^^^^^^^^\n"
                "hint: name a state of this workflow"
            ),
        ),
        (
            '<goto after="5x">B</goto>',
            "bad-value",
            (
                'error: `after`: `5x` is not a duration\n --> START.md:1:7\n<goto after="5x">B</goto>\n      ^^^^^^^^^^\n'
                "hint: write it like 90s, 10m or 2h"
            ),
        ),
        (
            '<call retrun="B" return="B">B</call>',
            "unknown-attribute",
            (
                'error: `<call>` has no attribute `retrun`\n --> START.md:1:7\n<call retrun="B" return="B">B</call>\n'
                "      ^^^^^^^^^^\nhint: did you mean `return`?"
            ),
        ),
        (
            '<reset zzz="1">B</reset>',
            "unknown-attribute",
            (
                'error: `<reset>` has no attribute `zzz`\n --> START.md:1:8\n<reset zzz="1">B</reset>\n       ^^^^^^^\n'
                "hint: it takes: input, after, cd"
            ),
        ),
        (
            '<result a="1">B</result>',
            "unknown-attribute",
            (
                'error: `<result>` has no attribute `a`\n --> START.md:1:9\n<result a="1">B</result>\n        ^^^^^\n'
                "hint: it takes none"
            ),
        ),
        (
            '<fork next="B" a-b="1">B</fork>',
            "unknown-attribute",
            (
                'error: `<fork>` has no attribute `a-b`\n --> START.md:1:16\n<fork next="B" a-b="1">B</fork>\n'
                "               ^^^^^^^\nhint: it takes: next, input, after, cd"
            ),
        ),
        (
            '<fork next="NEXT">B</fork>\n- <fork next="B">B</fork>',
            "next-mismatch",
            (
                "error: forks of one output must agree on `next`: `NEXT` here is followed by `B`\n --> START.md:2:9\n"
                '- <fork next="B">B</fork>\n        ^^^^^^^^\nhint: <fork next="NEXT">B</fork>'
            ),
        ),
    ],
)
def test_a_mistake_in_a_tag_is_shown_at_its_place_with_the_way_out(body: str, id: str, expected: str) -> None:
    found = one(body)
    assert found.id == id
    assert picture(found) == expected


@pytest.mark.parametrize(
    "body", ["<goto></goto>", '<fork next="B" state="x">B</fork>', '<wait timeout_next="B">B</wait>']
)
def test_a_tag_that_would_be_refused_at_run_time_is_found(body: str) -> None:
    found = one(body)
    assert (found.id, found.line, found.column) == ("bad-value", 1, 1)
    assert found.message
    assert found.hint


def test_an_ambiguous_target_and_one_of_another_platform_are_found() -> None:
    found = check("<goto>A</goto> <goto>W</goto>", A_md="", A_sh="", W_bat="")
    assert [(one.id, one.message) for one in found] == [
        ("ambiguous-target", "`A` could be `A.md` or `A.sh`"),
        ("wrong-platform", "`W.bat` cannot run on this machine (linux)"),
    ]


def test_several_mistakes_come_in_the_order_of_the_text() -> None:
    found = check("<goto>Y</goto> <goto>A</goto>\n<call>Z</call>", A_md="<goto>X</goto>")
    assert [(one.file, one.line, one.id) for one in found] == [
        ("A.md", 1, "missing-target"),
        ("START.md", 1, "missing-target"),
        ("START.md", 2, "missing-return"),
        ("START.md", 2, "missing-target"),
    ]


# Names in policies


@pytest.mark.parametrize(
    ("head", "column"),
    [
        ("allowed_transitions: [{tag: goto, target: ZZZ}]", 43),
        ("allowed_transitions: [{tag: call, target: B, return: ZZZ}]", 54),
        ("allowed_transitions: [{tag: fork, target: B, next: ZZZ}]", 52),
        ("allowed_transitions: [{tag: wait, target: B, timeout: 5m, timeout_next: ZZZ}]", 73),
        ("on_error: ZZZ", 11),
        ("on_fail: ZZZ", 10),
        ("evaluator: {prompt: ZZZ, verdicts: {a: keep}}", 21),
        ("evaluator: {prompt: NEXT, verdicts: {a: <goto>ZZZ</goto>}}", 41),
        ("evaluator: {pattern: (x), verdicts: {a: keep}, default: <goto>ZZZ</goto>}", 57),
    ],
)
def test_a_name_in_a_policy_must_lead_to_a_state(head: str, column: int) -> None:
    [found] = [one for one in check(f"---\n{head}\n---\n") if one.id != "no-gate"]
    assert (found.id, found.message, found.line, found.column) == (
        "missing-target",
        "there is no state `ZZZ`",
        2,
        column,
    )
    assert found.source == head


def test_then_must_lead_to_a_state() -> None:
    found = one("---\nmax_visits: 1\nthen: ZZZ\n---\n")
    assert (found.id, found.line, found.column) == ("missing-target", 3, 7)


def test_a_variable_of_a_fork_is_no_state() -> None:
    assert check("---\nallowed_transitions: [{tag: fork, target: B, next: NEXT, timeout_next: ZZZ}]\n---\n") == []


def test_a_name_in_a_script_block_must_lead_to_a_state() -> None:
    found = one("", A_sh="# /// raymond\n# on_error: ZZZ\n# ///\n")
    assert (found.file, found.id, found.line, found.column) == ("A.sh", "missing-target", 2, 13)


def test_a_name_in_the_defaults_is_found_once_in_workflow_yaml() -> None:
    found = one("", workflow_yaml="retries: 1\non_error: ZZZ\n")
    assert (found.file, found.id, found.line, found.column) == ("workflow.yaml", "missing-target", 2, 11)


def test_a_name_given_from_outside_is_said_to_be() -> None:
    files = {"START.md": "---\non_error: START\n---\n<result>x</result>"}
    overrides = {"START": {"on_error": "ZZZ", "allowed_transitions": [{"tag": "goto", "target": "YYY"}]}}
    found = lint.check(workflow.build("review", files, overrides=overrides))
    assert {(one.file, one.id, one.message) for one in found} == {
        ("--set", "missing-target", "there is no state `ZZZ`"),
        ("--set", "missing-target", "there is no state `YYY`"),
    }


def test_states_of_another_platform_are_left_alone() -> None:
    assert check("", W_bat=":: /// raymond\n:: on_error: ZZZ\n:: ///\n") == []


# Scripts


def test_the_text_of_a_script_is_no_error() -> None:
    found = check("", A_sh="echo '<call>ZZZ</call>'")
    assert [(one.id, one.severity) for one in found] == [("script-tag", "warning")]


def test_a_python_script_must_be_python() -> None:
    found = one("", A_py="x = 1\nif x\n    pass\n")
    assert found.id == "script-syntax"
    assert picture(found) == (
        "error: not valid Python: expected ':'\n --> A.py:2:5\nif x\n    ^\nhint: `python3 -m py_compile` says the same"
    )


@pytest.mark.parametrize("text", ["return 1", "x = '\\d'", "import nowhere_at_all", "# coding: utf-8\nx = 1"])
def test_python_is_compiled_and_not_run(text: str) -> None:
    found = check("", A_py=text)
    assert [one.message for one in found] == (
        ["not valid Python: 'return' outside function"] if "return" in text else []
    )


def test_python_with_a_nul_is_found() -> None:
    found = one("", A_py="x = '\0'")
    assert (found.id, found.file) == ("script-syntax", "A.py")


def test_syntax_is_left_to_another_interpreter_where_one_is_named() -> None:
    assert check("", A_py="if x", workflow_yaml="python: python3.14") == []


# Silence


def test_a_comment_with_a_reason_silences_an_id_in_its_file() -> None:
    body = "<goto>ZZZ</goto> <call>B</call>\n<!-- raymond: ignore missing-target a script writes it -->"
    assert one(body).id == "missing-return"
    assert one(body.replace("<call>B</call>", "<goto>A</goto>"), A_md="<goto>ZZZ</goto>").file == "A.md"


def test_workflow_yaml_silences_an_id_everywhere() -> None:
    ignore = "lint: {ignore: {missing-target: scripts write them}}"
    assert check("<goto>ZZZ</goto>", A_md="<goto>ZZZ</goto>", workflow_yaml=ignore) == []


@pytest.mark.parametrize(
    ("comment", "id", "message", "hint"),
    [
        (
            "<!-- raymond: ignore missing-target -->",
            "bad-ignore",
            "ignoring `missing-target` needs a reason",
            "<!-- raymond: ignore missing-target why it is not a mistake here -->",
        ),
        (
            "<!-- raymond: ignore -->",
            "bad-ignore",
            "say which finding to ignore, and why",
            "<!-- raymond: ignore missing-target why it is not a mistake here -->",
        ),
        (
            "<!-- raymond: ignore missing-traget a reason -->",
            "bad-ignore",
            "there is no finding `missing-traget`",
            "did you mean `missing-target`?",
        ),
        ("<!-- raymond: ignore no-entry a reason -->", "bad-ignore", "`no-entry` cannot be ignored", ""),
        (
            "<!-- raymond: ignore missing-target a reason -->",
            "unused-ignore",
            "there is no `missing-target` to ignore",
            "remove it",
        ),
    ],
)
def test_an_ignore_that_makes_no_sense_is_a_warning(comment: str, id: str, message: str, hint: str) -> None:
    found = one(f"text\n {comment}")
    assert (found.id, found.severity, found.message, found.hint) == (id, "warning", message, hint)
    assert (found.line, found.column, found.length) == (2, 2, len(comment))
    assert lint.errors(workflow.build("review", {"START.md": f"{comment} <result>x</result>"})) == []


def test_an_unused_ignore_in_workflow_yaml_is_a_warning() -> None:
    found = one("", workflow_yaml="lint:\n  ignore:\n    missing-next: because\n")
    assert (found.id, found.file, found.line) == ("unused-ignore", "workflow.yaml", 3)


@pytest.mark.parametrize("id", ["dead-end", "empty-state", "misspelt-tag", "no-transition"])
def test_an_unused_ignore_of_a_warning_is_one_too(id: str) -> None:
    found = one(f"<!-- raymond: ignore {id} because -->\ntext <result>x</result>")
    assert (found.id, found.message) == ("unused-ignore", f"there is no `{id}` to ignore")


@pytest.mark.parametrize("id", ["unbound-variable", "bash-syntax", "parallel-writers"])
def test_an_ignore_of_what_only_a_start_can_find_is_left_alone(id: str) -> None:
    assert check(f"<!-- raymond: ignore {id} because -->\ntext <result>x</result>") == []


def test_an_ignore_of_a_warning_that_is_not_looked_for_is_left_alone() -> None:
    assert check("<!-- raymond: ignore dead-end a reason -->") == []


@pytest.mark.parametrize("id", ["wider-permission", "call-in-place"])
def test_what_is_found_only_when_a_run_begins_cannot_be_ignored(id: str) -> None:
    found = one(f"<!-- raymond: ignore {id} a reason -->")
    assert (found.id, found.severity, found.message) == ("bad-ignore", "warning", f"`{id}` cannot be ignored")


def test_what_a_run_cannot_do_without_is_not_silenced() -> None:
    ignore = "<!-- raymond: ignore bad-frontmatter a reason -->"
    found = check("", A_md=f"---\na: b: c\n---\n{ignore}")
    assert [(one.id, one.severity) for one in found] == [("bad-frontmatter", "error"), ("bad-ignore", "warning")]


def test_errors_are_the_findings_that_stop_a_run() -> None:
    made = workflow.build("review", {"START.md": "<goto>ZZZ</goto>\n<!-- raymond: ignore x -->"})
    assert [found.id for found in lint.check(made)] == ["missing-target", "bad-ignore"]
    assert [found.id for found in lint.errors(made)] == ["missing-target"]


@pytest.mark.parametrize(
    ("files", "id"),
    [
        ({}, "no-entry"),
        ({"START.md": "", "1_START.md": ""}, "ambiguous-entry"),
        ({"START.md": "---\n"}, "bad-frontmatter"),
        ({"START.md": "---\nx: 1\n---\n"}, "unknown-key"),
        ({"START.md": "---\nretries: x\n---\n"}, "bad-value"),
        ({"START.md": "---\nforce_implicit: true\n---\n"}, "force-implicit-invalid"),
        ({"START.bat": ""}, "wrong-platform"),
    ],
)
def test_what_was_wrong_while_building_is_found_too(files: dict[str, Any], id: str) -> None:
    assert [found.id for found in lint.errors(workflow.build("review", files))] == [id]
