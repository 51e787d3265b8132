"""`raymond demo`: watch a whole workflow run; no account needed."""

import os
import re
import shlex
import shutil
import sys

from raymond.cli import driving
from raymond.cli.command import as_command
from raymond.cli.flags import ShowFlags
from raymond.control import start
from raymond.control.start import Choices

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "demo")


@as_command("demo")
def command() -> int:
    """Run the workflow that ships with Raymond: forks, a call, a review that loops, scripted replies."""
    replies = None if sys.stderr.isatty() else _at_once()
    run = start.begin_here(start.load(FOLDER), Choices(input="the next version", replies=replies))
    code = driving.drive(run, ShowFlags())
    folder = shlex.quote(min(FOLDER, os.path.relpath(FOLDER), key=len))
    raymond = _program()
    print(
        f"""
three things to try:
  {raymond} logs {run.id} --text
      read what each agent was sent and what it said
  {raymond} run {folder} -d
      run it again in the background, kill it with kill -9, and continue it with {raymond} resume
  cp -r {folder} notes && {raymond} run notes
      make it yours: the workflow is a folder of prompts and scripts; with --backend claude, Claude Code answers""",
        file=sys.stderr,
    )
    return code


def _program() -> str:
    """What to type to call Raymond here: a checkout may be tried before it is installed."""
    if shutil.which("raymond"):
        return "raymond"
    if os.path.basename(sys.argv[0]) == "raymond":
        return shlex.quote(sys.argv[0])
    return f"{shlex.quote(sys.executable)} -m raymond"


def _at_once() -> str:
    """The replies without their delays: nobody watches."""
    with open(os.path.join(FOLDER, "replies.yaml"), encoding="utf-8") as file:
        return re.sub(r"(?m),? *\bdelay: \w+$|, delay: \w+(?=})", "", file.read())
