"""Whether the tags in a prompt are written as they will be read."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import msgspec

from raymond import durations
from raymond.errors import Diagnostic
from raymond.language import findings, frontmatter, reach, reading
from raymond.language.lint import places, targets
from raymond.language.refusal import Refusal
from raymond.language.scanner import Tag
from raymond.language.tags import EXAMPLES, TAGS, VARIABLE
from raymond.language.workflow import State, Workflow, resolve


def check(workflow: Workflow, state: State) -> Iterator[Diagnostic]:
    """What is wrong with the tags in a prompt."""
    found = [tag for tag in meant(state) if tag.name != "print"]
    known = [tag for tag in found if TAGS[tag.name].body.kind != "state" or "{{" not in tag.body]
    known = [tag for tag in known if not _is_talked_about(workflow, state, tag, found)]
    for tag in known:
        if TAGS[tag.name].body.kind == "state" and "<" in tag.body:
            message = f"`<{tag.name}>` is not closed before the next tag"
            first = (tag.body.split() or [""])[0].partition("<")[0]
            hint = f"write {TAGS[tag.name].write(first)}"
            yield frontmatter.diagnose(places.opening(state, tag), "bad-value", message, hint)
            continue
        wrong = [*_attributes(state, tag), *_needs(state, tag, found)]
        for name, where in reach.of_tag(tag):
            mark = places.attribute(state, tag, where) if where else places.body(state, tag)
            wrong += targets.look_up(workflow, name, mark)
        yield from wrong or _refused(state, tag)
    yield from _mismatches(state, [tag for tag in known if tag.name == "fork"])


def meant(state: State) -> list[Tag]:
    """The tags of a prompt that an agent is to write."""
    # Fences and comments hold examples; inline code is how authors write a tag they mean.
    return [tag for tag in reading.scan(state.body) if tag.quoted in ("", "code")]


def _is_talked_about(workflow: Workflow, state: State, tag: Tag, beside: list[Tag]) -> bool:
    """Whether a tag names nothing like a state of this workflow, and the agent is told another way to continue."""
    plain_beside_code = tag.quoted and any(not other.quoted for other in beside)
    if TAGS[tag.name].body.kind != "state" or not (state.policy.allowed_transitions or plain_beside_code):
        return False
    found = resolve(workflow, tag.body.strip())
    return isinstance(found, Refusal) and found.kind == "unknown_state" and not found.hint.startswith("did you mean")


def _attributes(state: State, tag: Tag) -> Iterator[Diagnostic]:
    form = TAGS[tag.name]
    for name, value in tag.attributes.items():
        known = form.attributes.get(name)
        if known:
            if known.kind == "duration" and "{{" not in value and durations.parse(value) is None:
                message, hint = f"`{name}`: `{value}` is not {durations.explain(value)}", "write it like 90s, 10m or 2h"
                yield frontmatter.diagnose(places.attribute(state, tag, name), "bad-value", message, hint)
        elif not form.variables or not VARIABLE.fullmatch(name):
            takes = f"it takes: {', '.join(form.attributes)}" if form.attributes else "it takes none"
            hint = frontmatter.suggest(name, form.attributes.keys()) or takes
            message = f"`<{tag.name}>` has no attribute `{name}`"
            yield frontmatter.diagnose(places.attribute(state, tag, name), "unknown-attribute", message, hint)


def _needs(state: State, tag: Tag, beside: list[Tag]) -> Iterator[Diagnostic]:
    for name, known in TAGS[tag.name].attributes.items():
        if not known.required or tag.attributes.get(name, "").strip():
            continue
        # Other tags of the same output may say it.
        if known.unless and any(other.name in known.unless or other.attributes.get(name) for other in beside):
            continue
        message = f"`<{tag.name}>` needs a `{name}` attribute"
        hint = _write(tag, {name: EXAMPLES[known.kind]})
        id = findings.MISSING.get(name, "bad-value")
        yield frontmatter.diagnose(places.opening(state, tag), id, message, hint)


def _refused(state: State, tag: Tag) -> Iterator[Diagnostic]:
    """What reading would refuse; where there is a variable, it may become anything that is right."""
    plain = dict(tag.attributes)
    for name, known in TAGS[tag.name].attributes.items():
        if known.kind in ("duration", "choices") and "{{" in plain.get(name, ""):
            plain[name] = EXAMPLES[known.kind]
    found = reading.transition(msgspec.structs.replace(tag, attributes=plain))
    if isinstance(found, Refusal):
        yield frontmatter.diagnose(places.opening(state, tag), "bad-value", found.reason, found.hint)


def _mismatches(state: State, forks: list[Tag]) -> Iterator[Diagnostic]:
    """Forks that follow each other are one output and must agree; those with text between may be alternatives."""
    for first, second in pairwise(forks):
        end = places.body_start(state, first) + len(first.body) + len("</fork>")
        one, other = first.attributes.get("next", ""), second.attributes.get("next", "")
        if one and other and one != other and not state.body[end : second.start].strip(" \t\r\n`-*"):
            message = f"forks of one output must agree on `next`: `{one}` here is followed by `{other}`"
            mark = places.attribute(state, second, "next")
            yield frontmatter.diagnose(mark, "next-mismatch", message, _write(second, {"next": one}))


def _write(tag: Tag, changed: Mapping[str, str]) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in {**changed, **tag.attributes, **changed}.items())
    return f"<{tag.name}{attributes}>{' '.join(tag.body.split())}</{tag.name}>"
