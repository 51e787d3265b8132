"""What scripts leave running in the background: later steps find it, after a crash too, until a driver leaves."""

from pathlib import Path

LEFT = {
    "plain": "sleep 3000 $MARK > /dev/null 2>&1 &",
    "holding": "sleep 3000 $MARK &",
    "apart": "setsid sleep 3000 $MARK > /dev/null 2>&1 &",
    "unmarked": "env -i sleep 3000 $MARK > /dev/null 2>&1 &",
    "away": "setsid env -i sleep 3000 $MARK > /dev/null 2>&1 &",
}
"""In the script's group, with its pipes, in a session of its own, without environment, and both. MARK tells it apart."""


def leave(how: str, name: str) -> str:
    """Lines of a script that leave a process under a name."""
    log = f'echo "left {name}.$RAYMOND_AGENT_ID" >> "$LEDGER.left"'
    return f'{LEFT[how]}\necho $! > "$LEDGER.{name}.$RAYMOND_AGENT_ID"; {log}\n'


def look(name: str) -> str:
    """Lines of a later script of the same agent that look for it."""
    file = f'"$LEDGER.{name}.$RAYMOND_AGENT_ID"'
    return f'read -r pid < {file}; kill -0 "$pid" || echo "gone {name}.$RAYMOND_AGENT_ID" >> "$LEDGER.left"\n'


def note_leaving(ledger: Path) -> None:
    """A driver came to an end of its own, and has ended what was left running."""
    with _log(ledger).open("a", encoding="utf-8") as file:
        file.write("driver leaves\n")


def check(ledger: Path) -> None:
    """Nothing was gone that no driver could have ended."""
    lines = _log(ledger).read_text("utf-8").splitlines() if _log(ledger).exists() else []
    there: set[str] = set()
    for line in lines:
        what, name = line.split()
        if what == "left":
            there.add(name)
        elif what == "driver":
            there.clear()
        else:
            assert name not in there, f"what {name} left running was ended by a crash"


def _log(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.left")
