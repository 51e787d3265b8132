"""Writes the table of docs/gates.md from that of the verifier: `.venv/bin/python tests/deciding_table.py`."""

import sys
from pathlib import Path

from raymond.verifier.decides import TABLE, Row

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "gates.md"
MAKE = ".venv/bin/python tests/deciding_table.py"
BEGIN, END = f"<!-- made by {MAKE} -->\n", "<!-- end -->\n"


def page() -> str:
    """The page with the table as it is."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


def table() -> str:
    """A line for each row."""
    lines = ["| what | names | where |", "|---|---|---|"]
    for row in TABLE:
        what = f"{row.what}, but for {row.but}" if row.but else row.what
        lines.append(f"| {what} | `{' '.join(row.names.split())}` | {_where(row)} |")
    return "".join(f"{line}\n" for line in lines)


def _where(row: Row) -> str:
    return f"in `{row.folders}`" if row.folders else row.where


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written", file=sys.stderr)
