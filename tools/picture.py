"""Draw docs/live.svg: the screen of a real run, with scripted replies, in a terminal of tmux.

.venv/bin/python tools/picture.py docs/live.svg
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

COLUMNS, LINES = 80, 13
CELL, LINE, LEFT, TOP = 8.4, 20, 16, 52
PATIENCE = 60.0
FORKS = "".join(f'<fork label="{label}">WORK</fork>' for label in ("api", "web", "docs", "jobs", "cli"))
FILES = {
    "START.sh": f"echo '{FORKS}<wait>END</wait>'\n",
    "WORK.md": """\
Upgrade {{label}}. When you are done: <goto>TEST</goto>, <goto after="20m">POLL</goto>, <result>done</result>
or <ask next="TEST">a question</ask>
""",
    "TEST.md": "Run the tests, then answer <result>done</result>.\n",
    "POLL.sh": "echo '<result>done</result>'\n",
    "END.sh": "echo '<result>upgraded</result>'\n",
    "replies.yaml": """
main_work1/WORK: {text: <goto>TEST</goto>, cost: 0.31, delay: 1s}
main_work2/WORK: {text: <goto>TEST</goto>, delay: 1h, tools: [{name: Edit, input: {file_path: web/package.json}}]}
main_work3/WORK: {text: '<ask next="TEST">Drop Python 3.9?</ask>', cost: 0.31, delay: 2s}
main_work4/WORK: {text: '<goto after="20m">POLL</goto>', cost: 0.22, delay: 1s}
main_work5/WORK: {text: <result>done</result>, cost: 0.12, delay: 3s}
TEST: {text: <result>done</result>, delay: 1h, tools: [{name: Bash, input: {command: make test}}]}
""",
}
COLOURS = {31: "#e5534b", 32: "#57ab5a", 33: "#c69026", 36: "#39c5cf"}
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" \
aria-label="The live view of a run">
<rect width="{0}" height="{1}" rx="8" fill="#1c2128"/>
<circle cx="18" cy="15" r="5" fill="#444c56"/><circle cx="34" cy="15" r="5" fill="#444c56"/>\
<circle cx="50" cy="15" r="5" fill="#444c56"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" \
fill="#d0d7de" xml:space="preserve">
"""


class Screen:
    """A terminal of tmux in which a command runs."""

    def __init__(self, folder: Path, command: str) -> None:
        self._socket = f"{folder}/tmux"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAYMOND", "TMUX", "XDG_"))}
        path = f"{Path(sys.executable).parent}:{kept.get('PATH', '')}"
        self._environment = {**kept, "HOME": str(folder), "TZ": "UTC", "LC_ALL": "C.UTF-8", "PATH": path}
        self._folder = folder
        self.tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), command)

    def tmux(self, *args: str) -> str:
        given = ["tmux", "-u", "-S", self._socket, "-f", "/dev/null", *args]
        return subprocess.check_output(given, cwd=self._folder, env=self._environment, text=True)

    def sees(self, pattern: str) -> str:
        """Wait for a text; the screen with its escapes then."""
        deadline = time.monotonic() + PATIENCE
        while not re.search(pattern, self.tmux("capture-pane", "-p")):
            if time.monotonic() > deadline:
                raise SystemExit(f"error: {pattern} was never on the screen:\n{self.tmux('capture-pane', '-p')}")
            time.sleep(0.05)
        return self.tmux("capture-pane", "-p", "-e")


def main(target: str) -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as made:
        folder = Path(made)
        (folder / "upgrade").mkdir()
        for name, text in FILES.items():
            (folder / "upgrade" / name).write_text(text, "utf-8")
        screen = Screen(folder, "raymond run upgrade --id night --budget 5; exec sleep 600")
        try:
            screen.sees(r"answer main_work3")
            screen.tmux("send-keys", "yes", "Enter")
            shown = screen.sees(r"main_work5 .*done[^$]*\$(.|\n)*TEST\.md +running +8s")
            screen.tmux("send-keys", "C-c")  # so that nobody writes into the folder any more
            screen.sees("press Ctrl-C again")  # two signals at once would be one
            screen.tmux("send-keys", "C-c")
            screen.sees("raymond resume")
        finally:
            screen.tmux("kill-server")
    Path(target).write_text(picture(shown.rstrip("\n").split("\n")), "utf-8")
    return 0


def picture(lines: list[str]) -> str:
    """An SVG of lines with escapes."""
    width, height = round(2 * LEFT + COLUMNS * CELL), TOP + LINE * len(lines)
    rows = [f'<text y="{TOP + LINE * number}">{"".join(pieces(line))}</text>' for number, line in enumerate(lines)]
    return HEAD.format(width, height) + "\n".join(rows) + "\n</g>\n</svg>\n"


def pieces(line: str) -> Iterator[str]:
    """Every piece of a line at its place, with its colour: fonts differ in the width of a blank."""
    column, codes = 0, set[int]()
    for sequence, text in re.findall(r"\x1b\[([\d;]*)m|([^\x1b]+)", line):
        if not text:
            changes = {int(code or 0) for code in sequence.split(";")}
            codes = changes - {0, 39} if 0 in changes else (codes - set(COLOURS) if 39 in changes else codes) | changes
            continue
        for found in re.finditer(r"\S+(?: \S+)*", text):
            x = LEFT + CELL * (column + found.start())
            yield f'<tspan x="{x:.1f}"{style(codes)}>{escape(found[0], quote=False)}</tspan>'
        column += len(text)


def style(codes: set[int]) -> str:
    """The attributes of a piece."""
    colours = [f' fill="{COLOURS[code]}"' for code in sorted(codes & set(COLOURS))]
    bold, dim = ' font-weight="bold"' * (1 in codes), ' fill-opacity=".6"' * (2 in codes)
    return "".join([*colours, bold, dim])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
