"""What an agent says and does on the way to its reply, for the transcript."""

from raymond.store.transcripts import Record

_TOOL, _TEXT = "* ", "  "
_FURTHER = "    "


def one_use(text: str) -> str:
    """The use of a tool: its further lines are indented, so that none of them looks like the use of another."""
    return f"\n{_FURTHER}".join(text.strip().splitlines())


def in_order(talk: str, tools: str) -> str:
    """Texts and tools as recorded so far: `talk`, and the uses among `tools` that no text has followed yet.

    However early or late it is read, it only ever grows at its end.
    """
    told = sum(line.startswith(_TOOL) for line in talk.splitlines())
    return talk + "".join(f"{_TOOL}{use}" for use in _uses(tools)[told:])


def only_tools(work: str) -> str | None:
    """The uses of tools that `work` consists of, without their marks; None when it has texts as well."""
    lines = work.splitlines(keepends=True)
    # The first line of a text has nothing but its mark before it.
    if any(line[: len(_FURTHER)].strip() and not line.startswith(_TOOL) for line in lines):
        return None
    return "".join(line.removeprefix(_TOOL) for line in lines)


def _uses(tools: str) -> list[str]:
    found: list[str] = []
    for line in tools.splitlines(keepends=True):
        if line.startswith(_FURTHER) and found:
            found[-1] += line
        elif line.strip():
            found.append(line)
    return found


class Talk:
    """Texts and tools in their order; nothing is recorded of a turn that only replied, with or without tools before.

    The last text is held back, because it may be the reply, which is recorded whole and as such.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._held: list[str] = []
        self._has_talked = False

    def add(self, kind: str, text: str) -> None:
        """It said something, or used a tool, which is given as `one_use`."""
        if not text.strip():
            return
        self._has_talked = self._has_talked or _is_text(self._held)
        if self._has_talked:
            self._write()
        self._held.append(_marked(_TOOL if kind == "tool" else _TEXT, text))

    def end(self, reply: str | None = None) -> None:
        """The turn is over."""
        if _is_text(self._held) and reply is not None and _marked(_TEXT, reply).startswith(self._held[-1][:1000]):
            self._held.pop()
        if self._has_talked or _is_text(self._held):
            self._write()

    def _write(self) -> None:
        self._record.add("talk", "".join(self._held))
        self._held.clear()


def _is_text(held: list[str]) -> bool:
    return bool(held) and held[-1].startswith(_TEXT)


def _marked(mark: str, text: str) -> str:
    if mark == _TOOL:
        return f"{mark}{text.strip()}\n"
    return "".join(f"{mark}{line}\n" for line in text.strip().splitlines())
