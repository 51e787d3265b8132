"""Every command in every situation: `python -m attacks.matrix KIND NAME FOLDER` tells what came of them, as JSON."""

import os
import sys
from pathlib import Path

import msgspec

from attacks import spoiled, world
from attacks.situations import SITUATIONS
from attacks.world import Said, commands

READING = """
--help; --version; -h; list --help; completion bash; config; config show --origin; config show --json; doctor;
doctor --json; list; list --all; list --json; list --all --json; status; status asks --json; status as --agents; list --here --status failed --limit 2 --since 1h;
status done; status done --json; logs asks; logs done --json; logs done --step 1; logs done --agent main;
logs done --debug-dir OUT; cost done; cost --all; cost --here; clean --all --dry-run; cost --all --by day --json; wait done; wait killed --json;
attach done; attach killed; inbox; inbox --here --json; trust --list; clean --dry-run; resume --all --dry-run; run FLOW --dry-run;
run FLOW --dry-run --run-gates; gate FLOW; gate FLOW START; gate FLOW TURN; gate NOPE START; review; review asks; review done --json;
continuous-session status; continuous-session status --json; ralph status; ralph NOPE.md; continuous-session start --dry-run; ralph FLOW/START.sh --dry-run;
prd; prd import NOPE.json; prd import FILE --dry-run --as fix-plan; task-loop status; task-loop start --dry-run; story-loop status --json;
story-loop status --metrics; story-loop start --dry-run; continuous-session record; task-loop record --json; story-loop next --resume; summary done; summary --since 1h; summary asks --json
"""
CHANGING = """
answer asks yes; answer asks main yes --question 1 --no-resume; answer asks @FILE --no-resume; answer asks; stop asks; stop asks --now; stop killed --now;
stop asks --agent main; cancel failed; cancel done; resume; resume asks; resume killed; resume killed --debug --log-file LOG; resume failed -d;
resume done; resume --all; resume --here --yes; stop --all --yes; clean --force asks; clean --all --keep 0s; resume asks --latest --map x=END; resume asks --latest; resume asks --cd .;
resume killed --cd . --root . --force; resume failed --agent main --retry; resume failed --agent main --give-up;
resume asks --agent main --goto END --input @FILE; resume asks --agent main --result x --json;
run FLOW --id new --input @FILE --var a=b --json; run FLOW -d --notify true; start FLOW --cd . --root . --quiet; start FLOW --id new --input @FILE; start FLOW --id asks; start FLOW --id killed --json;
run FLOW/START.sh --replies REPLIES --set TURN.md.retries=1; run FLOW --model x --effort x --allow-tool x; FLOW;
doctor --repair asks; doctor --probe --backend scripted; clean; clean --keep 0s; clean done failed; clean asks;
trust --yes; trust --forget; accept; accept asks; accept asks main --no-resume; reject asks main no; reject done;
continuous-session stop; continuous-session resume --yes; continuous-session learn x; ralph stop; ralph resume --yes; continuous-session start --yes;
task-loop stop; task-loop resume --yes; task-loop start --yes; story-loop stop; story-loop start --yes; continuous-session next --start --json; init --claude;
apply done; apply; shell asks; gate FLOW --workspace copy; init --plugin OUT; prd status-init; prd status-init --yes --json; prd import FILE --yes; prd import FILE --as fix-plan --verify true
"""


def situation(folder: Path, name: str) -> list[Said]:
    """A sixth of the commands that read, and a tenth of those that change something: others in the next situation.

    `MATRIX=whole make test-slow` has all of them everywhere.
    """
    found = SITUATIONS[name](folder)
    reading, changing, number = commands(READING), commands(CHANGING), [*SITUATIONS].index(name)
    if os.environ.get("MATRIX") != "whole":
        reading, changing = reading[number % 6 :: 6], changing[number % 10 :: 10]
    return found.all(reading, put_back=False) + found.all([*changing, *found.more], put_back=True)


KINDS = {"situation": situation, "runs": spoiled.runs, "homes": spoiled.homes}

if __name__ == "__main__":
    world.prepare()
    sys.stdout.buffer.write(msgspec.json.encode(KINDS[sys.argv[1]](Path(sys.argv[3]), sys.argv[2])))
