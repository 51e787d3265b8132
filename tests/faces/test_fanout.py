"""Several faces as one: what each of them hears."""

import json
from pathlib import Path

from builders import Play
from raymond.drivers.face import Quiet
from raymond.faces import words
from raymond.faces.fanout import Faces
from raymond.faces.lines import LogFile


class Notes(Quiet):
    """A face that cares about notes alone."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.closed = 0

    def on_note(self, text: str) -> None:
        self.heard.append(text)

    def close(self) -> None:
        self.closed += 1


def test_a_face_that_cares_about_one_thing_is_told_everything_and_ignores_the_rest() -> None:
    play, first, second = Play({"START.md": ""}), Notes(), Notes()
    faces = Faces([first, second])
    faces.on_decisions(play.run, play.decisions)
    faces.on_output("main", "print", "hello")
    faces.on_pausing(play.run)
    faces.on_note("look here")
    faces.refresh(play.run)
    assert (faces.stdin, faces.answers()) == (-1, [])
    faces.close()
    assert [(face.heard, face.closed) for face in (first, second)] == [(["look here"], 1)] * 2


def test_the_log_says_what_ctrl_c_waits_for_as_text_and_as_json(tmp_path: Path) -> None:
    play = Play({"START.md": ""})
    play.begin()
    text, lines = LogFile(str(tmp_path / "text"), "text"), LogFile(str(tmp_path / "json"), "json")
    faces = Faces([text, lines])
    faces.on_pausing(play.run)
    faces.close()
    said = words.pausing(play.run)
    assert (tmp_path / "text").read_text("utf-8") == f"{said}\n"
    assert json.loads((tmp_path / "json").read_text("utf-8")) == {"type": "said", "text": said}
