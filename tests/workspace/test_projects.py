"""Which projects a workspace can be made of, and what it has of a checkout as it stands."""

import os
from pathlib import Path

import pytest

from raymond.errors import UsageError
from raymond.workspace import tree
from workspace.checkout import Checkout, put
from workspace.person import Person

STATUS = "git status --short; git log --format=%s -1; cat README"


def refusal(checkout: Checkout) -> tuple[str, str]:
    with pytest.raises(UsageError) as raised:
        tree.check(str(checkout.path) if (checkout.path / ".git").exists() else "", [], copies=False)
        checkout.open()
    assert not (checkout.path.parent / "place/1/whole").exists()
    return str(raised.value), raised.value.hint


def test_a_folder_without_git_is_refused(checkout: Checkout) -> None:
    assert refusal(checkout) == (
        "a workspace needs a git repository, and this project is not one",
        "git init, or use --workspace here",
    )


def test_a_repository_without_a_commit_is_refused(checkout: Checkout) -> None:
    checkout.git("init", "-q")
    assert refusal(checkout) == (
        "a workspace needs a commit, and this repository has none",
        "git commit, or use --workspace here",
    )


def test_submodules_are_refused(checkout: Checkout, tmp_path: Path) -> None:
    checkout.begin()
    checkout.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(checkout.path), "lib/sub")
    said = "a workspace cannot be made of a repository with submodules (lib/sub)"
    assert refusal(checkout) == (said, "use --workspace here")


def test_a_sparse_checkout_is_refused(checkout: Checkout) -> None:
    checkout.begin({"a/b": "1\n"})
    checkout.git("sparse-checkout", "set", "a")
    assert refusal(checkout) == ("a workspace cannot be made of a sparse checkout", "use --workspace here")


def test_a_partial_clone_is_refused(checkout: Checkout, tmp_path: Path) -> None:
    checkout.begin()
    checkout.git("config", "uploadpack.allowFilter", "true")
    checkout.git("clone", "-q", "--filter=blob:none", f"file://{checkout.path}", str(tmp_path / "partial"))
    checkout.path = tmp_path / "partial"
    checkout.place.top = str(checkout.path)
    assert refusal(checkout) == ("a workspace cannot be made of a partial clone", "use --workspace here")


def test_git_lfs_is_refused(checkout: Checkout) -> None:
    checkout.begin({"assets/.gitattributes": "*.psd filter=lfs diff=lfs merge=lfs -text\n"})
    said = "a workspace cannot be made of a repository that uses Git LFS (assets/.gitattributes)"
    assert refusal(checkout) == (said, "use --workspace here")


def test_conflicts_that_are_not_resolved_are_refused(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"})
    checkout.git("checkout", "-q", "-b", "x")
    put(checkout.path / "a", "2\n")
    checkout.git("commit", "-qam", "x")
    checkout.git("checkout", "-q", "main")
    put(checkout.path / "a", "3\n")
    checkout.git("commit", "-qam", "y")
    checkout.git("-c", "merge.conflictStyle=merge", "merge-file", "-q", "a", "a", "a")
    with pytest.raises(AssertionError):
        checkout.git("merge", "-q", "x")
    assert refusal(checkout) == (
        "a has conflicts that are not resolved",
        "finish the merge, or use --workspace here",
    )


def test_the_home_cannot_be_a_workspace(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout.begin()
    monkeypatch.setenv("HOME", str(checkout.path))
    assert refusal(checkout) == (
        f"{checkout.path} cannot be a workspace: it holds everything else",
        "use --workspace here",
    )


def test_a_dirty_checkout_is_taken_as_it_stands(checkout: Checkout) -> None:
    checkout.begin(
        {"changed": "1\n", "staged": "1\n", "removed": "1\n", "unstaged": "1\n", "mode": "1\n", "kept": "1\n"}
    )
    put(checkout.path / "changed", "2\n")
    put(checkout.path / "staged", "2\n")
    checkout.git("add", "staged")
    put(checkout.path / "staged", "3\n")
    checkout.git("rm", "-q", "removed")
    (checkout.path / "unstaged").unlink()
    (checkout.path / "mode").chmod(0o755)
    put(checkout.path / "new/file", "1\n")
    (checkout.path / "link").symlink_to("nowhere")
    index = (checkout.path / ".git/index").read_bytes()
    base = checkout.open()
    have = {str(path.relative_to(checkout.tree)) for path in checkout.tree.rglob("*") if not path.is_dir()}
    files = {".gitignore", "changed", "staged", "mode", "kept", "new/file", "link"}
    assert {path for path in have if not path.startswith(".git/")} == files
    for name in files - {"link"}:
        assert (checkout.tree / name).read_bytes() == (checkout.path / name).read_bytes()
    assert (checkout.tree / "mode").stat().st_mode & 0o100
    assert os.readlink(checkout.tree / "link") == "nowhere"
    assert base.commit != base.head
    assert (checkout.path / ".git/index").read_bytes() == index
    assert checkout.taken() == {}


@pytest.mark.parametrize(
    "setting", ["core.splitIndex true", "index.version 4", "core.untrackedCache true", "feature.manyFiles true"]
)
def test_an_index_of_any_kind_is_read(checkout: Checkout, setting: str) -> None:
    checkout.begin({"a": "1\n", "b": "1\n"})
    checkout.git("config", *setting.split())
    if "split" in setting:
        checkout.git("update-index", "--split-index")
    put(checkout.path / "a", "2\n")
    checkout.git("add", "a")
    put(checkout.path / "b", "2\n")
    checkout.open()
    assert [(checkout.tree / name).read_text("utf-8") for name in ("a", "b")] == ["2\n", "2\n"]
    put(checkout.tree / "a", "3\n")
    assert checkout.taken() == {"a": "M"}


def test_a_file_that_changed_in_the_moment_in_which_the_index_was_written_is_taken(checkout: Checkout) -> None:
    checkout.begin({"a": "1\n"})
    # The index says that the content is still `1`, with all that the file has now; only its own time gives that away.
    put(checkout.path / ".git/info/attributes", "a filter=x\n")
    put(checkout.path / "a", "2\n")
    os.utime(checkout.path / "a", ns=(10**18, 10**18))
    checkout.git("-c", "filter.x.clean=echo 1", "add", "a")
    (checkout.path / ".git/info/attributes").unlink()
    os.utime(checkout.path / ".git/index", ns=(10**18, 10**18))
    checkout.open()
    assert (checkout.tree / "a").read_text("utf-8") == "2\n"


@pytest.mark.parametrize("option", ["--object-format=sha256", "--object-format=sha1"])
def test_objects_of_either_kind_are_known(checkout: Checkout, option: str) -> None:
    checkout.begin({"a": "1\n"}, option).open()
    put(checkout.tree / "a", "2\n")
    (checkout.tree / ".gitignore").unlink()
    assert checkout.taken() == {"a": "M", ".gitignore": "D"}
    assert checkout.apply().changed == [".gitignore", "a"]


def test_names_that_are_not_utf_8_are_carried_and_left_out_like_others(checkout: Checkout) -> None:
    checkout.begin()
    root = os.fsencode(checkout.path)
    for path in (b"\xff/node_modules/x/a.js", b"big\xff.dat", b"nested\xff/a", b"file\xff", b"log\xff.log"):
        whole = os.path.join(root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(b"1\n")
            file.truncate(11 << 20) if path.startswith(b"big") else None
    nested = os.fsdecode(os.path.join(root, b"nested\xff"))
    checkout.git("init", "-q", nested)
    checkout.git("-C", nested, "commit", "-q", "--allow-empty", "-m", "x")
    base = checkout.open()
    assert [os.fsencode(one) for one in base.installed] == [b"\xff/node_modules"]
    assert [os.fsencode(one) for one in base.data] == [b"big\xff.dat"]
    assert [os.fsencode(one) for one in base.left_out] == [b"nested\xff"]
    again = checkout.place.slot.base()
    assert again == base
    assert checkout.taken() == {}


# Inside


def test_a_linked_worktree_is_a_project(person: Person) -> None:
    person.begin()
    main, person.project = person.project, person.folder / "linked"
    person.sh(f"git worktree add -q -b linked '{person.project}'", cwd=main)
    before = person.possessions()
    assert person.inside(f"git branch --show-current; {STATUS}; echo agent > new") == "linked\nfirst\nread me\n"
    assert person.taken() == {"new": "A"}
    assert {path for path, one in person.possessions().items() if before.get(path) != one} == set()


def test_a_project_in_a_subfolder_works_there(person: Person) -> None:
    person.begin({"packages/a/main.py": "1\n"})
    done = person.run("pwd > where; cat ../../README >> where", cwd=person.project / "packages/a")
    assert done.returncode == 0, done.stderr
    assert person.saved("packages/a/where") == f"{person.project}/packages/a\nread me\n"


def test_a_detached_head_is_a_detached_head_inside(person: Person) -> None:
    person.begin()
    person.git("checkout", "-q", "--detach")
    assert person.inside(f"git symbolic-ref -q HEAD || echo detached; {STATUS}") == "detached\nfirst\nread me\n"


def test_a_shallow_clone_has_the_history_that_it_has(person: Person) -> None:
    person.begin()
    person.sh("echo 2 >> README; git commit -qam second")
    whole, person.project = person.project, person.folder / "shallow"
    person.sh(f"git clone -q --depth 1 'file://{whole}' '{person.project}'", cwd=person.folder)
    assert person.inside(f"git rev-list --count HEAD; git fsck 2>&1; {STATUS}; echo x > x") == "1\nsecond\nread me\n2\n"
    assert person.taken() == {"x": "A"}


@pytest.mark.parametrize("name", ["with spaces", 'it\'s "quoted"', "ümläut ☃", "co:lon,comma=equals", "back\\slash"])
def test_the_path_of_a_project_may_have_any_character(person: Person, name: str) -> None:
    person.project = person.folder / name
    person.begin()
    person.write("node_modules/x", "1\n")
    person.write(".env", "KEY\n")
    person.write("big.bin", b"x" * (11 << 20))
    assert person.inside(f"pwd; cat node_modules/x .env; wc -c < big.bin; {STATUS}; echo x > x") == f"{person.project}\n1\nKEY\n{11 << 20}\nfirst\nread me\n"  # fmt: skip
    assert person.taken() == {"x": "A"}


def test_the_path_of_a_project_may_be_long(person: Person) -> None:
    person.project = person.folder / "/".join(["n" * 100] * 6)
    person.begin()
    person.write("node_modules/x", "1\n")
    assert person.inside(f"cat node_modules/x; echo y > node_modules/y; {STATUS}; echo x > x") == "1\nfirst\nread me\n"
    assert person.taken() == {"x": "A"}


@pytest.mark.parametrize(
    "where", ["in the home", "in /tmp", "beside the home", "around Raymond's home", "above the home"]
)
def test_a_project_may_be_anywhere(person: Person, where: str, tmp_path: Path) -> None:
    if where == "in the home":
        person.project = person.home / "src/project"
    elif where == "in /tmp":
        tmp = Path(person.sh("mktemp -d /tmp/raymond-XXXXXX", cwd="/").strip())
        person.project = tmp / "project"
    elif where == "around Raymond's home":
        person.raymond_home = person.project / ".raymond-home"
        person.environment["RAYMOND_HOME"] = str(person.raymond_home)
    elif where == "above the home":
        person.home = person.project / "home"
        person.environment["HOME"] = str(person.home)
    person.begin({".gitignore": "home/\n.raymond-home/\nnode_modules/\n"})
    person.write(person.home / ".ssh/id", "secret\n", 0o600)
    person.write("node_modules/x", "1\n")
    try:
        script = f"pwd; cat node_modules/x; {STATUS}; find ~/.ssh 2>/dev/null; echo x > x"
        assert person.inside(script) == f"{person.project}\n1\nfirst\nread me\n"
        assert person.taken() == {"x": "A"}
    finally:
        if where == "in /tmp":
            person.sh(f"rm -rf '{tmp}'", cwd="/")
