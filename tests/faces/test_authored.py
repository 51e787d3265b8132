"""Places in what people read are the author's files, as one would type them here."""

import os
from pathlib import Path

import pytest

from raymond.control import config, preflight, start
from raymond.control.start import Options
from raymond.errors import WorkflowError
from raymond.faces.words import with_author_paths
from raymond.store import loader
from raymond.store.home import UNPACKED

COPY = f"/home/ada/.local/state/raymond/{UNPACKED}/{'d1' * 32}"


def test_a_failed_script_names_the_authors_file_and_not_the_copy_it_ran_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = f"{COPY}/B.sh: line 3: syntax error near `{COPY}/C.sh'"
    assert with_author_paths(said, f"{tmp_path}/f") == "f/B.sh: line 3: syntax error near `f/C.sh'"
    assert with_author_paths(said, str(tmp_path)) == "B.sh: line 3: syntax error near `C.sh'"
    other = f"in /srv/{UNPACKED}/x/B.sh"
    assert with_author_paths(other, f"{tmp_path}/f") == other


def test_an_error_in_a_workflow_names_its_file_from_here_and_a_command_that_can_be_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkdir("my f")
    Path("my f/START.md").write_text("Just do it.\n")
    loaded = loader.load("my f")
    options = start.configured(Options(backend="claude"), config.load(str(tmp_path)), config.site_rules())
    with pytest.raises(WorkflowError) as caught:
        start.prepare(loaded, options)
    (found,) = caught.value.diagnostics
    assert (found.file, found.line) == ("my f/START.md", 1)
    assert "green: raymond ralph 'my f/START.md' --gate \"make test\"\n" in found.hint
    assert preflight.located([found], loaded) == [found], "said once"
