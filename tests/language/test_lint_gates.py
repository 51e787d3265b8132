"""What lint finds in gates: the exact words and places, and nothing where there is nothing."""

import pytest

from raymond.errors import Diagnostic
from raymond.language import lint, workflow

END = "<result>x</result>"


def check(head: str, **files: str) -> list[Diagnostic]:
    others = {name.replace("_", ".").replace("0", "_"): text for name, text in files.items()}
    return lint.check(workflow.build("flow", {"START.md": f"---\n{head}\n---\n<goto>NEXT</goto> {END}", **others}))


def test_keys_about_a_gate_that_there_is_not() -> None:
    found = [one for one in check("gate_tries: 0\nseal: [a]\non_fail: NEXT", **NEXT) if one.id == "no-gate"]
    assert [(one.id, one.message, one.line) for one in found] == [
        ("no-gate", "`gate_tries` does nothing: this state has no gate", 2),
        ("no-gate", "`seal` does nothing: this state has no gate", 3),
        ("no-gate", "`on_fail` does nothing: this state has no gate", 4),
    ]
    assert found[0].severity == "warning"
    everywhere = check("retries: 1", NEXT_md=END, workflow_yaml="gate_tries: 1\n")
    assert everywhere == [], "those of workflow.yaml are for states that have a gate"


NEXT = {"NEXT_md": f"---\ngate: make\n---\n{END}"}


def test_a_gate_that_could_do_harm_is_refused_at_its_place() -> None:
    [found] = check("gate:\n  - make\n  - {run: make && rm -rf ~, timeout: 5m}", **NEXT)
    assert (found.severity, found.id, found.line, found.column) == ("error", "gate-command-unsafe", 4, 11)
    assert found.message == "this check deletes everything in `~`"
    assert found.hint == "a check only looks: remove this, or do it yourself before the run"


def test_no_comment_silences_it() -> None:
    files = {"START.md": "---\ngate: git reset --hard\n---\n<result>x</result>"}
    files["START.md"] += "<!-- raymond: ignore gate-command-unsafe I mean it -->"
    found = lint.check(workflow.build("flow", files))
    assert [(one.id, one.message) for one in found] == [
        ("gate-command-unsafe", "this check discards changes: `git reset --hard`"),
        ("bad-ignore", "`gate-command-unsafe` cannot be ignored"),
    ]


def test_a_state_that_nothing_leads_to_is_judged_as_well() -> None:
    [found] = check("gate: make", **NEXT, OTHER_sh="# /// raymond\n# gate: rm -rf /\n# ///\necho")
    assert (found.id, found.file, found.line) == ("gate-command-unsafe", "OTHER.sh", 2)


@pytest.mark.parametrize(
    ("command", "id", "message"),
    [
        ("rm -rf build", "gate-command-deletes", "this check deletes directories with `rm -r`"),
        ("make test | tee log", "gate-command-masked", "this check is green whatever comes before `| tee`"),
        ("make test || true", "gate-command-masked", "this check is green whatever comes before `|| true`"),
        ("make test 2>&1 | tail -n 5", "gate-command-masked", "this check is green whatever comes before `| tail`"),
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


PAST = "the agent can end without this gate, for example with a `function` that returns to {}"


def open_ways(**files: str) -> list[str]:
    return [one.message for one in check("gate: make", **files) if one.id == "gate-bypass"]


def test_a_gated_prompt_that_may_do_everything_can_pass_its_gate_by() -> None:
    [found] = check("gate: make", NEXT_md=END)
    assert (found.severity, found.id, found.line, found.column) == ("warning", "gate-bypass", 2, 7)
    assert found.message == PAST.format("NEXT.md")
    assert (
        found.hint
        == "list its `allowed_transitions`, put a gate on NEXT.md, or write `<!-- raymond: ignore gate-bypass: REASON -->` into the file"
    )
    assert open_ways(**NEXT, OTHER_sh="echo '<result>x</result>'") == [PAST.format("OTHER.sh")] * 2, (
        "agents may name it"
    )
    files = {"START.md": f"---\ngate: make\n---\n{END} <!-- raymond: ignore gate-bypass so be it -->", "NEXT.md": END}
    assert lint.check(workflow.build("flow", files)) == []


def test_it_is_fine_where_no_state_without_a_gate_ends() -> None:
    assert open_ways(**NEXT) == []
    assert open_ways(NEXT_md="<goto>START</goto>") == []
    assert open_ways(NEXT_sh="echo no >&2\nexit 1") == []
    listed = "---\nallowed_transitions: [{tag: goto, target: START}]\n---\n{{transitions}} or <result>x</result>"
    assert open_ways(NEXT_md=listed) == []
    judge = "---\ngate: make\nevaluator: {prompt: JUDGE, model: haiku, verdicts: {YES: keep}}\n---\n<result>x</result>"
    found = lint.check(workflow.build("flow", {"START.md": judge, "JUDGE.md": f"{{{{output}}}} YES? {END}"}))
    assert [one for one in found if one.id == "gate-bypass"] == [], "nobody can go to a judge"


def test_a_script_goes_where_its_author_says() -> None:
    script = "# /// raymond\n# gate: make\n# ///\necho '<goto>NEXT</goto>'"
    assert lint.check(workflow.build("flow", {"START.sh": script, "NEXT.sh": f"echo '{END}'"})) == []


LEADS = "{}, and it leads to a `result` of NEXT.md that none has checked"


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("{tag: call, target: SUB, return: NEXT}", "`call` passes no gate"),
        ("{tag: function, target: SUB, return: NEXT}", "`function` passes no gate"),
        ("{tag: ask, next: NEXT}", "`ask` passes no gate"),
        ("{tag: ask, next: START, timeout: 1h, timeout_next: NEXT}", "`ask` passes no gate"),
        ("{tag: fork, target: SUB, next: NEXT}", "`fork` passes no gate"),
        ("{tag: fork, target: SUB}, {tag: goto, target: NEXT}", "after a `fork` this passes no gate"),
        ("{tag: fork, target: SUB}, {tag: wait, target: NEXT}", "after a `fork` this passes no gate"),
    ],
)
def test_an_entry_that_passes_no_gate_and_continues_at_a_result_is_told(entry: str, why: str) -> None:
    assert bypasses(entry, NEXT_md=END, SUB_sh=f"echo '{END}'") == [LEADS.format(why)]


@pytest.mark.parametrize(
    "entry",
    [
        "{tag: call, target: SUB, return: START}",
        "{tag: function, target: NEXT, return: START}",
        "{tag: ask, next: START}",
        "{tag: ask, approve: person, next: NEXT}",
        "{tag: fork, target: NEXT, next: START}",
        "{tag: goto, target: NEXT}",
        "{tag: fork, target: SUB}, {tag: wait, target: START}",
    ],
)
def test_an_entry_that_comes_back_to_a_gate_is_fine(entry: str) -> None:
    """The result of a subtask, or of another agent, does not end the work of this one."""
    assert bypasses(entry, NEXT_md=END, SUB_sh=f"echo '{END}'") == []


LATE = {"WORK_md": f'---\ngate: "{{{{check}}}}"\nallowed_transitions: [{{tag: result}}]\n---\n{END}'}


def test_an_agent_that_forks_a_state_with_a_variable_for_a_gate_chooses_its_check() -> None:
    [found] = check("allowed_transitions: [{tag: fork, target: WORK}, {tag: wait, target: NEXT}]", **LATE, **NEXT)
    assert (found.id, found.line, found.message) == (
        "gate-bypass",
        2,
        "an agent that forks WORK.md chooses its check: it is the variable `check`",
    )
    given = "allowed_transitions: [{tag: fork, target: WORK, check: make test}, {tag: wait, target: NEXT}]"
    assert check(given, **LATE, **NEXT) == []
    files = {"START.md": "<fork check='true' next='NEXT'>WORK</fork>", "NEXT.md": NEXT["NEXT_md"]}
    without = lint.check(workflow.build("flow", {**files, "WORK.md": LATE["WORK_md"]}))
    assert [one.id for one in without] == ["gate-bypass"]
    script = {"START.sh": "echo '<fork check=\"make\">WORK</fork><wait>NEXT</wait>'", "NEXT.md": NEXT["NEXT_md"]}
    assert lint.check(workflow.build("flow", {**script, "WORK.md": LATE["WORK_md"]}, entry="START.sh")) == []


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("allowed_transitions: [{tag: result, says: UP}]", "`says` needs everything of its transition given"),
        (
            "allowed_transitions: [{tag: goto, target: NEXT, says: A}, {tag: goto, target: NEXT, says: A}]",
            "two entries say `A`",
        ),
        ("allowed_transitions: [{tag: goto, target: NEXT, says: 'a\n\n    b'}]", "cannot stand on a line of its own"),
    ],
)
def test_lines_that_cannot_stand_for_a_transition(head: str, message: str) -> None:
    assert message in next(one for one in check(head, **NEXT) if one.severity == "error").message


def test_a_script_says_nothing_by_a_line() -> None:
    script = "# /// raymond\n# allowed_transitions: [{tag: goto, target: NEXT, says: UP}]\n# ///\n"
    found = lint.check(workflow.build("flow", {"START.sh": script, "NEXT.md": END}, entry="START.sh"))
    assert [one.message for one in found if one.severity == "error"] == ["`says` is for prompts"]
