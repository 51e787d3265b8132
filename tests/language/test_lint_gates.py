"""What lint finds in gates: the exact words and places, and nothing where there is nothing."""

import pytest

from raymond.errors import Diagnostic
from raymond.language import lint, workflow

END = "<result>x</result>"


def check(head: str, **files: str) -> list[Diagnostic]:
    others = {name.replace("_", ".").replace("0", "_"): text for name, text in files.items()}
    return lint.check(workflow.build("flow", {"START.md": f"---\n{head}\n---\n<goto>NEXT</goto> {END}", **others}))


NEXT = {"NEXT_md": END}


def test_a_gate_that_could_do_harm_is_refused_at_its_place() -> None:
    [found] = check("gate:\n  - make\n  - {run: make && rm -rf ~, timeout: 5m}", **NEXT)
    assert (found.severity, found.id, found.line, found.column) == ("error", "gate-command-unsafe", 4, 11)
    assert found.message == "this check deletes everything in `~`"
    assert found.hint == "a check only looks: remove this, or do it yourself before the run"


def test_no_comment_silences_it() -> None:
    files = {"NEXT.md": END, "START.md": "---\ngate: git reset --hard\n---\n<goto>NEXT</goto>"}
    files["START.md"] += "<!-- raymond: ignore gate-command-unsafe I mean it -->"
    found = lint.check(workflow.build("flow", files))
    assert [(one.id, one.message) for one in found] == [
        ("gate-command-unsafe", "this check discards changes: `git reset --hard`"),
        ("bad-ignore", "`gate-command-unsafe` cannot be ignored"),
    ]


def test_a_state_that_nothing_leads_to_is_judged_as_well() -> None:
    [found] = check("gate: make", NEXT_md=END, OTHER_sh="# /// raymond\n# gate: rm -rf /\n# ///\necho")
    assert (found.id, found.file, found.line) == ("gate-command-unsafe", "OTHER.sh", 2)


@pytest.mark.parametrize(
    ("command", "id", "message"),
    [
        ("rm -rf build", "gate-command-deletes", "this check deletes directories with `rm -r`"),
        (
            "deploy --check",
            "gate-command-unknown",
            "`deploy` is no test runner, build tool or file of the project that Raymond knows",
        ),
    ],
)
def test_a_gate_that_is_doubtful_is_warned_of_and_can_be_silenced(command: str, id: str, message: str) -> None:
    [found] = check(f"gate: {command}", **NEXT)
    assert (found.severity, found.id, found.message, found.line) == ("warning", id, message, 2)
    files = {"START.md": f"---\ngate: {command}\n---\n{END} <!-- raymond: ignore {id} it is ours -->"}
    assert lint.check(workflow.build("flow", files)) == []


def bypasses(target: str, **files: str) -> list[str]:
    head = f"gate: make\nallowed_transitions: [{{tag: result}}, {target}]"
    return [one.message for one in check(head, **files) if one.id == "gate-bypass"]


FREE = "{tag: goto, target: NEXT, gate: false}"
UNCHECKED = "`gate: false` leads to a `result` of {} that no gate has checked"


def test_a_way_around_the_gate_that_reaches_a_result_is_told() -> None:
    assert bypasses(FREE, NEXT_md=END) == [UNCHECKED.format("NEXT.md")]
    assert bypasses(FREE, NEXT_md="<goto>B</goto>", B_sh="echo '<result>x</result>'") == [UNCHECKED.format("B.sh")]
    own = "{tag: result, payload: cannot, gate: false}"
    assert bypasses(own) == ["`gate: false` lets this state end with a `result` that no gate has checked"]
    listed = "---\nallowed_transitions: [{tag: result}]\n---\n{{transitions}}"
    assert bypasses(FREE, NEXT_md=listed) == [UNCHECKED.format("NEXT.md")]


def test_a_way_out_that_ends_red_or_comes_to_a_gate_is_fine() -> None:
    assert bypasses(FREE, NEXT_sh="echo no >&2\nexit 1") == []
    assert bypasses(FREE, NEXT_md="<goto>START</goto>") == []
    assert bypasses(FREE, NEXT_md=f"---\ngate: make\n---\n{END}") == []
    assert bypasses(FREE.replace(", gate: false", ""), NEXT_md=END) == []


def test_an_entry_that_leaves_the_state_open_leads_to_all_that_are_named() -> None:
    free = "{tag: goto, gate: false}, {tag: reset, target: NEXT}"
    assert bypasses(free, NEXT_md=END) == [UNCHECKED.format("NEXT.md")]
