"""`raymond demo`: watch a whole workflow run; no account needed."""

import os
import sys

import click

from raymond.cli import foreground
from raymond.cli.flags import ShowFlags
from raymond.control import start
from raymond.control.start import Choices

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "demo")


@click.command("demo")
def command() -> int:
    """Run the workflow that ships with Raymond: forks, a call, a review that loops, scripted replies."""
    run = start.begin_here(start.load(FOLDER), Choices(input="the next version"))
    code = foreground.drive(run, ShowFlags())
    print(
        f"""
try next:
  raymond status {run.id}      what it did
  raymond list{" " * (len(run.id) + 8)}every run of this project
  raymond run {os.path.relpath(FOLDER)} -d      the same in the background; kill -9 it, then: raymond resume
  the workflow is a folder: {os.path.relpath(FOLDER)}""",
        file=sys.stderr,
    )
    return code
