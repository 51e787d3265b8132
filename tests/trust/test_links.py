"""Nothing behind a link changes, whoever put it where Raymond keeps something, and whatever is done then."""

import pytest

from trust.places import ASKS, Place, contents, link, no_traceback

FOLDERS = ["workflows", "sources", "work", "blobs", "tasks", "debug", "spool", "transcripts", "sessions", "logs"]
FLOWS = {
    "DONE": {"START.sh": "echo '<result>done</result>'"},
    "TASK": {"START.sh": 'echo x > "$RAYMOND_TASK_FOLDER/notes"; echo "<result>done</result>"  # task_folder'},
    "ASKS": ASKS,
    "LONG": {
        "START.sh": "echo '<ask next=\"LONG\">Which?</ask>'",
        "LONG.sh": "printf '<goto input=\"%s\">THINK</goto>' $(printf 'x%.0s' {1..20000})",
        "THINK.md": "Think of {{input}}",
        "replies.yaml": "THINK.md: <result>done</result>",
    },
}
DEEDS = {
    # What a checkout ships.
    **{f"{name}, cleaned": f"link .raymond/{name}; clean --dry-run; clean; clean --keep 0s" for name in FOLDERS},
    **{
        f"{name}, used": f"link .raymond/{name}; run TASK --id r --debug; status r; resume r --debug; clean r"
        for name in (".", *FOLDERS)
    },
    "the spool of a run to come": "link .raymond/spool/Documents; run DONE --id Documents",
    "a lock": "link .raymond/workflows/r.lock .bashrc; run ASKS --id r; answer r yes; resume r; stop r; clean r",
    # What lies there when a run has ended: the folder behind the link has what looks like its own.
    **{
        f"{name} of the name of a run": f"run DONE --id Documents; link .raymond/{name}; clean Documents; gone"
        for name in ("tasks", "spool", "transcripts", "sessions")
    },
    **{f"{name} with one of the run": f"run DONE --id r; link .raymond/{name}; clean r" for name in ("debug", "workflows")},
    # In the folder of a run, which is answered and continues or stops.
    **{
        f"the file {name}": f"run LONG --id r; link RUN/{name} .bashrc; answer r yes --no-resume; resume r -d; wait r; clean r"
        for name in ("state.json", "driver.json", "snapshot", "log")
    },
    **{
        f"the folder {name}": f"run LONG --id r; link RUN/{name}; answer r yes --no-resume; resume r; stop r; clean r"
        for name in ("inbox", "spool", "transcripts", "blobs", "sessions")
    },
}  # fmt: skip
EXPORTS = {"workflows/r.json": ".bashrc", "workflows": "", ".": ""}
SPOOLS = 'for one in .raymond/spool/r "$RAYMOND_HOME"/projects/*/runs/r/spool; do mkdir -p "$one/1.1"; ln -s VICTIM "$one/x"; ln -s VICTIM "$one/1.1/x"; done'
PLANTED = {
    **{
        f"in place of the exported {name}": f"rm -rf .raymond/{name}; mkdir -p .raymond; mkdir -p $(dirname .raymond/{name}); ln -s VICTIM/{target} .raymond/{name}"
        for name, target in EXPORTS.items()
    },
    "in its spool": SPOOLS,
    "in the spool of a turn": 'for one in $(find .raymond "$RAYMOND_HOME" -type d -path "*spool*"); do ln -s VICTIM "$one/x"; done',
    "in place of a debug file": "one=$(echo .raymond/debug/*); rm $one/transitions.log; ln VICTIM/.bashrc $one/transitions.log",
    "in place of a debug file, which is a pipe": "one=$(echo .raymond/debug/*); rm $one/transitions.log; mkfifo $one/transitions.log",
}  # fmt: skip
"""What a step of a run does while another agent takes its turn."""


@pytest.mark.parametrize("deeds", DEEDS)
def test_nothing_behind_a_link_is_written_or_removed(room: Place, deeds: str) -> None:
    victim = room.repository().victim()
    (victim / "r.json").write_text("mine")
    (victim / "r_20260101_120000").mkdir()
    (victim / "r_20260101_120000" / "photo").write_text("a photo")
    before = contents(victim)
    flows = {name: room.flow(files, name) for name, files in FLOWS.items()}
    (room.path / ".raymond" / "workflows").mkdir(parents=True)
    for deed in DEEDS[deeds].split("; "):
        match deed.split():
            case ["link", where, *target]:
                place = room.part(where[4:]) if where.startswith("RUN/") else room.path / where
                if place.is_dir() and where.startswith("RUN/"):
                    place.rename(place.with_name("before"))
                link(place, victim.joinpath(*target))
            case ["gone"]:
                assert room.rows() == []
            case words:
                no_traceback(room.raymond(*(flows.get(word, word) for word in words)))
    assert contents(victim) == before


@pytest.mark.parametrize("plant", PLANTED)
def test_nothing_behind_a_link_that_a_step_makes_is_written_or_removed(room: Place, plant: str) -> None:
    victim = room.victim()
    before = contents(victim)
    flow = {
        "START.sh": "echo '<fork>PLANT</fork><goto>THINK</goto>'",
        "PLANT.sh": f"{PLANTED[plant].replace('VICTIM', str(victim))}\necho '<goto>END</goto>'",
        "THINK.md": "Think.",
        "END.sh": "echo '<result>planted</result>'",
        "replies.yaml": "THINK.md: {text: '<result>done</result>', delay: 300ms}",
    }
    done = room.command(flow, "--backend", "scripted-program", "--debug")
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert contents(victim) == before
