"""Writes the table of docs/writing.md from that of the verifier: `.venv/bin/python tests/deciding_table.py`."""

import sys
from pathlib import Path

from raymond.verifier.decides import TABLE, Row

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "writing.md"
MAKE = ".venv/bin/python tests/deciding_table.py"
BEGIN, END = f"<!-- made by {MAKE} -->\n", "<!-- end -->\n"


def page() -> str:
    """The page with the table as it is."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def table() -> str:
    """A line for each kind of file, with the names of all rows of that kind."""
    kinds: dict[str, list[str]] = {}
    for row in TABLE:
        what = f"{row.what}{_where(row)}"
        kinds.setdefault(f"{what}, but for {row.but}" if row.but else what, []).extend(row.names.split())
    lines = ["| what | names |", "|---|---|", *(f"| {what} | `{' '.join(names)}` |" for what, names in kinds.items())]
    return "".join(f"{line}\n" for line in lines)


def _where(row: Row) -> str:
    """Where the names count, unless they do so anywhere."""
    if row.folders:
        return f", in `{row.folders}`"
    return "" if row.where == "anywhere" else f", {row.where}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written", file=sys.stderr)
