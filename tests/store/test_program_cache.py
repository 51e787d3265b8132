"""What was found about a script or a workflow is told at every start, and looked for once."""

from pathlib import Path

import pytest

from raymond.store import program_cache
from raymond.store.home import VARIABLE
from raymond.system import processes

SCRIPTS = {"good.sh": "echo x\n", "bad.sh": "while true; do\n"}


def test_a_verdict_is_told_again_without_asking_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir(0o700)
    monkeypatch.setenv(VARIABLE, str(home))
    said = program_cache.complaints(SCRIPTS)
    assert [*said] == ["bad.sh"]
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("PATH", str(tmp_path))
        processes.program.cache_clear()
        assert program_cache.complaints(SCRIPTS) == said, "there is no bash to ask"
        assert program_cache.complaints({"bad.sh": "while false; do\n"}) == {}
    processes.program.cache_clear()
    assert [*program_cache.complaints({"bad.sh": "while false; do\n"})] == ["bad.sh"], "silence is no verdict"
    (home / program_cache.VERDICTS_FILE).write_text("torn")
    assert program_cache.complaints(SCRIPTS) == said
    assert not program_cache.are_well(SCRIPTS)
    assert program_cache.are_well({"good.sh": SCRIPTS["good.sh"]})
    assert not program_cache.are_well({"new.sh": "echo y\n"}), "nobody has read it"


def test_a_workflow_is_clean_until_a_fact_about_it_or_a_rule_of_ours_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(0o700)
    monkeypatch.setenv(VARIABLE, str(home))
    facts = ("digest", "START.sh", {"START": {"timeout": 5}})
    assert not program_cache.is_clean(facts)
    program_cache.remember_clean(facts)
    assert program_cache.is_clean(facts)
    assert not program_cache.is_clean(("digest", "START.sh", {"START": {"timeout": 6}}))
    ours = tmp_path / "ours"
    for folder in ("store", "language/lint", "redaction"):
        (ours / folder).mkdir(parents=True)
    (ours / "language" / "lint" / "gates.py").write_text("a rule")
    monkeypatch.setattr(program_cache, "__file__", str(ours / "store" / "program_cache.py"))
    assert not program_cache.is_clean(facts)
    program_cache.remember_clean(facts)
    assert program_cache.is_clean(facts)
    (ours / "language" / "lint" / "gates.py").write_text("another")
    assert not program_cache.is_clean(facts)
    monkeypatch.setattr("sys.version_info", (3, 99))
    program_cache.remember_clean(facts)
    monkeypatch.undo()
    monkeypatch.setenv(VARIABLE, str(home))
    assert program_cache.is_clean(facts), "the first verdict still stands"
