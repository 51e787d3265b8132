"""Plain replacement in prompts."""

import pytest

from raymond.language import template

VALUES = {"input": "in", "state": "{{input}}", "_x1": "under", "empty": ""}
INCLUDE = {"rules": "be kind, {{input}}; {{include:rules}} {{who}}", "a b.md": "spaced"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("say {{input}}.", "say in.", id="a bound name is replaced"),
        pytest.param("{{input}}{{input}}", "inin", id="every time it occurs"),
        pytest.param("{{state}}", "{{input}}", id="a value is not scanned again"),
        pytest.param("{{_x1}}", "under", id="underscores and digits are part of a name"),
        pytest.param("[{{empty}}]", "[]", id="an empty value is a value"),
        pytest.param("{{who}}", "{{who}}", id="an unbound name stays as it is"),
        pytest.param("{{ input }}", "{{ input }}", id="blanks inside make it plain text"),
        pytest.param("{{Input}}", "{{Input}}", id="case counts"),
        pytest.param("{{1x}} {{a-b}} {{}}", "{{1x}} {{a-b}} {{}}", id="what is no name is plain text"),
        pytest.param("{{{input}}}", "{in}", id="the innermost braces are meant"),
        pytest.param("{{input}", "{{input}", id="half a place is plain text"),
        pytest.param("{{in{{input}}put}}", "{{ininput}}", id="what appears by replacing is not replaced"),
        pytest.param("\\1 {{input}} \\g<0>", "\\1 in \\g<0>", id="backslashes mean nothing"),
        pytest.param("{{include:a b.md}}", "spaced", id="an include is put in"),
        pytest.param("{{include:none}}", "{{include:none}}", id="an unknown include stays as it is"),
        pytest.param(
            "{{include:rules}}",
            "be kind, in; {{include:rules}} {{who}}",
            id="an included text is rendered once and includes nothing",
        ),
    ],
)
def test_render_replaces_exactly_what_is_bound(text: str, expected: str) -> None:
    assert template.render(text, VALUES, INCLUDE) == expected


def test_includes_need_not_be_given() -> None:
    assert template.render("{{include:rules}} {{input}}", VALUES) == "{{include:rules}} in"


def test_a_value_with_backslashes_is_put_in_as_it_is() -> None:
    assert template.render("{{v}}", {"v": r"\1\g<0>\n"}) == r"\1\g<0>\n"


def test_names_come_with_their_offsets() -> None:
    text = "a {{input}} {{ no }} {{include:rules}}{{input}}"
    assert template.names(text) == [("input", 2), ("include:rules", 21), ("input", 38)]
