"""`raymond doctor`: check this machine, or repair a damaged journal."""

import sys

import msgspec
from msgspec.structs import replace

from raymond import pasted
from raymond.cli import choice
from raymond.cli.command import as_command, option
from raymond.cli.values import BACKEND, RUN
from raymond.control import doctor
from raymond.errors import UsageError
from raymond.faces import history
from raymond.faces.foreign_text import fitted, said, width_of
from raymond.text import visible

_MARGIN = "     | "


@as_command("doctor")
@option("--repair", "id_", type=RUN, metavar="ID", help="Cut a damaged journal at its bad line; a copy is kept.")
@option("--probe", is_flag=True, help="Send one short prompt to a backend; this may cost money.")
@option("--backend", type=BACKEND, metavar="NAME", help="With --probe: the backend to ask.")
@option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(id_: str | None, probe: bool, backend: str | None, as_json: bool) -> int:
    """Check what runs need here, and say what is missing; with --repair, repair the journal of a run."""
    if id_:
        return _repair(id_)
    if backend and not probe:
        raise UsageError(
            "--backend goes with --probe", hint=f"raymond doctor --probe --backend {pasted.word(backend, 'NAME')}"
        )
    findings = doctor.examine()
    if probe:
        findings = doctor.proven(findings, doctor.probe(backend or "", asking=_asking))
    if as_json:
        # The paths in it need not be text.
        told = [replace(one, found=visible(one.found), hint=visible(one.hint)) for one in findings]
        sys.stdout.write(msgspec.json.encode(told).decode() + "\n")
    else:
        for one in findings:
            mark = "-   " if one.is_absent else "BAD " if not one.ok else "note" if one.hint else "ok  "
            print(said(f"{mark} {one.what}: {one.found}", sys.stdout))
            if one.hint:
                print("\n".join(fitted(visible(f"     hint: {one.hint}"), _MARGIN, width_of(sys.stdout))))
    return 0 if all(one.ok or not one.needed for one in findings) else 1


def _asking(name: str) -> None:
    print(f"asking {name} ...", file=sys.stderr)


def _repair(id_: str) -> int:
    run = choice.change(id_, "repair")
    done = doctor.repair_journal(run.project, run.id)
    for line in history.repair_lines(done):
        print(said(line, sys.stderr), file=sys.stderr)
    print(f"next: raymond {'logs' if done.is_over else 'resume'} {run.id}", file=sys.stderr)
    return 0
