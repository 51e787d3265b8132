"""The table of tags: the page shows it, and whatever knows tags knows them from it."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from raymond.language import lint, policy, reading, tags, workflow
from raymond.language.refusal import Refusal
from raymond.language.tags import TAGS, Attribute, TagForm

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text("utf-8")
EVERY_ATTRIBUTE = sorted({name for form in TAGS.values() for name in form.attributes})
VALUES = {
    "state": "NEXT.md",
    "duration": "90s",
    "text": " some text ",
    "path": "sub/folder",
    "name": "word",
    "choices": "a,b",
}
READ = VALUES | {"duration": 90.0}
KINDS = {"state": "a state", "duration": "a duration", "text": "text", "path": "a directory", "name": "a name"}
KINDS |= {"choices": "answers"}
TRANSITIONS = [form for form in TAGS.values() if form.makes]

each_tag = pytest.mark.parametrize("form", TAGS.values(), ids=TAGS)
each_transition = pytest.mark.parametrize("form", TRANSITIONS, ids=[form.name for form in TRANSITIONS])


def rows(heading: str) -> list[list[str]]:
    """The cells of the table in the page that has this heading."""
    found = re.search(rf"^{re.escape(heading)}\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found, heading
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def value(one: Attribute) -> str:
    """What an attribute may have."""
    return one.choices[0] if one.choices else VALUES[one.kind]


def any_of(one: Attribute) -> str:
    """What an attribute may have that takes almost anything."""
    return one.choices[0] if one.choices else VALUES["choices" if one.kind == "choices" else "duration"]


def written(form: TagForm, left_out: str = "", **more: str) -> str:
    """The tag with every attribute that it takes, but one."""
    given = {name: value(one) for name, one in form.attributes.items() if name != left_out} | more
    attributes = "".join(f' {name}="{value}"' for name, value in given.items())
    return f"<{form.name}{attributes}>{VALUES['state']}</{form.name}>"


def transition(text: str) -> tags.Transition | Refusal:
    [tag] = reading.scan(text)
    return reading.transition(tag)


def allowed(form: TagForm, *names: str) -> policy.Parsed:
    known = form.attributes
    fields = ", ".join(f"{name}: '{any_of(known[name]) if name in known else '90s'}'" for name in names)
    text = f"---\nallowed_transitions: [{{tag: {form.name}, {fields}}}]\n---\n"
    return policy.parse(text, file="A.md", script=False)


def found(body: str) -> list[str]:
    """Ids of what lint says about a prompt."""
    return [one.id for one in lint.check(workflow.build("flow", {"START.md": body, "NEXT.md": "<result>x</result>"}))]


# The page


@each_tag
def test_the_page_says_what_a_tag_holds(form: TagForm) -> None:
    [(between, required, optional)] = [
        cells for tag, *cells in rows("| tag | between the tags | required | optional |") if tag == f"`{form.name}`"
    ]
    what = {"state": "a state", "text": "a question" if form.body.field == "question" else "text"}
    assert between == what[form.body.kind]
    needed = {name: one for name, one in form.attributes.items() if one.required}
    assert quoted(required) == [*needed, *(tag for one in needed.values() for tag in one.unless)]
    assert quoted(optional) == [name for name in form.attributes if name not in needed]
    assert optional.endswith("variables") is form.variables


def test_the_page_lists_every_tag_and_no_other() -> None:
    listed = [tag for tag, *_ in rows("| tag | between the tags | required | optional |")]
    assert listed == [f"`{name}`" for name in TAGS]


def test_the_page_says_what_every_attribute_is() -> None:
    kinds = {name: one for form in TAGS.values() for name, one in form.attributes.items()}
    listed = {name: kind for names, kind, _ in rows("| attribute | is | meaning |") for name in quoted(names)}
    assert listed == {
        name: " or ".join(f"`{choice}`" for choice in one.choices) or KINDS[one.kind] for name, one in kinds.items()
    }


# The table


@each_transition
def test_every_field_of_a_transition_is_filled_by_its_tag(form: TagForm) -> None:
    filled = [
        form.body.field,
        *(one.field for one in form.attributes.values()),
        *(["variables"] if form.variables else []),
    ]
    assert sorted(filled) == sorted(form.makes.__struct_fields__)


@each_tag
def test_an_attribute_means_the_same_kind_of_thing_on_every_tag(form: TagForm) -> None:
    for name, one in form.attributes.items():
        assert {other.attributes[name].kind for other in TAGS.values() if name in other.attributes} == {one.kind}
        assert not one.needs or one.needs in form.attributes
        assert set(one.unless) <= set(TAGS)


@each_transition
def test_the_form_in_a_hint_is_valid(form: TagForm) -> None:
    assert reading.read(form.write()).refused is None


# Reading


@each_transition
def test_every_attribute_is_read_into_its_field(form: TagForm) -> None:
    made = transition(written(form))
    assert not isinstance(made, Refusal)
    fields: dict[str, Any] = msgspec.structs.asdict(made)
    for one in form.attributes.values():
        assert fields[one.field] == (one.choices[0] if one.choices else READ[one.kind])
    assert fields[form.body.field] == VALUES["state"]


@each_transition
def test_no_other_attribute_is_read(form: TagForm) -> None:
    for name in EVERY_ATTRIBUTE:
        made = transition(written(form, **{name: VALUES["duration"]}))
        if name not in form.attributes and form.variables:
            assert isinstance(made, tags.Fork)
            assert made.variables == {name: VALUES["duration"]}
        elif name not in form.attributes:
            assert isinstance(made, Refusal)
            assert made.kind == "attribute"


@each_transition
def test_what_is_required_is_missed(form: TagForm) -> None:
    for name, one in form.attributes.items():
        output = reading.read(written(form, left_out=name))
        assert (output.refused is not None) is (
            one.required or any(other.needs == name for other in form.attributes.values())
        )


def test_the_states_of_a_transition_are_those_that_its_tag_names() -> None:
    for form in TRANSITIONS:
        made = transition(written(form))
        assert not isinstance(made, Refusal)
        expected = [one for one in (form.body, *form.attributes.values()) if one.kind == "state"]
        assert tags.targets(made) == ["NEXT.md"] * len(expected)
        assert len(tags.targets(transition(form.write()))) == sum(one.required for one in expected)  # type: ignore[arg-type]


# Policy


@each_transition
def test_a_policy_takes_the_attributes_of_a_tag_and_no_others(form: TagForm) -> None:
    for name in EVERY_ATTRIBUTE:
        wrong = [one.id for one in allowed(form, name).diagnostics]
        variable = form.variables and name != "return"
        assert wrong == ([] if name in form.attributes or variable else ["unknown-key"])


@each_transition
def test_a_policy_compares_every_attribute(form: TagForm) -> None:
    parsed = allowed(form, form.body_key, *form.attributes)
    read = transition(written(form, **{name: any_of(one) for name, one in form.attributes.items()}))
    assert not isinstance(read, Refusal)
    same = msgspec.structs.replace(read, **{form.body.field: "90s"})
    assert policy.permit(parsed.policy, [same]) is None
    for one in form.attributes.values():
        other = msgspec.structs.replace(same, **{one.field: 7.0 if one.kind == "duration" else "other"})
        assert policy.permit(parsed.policy, [other]) is not None


@each_transition
def test_a_policy_leaves_open_what_is_needed_or_decides_nothing(form: TagForm) -> None:
    nothing = allowed(form).policy
    for name, one in form.attributes.items():
        made = transition(form.write())
        assert not isinstance(made, Refusal)
        made = msgspec.structs.replace(made, **{one.field: 90.0 if one.kind == "duration" else value(one)})
        free = one.required or not (one.kind == "state" or one.decides)
        assert (policy.permit(nothing, [made]) is None) is free, name


# Lint


@each_transition
def test_lint_knows_the_attributes_of_a_tag_and_no_others(form: TagForm) -> None:
    for name in EVERY_ATTRIBUTE:
        wrong = found(written(form, **{name: value(form.attributes[name]) if name in form.attributes else "90s"}))
        assert wrong == ([] if name in form.attributes or form.variables else ["unknown-attribute"])


@each_transition
def test_lint_looks_up_every_state_that_a_tag_names(form: TagForm) -> None:
    for name, one in form.attributes.items():
        wrong = found(written(form, **{name: "gone 5x"}))
        expected = {"state": ["missing-target"], "duration": ["bad-value"], "choices": ["bad-value"]}.get(one.kind, [])
        assert wrong == (["bad-value"] if one.choices else expected)


@each_transition
def test_lint_misses_what_is_required(form: TagForm) -> None:
    for name, one in form.attributes.items():
        if one.required:
            assert found(written(form, left_out=name)) == [f"missing-{name}"]


def kind_of(name: str) -> str:
    kinds: list[Attribute] = [form.attributes[name] for form in TAGS.values() if name in form.attributes]
    return kinds[0].kind
