"""Frontmatter key by key: what is read, what is refused and where, what a policy permits."""

from typing import Any

import pytest

from raymond.errors import Diagnostic
from raymond.language import policy
from raymond.language.check import EXPECTED, Check
from raymond.language.policy import Allowed, Evaluator, Parsed, Policy
from raymond.language.policy_keys import KEYS
from raymond.language.refusal import Refusal
from raymond.language.tags import Ask, Call, Fork, Function, Goto, Reset, Result, Transition, Wait


def prompt(head: str, **more: Any) -> Parsed:
    return policy.parse(f"---\n{head}\n---\nbody\n", file="X.md", script=False, **more)


def read(head: str, **more: Any) -> Policy:
    parsed = prompt(head, **more)
    assert parsed.diagnostics == []
    return parsed.policy


def wrong(head: str, **more: Any) -> Diagnostic:
    [found] = prompt(head, **more).diagnostics
    return found


def allow(*lines: str) -> Policy:
    return read("allowed_transitions:\n" + "\n".join(f"  - {line}" for line in lines))


# Where frontmatter stands


@pytest.mark.parametrize(
    ("text", "model", "body", "line"),
    [
        ("---\nmodel: opus\n---\nbody\n", "opus", "body\n", 4),
        ("---\r\nmodel: opus\r\n---\r\nbody\r\n", "opus", "body\n", 4),
        ("---\nmodel: opus\n--- \t\nbody", "opus", "body", 4),
        ("---\nmodel: opus\n---", "opus", "", 3),
        ("---\n---\nbody", "", "body", 3),
        ("---\n# nothing\n---\n\nbody", "", "\nbody", 4),
        ("body\n---\nmodel: opus\n---\n", "", "body\n---\nmodel: opus\n---\n", 1),
        ("\n---\nmodel: opus\n---\n", "", "\n---\nmodel: opus\n---\n", 1),
        ("--- \nmodel: opus\n---\n", "", "--- \nmodel: opus\n---\n", 1),
        ("----\nbody", "", "----\nbody", 1),
        ("---\nmodel: opus\n---\nbody\n---\nmore", "opus", "body\n---\nmore", 4),
        ("", "", "", 1),
    ],
)
def test_frontmatter_is_what_stands_between_the_first_line_and_the_next_rule(
    text: str, model: str, body: str, line: int
) -> None:
    parsed = policy.parse(text, file="X.md", script=False)
    assert (parsed.policy.model, parsed.body, parsed.line, parsed.diagnostics) == (model, body, line, [])


@pytest.mark.parametrize("text", ["---", "---\nmodel: opus\n", "---\nmodel: opus\n ---\n"])
def test_frontmatter_that_is_never_closed_is_refused(text: str) -> None:
    parsed = policy.parse(text, file="X.md", script=False)
    assert parsed.diagnostics == [
        Diagnostic(
            id="bad-frontmatter",
            message="`---` opens a block that is never closed",
            file="X.md",
            line=1,
            column=1,
            source="---",
            length=3,
            hint="end it with a line `---`",
        )
    ]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("X.sh", "#!/bin/bash\n# /// raymond\n# retries: 2\n# gate:\n#   - make\n# ///\necho\n"),
        ("X.sh", "# /// raymond\r\n# retries: 2\r\n#\r\n# gate: make\r\n# ///\r\n"),
        ("X.py", "import os\n# /// raymond \n# retries: 2\n# gate: [make]\n# /// \n# ///"),
        ("X.py", "# /// raymond\n#retries: 2\n#gate: [make]\n# ///"),
        ("X.ps1", "# /// raymond\n# retries: 2\n# gate: make\n# ///"),
        ("X.bat", "@echo off\n:: /// raymond\n:: retries: 2\n:: gate: make\n:: ///\n"),
    ],
)
def test_a_script_has_its_policy_in_a_comment_block(file: str, text: str) -> None:
    parsed = policy.parse(text, file=file, script=True)
    assert parsed.diagnostics == []
    assert parsed.policy == Policy(retries=2, gate=(Check(run="make"),))
    assert (parsed.body, parsed.line) == (text, 1)


@pytest.mark.parametrize("text", ["echo", "# raymond\n# retries: 2", "echo '/// raymond'", "  # /// raymond\n  # ///"])
def test_a_script_without_a_block_has_no_policy(text: str) -> None:
    assert policy.parse(text, file="X.sh", script=True) == Parsed(Policy(), text, 1, [])


@pytest.mark.parametrize("text", ["\n# /// raymond\n# retries: 2", "\n# /// raymond\necho\n# ///", "\n# /// raymond"])
def test_a_block_that_is_never_closed_is_refused(text: str) -> None:
    [found] = policy.parse(text, file="X.sh", script=True).diagnostics
    assert found == Diagnostic(
        id="bad-frontmatter",
        message="`# /// raymond` opens a block that is never closed",
        file="X.sh",
        line=2,
        column=1,
        source="# /// raymond",
        length=13,
        hint="every line of it starts with `#`; end it with `# ///`",
    )


@pytest.mark.parametrize(
    "line", ["#/// raymond", "# ///raymond", "# /// Raymond", "# //// raymond:", "#  ///  raymond"]
)
def test_what_is_almost_a_block_is_refused_because_somebody_relies_on_it(line: str) -> None:
    text = f"echo\n{line}\n# allowed_transitions: [{{tag: result}}]\n# ///\n"
    [found] = policy.parse(text, file="X.sh", script=True).diagnostics
    assert (found.id, found.line, found.hint) == ("bad-frontmatter", 2, "write `# /// raymond`")


@pytest.mark.parametrize("line", ["# see /// raymond in the docs", "# ///", "#//////", "# /// script", "# raymond"])
def test_a_comment_that_only_speaks_of_blocks_is_a_comment(line: str) -> None:
    assert policy.parse(f"{line}\necho\n", file="X.sh", script=True).diagnostics == []


def test_a_second_block_is_refused() -> None:
    text = "# /// raymond\n# retries: 1\n# ///\n# /// raymond\n# ///\n"
    [found] = policy.parse(text, file="X.sh", script=True).diagnostics
    assert (found.id, found.message, found.line) == ("bad-frontmatter", "there is a second `/// raymond` block", 4)
    assert found.hint == "put all keys in the first one"


def test_places_in_a_script_are_those_of_the_file() -> None:
    [found] = policy.parse("#!x\n# /// raymond\n# retries: no\n# ///\n", file="X.sh", script=True).diagnostics
    assert (found.line, found.column, found.length, found.source) == (3, 12, 2, "# retries: no")


def test_places_in_a_prompt_are_those_of_the_file() -> None:
    found = wrong("model: opus\nretries:   -1")
    assert (found.line, found.column, found.length, found.source) == (3, 12, 2, "retries:   -1")


# Keys


@pytest.mark.parametrize(
    ("head", "fields"),
    [
        ("backend: codex", {"backend": "codex"}),
        ("model: claude-opus-4.5", {"model": "claude-opus-4.5"}),
        ("effort: high", {"effort": "high"}),
        ("permission_mode: default", {"permission_mode": "default"}),
        ("permission_mode: acceptEdits", {"permission_mode": "acceptEdits"}),
        ("permission_mode: plan", {"permission_mode": "plan"}),
        ("permission_mode: dontAsk", {"permission_mode": "dontAsk"}),
        ("permission_mode: bypassPermissions", {"permission_mode": "bypassPermissions"}),
        ("allowed_tools: Read", {"allowed_tools": ("Read",)}),
        ("allowed_tools: [Read, 'Bash(git log:*)']", {"allowed_tools": ("Read", "Bash(git log:*)")}),
        ("allowed_tools: ['Bash(a (b, c))', 'Bash(a \\()']", {"allowed_tools": ("Bash(a (b, c))", "Bash(a \\()")}),
        ("allowed_tools: []", {"allowed_tools": ()}),
        ("disallowed_tools: [Bash]", {"disallowed_tools": ("Bash",)}),
        ("on_denied: pause", {"on_denied": "pause"}),
        ("on_denied: count", {"on_denied": "count"}),
        ("timeout: 90s", {"timeout": 90.0}),
        ("tool_timeout: 10m", {"tool_timeout": 600.0}),
        ("max_time: 2h", {"max_time": 7200.0}),
        ("retries: 0", {"retries": 0}),
        ("max_visits: 1", {"max_visits": 1}),
        ("max_visits: 2\nthen: END.md", {"max_visits": 2, "then": "END.md"}),
        ("budget: 0", {"budget": 0.0}),
        ("budget: 0.50", {"budget": 0.5}),
        ("on_error: FIX", {"on_error": "FIX"}),
        ("gate: make test", {"gate": (Check(run="make test"),)}),
        ("gate: [make, make lint]", {"gate": (Check(run="make"), Check(run="make lint"))}),
        (
            "gate: [{run: make, expected: 2, timeout: 5m}, {run: ls, expected: 'output contains \"a\"'}]",
            {"gate": (Check(run="make", exit=2, timeout=300.0), Check(run="ls", contains="a"))},
        ),
        ("gate: [{run: ls, expected: output matches /a+b/}]", {"gate": (Check(run="ls", matches="a+b"),)}),
        ("gate_reruns: 0", {"gate_reruns": 0}),
        ("gate_env: {CI: 'true'}", {"gate_env": {"CI": "true"}}),
        (
            "allowed_transitions: [{tag: goto, target: A, gate: false}]",
            {"allowed_transitions": (Allowed("goto", {"target": "A"}, gate=False),)},
        ),
        ("on_fail: FIX.md", {"on_fail": "FIX.md"}),
        ("gate_tries: 0", {"gate_tries": 0}),
        ("gate_timeout: 5m", {"gate_timeout": 300.0}),
        ("seal: 'tests/**'", {"seal": ("tests/**",)}),
        ("in_place: true", {"in_place": True}),
        ("force_implicit: false", {"force_implicit": False}),
        ("description: what it does", {"description": "what it does"}),
        (
            "force_implicit: true\nallowed_transitions: [{tag: goto, target: A}]",
            {"force_implicit": True, "allowed_transitions": (Allowed("goto", {"target": "A"}),)},
        ),
        (
            "evaluator: {prompt: J.md, model: haiku, verdicts: {yes: keep, no: <goto>A</goto>}, default: keep}",
            {
                "evaluator": Evaluator(
                    prompt="J.md", model="haiku", verdicts={"yes": "keep", "no": "<goto>A</goto>"}, default="keep"
                )
            },
        ),
        (
            "evaluator: {pattern: 'a+', verdicts: {match: <result>x</result>}}",
            {"evaluator": Evaluator(pattern="a+", verdicts={"match": "<result>x</result>"})},
        ),
    ],
)
def test_every_key_is_read(head: str, fields: dict[str, Any]) -> None:
    assert read(head) == Policy(**fields)


NO_VALUE = "give it one, or remove the line"
BRACKETS = r"write it like Bash(make test:*), and \( or \) for a bracket that is part of the command"


@pytest.mark.parametrize(
    ("head", "message", "hint"),
    [
        ("model: 4.5", "`model` must be text", 'put it in quotes: "4.5"'),
        ("model: true", "`model` must be text", 'put it in quotes: "true"'),
        ("model: [a]", "`model` must be text", NO_VALUE),
        ("model: ''", "`model` is empty", NO_VALUE),
        ("model:", "`model` has no value", NO_VALUE),
        ("gate: ~", "`gate` has no value", NO_VALUE),
        ("retries:", "`retries` has no value", NO_VALUE),
        ("timeout:", "`timeout` has no value", NO_VALUE),
        ("in_place:", "`in_place` has no value", NO_VALUE),
        (
            "permission_mode: yolo",
            "`permission_mode` cannot be `yolo`",
            "one of: default, manual, acceptEdits, auto, plan, dontAsk, bypassPermissions",
        ),
        ("on_denied: stop", "`on_denied` cannot be `stop`", "one of: count, pause"),
        ("allowed_tools: Read, Edit", "several tools in `allowed_tools` must be a list", "allowed_tools: [Read, Edit]"),
        ("allowed_tools: 3", "`allowed_tools` must be text or a list of texts", ""),
        ("disallowed_tools: Bash(", "`Bash(` has brackets that do not match", BRACKETS),
        ("disallowed_tools: [Read, 'Bash(rm:*']", "`Bash(rm:*` has brackets that do not match", BRACKETS),
        ("allowed_tools: ['x) Edit(y']", "`x) Edit(y` has brackets that do not match", BRACKETS),
        ("allowed_tools: ['Bash(a\\)']", "`Bash(a\\)` has brackets that do not match", BRACKETS),
        ("gate: [make, 3]", "`gate` must be text", 'put it in quotes: "3"'),
        ("gate: {a: b}", "a check needs `run`", "{run: make test, timeout: 5m}"),
        ("timeout: 10", "`timeout` has no unit", "10 what? write 10s or 10m"),
        ("timeout: 1.5", "`timeout` has no unit", "1.5 what? write 1.5s or 1.5m"),
        ("timeout: 5x", "`timeout` must be a duration", "write it like 90s, 10m or 2h"),
        ("timeout: 0s", "`timeout` must be a duration", "write it like 90s, 10m or 2h"),
        ("timeout: 400d", "`timeout` must be a duration of at most 366d", "write it like 90s, 10m or 2h"),
        ("timeout: true", "`timeout` must be a duration", "write it like 90s, 10m or 2h"),
        ("retries: -1", "`retries` must be a whole number, 0 or more", "retries: 3"),
        ("retries: 1.5", "`retries` must be a whole number, 0 or more", "retries: 3"),
        ("retries: true", "`retries` must be a whole number, 0 or more", "retries: 3"),
        ("max_visits: 0", "`max_visits` must be a whole number, 1 or more", "max_visits: 3"),
        ("budget: -1", "`budget` must be a number of dollars, 0 or more", "budget: 0.50"),
        ("budget: $5", "`budget` must be a number of dollars, 0 or more", "budget: 0.50"),
        ("budget: 1e999", "`budget` must be a number of dollars, at most 1,000,000,000", "budget: 0.50"),
        ("budget: true", "`budget` must be a number of dollars, 0 or more", "budget: 0.50"),
        ("in_place: yes", "`in_place` must be true or false", "write true or false"),
        ("in_place: True", "`in_place` must be true or false", "write true or false"),
        ("in_place: 1", "`in_place` must be true or false", "write true or false"),
        ("then: END.md", "`then` needs `max_visits`", "max_visits: 3"),
        (
            "allowed_transitions: []",
            "`allowed_transitions` must be a list of transitions",
            "allowed_transitions: [{tag: goto, target: NEXT.md}]",
        ),
        (
            "allowed_transitions: goto",
            "`allowed_transitions` must be a list of transitions",
            "allowed_transitions: [{tag: goto, target: NEXT.md}]",
        ),
        ("allowed_transitions: [goto]", "an allowed transition needs a `tag`", "{tag: goto, target: NEXT.md}"),
        ("allowed_transitions: [{target: A}]", "an allowed transition needs a `tag`", "{tag: goto, target: NEXT.md}"),
        (
            "allowed_transitions: [{tag: jump}]",
            "`jump` is not a transition",
            "one of: goto, reset, call, function, fork, wait, ask, result",
        ),
        ("allowed_transitions: [{tag: result, payload: 5}]", "`payload` must be text", 'put it in quotes: "5"'),
        (
            "allowed_transitions: [{tag: goto, after: 5x}]",
            "`after` must be a duration",
            "write it like 90s, 10m or 2h",
        ),
        (
            "evaluator: {verdicts: {a: keep}}",
            "`evaluator` needs either `pattern` or `prompt`",
            'evaluator: {prompt: JUDGE.md, verdicts: {"yes": keep, "no": <goto>FIX.md</goto>}}',
        ),
        (
            "evaluator: {pattern: a, prompt: b, verdicts: {a: keep}}",
            "`evaluator` needs either `pattern` or `prompt`",
            'evaluator: {prompt: JUDGE.md, verdicts: {"yes": keep, "no": <goto>FIX.md</goto>}}',
        ),
        (
            "evaluator: {prompt: J.md}",
            "`evaluator` needs `verdicts`",
            'verdicts: {"yes": keep, "no": <goto>FIX.md</goto>}',
        ),
        (
            "evaluator: {prompt: J.md, verdicts: {}}",
            "`evaluator` needs `verdicts`",
            'verdicts: {"yes": keep, "no": <goto>FIX.md</goto>}',
        ),
        (
            "evaluator: {prompt: J.md, verdicts: {a: maybe}}",
            "`maybe` is neither `keep` nor a transition",
            "write it like <goto>FIX.md</goto>",
        ),
        (
            "evaluator: {prompt: J.md, verdicts: {a: <call>B</call>}}",
            "`<call>B</call>` is neither `keep` nor a transition",
            "write it like <goto>FIX.md</goto>",
        ),
        (
            "evaluator: {prompt: J.md, verdicts: {a: keep}, default: B}",
            "`B` is neither `keep` nor a transition",
            "write it like <goto>FIX.md</goto>",
        ),
        ("gate: [{timeout: 5m}]", "a check needs `run`", "{run: make test, timeout: 5m}"),
        ("gate: make 'test", "`make 'test` is no command: a quote is not closed", "close it, or put a \\ before it"),
        ("gate: [{run: a, expected: 256}]", "`expected` is an exit code of 0 to 255", EXPECTED),
        (
            "gate: [{run: a, expected: fine}]",
            "`expected` must be an exit code or say what the output contains or matches",
            EXPECTED,
        ),
        (
            "gate: [{run: a, expected: output matches /(/}]",
            "`expected` has no regular expression: missing ), unterminated subpattern at position 0",
            EXPECTED,
        ),
        ("gate_env: CI", "`gate_env` must map names to texts", "gate_env: {CI: 'true'}"),
        ("gate_env: {CI: true}", "`CI` must be text", 'put it in quotes: "true"'),
        (
            "evaluator: {pattern: '(', verdicts: {a: keep}}",
            "`pattern` is not a regular expression: missing ), unterminated subpattern at position 0",
            "",
        ),
    ],
)
def test_a_bad_value_is_refused_with_what_would_be_right(head: str, message: str, hint: str) -> None:
    found = wrong(head)
    assert (found.id, found.message, found.hint) == ("bad-value", message, hint)
    assert found.line >= 2
    assert found.source == head.splitlines()[found.line - 2]


@pytest.mark.parametrize(
    ("head", "message", "hint", "column"),
    [
        ("modle: opus", "there is no key `modle`", "did you mean `model`?", 1),
        ("zzz: 1", "there is no key `zzz`", f"there are: {', '.join(KEYS)}", 1),
        ("allowed_transitions: [{tag: call, retrun: A}]", "`<call>` has no `retrun`", "did you mean `return`?", 35),
        (
            "allowed_transitions: [{tag: goto, payload: A}]",
            "`<goto>` has no `payload`",
            "one of: target, input, after",
            35,
        ),
        (
            "allowed_transitions: [{tag: fork, return: A}]",
            "`<fork>` has no `return`",
            "one of: target, next, input, after, cd",
            35,
        ),
        (
            "allowed_transitions: [{tag: fork, visit: A}]",
            "`<fork>` has no `visit`",
            "one of: target, next, input, after, cd",
            35,
        ),
        (
            "allowed_transitions: [{tag: fork, a-b: A}]",
            "`<fork>` has no `a-b`",
            "one of: target, next, input, after, cd",
            35,
        ),
        (
            "evaluator: {prompt: J, verdict: {}, verdicts: {a: keep}}",
            "`evaluator` has no `verdict`",
            "did you mean `verdicts`?",
            24,
        ),
    ],
)
def test_an_unknown_key_is_refused_with_a_suggestion(head: str, message: str, hint: str, column: int) -> None:
    found = wrong(head)
    assert (found.id, found.message, found.hint, found.column) == ("unknown-key", message, hint, column)


def test_one_mistake_does_not_hide_another_nor_what_is_right() -> None:
    parsed = prompt("model: opus\nretries: x\nmodle: opus\ntimeout: 5")
    assert [found.line for found in parsed.diagnostics] == [3, 4, 5]
    assert parsed.policy == Policy(model="opus")


@pytest.mark.parametrize(
    ("allowed", "hint"),
    [
        ("", "allowed_transitions: [{tag: goto, target: NEXT.md}]"),
        ("[{tag: goto, target: A}, {tag: goto, target: B}]", "allowed_transitions: [{tag: goto, target: NEXT.md}]"),
        ("[{tag: goto}]", "this `goto` also needs: target"),
        ("[{tag: call, target: A}]", "this `call` also needs: return"),
        ("[{tag: result}]", "this `result` also needs: payload"),
        ("[{tag: ask, next: A}]", "this `ask` also needs: payload"),
        ("[{tag: ask, payload: Why?, next: A, timeout_next: B}]", "this `ask` also needs: timeout"),
        ("[{tag: wait, target: A, timeout_next: B}]", "this `wait` also needs: timeout"),
    ],
)
def test_force_implicit_needs_a_transition_that_needs_nothing(allowed: str, hint: str) -> None:
    found = wrong(f"force_implicit: true\n{allowed and f'allowed_transitions: {allowed}'}")
    assert found == Diagnostic(
        id="force-implicit-invalid",
        message="`force_implicit` needs exactly one allowed transition, with everything it needs given",
        file="X.md",
        line=2,
        column=17,
        source="force_implicit: true",
        length=4,
        hint=hint,
    )


# Above and below frontmatter


def test_a_default_holds_where_a_state_says_nothing() -> None:
    assert read("retries: 1", defaults={"retries": 5, "timeout": 60.0}) == Policy(retries=1, timeout=60.0)
    assert policy.parse("x", file="X.md", script=False, defaults={"model": "m"}).policy == Policy(model="m")


def test_a_list_can_take_a_default_away() -> None:
    assert read("gate: []", defaults={"gate": ("make",)}).gate == ()


def test_a_default_is_checked_together_with_the_state() -> None:
    [found] = policy.parse("x", file="X.md", script=False, defaults={"force_implicit": True}).diagnostics
    assert (found.id, found.file, found.line) == ("force-implicit-invalid", "X.md", 0)


def test_an_override_stands_above_frontmatter() -> None:
    parsed = prompt("retries: 1\nmodel: opus", overrides={"retries": 4, "timeout": "5m", "gate": "make"})
    assert parsed.policy == Policy(retries=4, model="opus", timeout=300.0, gate=(Check(run="make"),))
    assert parsed.marks["retries",].file == "--set"
    assert parsed.marks["model",].file == "X.md"


@pytest.mark.parametrize(
    ("overrides", "id", "message", "source"),
    [
        ({"retries": "x"}, "bad-value", "`retries` must be a whole number, 0 or more", "X.retries=x"),
        ({"timeout": 5}, "bad-value", "`timeout` has no unit", "X.timeout=5"),
        ({"model": None}, "bad-value", "`model` has no value", "X.model="),
        ({"modle": "x"}, "unknown-key", "there is no key `modle`", "X.modle=x"),
    ],
)
def test_a_bad_override_is_said_to_be_one(overrides: dict[str, Any], id: str, message: str, source: str) -> None:
    found = wrong("model: opus", overrides=overrides)
    assert (found.file, found.id, found.message, found.source) == ("--set", id, message, source)


# What a policy permits


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A.md", "A"),
        ("A.sh", "A"),
        ("A.py", "A"),
        ("A.ps1", "A"),
        ("A.bat", "A"),
        ("A", "A"),
        ("A.txt", "A.txt"),
        ("A.md.sh", "A.md"),
        (".md", ".md"),
    ],
)
def test_a_bare_name_has_no_known_extension(name: str, expected: str) -> None:
    assert policy.bare(name) == expected


def test_a_policy_without_allowed_transitions_permits_all() -> None:
    assert policy.permit(Policy(), [Goto(target="X")]) is None


GOTO, CALL = "{tag: goto, target: A.md}", "{tag: call, target: A, return: B}"
FORK = "{tag: fork, target: W.md, next: N}"


@pytest.mark.parametrize(
    ("allowed", "asked"),
    [
        ([GOTO], [Goto(target="A.md")]),
        ([GOTO], [Goto(target="A")]),
        (["{tag: goto, target: A}"], [Goto(target="A.sh")]),
        ([GOTO], [Goto(target="A", input="x", after=5.0)]),
        (["{tag: goto}"], [Goto(target="Z")]),
        (["{tag: goto, after: 5m}"], [Goto(target="Z", after=300.0)]),
        (["{tag: goto, input: x}"], [Goto(target="Z", input="x")]),
        (["{tag: reset, cd: ../w}"], [Reset(target="Z", cd="../w")]),
        ([CALL], [Call(target="A.md", then="B.md")]),
        (["{tag: call}"], [Call(target="A", then="Z")]),
        (["{tag: call, target: A}", "{tag: goto, target: B}"], [Call(target="A", then="B.md")]),
        (["{tag: goto}", "{tag: goto, target: A, after: 1h}"], [Goto(target="A")]),
        (["{tag: wait, target: A, timeout_next: B}"], [Wait(target="A", timeout=5.0, timeout_next="B")]),
        (["{tag: ask, next: A}"], [Ask(question="any", next="A", choices="yes,no", files="a.md")]),
        (["{tag: function, model: haiku, effort: low}"], [Function(target="A", then="B", model="haiku", effort="low")]),
        (
            ["{tag: wait, target: A, timeout: 1h, timeout_next: B}"],
            [Wait(target="A", timeout=3600.0, timeout_next="B.md")],
        ),
        (["{tag: ask, payload: 'Go on?', next: A}"], [Ask(question=" Go on?\n", next="A")]),
        (["{tag: ask}"], [Ask(question="any", next="A")]),
        (["{tag: ask, choices: 'yes,not now'}"], [Ask(question="any", next="A", choices=" yes,\n  not  now ,")]),
        (["{tag: result}"], [Result(text="any")]),
        (["{tag: result, payload: done}"], [Result(text="\n done ")]),
        ([GOTO, "{tag: result}"], [Result(text="any")]),
        ([FORK], [Fork(target="W", next="N.md"), Fork(target="W", next="N.md", variables={"a": "b"})]),
        ([FORK], [Fork(target="W", next="N"), Fork(target="W")]),
        ([FORK], [Fork(target="W"), Fork(target="W"), Goto(target="N")]),
        ([FORK, "{tag: wait, target: N}"], [Fork(target="W"), Wait(target="N")]),
        (["{tag: fork, part: one}"], [Fork(target="W", next="N", variables={"part": "one"})]),
        (["{tag: fork, timeout: 5m}"], [Fork(target="W", next="N", variables={"timeout": "5m"})]),
    ],
)
def test_what_matches_is_permitted(allowed: list[str], asked: list[Transition]) -> None:
    assert policy.permit(allow(*allowed), asked) is None


@pytest.mark.parametrize(
    ("allowed", "asked", "said"),
    [
        ([GOTO], [Goto(target="B.md")], "`<goto>B.md</goto>` is not allowed here; allowed: `<goto>A.md</goto>`"),
        (
            [GOTO, "{tag: result}"],
            [Reset(target="A.md", cd="x", after=90.0)],
            (
                '`<reset after="1m 30s" cd="x">A.md</reset>` is not allowed here; '
                "allowed: `<goto>A.md</goto>`, `<result>...</result>`"
            ),
        ),
        (
            [CALL],
            [Call(target="A", then="C")],
            '`<call return="C">A</call>` is not allowed here; allowed: `<call return="B">A</call>`',
        ),
        (
            ["{tag: result, payload: done}"],
            [Result(text="x " * 50)],
            f"`<result>{('x ' * 50)[:57]}...</result>` is not allowed here; allowed: `<result>done</result>`",
        ),
        (
            ["{tag: goto, after: 5m}"],
            [Goto(target="A")],
            '`<goto>A</goto>` is not allowed here; allowed: `<goto after="5m">...</goto>`',
        ),
        (
            ["{tag: goto, target: A, input: x}"],
            [Goto(target="A")],
            '`<goto>A</goto>` is not allowed here; allowed: `<goto input="x">A</goto>`',
        ),
        (
            [FORK],
            [Fork(target="W", next="N"), Fork(target="V", next="N", variables={"k": "v"})],
            '`<fork next="N" k="v">V</fork>` is not allowed here; allowed: `<fork next="N">W.md</fork>`',
        ),
        (
            [FORK],
            [Fork(target="W"), Goto(target="M")],
            '`<fork>W</fork>` is not allowed here; allowed: `<fork next="N">W.md</fork>`',
        ),
        (
            [FORK],
            [Fork(target="W"), Wait(target="N")],
            '`<wait>N</wait>` is not allowed here; allowed: `<fork next="N">W.md</fork>`',
        ),
        (
            [FORK],
            [Fork(target="W"), Goto(target="N", input="x")],
            '`<goto input="x">N</goto>` is not allowed here; allowed: `<fork next="N">W.md</fork>`',
        ),
        (
            ["{tag: fork, part: one}"],
            [Fork(target="W", next="N", variables={"part": "two"})],
            '`<fork next="N" part="two">W</fork>` is not allowed here; allowed: `<fork next="..." part="one">...</fork>`',
        ),
        (
            ["{tag: ask, next: A, approve: person}"],
            [Ask(question="Go on?", next="A", approve="person", timeout=1.0, timeout_next="A")],
            (
                '`<ask next="A" timeout="1s" timeout_next="A" approve="person">Go on?</ask>` is not allowed here: '
                'leave out `timeout`, `timeout_next`; allowed: `<ask next="A" approve="person">...</ask>`'
            ),
        ),
        (
            ["{tag: wait, target: A}"],
            [Wait(target="A", failed_next="B", failures="ok")],
            (
                '`<wait failed_next="B" failures="ok">A</wait>` is not allowed here: '
                "leave out `failed_next`, `failures`; allowed: `<wait>A</wait>`"
            ),
        ),
        (
            ["{tag: call, target: A}", "{tag: goto, target: B}"],
            [Call(target="A", then="C")],
            (
                '`<call return="C">A</call>` is not allowed here: `return` must be A or B; '
                'allowed: `<call return="...">A</call>`, `<goto>B</goto>`'
            ),
        ),
        (
            ["{tag: goto}", "{tag: ask, next: B}"],
            [Goto(target="C")],
            (
                "`<goto>C</goto>` is not allowed here: the state must be B; "
                'allowed: `<goto>...</goto>`, `<ask next="B">...</ask>`'
            ),
        ),
        (
            ["{tag: fork, target: A}"],
            [Fork(target="A"), Goto(target="C")],
            '`<fork>A</fork>` is not allowed here: `next` must be A; allowed: `<fork next="...">A</fork>`',
        ),
        (
            ["{tag: fork, target: A}", "{tag: wait, target: B}"],
            [Fork(target="A", next="C")],
            (
                '`<fork next="C">A</fork>` is not allowed here: leave out `next`; '
                "allowed: `<fork>A</fork>`, `<wait>B</wait>`"
            ),
        ),
        (
            ["{tag: fork, target: A}", "{tag: wait, target: B}"],
            [Fork(target="A"), Goto(target="C")],
            "`<goto>C</goto>` is not allowed here; allowed: `<fork>A</fork>`, `<wait>B</wait>`",
        ),
        (
            ["{tag: ask, payload: 'Go on?'}"],
            [Ask(question="Why?", next="A")],
            '`<ask next="A">Why?</ask>` is not allowed here; allowed: `<ask next="...">Go on?</ask>`',
        ),
    ],
)
def test_a_refusal_says_what_was_asked_and_what_is_allowed(
    allowed: list[str], asked: list[Transition], said: str
) -> None:
    assert policy.permit(allow(*allowed), asked) == Refusal("not_allowed", said)


@pytest.mark.parametrize("written", ["", "no,yes", "yes,no,maybe", "Yes,no", "yesno"])
def test_other_choices_or_another_order_of_them_do_not_match(written: str) -> None:
    asked = Ask(question="Go on?", next="A", choices=written)
    assert policy.permit(allow("{tag: ask, next: A, choices: 'yes,no'}"), [asked]) is not None


@pytest.mark.parametrize(
    ("allowed", "transition"),
    [
        ("{tag: goto, target: A.md}", Goto(target="A.md")),
        ("{tag: goto, target: A.md, after: 5m, input: x}", Goto(target="A.md", after=300.0, input="x")),
        ("{tag: reset, target: A, cd: w}", Reset(target="A", cd="w")),
        ("{tag: call, target: A, return: B}", Call(target="A", then="B")),
        ("{tag: function, target: A, return: B, model: m}", Function(target="A", then="B", model="m")),
        ("{tag: fork, target: A, next: B, part: one}", Fork(target="A", next="B", variables={"part": "one"})),
        ("{tag: wait, target: A, timeout: 1h, timeout_next: B}", Wait(target="A", timeout=3600.0, timeout_next="B")),
        ("{tag: ask, payload: Why?, next: A}", Ask(question="Why?", next="A")),
        ("{tag: result, payload: done}", Result(text="done")),
        ("{tag: goto}", None),
        ("{tag: reset}", None),
        ("{tag: call, target: A}", None),
        ("{tag: call, return: A}", None),
        ("{tag: function, target: A}", None),
        ("{tag: fork, target: A}", None),
        ("{tag: wait}", None),
        ("{tag: ask, payload: Why?}", None),
        ("{tag: ask, next: A}", None),
        ("{tag: ask, payload: Why?, next: A, timeout_next: B}", None),
        ("{tag: wait, target: A, timeout_next: B}", None),
        ("{tag: result}", None),
    ],
)
def test_a_transition_that_needs_nothing_is_implicit(allowed: str, transition: Transition | None) -> None:
    assert policy.implicit(allow(allowed)) == transition


def test_none_or_several_allowed_transitions_are_never_implicit() -> None:
    assert policy.implicit(Policy()) is None
    assert policy.implicit(allow(GOTO, "{tag: goto, target: B}")) is None


def test_instructions_are_tags_with_what_is_open_left_open() -> None:
    written = policy.instructions(
        allow(
            GOTO,
            GOTO,
            "{tag: reset, target: A, cd: 'a \"b\" <c> & d'}",
            "{tag: call, target: C.md}",
            "{tag: function, target: C, return: D, model: haiku}",
            "{tag: fork, target: W}",
            "{tag: wait, target: E}",
            "{tag: ask, next: F}",
            "{tag: result}",
            "{tag: result, payload: done}",
        )
    )
    assert written.splitlines() == [
        "<goto>A.md</goto>",
        '<reset cd="a &quot;b&quot; &lt;c&gt; &amp; d">A</reset>',
        '<call return="...">C.md</call>',
        '<function return="D" model="haiku">C</function>',
        "<fork>W</fork>",
        "<wait>E</wait>",
        '<ask next="F">...</ask>',
        "<result>...</result>",
        "<result>done</result>",
    ]


def test_a_policy_that_allows_everything_has_no_instructions() -> None:
    assert policy.instructions(Policy()) == ""


APPROVED = "{tag: ask, next: RELEASE.sh, approve: person}"


@pytest.mark.parametrize(
    ("allowed", "asked", "why"),
    [
        (["{tag: goto, target: A.md}"], Goto(target="A.sh"), "`<goto>A.sh</goto>` is not allowed here; "),
        ([APPROVED, "{tag: call, target: K}"], Call(target="K", then="RELEASE"), "RELEASE needs a person"),
        (
            [APPROVED, "{tag: function, target: K}"],
            Function(target="K", then="RELEASE.sh"),
            "RELEASE.sh needs a person",
        ),
        ([APPROVED, "{tag: fork, target: K}"], Fork(target="K", next="RELEASE"), "RELEASE needs a person"),
        ([APPROVED, "{tag: goto}"], Goto(target="RELEASE"), "RELEASE needs a person"),
        ([APPROVED, "{tag: goto}"], Goto(target="RELEASE.sh"), "RELEASE.sh needs a person"),
    ],
)
def test_a_state_for_which_a_person_is_asked_is_not_reached_otherwise(
    allowed: list[str], asked: Transition, why: str
) -> None:
    refused = policy.permit(allow(*allowed), [asked])
    assert refused
    assert why in refused.reason


def test_a_state_that_another_entry_names_openly_needs_no_person() -> None:
    assert policy.permit(allow(APPROVED, "{tag: goto, target: RELEASE}"), [Goto(target="RELEASE.sh")]) is None
