"""Which states the entry of a workflow can lead to."""

import pytest

from raymond.language import lint, reach, workflow

POLICY = "---\nallowed_transitions: [{}]\n---\n"
ALL = {"START", "A", "B", "C"}


def found(start: str, *, script: bool = False, **states: str) -> tuple[set[str], set[str]]:
    """What is named and what is possible."""
    files = {"START.sh" if script else "START.md": start, "lib/end.md": "<goto>C</goto>"}
    files |= {f"{name}.md": states.get(name, "<result>x</result>") for name in "ABC"}
    got = reach.of(workflow.build("flow", files))
    return {workflow.bare(one) for one in got.named}, {workflow.bare(one) for one in got.possible}


@pytest.mark.parametrize(
    ("start", "named", "possible"),
    [
        ("<goto>A</goto>", {"START", "A"}, {"START", "A"}),
        ("<goto>A.md</goto>, `<call return='B'>A</call>`", {"START", "A", "B"}, {"START", "A", "B"}),
        ("```\n<goto>A</goto>\n```", {"START", "A"}, {"START", "A"}),
        ("<!-- <goto>A</goto> --> <result>x</result>", {"START"}, {"START", "A"}),
        ("<result>x</result> or continue with A.", {"START"}, {"START", "A"}),
        ("<goto>{{input}}</goto>", ALL, ALL),
        ("<goto>...</goto>", ALL, ALL),
        ("no tag", ALL, ALL),
        (POLICY.format("{tag: goto, target: A}") + "B and C", {"START", "A"}, {"START", "A"}),
        (POLICY.format("{tag: result}"), {"START"}, {"START"}),
        (POLICY.format("{tag: goto}"), ALL, ALL),
        (POLICY.format("{tag: ask}"), ALL, ALL),
        (POLICY.format("{tag: goto}, {tag: ask, next: A}"), {"START", "A"}, {"START", "A"}),
        (POLICY.format("{tag: fork, target: A}, {tag: wait, target: B}"), {"START", "A", "B"}, {"START", "A", "B"}),
        ("---\non_error: A\nmax_visits: 1\nthen: B\n---\n<result>x</result>", {"START", "A", "B"}, {"START", "A", "B"}),
        ("{{include:end.md}}", {"START", "C"}, {"START", "C"}),
    ],
)
def test_a_prompt_leads_where_its_policy_or_else_its_text_says(start: str, named: set[str], possible: set[str]) -> None:
    assert found(start) == (named, possible)


@pytest.mark.parametrize(
    ("start", "named", "possible"),
    [
        ("echo '<goto>A</goto>'", {"START", "A"}, {"START", "A"}),
        ('echo "<ask next=\\"A\\">Why?</ask>"', {"START", "A"}, {"START", "A"}),
        ('printf \'<fork next="B" file="%s">A</fork>\' x', {"START", "A", "B"}, {"START", "A", "B"}),
        ("cat C.md; echo '<result>x</result>'", {"START"}, {"START", "C"}),
        ('echo "<goto>$next</goto>"', ALL, ALL),
        ('echo "<$tag>A</$tag><result>x</result>"', ALL, ALL),
        ("echo '<goto>A</goto>'; echo '<goto input=\"a>b\">B</goto>'", ALL, ALL),
        ("decide", ALL, ALL),
        ("echo 'not done' >&2\nexit 1\n", {"START"}, {"START"}),
        ("echo 'not done' >&2; exit 1\n", {"START"}, {"START"}),
        ("decide && exit\nexit 1\n", ALL, ALL),
        ('"$RAYMOND_WORKFLOW_DIR/lib/decide"; echo "<result>x</result>"', ALL, ALL),
    ],
)
def test_a_script_leads_where_its_text_says_and_anywhere_when_it_computes_that(
    start: str, named: set[str], possible: set[str]
) -> None:
    assert found(start, script=True) == (named, possible)


def test_states_lead_on_to_others_and_a_workflow_without_entry_has_no_state_that_does_not_count() -> None:
    assert found("<goto>A</goto>", A="<goto>B</goto>", B="<goto>A</goto>") == ({"START", "A", "B"},) * 2
    assert reach.of(workflow.build("flow", {"A.md": "", "B.md": ""})).named == {"A.md", "B.md"}


def test_only_what_can_be_reached_is_checked_but_a_secret_is_found_anywhere() -> None:
    token = "ghp_" + "q7Zr2LmX9vTb4KpW1sNd8Hc3Yf6Gj5Qa0RtU"
    files = {
        "START.md": "<goto>A</goto>",
        "A.md": "<goto>ZZZ</goto>",
        "B.md": f"<goto>ZZZ</goto> {token}",
        "C.py": "if",
    }
    wrong = lint.errors(workflow.build("flow", files))
    assert [(one.file, one.id) for one in wrong] == [("A.md", "missing-target"), ("B.md", "secret-in-state")]
