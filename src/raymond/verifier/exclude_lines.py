"""The lines that Raymond adds to .git/info/exclude, a file that all worktrees of a repository share.

A loop that begins in one worktree adds them while an agent works in another: they are nobody's tampering there.
"""

from raymond.patterns import regex

NAME = "info/exclude"
_STATE = rb"\.(?:continuous-session|task-loop|story-loop|ralph-loop)-state\.json"
_FOLDER = rb"(?:[^\\*?\[\r\n]|\\[\\*?\[])+/"
_OWN = regex(rb"/(?:%b)?%b\*|\*\.raymond-new|/\.raymond/" % (_FOLDER, _STATE))
"""No folder of theirs stands for several: a line hides what begins with the name of a state file, in one folder."""


def own(content: bytes) -> list[bytes]:
    """Those of the lines that Raymond adds."""
    return [line for line in content.split(b"\n") if _OWN.fullmatch(line)]


def others(content: bytes) -> bytes:
    """The text without them."""
    return b"\n".join(line for line in content.split(b"\n") if not _OWN.fullmatch(line)).rstrip(b"\n")


def joined(content: bytes, more: bytes) -> bytes:
    """The text with those lines of Raymond that only the other one has."""
    there = own(content)
    missing = [line for line in dict.fromkeys(own(more)) if line not in there]
    begun = b"" if not content or content.endswith(b"\n") else b"\n"
    return content + begun + b"".join(line + b"\n" for line in missing) if missing else content


def is_same(before: bytes, now: bytes) -> bool:
    """Whether at most lines of Raymond have been added."""
    return others(before) == others(now) and set(own(before)) <= set(own(now))
