"""A place with a short run whose agents work in a workspace, and a git that can be told to die."""

import os
import shutil
from pathlib import Path

from crash import ledger, nothing_lost, runs
from crash.nothing_lost import Expected
from crash.torture import ID, Command, Ending, Place

STATES = {
    "START_sh": f"{ledger.NOTE}note begin\nrm -f old\nmkdir -p sub/deep && echo made > sub/deep/made\n"
    "note end\necho '<goto>WORK.md</goto>'\n",
    "WORK_md": "Go on: `<goto>END.sh</goto>`\n",
    "END_sh": f"{ledger.NOTE}note begin\necho end > ended\nnote end\necho '<result>all is well</result>'\n",
    "replies": 'WORK.md: {text: "<goto>END.sh</goto>", cost: 0.25, writes: {turned: "by a turn\\n"}}\n',
}
"""A file is removed, and some are made, one of them by a turn. Each of that can be done twice."""
_GIT = """#!/bin/bash
number=$(($(wc -l < "$GITS/log") + 1))
printf '%s\\n' "$*" >> "$GITS/log"
read -r how at < "$GITS/strike"
if [ "$how" = do ]; then
  case " $* " in *" $at "*) "$GITS/do" ;; esac
elif [ "$number" = "$at" ]; then
  kill -9 $PPID
  case $how in
    before) exit 137 ;;
    late) sleep 0.3 ;;
    locked)
      for word in "$@"; do
        case $word in
          refs/*) : > "$REPOSITORY/$word.lock" ;;
          update-index | write-tree) : > "$GIT_INDEX_FILE.lock" ;;
        esac
      done
      exit 137
      ;;
  esac
fi
exec {git} "$@"
"""
"""Git, which notes what it is asked. At one of these calls whoever called it is killed, and it goes on or not; or
something is done before each call with some word."""


class Workshop(Place):
    """The place."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder, folder / "home", isolated=True)
        self.flow = runs.workflow(folder / "flow", **STATES)
        self.gits = folder / "gits"
        self.gits.mkdir()
        program = self.gits / "git"
        program.write_text(_GIT.replace("{git}", shutil.which("git") or "git"), "utf-8")
        program.chmod(0o755)
        self.environment |= {"GITS": str(self.gits), "REPOSITORY": str(self.room / ".git")}
        self.environment["PATH"] = f"{self.gits}:{os.environ['PATH']}"
        self.strike("never", 0)

    def strike(self, how: str, at: int | str) -> None:
        """Let the call of git with this number be the last of whoever makes it."""
        (self.gits / "log").write_text("", "utf-8")
        (self.gits / "strike").write_text(f"{how} {at}\n", "utf-8")

    def first(self, word: str, command: str) -> None:
        """Run a command before each call of git with this word."""
        done = self.gits / "do"
        done.write_text(f"#!/bin/sh\n{command}\n", "utf-8")
        done.chmod(0o755)
        self.strike("do", word)

    def asked(self) -> list[str]:
        """What git was asked since."""
        return (self.gits / "log").read_text("utf-8").splitlines()

    def begin(self) -> Command:
        return self.start("run", str(self.flow), "--id", ID, "--backend", "scripted-program", *self.way)

    def finish(self) -> list[Ending]:
        """Start or resume the run until it is done."""
        endings = [(self.resume() if self.journal.exists() else self.begin()).wait()]
        nothing_lost.check_words(endings[0])
        assert endings[0].code == 0, endings[0].err
        return endings


def unbroken(folder: Path, kind: type[Workshop] = Workshop) -> tuple[Expected, list[str]]:
    """What the run comes to with nobody in its way, and what it asks of git."""
    place = kind(folder)
    endings = place.finish()
    found, asked = nothing_lost.expected(place), place.asked()
    nothing_lost.check(place, found, endings, paid_once=True)
    assert sorted(found.work) == ["ended", "new", "sub/deep/made", "sub/file", "turned"]
    return found, asked
