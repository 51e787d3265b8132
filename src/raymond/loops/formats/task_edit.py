"""Changes of an implementation spec, of one task or by new ones: nothing else in the text changes."""

from collections.abc import Iterable, Sequence

from raymond import durations
from raymond.language.check import Check, expected
from raymond.loops.formats import document, foreign_plan, foreign_text, records, task_spec
from raymond.loops.formats.document import Document
from raymond.loops.formats.task_spec import NO_OUTPUT, Field, Layout, Place, Task
from raymond.loops.formats.verification import KEYS
from raymond.patterns import regex
from raymond.text import visible

NO_CHECK, UNJUDGED = "no check", "waits for a person"
"""Why a task that is complete is not verified."""
_SHOWN = 20
"""Lines of output that a section has at most."""
_BOLD = "**"
_LISTED = regex(r"[ \t\xa0]+\S|[-*+](?:[ \t\xa0]|\Z)|[\x01-\x03]")
_ID = regex(r"([0-9.]+)([a-z]*)")
_FIX = regex(r"(?:Fix:\s*)+")
_NAMES = {"last attempt": "Last Attempt"}

_FIELDS_OF_HEAD = ("verified", "verification")
"""A field that is missing goes before these."""

_OURS = ("status", "verified", "proposed", "implements")
"""Fields that are not the agent's to fill in."""
_LINE = regex(r"[^\n]*\n|[^\n]+")
_KEY = regex(rf"(?i)\s*[-*+]\s+[*_`]*(?:{'|'.join(KEYS)})[*_`]*\s*:")
_HEADING = "## 1.1.1. -\n"


# What happened to a task


def passed(text: str, id: str, date: str, command: str) -> str:
    """The task is complete and verified; what an earlier attempt left is taken out."""
    section, place = _section(text, id)
    section = _with_value(section, "status", task_spec.SHOWN["complete"])
    section = _with_value(section, "verified", f"true ({foreign_text.inline(date)}, {_command(command)})")
    return _replaced(text, place, _without(section, "last attempt"))


def failed(text: str, id: str, when: str, command: str, reason: str, output: str, attempts: int) -> str:
    """The task is in progress, and its last attempt says why."""
    section, place = _section(text, id)
    section = _with_value(section, "status", task_spec.SHOWN["in progress"])
    section = _with_value(section, "verified", "false")
    lines = (
        f"- date: {foreign_text.inline(when)}\n"
        f"- result: FAILED ({foreign_text.inline(reason)})\n"
        f"{_ran(command)}"
        f"- attempts: {attempts}\n"
        f"{_output(output)}"
    )
    return _replaced(text, place, _with_attempt(section, lines))


def completed(text: str, id: str, why: str = NO_CHECK) -> str:
    """The task is complete, and nothing has said so yet; `why` not."""
    section, place = _section(text, id)
    section = _with_value(section, "status", task_spec.SHOWN["complete"])
    return _replaced(text, place, _with_value(section, "verified", f"false ({why})"))


def blocked(text: str, id: str, reason: str) -> str:
    """The task is not worked on until a person says so."""
    section, place = _section(text, id)
    said = foreign_text.inline(reason)
    status = task_spec.SHOWN["blocked"]
    return _replaced(text, place, _with_value(section, "status", f"{status} ({said})" if said else status))


# New tasks


def with_fix(text: str, id: str, *, command: str, output: str, reason: str, mark: str) -> tuple[str, str]:
    """`text` with a task after this one that repairs it, and its id; a text that has one with the mark stays."""
    layout = Layout(text)
    if (there := _marked(layout, mark)) is not None:
        return text, there
    place = _place(layout, id)
    new = _next_id(layout, id)
    ending = document.newline(text)
    begun = text[: place.end] + Document(text[: place.end]).closing()
    before = "" if begun.endswith(("\n\n", "\n\r\n")) else ending
    after = ending if place.end < len(text) else ""
    section = _fix(layout, place, new, records.entry_mark(mark), (command, output, reason), ending)
    return f"{begun}{before}{section}{after}{text[place.end :]}", new


def added(text: str, blocks: Iterable[str]) -> str:
    """`text` with whole sections of tasks at its end. They come from agents, so a mark of ours in them is none."""
    ending = document.newline(text)
    parts = [text + Document(text).closing()]
    for block in blocks:
        block = foreign_text.unmarked(document.adapted(block.removeprefix(document.BYTE_ORDER_MARK), "\n")).strip("\n")
        is_apart = parts[-1] in ("", document.BYTE_ORDER_MARK) or parts[-1].endswith(("\n\n", "\n\r\n"))
        parts += ["" if is_apart else ending, document.adapted(block + Document(block).closing(), ending)]
    return "".join(parts) if len(parts) > 1 else text


# Sections


def _place(layout: Layout, id: str) -> Place:
    found = [place for place in layout.places if place.id == id]
    if not found:
        raise KeyError(id)
    if len(found) > 1:
        raise ValueError(f"{len(found)} tasks have the id {id}")
    return found[0]


def _section(text: str, id: str) -> tuple[str, Place]:
    """The section of a task, which can be read on its own, with a line of its own at its end."""
    place = _place(Layout(text), id)
    return text[place.start : place.end], place


def _replaced(text: str, place: Place, section: str) -> str:
    return text[: place.start] + section + text[place.end :]


def _marked(layout: Layout, mark: str) -> str | None:
    """The id of the task whose section has the mark."""
    if records.entry_mark(mark) not in layout.text:
        return None
    ids = (place.id for place in layout.places if records.has_entry(layout.text[place.start : place.end], mark))
    return next(ids, None)


def _next_id(layout: Layout, id: str) -> str:
    """The id with the letter after the last one that is taken: after z come za, zb and so on to zz, then zza."""
    base = _letters(id)[0]
    last = max(letters for one, letters in (_letters(place.id) for place in layout.places) if one == base)
    if not last or last.endswith("z"):
        return f"{base}{last}a"
    return f"{base}{last[:-1]}{chr(ord(last[-1]) + 1)}"


def _letters(id: str) -> tuple[str, str]:
    found = _ID.fullmatch(id)
    return (found[1], found[2]) if found else (id, "")


def _fix(layout: Layout, place: Place, id: str, mark: str, failure: tuple[str, str, str], ending: str) -> str:
    command, output, reason = failure
    title = foreign_text.inline(place.title)
    bare = _FIX.sub("", title, count=1) if _FIX.match(title) else title
    bare = bare.removesuffix("Verification").rstrip() if bare.endswith((" Verification",)) else bare
    name = "Fix: Verification" if bare in ("", "Verification") else f"Fix: {bare} Verification"
    head = f"{'#' * place.level} {id}{place.colon} {name}\n{mark}\n\n**Status:** {task_spec.SHOWN['planned']}\n"
    context = (
        "\n**Context:**\n"
        f"- original task: {place.id}{place.colon} {title}\n"
        f"{_ran(command)}"
        f"- failure: {foreign_text.inline(reason)}\n"
        f"{_output(output) if output.strip() else ''}"
    )
    checks = "".join(_verbatim(layout, place, "verification", ending))
    stories = "".join(_verbatim(layout, place, "implements", ending)[:1])
    gap = ending if stories else ""
    return f"{document.adapted(head, ending)}{checks}{document.adapted(context, ending)}{gap}{stories}"


def _verbatim(layout: Layout, place: Place, name: str, ending: str) -> list[str]:
    """The fields of this name with all their lines."""
    found = []
    fields = list(layout.fields(place))
    for field, following in zip(fields, [*fields[1:], None], strict=False):
        if field.name == name:
            limit = layout.limit(field, following, place)
            stop = layout.document.outside(layout.stop(field, limit) if name == "verification" else field.next)
            raw = layout.text[field.start : stop]
            found.append(raw if raw.endswith("\n") else raw + ending)
    return found


# Fields


def _with_value(section: str, name: str, value: str) -> str:
    """A section in which this field has this value: in place, or as a new line."""
    layout = Layout(section)
    place = layout.places[0]
    fields = {field.name: field for field in reversed(list(layout.fields(place)))}
    field = fields.get(name)
    if field is None:
        return _with_line(layout, place, fields, name, value)
    space = "" if field.stop > field.value else " "
    return f"{section[: field.value]}{space}{value}{section[field.stop :]}"


def _with_line(layout: Layout, place: Place, fields: dict[str, Field], name: str, value: str) -> str:
    section = layout.text
    ending = document.newline(section)
    status = fields.get("status")
    if status and name != "status":
        blanks = section[status.stop : status.next].rstrip("\r\n")
        blanks = blanks if len(blanks) > 1 and not blanks.strip(" ") else ""
        at = layout.document.outside(status.next)
        begun = "" if section[:at].endswith("\n") else ending
        return f"{section[:at]}{begun}{_named(name, status.style)} {value}{blanks}{ending}{section[at:]}"
    known = [field for key, field in fields.items() if key in _FIELDS_OF_HEAD]
    if known:
        first = min(known, key=lambda field: field.start)
        line = f"{_named(name, first.style)} {value}{ending}"
        return section[: first.start] + line + section[first.start :]
    return _headed(section, place.body, f"{_named(name, ('', _BOLD, True))} {value}{ending}", ending)


def _headed(section: str, at: int, line: str, ending: str) -> str:
    """A section with a line after its heading, and an empty one around it."""
    begun = "" if section[:at].endswith("\n") else ending
    rest = section[at:]
    first = rest.partition("\n")
    if first[1] and not first[0].strip():
        at += len(first[0]) + 1
        begun = ""
    else:
        begun += ending
    rest = section[at:]
    is_apart = not rest or not rest.partition("\n")[0].strip()
    return section[:at] + begun + line + ("" if is_apart else ending) + rest


def _named(name: str, style: tuple[str, str, bool]) -> str:
    before, bold, is_inside = style
    shown = _NAMES.get(name, name.capitalize())
    return f"{before}{bold}{shown}:{bold}" if is_inside else f"{before}{bold}{shown}{bold}:"


def _blocks(layout: Layout, name: str) -> list[tuple[Field, int]]:
    """The fields of this name with where their lines end."""
    place = layout.places[0]
    fields = list(layout.fields(place))
    following = [*fields[1:], None]
    return [
        (field, layout.document.outside(layout.stop(field, layout.limit(field, after, place))))
        for field, after in zip(fields, following, strict=False)
        if field.name == name
    ]


def _without(section: str, name: str) -> str:
    """A section without this field and its lines, and without one of two empty lines around them."""
    layout = Layout(section)
    for field, stop in reversed(_blocks(layout, name)):
        before, after = section[: field.start], section[stop:]
        is_apart = not after or not after.partition("\n")[0].strip()
        if is_apart and (gap := next((one for one in ("\n\r\n", "\n\n") if before.endswith(one)), "")):
            before = before[: 1 - len(gap)]
        section = before + after
    return section


def _with_attempt(section: str, lines: str) -> str:
    """A section whose last attempt has these lines."""
    layout = Layout(section)
    ending = document.newline(section)
    lines = document.adapted(lines, ending)
    there = _blocks(layout, "last attempt")
    if there:
        field, stop = there[0]
        name = section[field.start : field.colon]
        return f"{section[: field.start]}{name}{ending}{lines}{section[stop:]}"
    at, style = _place_of_attempt(layout)
    begun = "" if section[:at].endswith("\n") else ending
    previous = layout.counted[:at].rstrip("\r\n").rpartition("\n")[2]
    gap = ending if _LISTED.match(previous) else ""
    return f"{section[:at]}{begun}{gap}{_named('last attempt', ('', *style))}{ending}{lines}{section[at:]}"


def _place_of_attempt(layout: Layout) -> tuple[int, tuple[str, bool]]:
    """After the verification, or after what says whether it passed."""
    for field, stop in _blocks(layout, "verification")[:1]:
        return stop, field.style[1:]
    fields = {field.name: field for field in reversed(list(layout.fields(layout.places[0])))}
    field = fields.get("verified") or fields["status"]
    return layout.document.outside(field.next), field.style[1:]


# Text of others


def _command(command: str) -> str:
    """A command in a line of ours; one that could end something early is inline code."""
    line = foreign_text.inline(command)
    return foreign_text.code(line) if "`" in line or ")" in line else line


def _ran(command: str) -> str:
    """A line of a list with the command, if there was one."""
    return f"- command: {_command(command)}\n" if command.strip() else ""


def _output(output: str) -> str:
    """A line of a list with the last lines of an output as code."""
    if not output.strip():
        return f"- output: {NO_OUTPUT}\n"
    last = "\n".join(output.rstrip().splitlines()[-_SHOWN:])
    lines = foreign_text.fenced(last).removesuffix("\n").split("\n")
    return "- output:\n" + "".join(f"  {line}\n" if line else "\n" for line in lines)


# Tasks that an agent planned


def planned(number: str, title: str, story: str, tasks: Sequence[Task]) -> str:
    """The spec of the tasks of a story."""
    sections = [_planned(f"{number}.{at}", story, one) for at, one in enumerate(tasks, 1)]
    return f"# {foreign_text.inline(f'{number} {title}')}\n\n" + "\n".join(sections)


def is_as_planned(text: str, number: str, story: str, tasks: Sequence[Task]) -> bool:
    """Whether a spec says exactly this: these tasks, proposed, with these checks."""
    there = task_spec.read(text).tasks
    if [one.id for one in there] != [f"{number}.{at}" for at in range(1, len(tasks) + 1)]:
        return False
    return all(_is_planned(one, planned, story) for one, planned in zip(there, tasks, strict=True))


def _is_planned(one: Task, planned: Task, story: str) -> bool:
    is_new = one.proposed and one.status == "planned" and not one.verified and one.implements == (story,)
    check = None if planned.problem else planned.check
    if check is None:
        return is_new and one.is_manual and one.check is None and not one.problem
    is_shown = visible(check.run) == check.run and visible(expected(check)) == expected(check)
    return is_new and is_shown and (one.check, one.retries, one.seal) == (check, planned.retries, planned.seal)


def _planned(id: str, story: str, task: Task) -> str:
    """A task as Raymond writes it: whatever the agent wrote, these are its fields."""
    title = foreign_plan.as_criterion(task.title).rstrip("# ")
    lines = [f"## {id}. {title or 'Untitled'}", "", f"**Status:** {task_spec.SHOWN['planned']}", "**Proposed:** yes"]
    lines += [f"**Implements:** {story}", "**Verification:**", *_verification(task), ""]
    return "\n".join([*lines, *foreign_plan.as_quotation(_prose(task))]).rstrip() + "\n"


def _verification(task: Task) -> list[str]:
    check = task.check
    if check is None or task.problem:
        criteria = (task.is_manual and task.criteria) or (task.title,)
        return ["- type: manual", "- criteria:", *(f"  - {foreign_plan.as_criterion(one)}" for one in criteria)]
    lines = [f"- command: {foreign_plan.as_code(check.run)}"]
    if check != Check(run=check.run, timeout=check.timeout):
        lines.append(f"- expected: {foreign_plan.as_code(expected(check))}")
    if check.timeout:
        lines.append(f"- timeout: {durations.written(check.timeout)}")
    if task.retries is not None:
        lines.append(f"- retries: {task.retries}")
    return [*lines, f"- seal: {', '.join(map(foreign_plan.as_code, task.seal))}"] if task.seal else lines


def _prose(task: Task) -> str:
    """What the agent says about a task, without the fields that Raymond writes itself."""
    layout = Layout(_HEADING + task.body)
    place = layout.places[0]
    fields = list(layout.fields(place))
    kept, at = [], place.body
    for field, following in zip(fields, [*fields[1:], None], strict=False):
        if field.name in _OURS:
            kept.append(layout.text[at : field.start])
            at = field.next
        elif field.name == "verification" and not task.problem:
            stop = layout.stop(field, layout.limit(field, following, place))
            lines = [] if task.is_manual else _LINE.findall(layout.text[field.next : stop])
            kept += [layout.text[at : field.start], *(line for line in lines if not _KEY.match(line))]
            at = stop
    return "".join([*kept, layout.text[at : place.end]])
