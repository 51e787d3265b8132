"""A checkout for checks holds what was harvested, whatever an earlier check has left in it."""

import os
import shutil
from pathlib import Path

import pytest

from pace import mostly_slow
from raymond.workspace import checkout as checkouts
from raymond.workspace.slot import Slot
from workspace.checkout import Checkout, put


class Checks:
    """The checkout for checks of a project."""

    def __init__(self, project: Checkout) -> None:
        self.project = project
        self.slot = Slot(f"{os.path.dirname(project.place.slot.path)}/check")
        self.tree = Path(self.slot.tree)

    def follow(self, tree: str = "", *, keep: bool = True) -> dict[str, str]:
        """Let it hold what is in the tree of the agent, or what a tree of git has; its files."""
        tree, base = tree or self.project.harvest().tree, self.project.place.known()
        checkouts.follow(self.slot, self.project.place.slot, base, tree, keep=keep)
        return self.files()

    def files(self) -> dict[str, str]:
        """Every file but those of git, and where links lead."""
        found = {}
        for above, folders, names in os.walk(self.tree):
            folders[:] = [one for one in folders if one != ".git"]
            for name in (*names, *(one for one in folders if os.path.islink(os.path.join(above, one)))):
                path = Path(above, name)
                told = f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text("utf-8")
                found[str(path.relative_to(self.tree))] = told
            if above != str(self.tree) and not os.listdir(above):
                found[f"{Path(above).relative_to(self.tree)}/"] = ""
        return found


@pytest.fixture
def checks(checkout: Checkout) -> Checks:
    checkout.begin({"src/a.py": "1\n", "src/deep/b.py": "1\n", "tests/test_a.py": "1\n"})
    put(checkout.path / ".env", "KEY=1\n")
    checkout.open()
    (checkout.path / ".env").write_text("KEY=1\n")
    return Checks(checkout)


def expected(checks: Checks, **more: str) -> dict[str, str]:
    found = {
        ".gitignore": (checks.project.path / ".gitignore").read_text("utf-8"),
        ".env": "KEY=1\n",
        "src/a.py": "1\n",
        "src/deep/b.py": "1\n",
        "tests/test_a.py": "1\n",
    }
    return {**found, **more}


def test_it_holds_what_was_harvested_and_not_what_was_hidden(checks: Checks) -> None:
    put(checks.project.tree / "src/a.py", "2\n")
    put(checks.project.tree / "new", "2\n")
    put(checks.project.tree / ".env", "KEY=agent\n")
    put(checks.project.tree / "dist/forged", "2\n")
    assert checks.follow() == {**expected(checks, new="2\n"), "src/a.py": "2\n"}
    (checks.project.tree / "new").unlink()
    put(checks.project.tree / "src/deep/b.py", "3\n")
    assert checks.follow() == {**expected(checks), "src/a.py": "2\n", "src/deep/b.py": "3\n"}


def test_a_file_takes_the_place_of_a_folder_and_back(checks: Checks) -> None:
    tree = checks.project.tree
    checks.follow()
    shutil.rmtree(tree / "src")
    (tree / "src").symlink_to("tests")
    shutil.rmtree(tree / "tests")
    put(tree / "tests", "a file now\n")
    assert checks.follow() == {
        **{path: text for path, text in expected(checks).items() if "/" not in path},
        "src": "-> tests",
        "tests": "a file now\n",
    }
    assert checks.follow(checks.project.place.known().tree) == expected(checks)


LEFT = {
    "a changed file": "printf 'x\n' > src/a.py",
    "a changed file of the same size and time": "touch -r src/a.py ref; printf '2\n' > src/a.py; touch -r ref src/a.py; rm ref",
    "a removed file": "rm tests/test_a.py",
    "a removed folder": "rm -r src",
    "a new file": "echo x > tests/conftest.py",
    "a new folder": "mkdir test",
    "a folder in the place of a file": "rm src/a.py; mkdir -p src/a.py/x; echo x > src/a.py/x/y",
    "a link in the place of a file": "ln -sf {out}/secret src/a.py",
    "a link in the place of a folder": "mv src moved; ln -s {out} src",
    "a pipe": "rm src/a.py; mkfifo src/a.py",
    "a folder that is closed": "chmod 000 src/deep",
    "another mode": "chmod +x src/a.py",
    "a hook": "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit",
    "an ignored file": "echo KEY=check > .env",
}


@pytest.mark.parametrize("what", mostly_slow(LEFT, daily=3))
def test_nothing_that_a_check_left_is_there_for_the_next(checks: Checks, what: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "deep").mkdir(parents=True)
    (out / "secret").write_text("theirs\n")
    checks.follow()
    here = os.getcwd()
    os.chdir(checks.tree)
    try:
        assert os.system(LEFT[what].replace("{out}", str(out))) == 0
    finally:
        os.chdir(here)
    assert checks.follow(keep=what != "an ignored file") == expected(checks)
    assert not (checks.tree / ".git/hooks").exists()
    assert (checks.tree / "src/a.py").stat().st_mode & 0o777 == 0o644
    assert sorted(os.listdir(out)) == ["deep", "secret"]
    assert (out / "secret").read_text() == "theirs\n"


def test_build_products_stay_until_a_check_was_red(checks: Checks) -> None:
    checks.follow()
    put(checks.tree / "dist/built", "1\n")
    put(checks.tree / "src/x.log", "1\n")
    assert checks.follow() == expected(checks, **{"dist/built": "1\n", "src/x.log": "1\n"})
    put(checks.project.tree / "src/a.py", "2\n")
    assert checks.follow(keep=False) == {**expected(checks), "src/a.py": "2\n"}


def test_a_product_in_the_way_of_a_file_goes(checkout: Checkout) -> None:
    checkout.begin({"src/a": "1\n"})
    put(checkout.path / "src/x.log/kept", "1\n")
    checkout.git("add", "-f", "src/x.log/kept")
    checkout.git("commit", "-qm", "a tracked file in a folder that is ignored")
    checkout.open()
    checks = Checks(checkout)
    (checks.project.tree / "src/x.log/kept").unlink()
    assert "src/x.log/kept" not in checks.follow()
    put(checks.tree / "src/x.log", "built\n")
    assert checks.follow()["src/x.log"] == "built\n"
    assert checks.follow(checkout.place.known().tree)["src/x.log/kept"] == "1\n"


def test_one_that_was_cut_short_is_made_again(checks: Checks) -> None:
    checks.follow()
    os.unlink(f"{checks.slot.path}/written")
    put(checks.tree / "src/half", "x\n")
    assert checks.follow() == expected(checks)


def test_only_what_differs_is_written(checks: Checks) -> None:
    checks.follow()
    before = {path: (checks.tree / path).stat().st_ctime_ns for path in ("src/a.py", "tests/test_a.py")}
    put(checks.project.tree / "src/a.py", "2\n")
    checks.follow()
    after = {path: (checks.tree / path).stat().st_ctime_ns for path in before}
    assert [path for path in before if before[path] != after[path]] == ["src/a.py"]


def test_git_there_shows_the_commit_and_the_tree_that_is_checked(checks: Checks) -> None:
    put(checks.project.tree / "src/a.py", "2\n")
    checks.follow()
    objects = checks.tree / ".git/objects/info/alternates"
    assert objects.read_text().startswith("/run/raymond/objects")
    assert (checks.tree / ".git/HEAD").read_text() == "ref: refs/heads/main\n"
