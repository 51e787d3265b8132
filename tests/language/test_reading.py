"""What an output says: the grammar of tags rule by rule."""

import pytest

from raymond.language import reading, scanner, tags
from raymond.language.reading import Reading
from raymond.language.refusal import Refusal
from raymond.language.tags import Ask, Call, Fork, Function, Goto, Reset, Result, Transition, Wait

ONE = "end with exactly one transition, e.g. <goto>NEXT.md</goto> or <result>text</result>"
A = Goto(target="A.md")


def table(*rows: tuple[str, str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("text", "expected"), [pytest.param(t, e, id=name) for name, t, e in rows])


def said(text: str, *, script: bool = False) -> list[Transition]:
    output = reading.read(text, script=script)
    assert output.refused is None
    return list(output.transitions)


def refused(text: str) -> Refusal:
    output = reading.read(text)
    assert output.transitions == ()
    assert output.refused is not None
    return output.refused


# Each tag and its attributes


@table(
    ("goto", "<goto>A.md</goto>", A),
    ("goto with all", '<goto input="x" after="5m">A</goto>', Goto(target="A", input="x", after=300.0)),
    ("reset", "<reset>A</reset>", Reset(target="A")),
    (
        "reset with all",
        '<reset cd="../b" after="2h" input="">A</reset>',
        Reset(target="A", input="", after=7200.0, cd="../b"),
    ),
    ("call", '<call return="N">X</call>', Call(target="X", then="N")),
    ("call with input", '<call return=" N " input=" i ">X</call>', Call(target="X", then="N", input=" i ")),
    ("function", '<function return="N">X</function>', Function(target="X", then="N")),
    (
        "function with all",
        '<function return="N" model="haiku" effort="low" input="i">X</function>',
        Function(target="X", then="N", input="i", model="haiku", effort="low"),
    ),
    ("fork", '<fork next="N">X</fork>', Fork(target="X", next="N")),
    (
        "fork with all and variables",
        '<fork next="N" input="i" after="1s" cd="d" who="me" _n2="" timeout="soon" timeout_next="t">X</fork>',
        Fork(
            target="X",
            next="N",
            input="i",
            after=1.0,
            cd="d",
            variables={"who": "me", "_n2": "", "timeout": "soon", "timeout_next": "t"},
        ),
    ),
    ("wait", "<wait>N</wait>", Wait(target="N")),
    ("wait for failures", '<wait failed_next="F">N</wait>', Wait(target="N", failed_next="F")),
    ("wait whatever fails", '<wait failures="ok">N</wait>', Wait(target="N", failures="ok")),
    ("wait with a timeout only", '<wait timeout="90s">N</wait>', Wait(target="N", timeout=90.0)),
    (
        "wait with all",
        '<wait timeout="90s" timeout_next="L" input="i">N</wait>',
        Wait(target="N", input="i", timeout=90.0, timeout_next="L"),
    ),
    ("ask", '<ask next="N">\n ok? \n</ask>', Ask(question="ok?", next="N")),
    (
        "ask with all",
        '<ask next="N" timeout="1d" timeout_next="L">ok?</ask>',
        Ask(question="ok?", next="N", timeout=86400.0, timeout_next="L"),
    ),
    ("result", "<result>done</result>", Result(text="done")),
    ("empty result", "<result></result>", Result(text="")),
    ("no delay is a delay", '<goto after="0s">A.md</goto>', A),
    ("a target is stripped", "<goto>\n  A.md\t</goto>", A),
    ("a target is not judged", "<goto>../x y</goto>", Goto(target="../x y")),
)
def test_a_tag_says_what_it_says(text: str, expected: Transition) -> None:
    assert said(text) == [expected]


@table(
    ("single quotes", "<goto input='a \"b\"'>A</goto>", 'a "b"'),
    ("double quotes", '<goto input="it\'s">A</goto>', "it's"),
    ("a > inside", '<goto input="a > b -> c">A</goto>', "a > b -> c"),
    ("a tag inside", '<goto input="<result>x</result>">A</goto>', "<result>x</result>"),
    ("line ends inside and between", '<goto\n\tinput="a\nb"\n>A</goto>', "a\nb"),
    ("entities", '<goto input="&lt;&gt;&amp;&quot;&apos;">A</goto>', "<>&\"'"),
    ("entities are decoded once", '<goto input="&amp;lt;">A</goto>', "&lt;"),
    ("other entities stay", '<goto input="&nbsp;&#65;&LT;">A</goto>', "&nbsp;&#65;&LT;"),
)
def test_attribute_values_are_taken_as_quoted(text: str, expected: str) -> None:
    assert said(text) == [Goto(target="A", input=expected)]


def test_the_order_of_attributes_does_not_matter() -> None:
    assert said('<call input="i" return="N">X</call>') == said('<call return="N" input="i">X</call>')


def test_entities_are_not_decoded_in_the_text() -> None:
    assert said("<result>&lt;b&gt;</result>") == [Result(text="&lt;b&gt;")]


# What is no tag


@pytest.mark.parametrize(
    "text",
    [
        "",
        "done",
        "<gotox>A.md</gotox>",
        "<go>A.md</go>",
        "<goto-now>A.md</goto-now>",
        "<Goto>A.md</Goto>",
        "<GOTO>A.md</GOTO>",
        "< goto>A.md</goto>",
        "<goto/>",
        '<goto input="x"/>',
        "<goto />A.md",
        "A.md</goto>",
        "<goto input=x>A.md</goto>",
        '<goto input = "x">A.md</goto>',
        '<goto input="x"after="5m">A.md</goto>',
        "<goto input>A.md</goto>",
        '<goto input="x>A.md</goto>',
        "<goto <b>>A.md</goto>",
        "&lt;goto&gt;A.md&lt;/goto&gt;",
        "<goto" + ' a="1"' * 1001 + ">A.md</goto>",
    ],
)
def test_what_only_looks_like_a_tag_is_plain_text(text: str) -> None:
    assert reading.scan(text) == []
    assert refused(text) == Refusal("none", "the output has no transition", ONE)


@table(
    ("no closing tag", "<goto>A.md", "goto"),
    ("another's closing tag", "<result>x</goto>", "result"),
    ("blanks in the closing tag", "<reset>x</reset >", "reset"),
    ("other case", "<wait>x</WAIT>", "wait"),
)
def test_a_tag_that_is_never_closed_is_plain_text_and_named(text: str, expected: str) -> None:
    assert refused(text).kind == "none"
    assert refused(text).reason == f"the output has no transition; its <{expected}> is never closed"
    assert refused(text).hint == f"<{expected}>{'text' if expected == 'result' else 'NEXT.md'}</{expected}>"


def test_a_print_that_is_never_closed_is_not_blamed() -> None:
    assert refused("<print>x").reason == "the output has no transition"


def test_the_scan_goes_on_after_what_never_closes() -> None:
    assert said("<result> is a tag, <goto a='1 too, <!-- and ` and\n```\n<goto>A.md</goto>") == [A]


# The outermost wins


@table(
    ("a tag in a result", "<result><goto>B</goto></result>", Result(text="<goto>B</goto>")),
    ("a tag in a question", '<ask next="N"><goto>B</goto>?</ask>', Ask(question="<goto>B</goto>?", next="N")),
    ("a fence in a result", "<result>\n```\n</result>", Result(text="```")),
    ("a whole fence in a result", "<result>```\n<goto>B</goto>\n```</result>", Result(text="```\n<goto>B</goto>\n```")),
    ("a backtick in a result", "<result>a ` b</result> `", Result(text="a ` b")),
    ("a comment in a result", "<result><!--</result> -->", Result(text="<!--")),
    ("its own closing tag is the first", "<result><result>x</result>", Result(text="<result>x")),
    ("a print's payload does not count", "<print><result>x</print><goto>A.md</goto>", A),
)
def test_what_stands_inside_a_tag_is_its_payload(text: str, expected: Transition) -> None:
    assert said(text) == [expected]


# Quotations

QUOTED = [
    ("backtick fence", "```\n<result>q</result>\n```\n"),
    ("fence with an info string", "```xml <x>\n<result>q</result>\n```\n"),
    ("tilde fence", "~~~\n<result>q</result>\n~~~\n"),
    ("tilde fence with backticks in the info string", "~~~ `x`\n<result>q</result>\n~~~\n"),
    ("fence after three blanks", "   ```\n<result>q</result>\n   ```\n"),
    ("closed by more", "```\n<result>q</result>\n`````  \n"),
    ("closed by the end", "```\n<result>q</result>\n```"),
    ("not closed by fewer", "````\n```\n<result>q</result>\n````\n"),
    ("not closed by the other mark", "```\n~~~\n<result>q</result>\n```\n"),
    ("not closed by a line with words", "```\n``` x\n<result>q</result>\n```\n"),
    ("not closed after four blanks", "```\n    ```\n<result>q</result>\n```\n"),
    ("after a longer one that never closes", "````\n```\n<result>q</result>\n```\n"),
    ("carriage returns", "```\r\n<result>q</result>\r\n```\r\n"),
    ("a fence holds a comment", "```\n<!--\n<result>q</result>\n```\n"),
    ("inline code", "`<result>q</result>` "),
    ("inline code of two", "``a ` <result>q</result>`` "),
    ("inline code of three", "```<result>q</result>``` "),
    ("inline code after a lone run", "`` `<result>q</result>` "),
    ("comment", "<!-- <result>q</result> -->"),
    ("comment over lines", "<!--\n```\n<result>q</result>\n-->"),
    ("a comment holds a backtick", "<!-- ` --><!-- <result>q</result> -->"),
]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in QUOTED])
def test_a_quoted_tag_beside_a_real_one_does_not_count(text: str) -> None:
    assert said(f"{text}\n<goto>A.md</goto>") == [A]
    assert said(f"<goto>A.md</goto>\n{text}") == [A]


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in QUOTED])
def test_the_only_tag_is_meant_even_when_it_is_quoted(text: str) -> None:
    assert said(f"So:\n{text}\n") == [Result(text="q")]
    assert [tag.quoted != "" for tag in reading.scan(text)] == [True]


@table(
    ("fence that never closes", "```\n<result>r</result>\n", 1),
    ("fence closed by too few", "````\n<result>r</result>\n```\n", 1),
    ("fence after four blanks", "    ```\n<result>r</result>\n    ```\n", 1),
    ("fence after a tab", "\t```\n<result>r</result>\n\t```\n", 1),
    ("fence after words", "so ~~~\n<result>r</result>\n~~~\n", 1),
    ("two marks", "~~\n<result>r</result>\n~~\n", 1),
    ("backtick in the info string", "``` a`b\n<result>r</result>\n", 1),
    ("backticks over two lines", "`a\n<result>r</result> `\n", 1),
    ("unequal runs", "`` <result>r</result> `\n", 1),
    ("comment that never closes", "<!-- <result>r</result> --\n", 1),
    ("comment that is too short", "<!--> <result>r</result>", 1),
    ("a comment that only seems to begin", "<!- <result>r</result> -->", 1),
    ("the tag opens first", "<result>r `</result>`", 1),
    ("the code closes first", "`a` <result>r</result> `b`", 1),
    ("the fence closes first", "```\na\n```\n<result>r</result>\n```\nb\n```\n", 1),
)
def test_what_quotes_nothing(text: str, expected: int) -> None:
    assert [tag.quoted for tag in reading.scan(text)] == [""] * expected
    assert isinstance(said(text)[0], Result)


def test_of_two_quoted_tags_none_is_meant() -> None:
    assert refused("`<goto>A</goto>` or `<goto>B</goto>`") == Refusal(
        "none",
        "the output has no transition; the two in code or comments do not count",
        "write the one you mean outside code and comments",
    )


def test_a_quoted_print_is_neither_shown_nor_counted() -> None:
    assert reading.read("`<print>p</print>` `<goto>A.md</goto>`") == Reading((A,))


def test_a_tag_that_only_begins_in_a_quotation_is_not_quoted() -> None:
    assert refused("```\n<goto>A\n```\n</goto>").kind == "none"


def test_quoted_tags_follow_the_outermost_rule_too() -> None:
    assert said("```\n<print><goto>B</goto></print>\n<goto a='<goto>A.md</goto>\n```") == [A]


# Several


@table(
    (
        "goto and result",
        "<goto>A.md</goto> or <result>x</result>",
        "the output has two transitions: <goto>A.md</goto> and <result>",
    ),
    (
        "two results",
        "<result>x</result><result>y</result>",
        "the output has two transitions: <result> and <result>",
    ),
    (
        "three",
        '<goto>A</goto><reset>B</reset><ask next="N">q</ask>',
        "the output has three transitions: <goto>A</goto>, <reset>B</reset> and <ask>",
    ),
    (
        "five",
        "<goto>A</goto>" * 5,
        "the output has 5 transitions: <goto>A</goto>, <goto>A</goto> and 3 more",
    ),
    (
        "a fork and a result",
        '<fork next="N">W</fork><result>x</result>',
        "the output has two transitions: <fork>W</fork> and <result>",
    ),
    (
        "forks and two gotos",
        "<fork>W</fork><goto>A</goto><goto>B</goto>",
        "the output has three transitions: <fork>W</fork>, <goto>A</goto> and <goto>B</goto>",
    ),
    (
        "a long target is not shown",
        f"<goto>{'x' * 41}</goto><goto>a\nb</goto>",
        "the output has two transitions: <goto> and <goto>",
    ),
)
def test_more_than_one_transition_is_refused_by_name(text: str, expected: str) -> None:
    assert refused(text) == Refusal("several", expected, ONE)


@table(
    (
        "forks that agree",
        '<fork next="N" n="1">B</fork> and <fork next="N" n="2">A</fork>',
        [
            Fork(target="B", next="N", variables={"n": "1"}),
            Fork(target="A", next="N", variables={"n": "2"}),
        ],
    ),
    ("forks and a wait", "<fork>B</fork><wait>N</wait>", [Fork(target="B"), Wait(target="N")]),
    (
        "a goto between forks comes last",
        "<fork>B</fork><goto>A.md</goto><fork>C</fork>",
        [Fork(target="B"), Fork(target="C"), A],
    ),
)
def test_forks_may_stand_together(text: str, expected: list[Transition]) -> None:
    assert said(text) == expected


@table(
    (
        "no next",
        "<fork>B.md</fork>",
        Refusal(
            "incomplete",
            "a <fork> needs `next`, or one <goto> or <wait> in the same output",
            '<fork next="NEXT.md">B.md</fork>',
        ),
    ),
    (
        "one without next",
        '<fork next="N">A</fork><fork next=" ">B</fork>',
        Refusal(
            "incomplete",
            "a <fork> needs `next`, or one <goto> or <wait> in the same output",
            '<fork next="NEXT.md">B</fork>',
        ),
    ),
    (
        "different next",
        '<fork next="N">A</fork><fork next="M">B</fork>',
        Refusal(
            "several",
            "the forks of the output disagree on `next`: N and M",
            "give all of them the same `next`",
        ),
    ),
    (
        "next and goto",
        '<fork next="N">A</fork><goto>N</goto>',
        Refusal(
            "several",
            "the output has a <fork> with `next` and a <goto>, which both say where to continue",
            "remove `next` from each <fork>, or remove the <goto>",
        ),
    ),
    (
        "next and wait",
        '<fork>A</fork><fork next="N">A</fork><wait>N</wait>',
        Refusal(
            "several",
            "the output has a <fork> with `next` and a <wait>, which both say where to continue",
            "remove `next` from each <fork>, or remove the <wait>",
        ),
    ),
)
def test_forks_must_agree_on_where_to_continue(text: str, expected: Refusal) -> None:
    assert refused(text) == expected


def test_ten_thousand_forks_are_taken_and_one_more_is_refused() -> None:
    text = '<fork next="N">W</fork>\n' * reading.MOST_FORKS
    assert len(said(text)) == reading.MOST_FORKS
    assert len(said(text.replace(' next="N"', "") + "<wait>N</wait>")) == reading.MOST_FORKS + 1
    assert refused(text * 2) == Refusal("several", "the output has more than 10000 forks", "fork fewer agents at once")


# What is refused in one tag


@table(
    (
        "call without return",
        "<call>CHECK.md</call>",
        Refusal("incomplete", "<call> needs `return`", '<call return="NEXT.md">CHECK.md</call>'),
    ),
    (
        "function with an empty return",
        '<function return=" ">CHECK.md</function>',
        Refusal("incomplete", "<function> needs `return`", '<function return="NEXT.md">CHECK.md</function>'),
    ),
    (
        "a long target is not repeated",
        f"<call>{'x' * 41}</call>",
        Refusal("incomplete", "<call> needs `return`", '<call return="NEXT.md">CHECK.md</call>'),
    ),
    (
        "ask without next",
        "<ask>ok?</ask>",
        Refusal("incomplete", "<ask> needs `next`", '<ask next="NEXT.md">ok?</ask>'),
    ),
    (
        "ask without a question",
        '<ask next="N"> </ask>',
        Refusal("incomplete", "<ask> has no question", '<ask next="NEXT.md">question</ask>'),
    ),
    ("no target", "<goto> \n</goto>", Refusal("incomplete", "<goto> has no target", "<goto>NEXT.md</goto>")),
    (
        "a typo",
        '<goto inptu="x">A</goto>',
        Refusal(
            "attribute",
            "<goto> has no attribute `inptu`",
            "did you mean `input`? <goto> takes `input`, `after`",
        ),
    ),
    (
        "nothing like it",
        '<wait zzz="x">A</wait>',
        Refusal(
            "attribute",
            "<wait> has no attribute `zzz`",
            "<wait> takes `input`, `timeout`, `timeout_next`, `failed_next`, `failures`",
        ),
    ),
    (
        "cd on goto",
        '<goto cd="x">A</goto>',
        Refusal("attribute", "<goto> has no attribute `cd`", "<goto> takes `input`, `after`"),
    ),
    (
        "a name that cannot be one",
        '<call time-out="x" return="N">A</call>',
        Refusal("attribute", "<call> has no attribute `time-out`", "<call> takes `return`, `input`"),
    ),
    (
        "an endless name",
        f'<goto {"x" * 99}="">A</goto>',
        Refusal("attribute", f"<goto> has no attribute `{'x' * 37}...`", "<goto> takes `input`, `after`"),
    ),
    (
        "result takes none",
        '<result input="x">y</result>',
        Refusal("attribute", "<result> has no attribute `input`", "<result>text</result>"),
    ),
    (
        "print takes none",
        '<print to="x">y</print><goto>A</goto>',
        Refusal("attribute", "<print> has no attribute `to`", "<print>text</print>"),
    ),
    (
        "twice",
        '<goto input="x" input="y">A</goto>',
        Refusal("attribute", "<goto> has the attribute `input` twice", "give `input` once"),
    ),
    (
        "not a duration",
        '<goto after="5 minutes">A</goto>',
        Refusal("value", "`after`: `5 minutes` is not a duration", 'after="5m"'),
    ),
    (
        "endless digits",
        f'<goto after="{"9" * 100}s">A</goto>',
        Refusal("value", f"`after`: `{'9' * 37}...` is not a duration", 'after="5m"'),
    ),
    (
        "empty timeout",
        '<wait timeout="">A</wait>',
        Refusal("value", "`timeout`: `` is not a duration", 'timeout="5m"'),
    ),
    (
        "no timeout at all",
        '<ask next="N" timeout="0s">q</ask>',
        Refusal("value", "`timeout` must be longer than 0s", 'timeout="5m"'),
    ),
    (
        "timeout_next alone",
        '<wait timeout_next="L">A</wait>',
        Refusal("incomplete", "<wait> has `timeout_next` without `timeout`", 'add timeout="5m"'),
    ),
    (
        "a built-in variable",
        '<fork next="N" agent_id="x">A</fork>',
        Refusal("attribute", "<fork> cannot set `agent_id`, a built-in variable", "choose another name"),
    ),
    (
        "no variable's name",
        '<fork next="N" my-name="x">A</fork>',
        Refusal(
            "attribute",
            "<fork> cannot set a variable `my-name`",
            "use letters, digits and _ in the name, and do not start with a digit",
        ),
    ),
    (
        "a quoted tag is checked too",
        "`<call>X</call>`",
        Refusal("incomplete", "<call> needs `return`", '<call return="NEXT.md">X</call>'),
    ),
)
def test_a_malformed_tag_is_refused_with_the_way_out(text: str, expected: Refusal) -> None:
    assert refused(text) == expected


@pytest.mark.parametrize("name", sorted(tags.BUILT_IN - {"input"}))
def test_no_fork_sets_a_built_in(name: str) -> None:
    assert refused(f'<fork next="N" {name}="x">A</fork>').kind == "attribute"


def test_a_print_is_not_a_transition() -> None:
    assert reading.transition(reading.scan("<print>x</print>")[0]) == Refusal(
        "none", "<print> is not a transition", ONE
    )


# Texts


@table(
    ("one line end at each side", "\n\n a \n\n", "\n a \n"),
    ("carriage returns count as part of it", "\r\na\r\n", "a"),
    ("mixed", "\na\r\n", "a"),
    ("blanks stay", "  a  ", "  a  "),
    ("a lone line end", "\n", ""),
    ("a lone carriage return stays", "\ra\r", "\ra\r"),
    ("nothing", "", ""),
)
def test_texts_of_scripts_and_prints_lose_one_line_end(text: str, expected: str) -> None:
    output = f"<print>{text}</print><result>{text}</result>"
    assert reading.read(output, script=True) == Reading((Result(text=expected),), prints=(expected,))
    assert said(output) == [Result(text=text.strip())]


def test_prints_come_as_soon_as_they_are_certain() -> None:
    reader = reading.Reader()
    assert reader.feed("a <print>one</pri") == []
    assert reader.feed("nt>") == ["one"]
    assert reader.feed("<print>two</print><print>three</print>`") == ["two", "three"]
    assert reader.feed(" <print>four</print>") == []
    assert reader.feed("\n") == ["four"]
    assert reader.feed("<!-- <print>five</print>") == []
    assert reader.close().prints == ("five",)


def test_a_long_print_comes_as_soon_as_it_is_closed() -> None:
    reader = reading.Reader()
    reader.feed("<print>")
    for _ in range(100):
        assert reader.feed("x>" * 5000) == []
    assert reader.feed("</prin") == []
    assert reader.feed("t>") == ["x>" * 500_000]


def test_read_returns_all_prints() -> None:
    assert reading.read("<print>a</print> <!-- <print>b</print>").prints == ("a", "b")


# Limits


@pytest.mark.parametrize("name", tags.TAGS)
def test_a_payload_over_the_limit_is_refused(name: str) -> None:
    reader = reading.Reader(limit=40)
    reader.feed(f'<{name} next="N">{"x" * 41}</{name}> <goto>A.md</goto>')
    assert reader.close().refused == Refusal(
        "too_long",
        f"the text of <{name}> is longer than 8 MiB",
        "write it to a file and pass on the name of the file",
    )


def test_a_payload_of_eight_mebibytes_is_taken_and_one_more_is_not() -> None:
    text = "x" * scanner.LIMIT
    assert said(f"<result>{text}</result>") == [Result(text=text)]
    assert refused(f"<result>{text}x</result>").kind == "too_long"


def test_the_transitions_together_keep_to_the_limit() -> None:
    reader = reading.Reader(limit=100)
    reader.feed('<fork next="N" a="0123456789">W</fork>\n' * 10)
    refusal = reader.close().refused
    assert refusal is not None
    assert (refusal.kind, refusal.reason) == ("too_long", "the text of the transitions is longer than 8 MiB")


@table(
    ("comment", f"<!--{'x' * 40}<goto>A.md</goto>-->", ""),
    ("fence", f"```\n{'x' * 40}\n<goto>A.md</goto>\n```\n", ""),
    (
        "fence with another after it",
        f"```\n{'x' * 30}\n<print>\n```\n</print>\n```\n<wait>W</wait>\n```\n<goto>A.md</goto>",
        "",
    ),
    ("inline code", f"`{'x' * 40}<goto>A.md</goto>`", ""),
    ("opening", f"<result a='{'x' * 40}'><goto>A.md</goto></result>", ""),
)
def test_a_quotation_over_the_limit_quotes_nothing(text: str, expected: str) -> None:
    reader = reading.Reader(limit=40)
    reader.feed(text)
    assert reader.close().transitions == (A,)


# Scanning


def test_scan_finds_every_tag_with_its_place() -> None:
    text = "<goto>A</goto> `<print>b</print>`\n<!-- <call return='N'>X</call> -->\n~~~\n<ask>q</ask>\n~~~\n"
    found = reading.scan(text)
    assert [(tag.name, tag.attributes, tag.body, tag.quoted) for tag in found] == [
        ("goto", {}, "A", ""),
        ("print", {}, "b", "code"),
        ("call", {"return": "N"}, "X", "comment"),
        ("ask", {}, "q", "fence"),
    ]
    assert [text[tag.start : tag.stop] for tag in found] == [
        "<goto>A</goto>",
        "<print>b</print>",
        "<call return='N'>X</call>",
        "<ask>q</ask>",
    ]


def test_scan_remembers_an_attribute_given_twice() -> None:
    assert [tag.twice for tag in reading.scan("<goto a='1' a='2'>A</goto>")] == ["a"]
