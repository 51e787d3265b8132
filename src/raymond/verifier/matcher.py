"""A program: searches a pattern in a text, and says what it found. No other module of ours is needed to run it.

It is a process of its own, because some patterns take for ever on some texts, and nothing else ends a search.
"""

import json
import re
import signal
import sys

LONGEST = 1.0
"""Seconds of processor time for the search, unless others are given; a busy machine does not make a pattern slow."""
_MOST = 200
"""Characters of a verdict."""


def main() -> None:
    """Read a pattern, a text and perhaps the seconds as JSON, and write the verdict."""
    given = json.load(sys.stdin)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, given.get("seconds", LONGEST))
    found = re.search(given["pattern"], given["text"], re.MULTILINE)
    signal.setitimer(signal.ITIMER_PROF, 0.0)
    json.dump({"verdict": _verdict(found), "found": found is not None}, sys.stdout)


def _verdict(found: "re.Match[str] | None") -> str:
    """The first group, if there is one; else whether anything was found."""
    if found is None:
        return "none"
    return (found[1] or "none")[:_MOST] if found.re.groups else "match"


if __name__ == "__main__":
    main()
