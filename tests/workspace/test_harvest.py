"""Rule 3: Raymond takes the contents of files, by the settings, attributes and ignore rules that the tree began with."""

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pace import mostly_slow
from raymond.workspace import harvest
from raymond.workspace.repository import Repository
from workspace.checkout import Checkout, put
from workspace.person import Person

Changes = list[tuple[str, str, str]]

CHANGED_NAMES = {
    "newline": b"a\nb",
    "carriage return": b"a\r",
    "quote": b'a"b',
    "quoted": b'"a"',
    "backslash": b"a\\b",
    "not UTF-8": b"a\xff\xfeb",
    "colon": b":(top)a",
    "dash": b"-a",
    "blank": b" a ",
    "star": b"*",
    "negation": b"!a",
    "hash": b"#a",
    "tab": b"a\tb",
    "longest": b"n" * 255,
}


def test_nothing_is_taken_from_a_tree_that_nobody_changed(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "src/b": "2\n"}).open()
    assert checkout.taken() == {}


def test_what_is_saved_is_what_was_harvested_byte_by_byte(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "gone": "2\n", "src/b": "3\n"}).open()
    put(checkout.tree / "a", "changed\n")
    put(checkout.tree / "new/c", b"\0binary\xff")
    put(checkout.tree / "src/b", "3\n", 0o755)
    (checkout.tree / "gone").unlink()
    assert checkout.taken() == {"a": "M", "gone": "D", "new/c": "A", "src/b": "M"}
    assert checkout.saved("a") == b"changed\n"
    assert checkout.saved("new/c") == b"\0binary\xff"
    assert checkout.git("ls-tree", "refs/raymond/r/tip", "src/b").startswith("100755")


def test_a_change_of_the_same_size_and_time_is_taken_whatever_the_person_told_git(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"})
    for setting in ("core.trustctime false", "core.checkStat minimal", "core.ignoreStat true"):
        checkout.git("config", *setting.split())
    checkout.open()
    before = (checkout.tree / "a").stat()
    put(checkout.tree / "a", "2\n")
    os.utime(checkout.tree / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert checkout.taken() == {"a": "M"}


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
@pytest.mark.parametrize("folder", mostly_slow(["", "src/", "new/"]))
def test_a_pipe_with_the_name_of_a_rule_file_is_not_opened(checkout: Checkout, folder: str, name: str) -> None:
    checkout.begin({"src/a": "1\n"}).open()
    path = checkout.tree / folder / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    put(checkout.tree / "b", "new\n")
    taken = checkout.taken()
    assert taken.pop("b") == "A"
    assert taken == ({".gitignore": "D"} if folder + name == ".gitignore" else {})
    assert checkout.left_out() == {}


def test_a_filter_of_the_person_runs_for_attributes_of_the_base(checkout: Checkout) -> None:
    checkout.begin()
    checkout.git("config", "filter.upper.clean", "tr a-z A-Z")
    put(checkout.path / ".gitattributes", "*.txt filter=upper\n")
    checkout.git("add", "-A")
    checkout.git("commit", "-qm", "attributes")
    checkout.open()
    put(checkout.tree / "a.txt", "small\n")
    assert checkout.taken() == {"a.txt": "A"}
    assert checkout.saved("a.txt") == b"SMALL\n"


def test_a_folder_that_became_a_link_is_taken_as_a_link(checkout: Checkout, tmp_path: Path) -> None:
    checkout.begin({"src/a": "1\n", "src/deep/b": "2\n"}).open()
    shutil.rmtree(checkout.tree / "src")
    put(tmp_path / "outside/a", "secret\n")
    (checkout.tree / "src").symlink_to(tmp_path / "outside")
    assert checkout.taken() == {"src": "A", "src/a": "D", "src/deep/b": "D"}
    assert checkout.saved("src") == os.fsencode(tmp_path / "outside")


def test_a_link_that_became_a_folder_is_taken_as_a_folder(checkout: Checkout) -> None:
    checkout.begin({"v1/a": "1\n"})
    (checkout.path / "current").symlink_to("v1")
    checkout.git("add", "-A")
    checkout.git("commit", "-qm", "link")
    checkout.open()
    (checkout.tree / "current").unlink()
    put(checkout.tree / "current/a", "1\n")
    assert checkout.taken() == {"current": "D", "current/a": "A"}


def test_a_copied_file_stays_out_when_the_agent_empties_the_ignore_rules(checkout: Checkout) -> None:
    checkout.begin()
    put(checkout.path / ".env", "KEY=1\n")
    checkout.open()
    assert (checkout.tree / ".env").read_text("utf-8") == "KEY=1\n"
    put(checkout.tree / ".gitignore", "")
    put(checkout.tree / ".env", "KEY=2\n")
    assert checkout.taken() == {".gitignore": "M"}


def test_a_repository_in_the_tree_is_taken_as_files(checkout: Checkout) -> None:
    checkout.begin().open()
    nested = checkout.tree / "nested"
    put(nested / "a", "1\n")
    subprocess.run(["git", "init", "-q", nested], check=True)
    subprocess.run(["git", "-C", nested, "add", "-A"], check=True)
    subprocess.run(["git", "-C", nested, "commit", "-qm", "inner"], check=True)
    assert checkout.taken() == {"nested/a": "A"}


def test_a_link_with_the_name_of_the_list_of_submodules_is_left_out(checkout: Checkout) -> None:
    checkout.begin().open()
    (checkout.tree / ".gitmodules").symlink_to("/etc/passwd")
    put(checkout.tree / "b", "2\n")
    assert checkout.taken() == {"b": "A"}
    assert list(checkout.left_out()) == [".gitmodules"]


def test_a_socket_has_no_content(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.begin({"a": "1\n"}).open()
    monkeypatch.chdir(checkout.tree)
    (checkout.tree / "a").unlink()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("a")
        assert checkout.taken() == {"a": "D"}
        assert checkout.left_out() == {}


def test_a_huge_new_file_is_left_out_and_named(checkout: Checkout) -> None:
    checkout.begin().open()
    with open(checkout.tree / "huge", "wb") as file:
        file.truncate(1 << 40)
    assert checkout.taken() == {}
    assert checkout.left_out() == {"huge": "larger than 1 GiB"}


@pytest.mark.parametrize(
    ("attributes", "setting"),
    [("* text=auto\n", ""), ("* text=auto eol=crlf\n", ""), ("*.txt text\n", "core.autocrlf input"), ("", "core.autocrlf true")],
)  # fmt: skip
def test_line_endings_are_converted_as_the_base_says(checkout: Checkout, attributes: str, setting: str) -> None:
    checkout.begin({".gitattributes": attributes, "a.txt": "1\n2\n", "kept.txt": "1\n", "b.bin": b"\0\r\n"})
    if setting:
        checkout.git("config", *setting.split())
    checkout.open()
    put(checkout.tree / "a.txt", "1\r\n3\r\n")
    put(checkout.tree / "new.txt", "1\r\n")
    put(checkout.tree / "b.bin", b"\0\r\n\r\n")
    assert checkout.taken() == {"a.txt": "M", "new.txt": "A", "b.bin": "M"}
    assert checkout.saved("a.txt") == b"1\n3\n"
    assert checkout.saved("new.txt") == b"1\n"
    assert checkout.saved("b.bin") == b"\0\r\n\r\n"


def test_line_endings_are_converted_as_the_person_says_for_all_repositories(checkout: Checkout) -> None:
    checkout.begin({"a.txt": "1\n2\n", ".gitattributes": "*.raw -text\n"})
    own = put(checkout.path.parent / "attributes", "* text=auto\n")
    checkout.git("config", "core.attributesFile", str(own))
    checkout.open()
    put(checkout.tree / "a.txt", "1\r\n3\r\n")
    put(checkout.tree / "new.raw", "1\r\n")
    assert checkout.taken() == {"a.txt": "M", "new.raw": "A"}
    assert (checkout.saved("a.txt"), checkout.saved("new.raw")) == (b"1\n3\n", b"1\r\n")


def test_a_file_that_was_removed_and_made_again_is_as_it_is_now(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "same": "1\n"}).open()
    for name, text in (("a", "2\n"), ("same", "1\n")):
        (checkout.tree / name).unlink()
        put(checkout.tree / name, text)
    assert checkout.taken() == {"a": "M"}
    (checkout.tree / "a").unlink()
    assert checkout.taken() == {"a": "D"}
    put(checkout.tree / "a", "1\n")
    assert checkout.taken() == {}


def test_hard_links_are_taken_as_files(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    os.link(checkout.tree / "a", checkout.tree / "b")
    put(checkout.tree / "b", "2\n")
    assert checkout.taken() == {"a": "M", "b": "A"}
    assert checkout.saved("a") == checkout.saved("b") == b"2\n"


def test_what_the_agent_tells_its_own_git_changes_nothing(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "b": "1\n"}).open()
    lent = ["git", f"--git-dir={checkout.tree}/.git", f"--work-tree={checkout.tree}"]
    (checkout.tree / ".git/objects/info/alternates").write_text(f"{checkout.path}/.git/objects\n", "utf-8")
    subprocess.run([*lent, "update-index", "--assume-unchanged", "a"], check=True)
    subprocess.run([*lent, "update-index", "--skip-worktree", "b"], check=True)
    put(checkout.tree / ".git/info/exclude", "*\n")
    put(checkout.tree / ".git/info/attributes", "* text eol=crlf\n")
    for name in ("a", "b", "c"):
        put(checkout.tree / name, "2\r\n")
    assert checkout.taken() == {"a": "M", "b": "M", "c": "A"}
    assert checkout.saved("c") == b"2\r\n"


def test_a_file_that_the_person_assumes_unchanged_is_taken_when_the_agent_changes_it(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "b": "1\n"})
    checkout.git("update-index", "--assume-unchanged", "a")
    checkout.git("update-index", "--skip-worktree", "b")
    checkout.open()
    for name in ("a", "b"):
        put(checkout.tree / name, "2\n")
    assert checkout.taken() == {"a": "M", "b": "M"}


def test_carried_paths_are_never_taken(checkout: Checkout) -> None:
    checkout.begin({"big/.keep": ""})
    put(checkout.path / "node_modules/x/index.js", "1\n")
    put(checkout.path / "venv/pyvenv.cfg", "home = /usr\n")
    put(checkout.path / "big/data.dat", b"x" * (11 << 20))
    put(checkout.path / "more/data.csv", "1\n")
    base = checkout.open("more")
    assert sorted(base.installed) == ["node_modules", "venv"]
    assert sorted(base.data) == ["big/data.dat", "more"]
    put(checkout.tree / ".gitignore", "")
    for path in ("node_modules/y.js", "venv/lib/y.py", "big/data.dat", "more/y.csv", "dist/y"):
        put(checkout.tree / path, "agent\n")
    assert checkout.taken() == {".gitignore": "M"}


def test_the_walk_is_as_quick_as_the_number_of_files_and_reads_only_what_changed(checkout: Checkout) -> None:
    checkout.begin({f"d{n % 7}/f{n}": f"{n}\n" for n in range(50)}).open()
    known, _ = harvest.load_seen(checkout.place.slot)
    survey = harvest.look(os.fsencode(checkout.tree), known, (), lambda paths: set())
    assert (survey.changed, survey.missing) == ([], [])


def test_the_tree_of_the_index_is_known_until_something_else_writes_it(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n", "b": "2\n"}).open()
    slot = checkout.place.slot
    repository = Repository(slot.git, slot.rules)
    assert harvest.load_seen(slot)[1] == harvest.left(slot) == repository.written()
    put(checkout.tree / "a", "3\n")
    checkout.taken()
    assert harvest.load_seen(slot)[1] == harvest.left(slot) == repository.written()
    repository.ask("read-tree", repository.empty_tree())  # as after a kill
    assert harvest.load_seen(slot)[1] == ""
    assert harvest.left(slot) == repository.empty_tree()
    assert checkout.taken() == {"a": "M"}
    assert harvest.load_seen(slot)[1] == repository.written()


def test_a_copied_file_stays_out_when_only_an_ignored_ignore_file_hides_it(checkout: Checkout) -> None:
    checkout.begin()
    put(checkout.path / "app/.gitignore", ".gitignore\nsecret.txt\n")
    put(checkout.path / "app/secret.txt", "key\n")
    put(checkout.path / "app/main.py", "1\n")
    checkout.open()
    put(checkout.tree / "app/new.py", "2\n")
    put(checkout.tree / "app/.gitignore", "")
    assert checkout.taken() == {"app/new.py": "A"}
    assert checkout.git("ls-tree", "-r", "--name-only", "refs/raymond/r/tip", "app").split() == ["app/main.py", "app/new.py"]  # fmt: skip


def test_a_file_that_grew_huge_is_kept_as_it_was_and_named(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    with open(checkout.tree / "a", "wb") as file:
        file.truncate(1 << 40)
    put(checkout.tree / "b", "2\n")
    assert checkout.taken() == {"b": "A"}
    assert checkout.left_out() == {"a": "larger than 1 GiB"}
    (checkout.tree / "a").unlink()
    assert checkout.taken() == {"a": "D", "b": "A"}


def test_a_harvest_that_was_cut_short_is_done_again(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    slot = checkout.place.slot
    seen = Path(slot.seen).read_bytes()
    put(checkout.tree / "new", "1\n")
    put(checkout.tree / "a", "2\n")
    checkout.harvest()
    # Killed after git had the changes, before it was noted what was seen; and git in the middle of writing.
    Path(slot.seen).write_bytes(seen)
    Path(slot.git, "index.lock").touch()
    (checkout.tree / "new").unlink()
    assert checkout.taken() == {"a": "M"}


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_slow([".GIT", ".Git ", ".git", "git~1", ".git...", ".git::$DATA"], daily=2))
def test_a_name_that_git_refuses_is_left_out_and_hinders_nothing(checkout: Checkout, name: str) -> None:
    checkout.begin().open()
    put(checkout.tree / "b", "2\n")
    put(checkout.tree / "src" / name, "x\n")
    put(checkout.tree / "lib" / name / "config", "[core]\n")
    assert checkout.taken() == {"b": "A"}
    found = checkout.left_out()
    assert found.pop(f"src/{name}") == "a name that git keeps for itself"
    assert set(found) <= {f"lib/{name}/config", f"lib/{name}/"}
    assert name not in (".git", ".GIT", "git~1") or found


@pytest.mark.slow
def test_a_path_that_is_too_long_is_left_out_and_hinders_nothing(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    checkout.begin().open()
    put(checkout.tree / "b", "2\n")
    monkeypatch.chdir(checkout.tree)
    for _ in range(40):
        os.mkdir("n" * 200)
        os.chdir("n" * 200)
    Path("deep").write_text("x", "utf-8")
    os.chdir(checkout.tree)
    assert checkout.taken() == {"b": "A"}
    assert list(checkout.left_out().values()) == ["a path that is too long"]
    checkout.place.drop()
    assert not checkout.tree.exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", mostly_slow(CHANGED_NAMES, daily=3))
def test_any_name_is_taken(checkout: Checkout, kind: str) -> None:
    name = CHANGED_NAMES[kind]
    checkout.begin({"a": "of a\n"}).open()
    for path in (name, b"dir" + name[:200] + b"/" + name):
        whole = os.path.join(os.fsencode(checkout.tree), path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(b"of " + name)
    taken = checkout.taken()
    assert set(taken) == {os.fsdecode(name), os.fsdecode(b"dir" + name[:200] + b"/" + name)}
    assert {checkout.saved(one) for one in taken} == {b"of " + name}
    checkout.apply()
    with open(os.path.join(os.fsencode(checkout.path), name), "rb") as file:
        assert file.read() == b"of " + name


def test_files_that_only_new_ignore_rules_show_are_named(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"})
    put(checkout.path / ".env", "KEY=1\n")
    checkout.open()
    put(checkout.tree / ".gitignore", ".venv/\n")
    put(checkout.tree / "run.log", "1\n")
    put(checkout.tree / "dist/x", "1\n")
    assert checkout.taken() == {".gitignore": "M"}
    why = "hidden by the ignore rules that the run began with"
    assert checkout.left_out() == {".env": why, "run.log": why, "dist/": why}


@pytest.mark.slow
def test_new_ignore_rules_hide_new_files_and_those_are_named(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    put(checkout.tree / ".gitignore", "build/\n")
    put(checkout.tree / "build/x", "1\n")
    assert checkout.taken() == {".gitignore": "M"}
    assert checkout.left_out() == {"build/": "hidden by a new ignore rule"}
    put(checkout.tree / "build/deep/y", "2\n")  # the new rules were harvested before
    put(checkout.tree / "src/build/z", "2\n")
    put(checkout.tree / "src/new", "2\n")
    assert checkout.taken() == {".gitignore": "M", "src/new": "A"}
    assert checkout.left_out() == dict.fromkeys(("build/", "src/build/"), "hidden by a new ignore rule")


@pytest.mark.slow
def test_rules_that_take_git_for_ever_do_not_count(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    put(checkout.tree / "/".join(["aaaaaaaa"] * 60) / "f", "1\n")
    put(checkout.tree / ".gitignore", "**/a*/**/a*/**/a*/**/a*/**/a*/**/a*/zz\n")
    assert checkout.taken() == {".gitignore": "M", "/".join(["aaaaaaaa"] * 60) + "/f": "A"}


def test_work_that_was_undone_after_it_was_saved_is_not_brought_home(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"}).open()
    put(checkout.tree / "a", "2\n")
    first = checkout.save()
    put(checkout.tree / "a", "1\n")
    second = checkout.save()
    assert second not in ("", first)
    assert checkout.git("rev-parse", "refs/raymond/r/tip").strip() == second
    assert checkout.apply().changed == []


def test_a_filter_of_the_person_does_not_run_for_attributes_of_the_agent(checkout: Checkout, tmp_path: Path) -> None:
    checkout.begin({"a": "1\n"})
    for kind in ("clean", "smudge", "process"):
        checkout.git("config", f"filter.x.{kind}", f"touch '{tmp_path}/ran'; cat")
    checkout.open()
    put(checkout.tree / ".gitattributes", "* filter=x text eol=crlf\n")
    put(checkout.tree / "a", "2\r\n")
    assert checkout.taken() == {".gitattributes": "A", "a": "M"}
    put(checkout.tree / "a", "3\r\n")  # the attributes are in the index of the harvest by now
    put(checkout.tree / "b", "4\r\n")
    assert checkout.taken() == {".gitattributes": "A", "a": "M", "b": "A"}
    assert checkout.saved("a") == b"3\r\n"
    assert checkout.apply().conflicts == []
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("attributes", ["", "* text=auto\n"])
def test_files_and_folders_that_their_owner_cannot_read_are_taken(anyone: Person, attributes: str) -> None:
    anyone.begin({".gitattributes": attributes, "a": "1\n", "d/b": "1\n"})
    anyone.inside(
        """
        for mode in 0 100 200 400 600; do mkdir f$mode; echo $mode > f$mode/x; mkdir f$mode/deep; echo 1 > f$mode/deep/y; done
        printf '2\\r\\n' > a; echo 2 > d/b; echo new > new; chmod 0 a d/b new; chmod 200 d
        for mode in 0 100 200 400 600; do chmod $mode f$mode; done
        chmod 0 .
        """
    )
    folders = {f"f{mode}/{name}": "A" for mode in (0, 100, 200, 400, 600) for name in ("x", "deep/y")}
    assert anyone.taken() == {"a": "M", "d/b": "M", "new": "A", **folders}
    assert anyone.saved("f0/x") == "0\n"
    assert anyone.inside("cat README") == "read me\n"


NAMES = st.sampled_from(
    ["a", "b", "c.txt", "d", "é", "-x", ":y", "z z", "*", "n\nl", "r\r", '"q"', "\\", "CON", ".hidden"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["write", "remove", "link", "mode", "folder"]), PATHS, st.sampled_from(["1\n", "2\r\n", ""])
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(before=CHANGES, rounds=st.lists(CHANGES, min_size=1, max_size=3))
def test_what_is_taken_is_what_git_itself_would_add(tmp_path_factory: pytest.TempPathFactory, checkout: Checkout, before: Changes, rounds: list[Changes]) -> None:  # fmt: skip
    ours = Checkout(tmp_path_factory.mktemp("changes"))
    change(ours.path, before)
    ours.begin().open()
    for one in rounds:
        change(ours.tree, one)
        taken = ours.harvest().tree
        reference = {**os.environ, "GIT_DIR": f"{ours.path}/.git", "GIT_WORK_TREE": str(ours.tree)}
        reference["GIT_INDEX_FILE"] = f"{ours.path}/reference"
        subprocess.run(["git", "add", "-A"], env=reference, check=True, capture_output=True)
        said = subprocess.run(["git", "write-tree"], env=reference, check=True, capture_output=True, text=True).stdout
        assert taken == said.strip()


def change(root: Path, changes: Changes) -> None:
    """Do to a folder whatever can be done of this."""
    for what, path, text in changes:
        whole = root / path
        with contextlib.suppress(OSError):
            if what in ("remove", "link", "folder") and whole.is_dir() and not whole.is_symlink():
                shutil.rmtree(whole)
            elif what in ("remove", "link", "folder"):
                whole.unlink(missing_ok=True)
            if what == "write":
                put(whole, text)
            elif what == "link":
                whole.parent.mkdir(parents=True, exist_ok=True)
                whole.symlink_to(text.strip() or "nowhere")
            elif what == "mode":
                whole.chmod(0o755 if text else 0o644)
            elif what == "folder":
                whole.mkdir(parents=True)
