"""What an evaluator may say, how its verdicts are told apart, and what is wrong with one before a run."""

import pytest

from raymond.errors import Diagnostic
from raymond.language import evaluator, judges, lint, policy, reach, workflow
from raymond.language.evaluator import Evaluator
from raymond.language.tags import Goto, Result
from raymond.language.workflow import Workflow

ALLOWED = "allowed_transitions: [{tag: goto, target: NEXT}]"
JUDGE = "Is it done? {{output}} {{transition}} Answer YES or NO."


def build(head: str, **files: str) -> Workflow:
    others = {name.replace("_", "."): text for name, text in files.items()}
    start = f"---\n{head}\n---\nDo it, then <goto>NEXT</goto>.\n"
    return workflow.build("w", {"START.md": start, "NEXT.md": "<result>x</result>", "JUDGE.md": JUDGE, **others})


def found(head: str, **files: str) -> list[Diagnostic]:
    return lint.check(build(head, **files))


def said(head: str, **files: str) -> str:
    """The only thing that is wrong."""
    [one] = found(head, **files)
    assert (one.severity, one.line > 0) == ("error", True), one
    return one.message


YES_NO = Evaluator(prompt="J", verdicts={"YES": "keep", "NO": "<goto>A</goto>", "needs work": "keep"})


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("YES", "YES"),
        ("yes.", "YES"),
        ("**Yes**", "YES"),
        ("## `No`!", "NO"),
        ("> - *no*", "NO"),
        ('"NO".', "NO"),
        ("_Needs  work_:", "needs work"),
        ("yes and no", None),
        ("yesno", None),
        ("", None),
        ("...", None),
    ],
)
def test_markdown_punctuation_and_case_are_no_part_of_a_verdict(text: str, verdict: str | None) -> None:
    assert YES_NO.pick(text) == verdict


def test_the_first_line_with_a_word_is_the_verdict_of_a_judge() -> None:
    assert evaluator.first_line("\n---\n**YES**\nbecause NO test fails") == "**YES**"
    assert evaluator.first_line("<result>YES</result>") == "YES"
    assert evaluator.first_line("\n\n") == ""


def test_a_choice_is_keep_or_one_transition() -> None:
    assert evaluator.transition("keep") is None
    assert evaluator.transition(" <goto>A</goto>\n") == Goto(target="A")
    assert evaluator.transition("<result>too long</result>") == Result(text="too long")
    assert evaluator.transition("go to <goto>A</goto>") is None
    assert evaluator.transition("<goto>A</goto><goto>B</goto>") is None


@pytest.mark.parametrize(
    "words", ["{YES: keep, NO: keep}", "{yes: keep, no: keep}", "{true: keep, off: keep, 1: keep}"]
)
def test_words_that_other_yaml_reads_as_booleans_are_words(words: str) -> None:
    parsed = policy.parse(f"---\nevaluator: {{prompt: J, verdicts: {words}}}\n---\n", file="A.md", script=False)
    assert parsed.diagnostics == []
    assert parsed.policy.evaluator
    assert list(parsed.policy.evaluator.verdicts) == [one.split(":")[0].strip(" {") for one in words.split(",")]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "evaluator: {prompt: JUDGE, verdicts: {YES: keep, yes: keep}}",
            "`yes` and `YES` are the same verdict: neither case nor punctuation counts",
        ),
        ("evaluator: {prompt: JUDGE, verdicts: {'!': keep}}", "`!` is not a verdict"),
        (
            "evaluator: {pattern: DONE, verdicts: {YES: keep}}",
            "`YES` is never the verdict of a pattern without a group: that is `match` or `none`",
        ),
        (
            "evaluator: {pattern: '(?P<1>x)', verdicts: {x: keep}}",
            "`pattern` is not a regular expression: bad character in group name '1' at position 4",
        ),
        ("evaluator: {pattern: DONE, model: haiku, verdicts: {match: keep}}", "no model answers a `pattern`"),
        (
            "evaluator: {prompt: JUDGE, verdicts: {YES: see <goto>NEXT</goto>}}",
            "`see <goto>NEXT</goto>` is neither `keep` nor a transition",
        ),
        ("evaluator: {prompt: NOBODY, verdicts: {YES: keep}}", "there is no state `NOBODY`"),
        ("evaluator: {prompt: JUDGE, verdicts: {YES: <goto>ZZZ</goto>}}", "there is no state `ZZZ`"),
        ("evaluator: {prompt: CHECK, verdicts: {YES: keep}}", "CHECK.sh is a script, and a judge is a prompt"),
        (
            "evaluator: {prompt: START, verdicts: {YES: keep}}",
            "START.md is a state that agents are in, so it cannot judge",
        ),
        (
            "evaluator: {prompt: NEXT, verdicts: {YES: keep}}",
            "NEXT.md is a state that START.md leads to, so it cannot judge",
        ),
        (
            "evaluator: {prompt: JUDGE, verdicts: {YES: keep, NO: <goto>JUDGE</goto>}}",
            "JUDGE.md is a judge: no agent can go there",
        ),
        (
            f"{ALLOWED}\nevaluator: {{prompt: JUDGE, verdicts: {{YES: keep, NO: <goto>START</goto>}}}}",
            "`<goto>START</goto>` is not allowed here; allowed: `<goto>NEXT</goto>`",
        ),
    ],
)
def test_what_is_wrong_with_an_evaluator_is_said_before_the_run(head: str, message: str) -> None:
    assert said(head, CHECK_sh="echo '<result>x</result>'") == message


HEAD = "evaluator: {prompt: JUDGE, verdicts: {YES: keep, NO: <goto>START</goto>}}"


def test_a_judge_needs_no_tag() -> None:
    assert found(HEAD) == []
    made = build(HEAD)
    assert reach.of(made).named == {"START.md", "NEXT.md", "JUDGE.md"}
    assert judges.of(made) == {"JUDGE.md": ["START.md"]}
    assert [state.name for state in judges.answered(made)] == ["NEXT.md", "START.md"]


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("gate: make", "JUDGE.md is a judge, and a judge has no `gate`"),
        ("backend: codex", "JUDGE.md is a judge, and a judge has no `backend`"),
        (
            "allowed_transitions: [{tag: result}, {tag: goto, target: NEXT}]",
            "JUDGE.md is a judge, and a judge goes nowhere: it cannot `goto`",
        ),
    ],
)
def test_a_judge_cannot_have_what_means_nothing_for_it(head: str, message: str) -> None:
    assert said(HEAD, JUDGE_md=f"---\n{head}\n---\n{JUDGE}") == message


def test_defaults_of_the_workflow_are_not_those_of_its_judge() -> None:
    files = {"workflow.yaml": "gate: make test\nmodel: opus\n"}
    made = workflow.build("w", {"START.md": "", "JUDGE.md": "---\neffort: low\n---\n" + JUDGE, **files})
    judge = made.states["JUDGE.md"]
    assert (judges.own(judge, "model"), judges.own(judge, "effort")) == ("", "low")


def test_the_judge_of_a_script_is_answered_as_other_prompts_are() -> None:
    head = "# /// raymond\n# evaluator: {prompt: JUDGE, verdicts: {YES: keep}}\n# ///\necho '<result>x</result>'\n"
    made = workflow.build("w", {"START.sh": head, "JUDGE.md": JUDGE})
    assert lint.check(made) == []
    assert [state.name for state in judges.answered(made)] == ["JUDGE.md"]
