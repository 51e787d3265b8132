"""What the runtime adds to turns of the real Claude Code, with a fake model on loopback."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import workflows
from measure import Child, Failed, run
from report import Reading
from workflows import Folder

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / ".cache" / "agents" / "node_modules" / ".bin" / "claude"


def turns(home: Path, count: int, rounds: int) -> dict[str, Reading]:
    """Own CPU per turn, including start-up and reading the stream, against the program's CPU for the same prompt."""
    if not PROGRAM.exists():
        raise Failed("Claude Code is not installed here; make e2e installs it")
    states = workflows.prompts(count)
    floors, ours = [], []
    with _model(home) as port, _environment(home, port):
        for number in range(rounds):
            folder = Folder(home / f"turns{number}", states)
            prompt = folder.path / "flow" / "START.md"
            floors.append(_alone(folder.path, prompt))
            ours.append(folder.run(result="done", steps=count).cpu / count)
            print(f"  turns: program {floors[-1]:.2f} s, ours {ours[-1]:.4f} s", file=sys.stderr, flush=True)
    floor, each = median(floors), median(ours)
    return {
        "turns": Reading(
            f"{floor:.2f} s (Claude Code alone)",
            f"{1000 * each:.1f} ms",
            f"{each / floor:.1%}",
            each / floor,
            {"floors": [round(one, 4) for one in floors], "values": [round(one, 5) for one in ours]},
        )
    }


def _alone(cwd: Path, prompt: Path) -> float:
    argv = f'"{PROGRAM}" -p --output-format stream-json --verbose --include-partial-messages < "{prompt}"'
    # exec, so that the CPU time read is that of the program.
    return run(["bash", "-c", f"exec {argv}"], cwd).cpu


@contextmanager
def _model(home: Path) -> Iterator[int]:
    with Child([sys.executable, str(ROOT / "tests" / "e2e" / "model.py")], home, name="model") as server:
        server.wait_until(lambda: server.out.stat().st_size > 0, "port of the model")
        yield int(server.out.read_text())


@contextmanager
def _environment(home: Path, port: int) -> Iterator[None]:
    before = dict(os.environ)
    for name in before:
        if name.startswith(("ANTHROPIC_", "CLAUDE")):
            del os.environ[name]
    os.environ |= {
        "HOME": str(home),
        "PATH": f"{PROGRAM.parent}:{before['PATH']}",
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "dummy",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before
