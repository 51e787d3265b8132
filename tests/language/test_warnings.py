"""What is doubtful in a prompt: found where it is a mistake, and nowhere else."""

from collections.abc import Collection

import pytest

from raymond.errors import Diagnostic
from raymond.language import lint, workflow
from raymond.store import loader

POLICY = "---\nallowed_transitions: [{tag: goto, target: NEXT}]\n---\n"
TWO = "---\nallowed_transitions: [{tag: goto, target: NEXT}, {tag: result}]\n---\n"
END = "<result>x</result>"
OTHERS = {"NEXT.md": END, "B.sh": f"echo '{END}'", "lib/rules.md": END}


def check(body: str, given: Collection[str] = (), **files: str) -> list[Diagnostic]:
    others = {name.replace("_", "."): text for name, text in files.items()}
    return lint.check(workflow.build("flow", {"START.md": body, **OTHERS, **others}), given)


def one(body: str, **files: str) -> tuple[str, int, int, str]:
    """The only finding of a prompt that has a tag as well."""
    [found] = check(f"{body}\n{END}", **files)
    return found.id, found.line, found.column, found.hint


@pytest.mark.parametrize(
    ("body", "id", "column", "hint"),
    [
        ("<gotoo>NEXT</gotoo>", "misspelt-tag", 1, "did you mean <goto>NEXT</goto>?"),
        ("Say `<gto>NEXT.md</gto>`.", "misspelt-tag", 6, "did you mean <goto>NEXT.md</goto>?"),
        ("<Goto>NEXT</Goto>", "misspelt-tag", 1, "did you mean <goto>NEXT</goto>?"),
        ("<GOTO>ANYWHERE</GOTO>", "misspelt-tag", 1, "did you mean <goto>NEXT.md</goto>?"),
        ("<go-to>NEXT</go-to>", "misspelt-tag", 1, "did you mean <goto>NEXT</goto>?"),
        ("<gotoo>NETX</gotoo>", "misspelt-tag", 1, "did you mean <goto>NEXT</goto>?"),
        ("<gotoo>NXT.md</gotoo>", "misspelt-tag", 1, "did you mean <goto>NEXT</goto>?"),
        ("<reslut>fine</reslut>", "misspelt-tag", 1, "did you mean <result>text</result>?"),
        ('<aks next="NEXT">Why?</aks>', "misspelt-tag", 1, 'did you mean <ask next="NEXT.md">question</ask>?'),
        ("<fuction return='B'>NEXT</fuction>", "misspelt-tag", 1, 'did you mean <function return="NEXT.md">NEXT</function>?'),
        ("Or <goto>NEXT", "unclosed-tag", 4, "write <goto>NEXT</goto>"),
        ("<goto>NEXT</got>", "unclosed-tag", 1, "write <goto>NEXT</goto>"),
        ("<goto/>", "unclosed-tag", 1, "write <goto>NEXT.md</goto>"),
        ('<ask next="NEXT">Why?', "unclosed-tag", 1, 'write <ask next="NEXT.md">question</ask>'),
        ("<goto input=foo>NEXT</goto>", "unquoted-attribute", 7, 'input="..."'),
        ("<await>a person</await>", "foreign-tag", 1, '<ask next="NEXT.md">question</ask> asks a person'),
        ("<call-workflow return='B'>x</call-workflow>", "foreign-tag", 1, "a script starts another workflow: raymond run PATH"),
        ("<promise>COMPLETE</promise>", "foreign-tag", 1, "<result>text</result> ends the run"),
        ("Use {{inptu}}", "unbound-variable", 5, "did you mean {{input}}?"),
        ("{{transitons}}", "unbound-variable", 1, "did you mean {{transitions}}?"),
        ("{{transitions}}", "unbound-variable", 1, "allowed_transitions: [{tag: goto, target: NEXT.md}]"),
        ("{{include:rule.md}}", "missing-include", 1, "did you mean `rules.md`?"),
        ("{{include:nothing}}", "missing-include", 1, "add lib/nothing, or remove this"),
    ],
)  # fmt: skip
def test_a_mistake_is_found_at_its_place_with_a_way_out(body: str, id: str, column: int, hint: str) -> None:
    assert one(f"text\n{body}") == (id, 2, column, hint)


ASK = "{tag: ask, next: B, approve: person, timeout: 1d}"


@pytest.mark.parametrize(
    ("files", "file", "line", "column", "hint"),
    [
        ({"START.md": f"---\nallowed_transitions: [{ASK}]\n---\n{{{{transitions}}}}"}, "START.md", 2, 69, "timeout_next: DECLINED.md"),
        ({"START.md": "{{transitions}}", "workflow.yaml": f"allowed_transitions: [{ASK}]"}, "workflow.yaml", 1, 69, "timeout_next: DECLINED.md"),
        ({"START.sh": f"# /// raymond\n# allowed_transitions: [{ASK}]\n# ///\nask"}, "START.sh", 2, 71, "timeout_next: DECLINED.md"),
        ({"START.md": 'Say\n`<ask next="B" approve="person" timeout="1d">Now?</ask>`'}, "START.md", 2, 33, 'timeout_next="DECLINED.md"'),
        ({"START.sh": "echo '<ask next=\"B\" approve=\"person\" timeout=\"1d\">Now?</ask>'"}, "START.sh", 1, 7, 'timeout_next="DECLINED.md"'),
    ],
)  # fmt: skip
def test_a_timeout_that_approves_in_place_of_a_person_is_doubtful(
    files: dict[str, str], file: str, line: int, column: int, hint: str
) -> None:
    found = lint.check(workflow.build("flow", {**files, "B.sh": f"echo '{END}'"}))
    assert [(one.id, one.file, one.line, one.column) for one in found] == [("timeout-approves", file, line, column)]
    assert found[0].message == "if nobody answers within 1d, this continues at B without approval"
    assert found[0].hint == f"name the state to continue at then: {hint}"


@pytest.mark.parametrize(
    "attributes",
    [
        'next="B" approve="person"',
        'next="B" timeout="1d"',
        'next="B" approve="person" timeout="1d" timeout_next="NEXT"',
        'next="B" approve="person" timeout="1d" timeout_next="B"',
    ],
)
def test_a_timeout_that_approves_nothing_or_says_where_it_leads_is_fine(attributes: str) -> None:
    assert check(f"<ask {attributes}>Now?</ask>") == []
    entry = attributes.replace('" ', '", ').replace("=", ": ")
    assert check(f"---\nallowed_transitions: [{{tag: ask, {entry}}}]\n---\n{{{{transitions}}}}") == []


def doubts(*entries: str) -> list[tuple[str, int, str, str]]:
    """What is doubtful about a list of entries: the id, which entry, the message and the hint."""
    lines = "".join(f"  - {{tag: {entry}}}\n" for entry in entries)
    states = {f"{name}.md": END for name in ("K", "L", "R", "X")}
    files = {"START.md": f"---\nallowed_transitions:\n{lines}---\n{{{{transitions}}}}", **states}
    return [(one.id, one.line - 2, one.message, one.hint) for one in lint.check(workflow.build("flow", files))]


@pytest.mark.parametrize(
    ("entries", "at", "has", "only", "hint"),
    [
        (["call, target: K"], 1, "`call` has no `return`", "K", "return: NEXT.md"),
        (["function, target: K", "result"], 1, "`function` has no `return`", "K", "return: NEXT.md"),
        (["fork, target: K"], 1, "`fork` has no `next`", "K", "next: NEXT.md"),
        (["call, return: R"], 1, "`call` has no `target`", "R", "target: NEXT.md"),
        (["fork, next: R"], 1, "`fork` has no `target`", "R", "target: NEXT.md"),
        (["ask, timeout: 1d, timeout_next: X"], 1, "`ask` has no `next`", "X", "next: NEXT.md"),
        (["wait, failed_next: X"], 1, "`wait` has no `target`", "X", "target: NEXT.md"),
        (["fork, target: K", "wait"], 2, "`wait` has no `target`", "K", "target: NEXT.md"),
        (["fork, target: K", "goto"], 2, "`goto` has no `target`", "K", "target: NEXT.md"),
        (["call", "goto, target: R"], 1, "`call` has no `target` and no `return`", "R", "target: NEXT.md, return: NEXT.md"),
        (["call, target: K", "ask, next: R, approve: person"], 1, "`call` has no `return`", "K", "return: NEXT.md"),
    ],
)  # fmt: skip
def test_an_entry_that_leaves_out_a_state_and_leaves_none_to_choose_is_doubtful(
    entries: list[str], at: int, has: str, only: str, hint: str
) -> None:
    message = f"this {has}, so the agent can only name {only} there"
    assert doubts(*entries) == [("no-choice", at, message, f"say what you mean: {hint}")]


def test_states_at_which_only_subtasks_begin_are_no_place_to_return_to() -> None:
    left = "and K and L, which the agent can name there, are named for something else"
    assert [(id, at, message) for id, at, message, _ in doubts("call, target: K", "function, target: L")] == [
        ("no-choice", 1, f"this `call` has no `return`, {left}"),
        ("no-choice", 2, f"this `function` has no `return`, {left}"),
    ]


@pytest.mark.parametrize(
    "entries",
    [
        ["call, target: K, return: R"],
        ["call, target: K, return: K"],
        ["call, target: K", "goto, target: R"],
        ["call, return: R", "fork, target: K, next: R"],
        ["call", "fork, target: K, next: R"],
        ["call"],
        ["ask"],
        ["wait"],
        ["goto", "result"],
        ["ask, approve: person", "result"],
        ["fork, target: K", "wait, target: R"],
        ["fork, target: K", "goto, target: R"],
        ["wait, target: R, timeout_next: X"],
        ["goto", "ask, next: R, approve: person"],
    ],
)
def test_an_entry_that_gives_its_states_or_leaves_a_choice_is_fine(entries: list[str]) -> None:
    assert doubts(*entries) == []


@pytest.mark.parametrize(
    "body",
    [
        "<task>do it</task> <results>{{results}}</results> <context>x</context> <tasks>a</tasks>",
        "<form>text</form> <work>A</work> <rest>nest</rest>",
        "<form>NEXT step</form> <answer>NEXT</answer> <file>NEXT.md</file> <work>hard</work>",
        "Vec<Result> and Result<Option> and <Result of it>",
        "Use the <goto> tag, `<result>`, or a <reset>: all of them are tags.",
        "```\n<gotoo>NEXT</gotoo> <goto>NEXT\n```",
        "~~~\n<await>x</await>\n~~~",
        "<!-- <Goto>NEXT</Goto> <goto input=x>NEXT</goto> -->",
        "if a <b> and <c>: x<y",
        "<ask a friend> <wait for it> <call me maybe>",
        "<print>a <gotoo>NEXT</gotoo></print>",
        "{{ inptu }} ${{ inputs.x }} {{#each}} {{file}} {{topic}} {{inp}}",
        "{{input}} {{run_input}} {{task_folder}} {{include:rules.md}}",
        "await the result, then promise nothing",
        "Never write `<goto>NOWHERE_AT_ALL</goto>`.",
    ],
)
def test_text_that_is_not_meant_as_a_tag_is_no_mistake(body: str) -> None:
    assert check(f"{body}\n{END}") == []


def test_a_tag_that_the_policy_rules_out_anyway_is_only_talked_about_unless_it_is_nearly_right() -> None:
    assert check(f"{POLICY}People write <goto>ELSEWHERE</goto> or `<call>SOMEWHERE</call>`.") == []
    assert [found.id for found in check(f"{POLICY}<goto>NXET</goto>")] == ["missing-target"]
    assert [found.id for found in check("`<goto>ELSEWHERE</goto>`")] == ["missing-target"]


def test_a_variable_has_a_value_when_a_fork_or_a_flag_gives_it_one() -> None:
    assert [found.id for found in check(f"{{{{inputs}}}} {END}")] == ["unbound-variable"]
    assert check(f"{{{{inputs}}}} {END}", ["inputs"]) == []
    assert check("<fork next='B' inputs='x'>NEXT</fork> {{inputs}}") == []
    assert check("{{inputs}} <goto>B</goto>", B_sh='printf \'<fork next="NEXT" inputs="%s">NEXT</fork>\' x') == []


# Prompts that tell the agent nothing


@pytest.mark.parametrize(
    ("body", "ids"),
    [
        ("Do it.", ["dead-end"]),
        (f"{TWO}Do it.", ["dead-end"]),
        ("<!-- <goto>NEXT</goto> --> Do it.", ["dead-end"]),
        ("", ["empty-state"]),
        ("---\nmodel: opus\n---\n \n", ["empty-state"]),
        ("Then <gotoo>NEXT</gotoo>", ["no-transition"]),
        (f"{TWO}Then <gotoo>NEXT</gotoo>", ["no-transition"]),
        ("Then <gotoo>NEXT</gotoo> <!-- raymond: ignore no-transition the model knows -->", ["misspelt-tag"]),
        ("Then <gotoo>NEXT</gotoo> <!-- raymond: ignore misspelt-tag it is one -->", ["no-transition"]),
        (f"{POLICY}Then <gotoo>NEXT</gotoo>", ["misspelt-tag"]),
        ("Say <promise>DONE</promise>", ["no-transition"]),
        (f"{POLICY}Do it.", []),
        (f"{TWO}Do it. {{{{transitions}}}}", []),
        ("```\n<goto>NEXT</goto>\n```", []),
        ("{{include:rules.md}}", []),
        ("{{input}}", []),
        ("Answer with a goto tag to NEXT.", []),
        ("Answer &lt;goto&gt;NEXT&lt;/goto&gt;", []),
    ],
)
def test_a_prompt_without_a_tag_is_found_unless_it_needs_none(body: str, ids: list[str]) -> None:
    assert [found.id for found in check(body)] == ids


def test_each_misspelt_tag_of_a_prompt_without_another_is_one_error() -> None:
    found = check("Say <gotoo>NEXT</gotoo> or <reslut>done</reslut>.\nOr <rest>NEXT</rest>.")
    assert [(one.line, one.column, one.message, one.hint) for one in found] == [
        (line, column, f"`<{name}>` is not a tag, and START.md has no other: every turn would be wasted", hint)
        for line, column, name, hint in (
            (1, 5, "gotoo", "did you mean <goto>NEXT</goto>?"),
            (1, 28, "reslut", "did you mean <result>text</result>?"),
            (2, 4, "rest", "did you mean <reset>NEXT</reset>?"),
        )
    ]


def test_a_lone_prompt_without_a_tag_is_an_error_that_shows_the_loop_that_works() -> None:
    [found] = lint.errors(workflow.build("flow", {"PROMPT.md": "---\nmodel: opus\n---\nFix the next thing."}))
    assert (found.id, found.message, found.line) == ("no-transition", "PROMPT.md has no tag", 4)
    assert 'raymond ralph PROMPT.md --gate "make test"' in found.hint
    assert "Answer <result>done</result>" in found.hint
    silent = "Do it. <!-- raymond: ignore no-transition CLAUDE.md explains the tags -->"
    assert lint.check(workflow.build("flow", {"PROMPT.md": silent})) == []


def test_an_empty_script_is_found() -> None:
    assert [(found.file, found.id) for found in check("<goto>B</goto>", B_sh="\n")] == [("B.sh", "empty-state")]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["workflow.yml"], "`workflow.yml` is not read: the file is called `workflow.yaml`"),
        (["Workflow.yaml"], "`Workflow.yaml` is not read: the file is called `workflow.yaml`"),
        (["replies.yml"], "`replies.yml` is not read: the file is called `replies.yaml`"),
        (["workflow.yml", "workflow.yaml"], ""),
    ],
)
def test_a_file_that_is_almost_named_right_is_found(files: list[str], message: str) -> None:
    contents = {"START.md": END.encode(), **dict.fromkeys(files, b"")}
    found = lint.check(loader.from_files(contents, name="flow", entry=None))
    assert [one.message for one in found] == ([message] if message else [])


def printed(script: str, name: str = "B.sh") -> list[Diagnostic]:
    return lint.check(workflow.build("flow", {"START.md": f"<goto>{name}</goto>", "NEXT.md": END, name: script}))


@pytest.mark.parametrize(
    ("script", "id", "column", "message"),
    [
        ("echo '<reset>NXET</reset>'", "script-tag", 7, "there is no state `NXET`"),
        ("echo '<reslut>done</reslut>'", "misspelt-tag", 7, "`<reslut>` is not a tag"),
        ("echo '<gotoo>NEXT</gotoo>'", "misspelt-tag", 7, "`<gotoo>` is not a tag"),
        ('echo "<wait failure=\\"ok\\">NEXT</wait>"', "script-tag", 7, "`<wait>` has no attribute `failure`"),
        ('echo \'<fork next="NXET" colour="red">NEXT</fork>\'', "script-tag", 7, "there is no state `NXET`"),
    ],
)
def test_a_tag_that_a_script_prints_as_it_is_written_is_checked(
    script: str, id: str, column: int, message: str
) -> None:
    [found] = printed(f"set -e\n{script}\n")
    assert (found.id, found.severity, found.line, found.column, found.message) == (id, "warning", 2, column, message)


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("B.sh", 'echo "<goto>$where</goto>"'),
        ("B.sh", "echo \"<goto>`cat where`</goto>\""),
        ("B.sh", "printf '<goto>%s</goto>' NEXT"),
        ("B.sh", "# prints <goto>ELSEWHERE</goto>\necho '<goto>NEXT</goto>'"),
        ("B.sh", "echo '<goto>STATE</goto>' | sed s/STATE/NEXT/"),
        ("B.sh", "echo '<goto>...</goto>'"),
        ("B.sh", "echo '<results>3</results> <task>x</task>'"),
        ("B.py", '"""Print <goto>ELSEWHERE</goto>."""\nprint(f"<goto>{name}</goto>" + "<goto>" + name + "</goto>")'),
    ],
)  # fmt: skip
def test_a_tag_that_a_script_computes_or_talks_about_is_left_alone(name: str, script: str) -> None:
    assert printed(script, name) == []
