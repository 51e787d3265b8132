"""A line for the shell -> the commands in it, wherever they are: behind `;` and `|`, in `$(...)`, in groups.

It is read to be judged, not to be run: what only a shell can know (the value of a variable, what a pattern matches)
stays as it is written. Nothing that it is given makes it fail.
"""

import re
from typing import TypeAlias

from msgspec import Struct

from raymond.patterns import regex

_DEEPEST = 40
"""Groups and substitutions inside of each other; what is deeper is not read."""
_BREAKS = " \t\n;&|()<>"
_ARROW = regex(r"&>>|&>|>>|>\||>&|<>|<<<|<<-|<<|<&|<|>")
_SUM = regex(r"\$?\(\((.*?)\)\)", re.DOTALL)
_WRITING = (">", ">>", ">|", "&>", "&>>", "<>", ">&")
_CLOSING = frozenset({"}", "fi", "done", "esac"})
_OPENING = frozenset("{ ! if then elif else while until do time coproc".split())
_HEADS = frozenset("for case select function".split())
"""Words that begin something which is not a command itself."""
_ASSIGNMENT = regex(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")


class Command(Struct):
    """One command, or a group of them in brackets."""

    words: list[str]
    """Its program and arguments, without quotes; `$(...)` stands for a substitution."""
    writes: list[str]
    """The files that its output goes to."""
    fed: list[str]
    """The texts that are its input."""
    inner: "list[Pipeline]"
    """What runs in its substitutions, or in its brackets."""
    closes: bool = False
    """It ends a group or a loop, whose output goes on from here."""
    sets: list[str] = []
    """The variables that are set for it, or for what follows if it has no words: `NAME=VALUE`."""


Pipeline: TypeAlias = list[Command]


def read(line: str) -> list[Pipeline]:
    """The commands of a line; each goes on to the next one in its pipeline."""
    return _Reader(line).pipelines()


class _Reader:
    def __init__(self, text: str, depth: int = 0) -> None:
        self._text = text
        self._at = 0
        self._depth = depth
        self._command = Command([], [], [], [])
        self._pipe: Pipeline = []
        self._found: list[Pipeline] = []
        self._awaited: list[tuple[Command, str, bool]] = []
        """Commands whose here-documents begin on the next line."""

    def pipelines(self, until: str = "") -> list[Pipeline]:
        """The commands up to `until`, or the end."""
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign == until:
                self._at += 1
                break
            if not self._take_sign(sign):
                self._take_word()
        self._end_pipeline()
        return self._found

    def _take_sign(self, sign: str) -> bool:
        """Take what is not part of a word."""
        if sign in " \t\r":
            self._at += 1
        elif self._text.startswith("\\\n", self._at):
            self._at += 2
        elif sign == "#":
            self._skip_to("\n")
        elif sign == "\n":
            self._at += 1
            self._end_pipeline()
            self._take_documents()
        elif sign in "<>" or self._text.startswith("&>", self._at):
            return self._take_arrow()
        elif sign in ";&|":
            self._take_separator(sign)
        elif sign in "()":
            self._take_bracket(sign)
        else:
            return False
        return True

    def _take_separator(self, sign: str) -> None:
        self._at += 1
        if sign == "|" and not self._text.startswith("|", self._at):
            self._at += self._text.startswith("&", self._at)
            self._end_command()
        else:
            self._end_pipeline()

    def _take_bracket(self, sign: str) -> None:
        if sign == ")":  # after a pattern of `case`
            self._at += 1
            self._command.words.clear()
            self._end_pipeline()
        elif self._text.startswith("((", self._at) and self._skip_arithmetic():
            pass
        elif re.compile(r"\(\s*\)").match(self._text, self._at) and self._command.words:
            self._at = self._text.index(")", self._at) + 1
            self._command.words.clear()  # the name of a function
        else:
            self._at += 1
            self._command.inner += self._nested(")")

    def _end_command(self) -> None:
        command = _plain(self._command)
        if command.words or command.inner or command.writes or command.fed or command.closes or command.sets:
            self._pipe.append(command)
        self._command = Command([], [], [], [])

    def _end_pipeline(self) -> None:
        self._end_command()
        if self._pipe:
            self._found.append(self._pipe)
        self._pipe = []

    def _take_arrow(self) -> bool:
        """Take `> FILE` and the like; False at `<(`, which is a word."""
        found = _ARROW.match(self._text, self._at)
        assert found
        arrow = found[0]
        if arrow in ("<", ">") and self._text.startswith("(", found.end()):
            return False
        self._at = found.end()
        while self._text[self._at : self._at + 1] in (" ", "\t"):
            self._at += 1
        target = self._word()
        if arrow in ("<<", "<<-"):
            self._awaited.append((self._command, target, arrow == "<<-"))
        elif arrow == "<<<":
            self._command.fed.append(target)
        elif arrow in _WRITING and not (arrow == ">&" and re.fullmatch(r"\d*-?", target)):
            self._command.writes.append(target)
        return True

    def _take_documents(self) -> None:
        """Take the here-documents that begin on this line."""
        for command, end, is_indented in self._awaited:
            lines: list[str] = []
            while self._at < len(self._text):
                begins = self._at
                self._skip_to("\n")
                line = self._text[begins : self._at]
                self._at += 1
                if (line.lstrip("\t") if is_indented else line) == end:
                    break
                lines.append(line)
            command.fed.append("\n".join(lines))
        self._awaited = []

    def _take_word(self) -> None:
        begins = self._at
        word = self._word()
        is_number = word.isdecimal() and self._text[begins : self._at] == word
        if not (is_number and self._text[self._at : self._at + 1] in ("<", ">")):  # the 2 of `2> FILE`
            self._command.words.append(word)
        if self._command.words[:1] == ["[["]:
            self._take_condition()

    def _take_condition(self) -> None:
        """Take the rest of `[[ ... ]]`, in which `&&` and `<` are no signs of the shell."""
        while self._at < len(self._text) and self._command.words[-1] != "]]":
            if self._text[self._at] in _BREAKS:
                self._at += 1
            else:
                self._command.words.append(self._word())

    def _word(self) -> str:
        """The word that begins here, without quotes."""
        parts: list[str] = []
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign in "<>" and not parts and self._text.startswith("(", self._at + 1):
                self._at += 2
                self._command.inner += self._nested(")")
                parts.append("<(...)")
            elif sign in _BREAKS:
                break
            else:
                parts.append(self._part(sign))
        return "".join(parts)

    def _part(self, sign: str) -> str:
        """The next piece of a word."""
        if sign == "\\":
            self._at += 2
            escaped = self._text[self._at - 1 : self._at]
            return "" if escaped == "\n" else escaped
        if sign == "'":
            self._at += 1
            return self._up_to("'")
        if sign == '"':
            return self._quoted()
        if sign in "$`":
            return self._value()
        self._at += 1
        return sign

    def _quoted(self) -> str:
        self._at += 1
        parts: list[str] = []
        while self._at < len(self._text):
            sign = self._text[self._at]
            if sign == '"':
                self._at += 1
                break
            if sign == "\\" and self._text[self._at + 1 : self._at + 2] in tuple('$`"\\\n'):
                parts.append(self._part(sign))
            elif sign in "$`":
                parts.append(self._value(is_quoted=True))
            else:
                parts.append(sign)
                self._at += 1
        return "".join(parts)

    def _value(self, *, is_quoted: bool = False) -> str:
        """A variable, as it is written, or a substitution, whose commands are taken."""
        rest = self._text[self._at : self._at + 3]
        if rest == "$((" and self._skip_arithmetic():
            return "$((...))"
        if rest.startswith("$("):
            self._at += 2
            self._command.inner += self._nested(")")
            return "$(...)"
        if rest.startswith("`"):
            self._at += 1
            inner = re.sub(r"\\([\\`$])", r"\1", self._up_to("`", escapes=True))
            self._command.inner += self._read_apart(inner)
            return "$(...)"
        if rest.startswith("$'") and not is_quoted:
            self._at += 2
            return _unescaped(self._up_to("'", escapes=True))
        if rest.startswith("${"):
            self._at += 2
            name = self._up_to("}")
            if "$(" in name or "`" in name:
                self._command.inner += self._read_apart(name)
            return "${" + name + "}"
        self._at += 1
        return "$" if rest.startswith("$") and not (rest.startswith('$"') and not is_quoted) else ""

    def _nested(self, until: str) -> list[Pipeline]:
        """The commands of a substitution or a group that begins here."""
        if self._depth >= _DEEPEST:
            self._at = len(self._text)
            return [[Command(["(...)"], [], [], [])]]
        inner = _Reader(self._text, self._depth + 1)
        inner._at = self._at
        found = inner.pipelines(until)
        self._at = inner._at
        return found

    def _read_apart(self, text: str) -> list[Pipeline]:
        """The commands of a substitution that was cut out."""
        if self._depth >= _DEEPEST:
            return [[Command(["(...)"], [], [], [])]]
        return _Reader(text, self._depth + 1).pipelines()

    def _skip_arithmetic(self) -> bool:
        """Skip `((...))`, unless it is a group in a group."""
        found = _SUM.match(self._text, self._at)
        if not found or (self._command.words[:1] != ["for"] and re.search("[;\n`]|\\$\\(", found[1])):
            return False
        self._at = found.end()
        return True

    def _skip_to(self, sign: str) -> None:
        end = self._text.find(sign, self._at)
        self._at = len(self._text) if end < 0 else end

    def _up_to(self, sign: str, *, escapes: bool = False) -> str:
        """What stands before the next `sign`, which is taken too."""
        begins = self._at
        while self._at < len(self._text) and self._text[self._at] != sign:
            self._at += 2 if escapes and self._text[self._at] == "\\" else 1
        found = self._text[begins : self._at]
        self._at += 1
        return found


def _unescaped(text: str) -> str:
    """The text of `$'...'`."""
    try:
        return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return text


def _plain(command: Command) -> Command:
    """The command without words that only say where it is, and without the variables that are set for it."""
    words = command.words
    while words and (words[0] in _OPENING or words[0] in _CLOSING or _ASSIGNMENT.match(words[0])):
        command.closes = command.closes or words[0] in _CLOSING
        if _ASSIGNMENT.match(words[0]):
            command.sets.append(words[0])
        words.pop(0)
    if words and words[0] in _HEADS:
        words.clear()
    return command
