"""Folders, zips and files as they are on a disk, and the snapshot a run keeps."""

import hashlib
import io
import os
import stat
import struct
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from raymond.errors import Diagnostic, WorkflowError
from raymond.language import lint
from raymond.store import loader, zips

FORMS = "a workflow is a folder, a .zip, or one file that ends in .md .sh .py .ps1 .bat"
LIMITS = "at most 1,000 files and 64 MiB"


def folder(at: Path, files: dict[str, str | bytes]) -> str:
    for name, content in files.items():
        path = at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(at)


def zipped(at: Path, files: dict[str, str | bytes], name: str = "review.zip") -> str:
    with zipfile.ZipFile(at / name, "w", zipfile.ZIP_DEFLATED) as made:
        for inside, content in files.items():
            made.writestr(inside, content)
    return str(at / name)


def inside(source: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(source)) as made:
        return {name: made.read(name) for name in made.namelist()}


def refused(path: str) -> Diagnostic:
    with pytest.raises(WorkflowError) as caught:
        loader.load(path)
    [found] = caught.value.diagnostics
    return found


# Folder


def test_a_folder_is_a_workflow(tmp_path: Path) -> None:
    path = folder(tmp_path / "review", {"START.md": "hello", "B.sh": "echo", "lib/rules.md": "rules"})
    loaded = loader.load(path)
    assert loaded.workflow.diagnostics == []
    assert (loaded.workflow.name, loaded.workflow.entry, loaded.scope_dir) == ("review", "START.md", path)
    assert list(loaded.workflow.states) == ["B.sh", "START.md"]
    assert loaded.workflow.lib == {"rules.md": "rules"}
    assert loaded.workflow.platform == sys.platform
    assert loaded.digest == zips.digest(inside(loaded.source))


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "review", {"START.md": ""})
    monkeypatch.chdir(tmp_path)
    assert loader.load("review/").scope_dir == str(tmp_path / "review")
    monkeypatch.chdir(tmp_path / "review")
    assert loader.load(".").workflow.name == "review"


def test_the_snapshot_of_a_folder_is_everything_but_hidden_files_and_tests(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "START.md": "a",
        "data/deep/table.bin": b"\xff\x00",
        "lib/logo.png": b"\x89PNG\xff",
        "README.md": "r",
        "data/tests/kept": "k",
        ".git/config": "x",
        ".env": "SECRET=1",
        "data/.hidden": "x",
        "tests/case.md": "x",
        "__pycache__/a.pyc": b"\xff",
    }
    snapshot = inside(loader.load(folder(tmp_path, files)).source)
    kept = ["README.md", "START.md", "data/deep/table.bin", "data/tests/kept", "lib/logo.png"]
    assert snapshot == {
        name: files[name] if isinstance(files[name], bytes) else str(files[name]).encode() for name in kept
    }


def test_lint_is_not_run(tmp_path: Path) -> None:
    loaded = loader.load(folder(tmp_path, {"START.md": "<goto>NOWHERE</goto>"}))
    assert loaded.workflow.diagnostics == []


def test_what_is_wrong_inside_is_left_to_lint(tmp_path: Path) -> None:
    loaded = loader.load(folder(tmp_path, {"A.md": "---\nx: 1\n---\n", "B.md": ""}))
    assert [found.id for found in loaded.workflow.diagnostics] == ["unknown-key", "no-entry"]


def test_changes_from_outside_reach_the_states(tmp_path: Path) -> None:
    loaded = loader.load(folder(tmp_path, {"START.md": ""}), overrides={"START": {"retries": 4}})
    assert loaded.workflow.states["START.md"].policy.retries == 4


@pytest.mark.parametrize("files", [{}, {".hidden": "x"}, {"tests/a.md": "x"}])
def test_an_empty_folder_is_refused(tmp_path: Path, files: dict[str, str | bytes]) -> None:
    path = folder(tmp_path / "review", files)
    os.makedirs(path, exist_ok=True)
    assert refused(path) == Diagnostic(
        id="empty-workflow", message=f"there is nothing in `{path}`", file=path, hint="add START.md"
    )


def test_a_missing_path_suggests_its_siblings(tmp_path: Path) -> None:
    folder(tmp_path / "review", {"START.md": ""})
    path = str(tmp_path / "reveiw")
    assert refused(path) == Diagnostic(
        id="not-found", message=f"there is no `{path}`", file=path, hint="did you mean `review`?"
    )
    assert refused(str(tmp_path / "no" / "where")).hint == FORMS


def test_a_link_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    found = refused(str(tmp_path / "link"))
    assert found.message == f"`{tmp_path}/link` is a broken link"
    assert found.hint == f"make `{tmp_path}/gone`, or remove the link"


@pytest.mark.parametrize("name", ["notes.txt", "START", "pipe.md"])
def test_a_path_that_is_no_workflow_is_refused(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    if name == "pipe.md":
        os.mkfifo(path)
    else:
        Path(path).write_text("x")
    found = refused(path)
    assert (found.id, found.message) == ("not-a-workflow", f"`{path}` is not a workflow")
    assert found.hint == FORMS


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = folder(tmp_path, {"START.md": "x"})
    os.chmod(tmp_path / "START.md", 0)
    assert refused(path).message == "`START.md` cannot be read: permission denied"


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = folder(tmp_path, {"START.md": "x"})
    os.mkfifo(tmp_path / "pipe")
    found = refused(path)
    assert (found.id, found.message, found.file) == ("unreadable", "`pipe` is not a regular file", "pipe")


def test_too_many_files_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {f"{number}.txt": "" for number in range(1001)})
    found = refused(path)
    assert (found.id, found.message, found.hint) == (
        "too-large",
        f"there are more than 1,000 files in `{path}`",
        LIMITS,
    )
    (tmp_path / "0.txt").rename(tmp_path / "START.md")
    (tmp_path / "1.txt").unlink()
    assert len(inside(loader.load(path).source)) == 1000


def test_too_many_bytes_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {"START.md": ""})
    with open(tmp_path / "big", "wb") as file:
        file.truncate(zips.MOST_BYTES + 1)
    found = refused(path)
    assert (found.id, found.message, found.hint) == ("too-large", f"there are more than 64 MiB in `{path}`", LIMITS)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\\b.txt", "a\\b.txt"),
        ("a\nb.txt", "a\\nb.txt"),
        ("a:b.txt", "a:b.txt"),
        (os.fsdecode(b"\xff.txt"), "\\udcff.txt"),
    ],
)
def test_a_name_that_cannot_be_unpacked_is_refused(tmp_path: Path, name: str, shown: str) -> None:
    path = folder(tmp_path, {"START.md": "", name: ""})
    found = refused(path)
    assert (found.id, found.message) == ("unsafe-name", f"`{shown}` is not allowed as a file name in a workflow")


# Links


def test_a_link_inside_the_folder_is_followed(tmp_path: Path) -> None:
    path = folder(tmp_path, {"START.md": "a", "data/x.txt": "x"})
    (tmp_path / "B.md").symlink_to("START.md")
    (tmp_path / "more").symlink_to("data")
    assert inside(loader.load(path).source) == {"START.md": b"a", "B.md": b"a", "data/x.txt": b"x", "more/x.txt": b"x"}


@pytest.mark.parametrize("target", ["file", "folder"])
def test_a_link_that_leads_outside_is_refused(tmp_path: Path, target: str) -> None:
    folder(tmp_path / "outside", {"file": "secret", "folder/x": "secret"})
    path = folder(tmp_path / "review", {"START.md": "a"})
    (tmp_path / "review" / "link").symlink_to(tmp_path / "outside" / target)
    assert refused(path) == Diagnostic(
        id="unsafe-link",
        message=f"`link` is a link that leads out of the workflow, to `{tmp_path}/outside/{target}`",
        file="link",
        hint="put a copy of it in the workflow",
    )


def test_a_link_to_a_folder_around_it_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {"START.md": "a", "data/x": "x"})
    (tmp_path / "data" / "up").symlink_to("..")
    assert refused(path).message == "`data/up` is a link to a folder that contains it"


def test_a_link_in_a_folder_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {"START.md": "a"})
    (tmp_path / "B.md").symlink_to("gone")
    assert refused(path).message == "`B.md` is a broken link"


def test_a_folder_reached_by_a_link_is_a_workflow(tmp_path: Path) -> None:
    folder(tmp_path / "real", {"START.md": "a"})
    (tmp_path / "link").symlink_to("real")
    assert loader.load(str(tmp_path / "link")).workflow.name == "link"


# One file


def test_a_single_file_takes_the_states_that_it_can_lead_to(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "PROMPT.md": "<goto>B</goto> {{include:r.md}}",
        "B.sh": "echo '<goto>C</goto>'",
        "C.md": "D is only mentioned. <result>x</result>",
        "D.md": "",
        "OTHER.md": "<goto>NOWHERE</goto>",
        "legacy.py": b"print 'caf\xe9'",
        "README.md": "",
        "data.json": "{}",
        "lib/r.md": "r",
        "sub/x.md": "",
        ".h.md": "",
    }
    folder(tmp_path / "review", {**files, "workflow.yaml": "model: opus"})
    loaded = loader.load(str(tmp_path / "review" / "PROMPT.md"))
    assert (loaded.workflow.name, loaded.workflow.entry) == ("PROMPT", "PROMPT.md")
    assert loaded.scope_dir == str(tmp_path / "review")
    assert sorted(inside(loaded.source)) == ["B.sh", "C.md", "D.md", "PROMPT.md", "lib/r.md", "workflow.yaml"]
    assert loaded.workflow.states["B.sh"].policy.model == "opus"
    assert loaded.workflow.beside == {"OTHER.md", "legacy.py"}


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        ({"A.md": "Read B.md. <result>x</result>", "B.md": b"caf\xe9"}, ["A.md"]),
        ({"A.md": "<goto>B</goto>", "B.sh": 'echo "<goto>$1</goto>"', "C.md": ""}, ["A.md", "B.sh", "C.md"]),
        (
            {"A.md": "---\non_error: C\n---\n<result>x</result>", "B.md": "", "C.sh": "echo '<result>x</result>'"},
            ["A.md", "C.sh"],
        ),
        ({"A.md": "<result>x</result>", "lib/huge": b"", "B.md": ""}, ["A.md"]),
        ({"A.md": "no tag", "B.md": ""}, ["A.md"]),
    ],
    ids=["mentioned and no text", "computed", "policy", "lib that nothing uses", "no tag"],
)
def test_a_file_beside_a_single_file_counts_only_when_something_leads_to_it(
    tmp_path: Path, files: dict[str, str | bytes], taken: list[str]
) -> None:
    folder(tmp_path, files)
    assert sorted(loader.load(str(tmp_path / "A.md")).files) == taken


def test_a_file_that_a_tag_leads_to_must_be_text(tmp_path: Path) -> None:
    folder(tmp_path, {"A.md": "<goto>B</goto>", "B.md": b"caf\xe9"})
    assert refused(str(tmp_path / "A.md")).message == "byte 4 of `B.md` is not UTF-8"


def test_a_state_beside_a_single_file_is_suggested(tmp_path: Path) -> None:
    folder(tmp_path, {"A.md": "<goto>CHEKC</goto>", "CHECK.sh": ""})
    [found] = lint.errors(loader.load(str(tmp_path / "A.md")).workflow)
    assert found.hint == "did you mean `CHECK.sh`?"


@pytest.mark.parametrize("name", ["START.md", "1_START.py"])
def test_a_single_start_is_named_after_its_folder(tmp_path: Path, name: str) -> None:
    folder(tmp_path / "review", {name: "", "B.md": ""})
    assert loader.load(str(tmp_path / "review" / name)).workflow.name == "review"


def test_a_single_file_takes_what_include_names(tmp_path: Path) -> None:
    files = {"A.md": "", "data/x/y.txt": "y", "one.json": "1", "two.json": "2", "three.txt": "3"}
    folder(tmp_path, {**files, "workflow.yaml": "include: [data/, '*.json']"})
    snapshot = inside(loader.load(str(tmp_path / "A.md")).source)
    assert sorted(snapshot) == ["A.md", "data/x/y.txt", "one.json", "two.json", "workflow.yaml"]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("gone", "is not there"),
        ("../other", "leads out of its folder"),
        ("/etc/passwd", "is an absolute path"),
    ],
)
def test_include_must_name_something_inside(tmp_path: Path, pattern: str, why: str) -> None:
    folder(tmp_path, {"A.md": "", "workflow.yaml": f"include: {pattern}"})
    assert refused(str(tmp_path / "A.md")) == Diagnostic(
        id="not-found",
        message=f"`include` names `{pattern}`, which {why}",
        file="workflow.yaml",
        hint="paths are relative to the folder of workflow.yaml",
    )


@pytest.mark.parametrize("link", ["lib", "data"])
def test_a_single_file_follows_no_link_outside(tmp_path: Path, link: str) -> None:
    folder(tmp_path / "outside", {"x.txt": "secret"})
    folder(tmp_path / "review", {"A.md": "{{include:x.txt}}", "workflow.yaml": "include: ['data*/*.txt']"})
    folder(tmp_path / "review" / "data2", {"x.txt": ""})
    (tmp_path / "review" / link).symlink_to(tmp_path / "outside")
    assert refused(str(tmp_path / "review" / "A.md")).id == "unsafe-link"


def test_a_folder_with_the_name_of_a_state_is_passed_over(tmp_path: Path) -> None:
    folder(tmp_path, {"A.md": "", "B.md/x": ""})
    assert list(loader.load(str(tmp_path / "A.md")).workflow.states) == ["A.md"]


# Text


@pytest.mark.parametrize("name", ["START.md", "workflow.yaml", "lib/rules.md", "lib/rules.txt", "B.sh"])
def test_a_text_that_is_not_utf8_is_refused_with_its_place(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = folder(tmp_path, {"A.md": "", name: b"# ok\nna\xefve"})
    assert refused(path) == Diagnostic(
        id="not-utf8",
        message=f"byte 8 of `{name}` is not UTF-8",
        file=name,
        line=2,
        column=3,
        source="na\ufffdve",
        hint="save it as UTF-8",
    )


def test_every_text_that_is_not_utf8_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = folder(tmp_path, {"START.md": b"\xff", "B.md": b"ok \xff", "data.bin": b"\xff"})
    with pytest.raises(WorkflowError) as caught:
        loader.load(path)
    assert [found.file for found in caught.value.diagnostics] == ["B.md", "START.md"]


def test_utf16_is_recognized(tmp_path: Path) -> None:
    found = refused(folder(tmp_path, {"START.md": "hello".encode("utf-16")}))
    assert (found.message, found.hint) == (
        "byte 1 of `START.md` is not UTF-8",
        "it looks like UTF-16: save it as UTF-8",
    )


def test_a_byte_order_mark_and_crlf_are_accepted(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf---\r\nmodel: opus\r\n---\r\nhello\r\n"
    loaded = loader.load(
        folder(tmp_path, {"START.md": text, "B.sh": b"\xef\xbb\xbf#!/bin/bash\r\necho\r\n", "C.py": b"x\r\n"})
    )
    state = loaded.workflow.states["START.md"]
    assert (state.policy.model, state.body, state.line) == ("opus", "hello\n", 4)
    assert inside(loaded.source) == {"START.md": text, "B.sh": b"#!/bin/bash\necho\n", "C.py": b"x\r\n"}


# Platform


def test_powershell_counts_only_where_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path / "review", {"START.ps1": ""})
    monkeypatch.setenv("PATH", str(tmp_path))
    assert loader.load(path).workflow.diagnostics[0].id == "wrong-platform"
    (tmp_path / "pwsh").write_text("#!/bin/sh\n")
    (tmp_path / "pwsh").chmod(0o755)
    assert loader.load(path).workflow.entry == "START.ps1"


def test_another_platform_runs_other_states(tmp_path: Path) -> None:
    path = folder(tmp_path, {"START.sh": "", "START.bat": ""})
    assert loader.load(path, platform="win32").workflow.entry == "START.bat"
    assert loader.load(path, platform="darwin").workflow.entry == "START.sh"


# Zip


@pytest.mark.parametrize("top", ["", "review/", "any name/"])
def test_a_zip_is_flat_or_has_one_top_folder(tmp_path: Path, top: str) -> None:
    files: dict[str, str | bytes] = {"START.md": "a", "lib/r.md": "r", "tests/t.md": "t", ".hidden": "h"}
    path = zipped(tmp_path, {"__MACOSX/._x": "", **{top + name: text for name, text in files.items()}})
    loaded = loader.load(path)
    assert (loaded.workflow.name, loaded.workflow.entry, loaded.scope_dir) == ("review", "START.md", path)
    assert inside(loaded.source) == {"START.md": b"a", "lib/r.md": b"r"}


def test_a_zip_and_its_folder_are_the_same_workflow(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"START.md": "a" * 500, "lib/r.md": "r"}
    from_folder = loader.load(folder(tmp_path / "review", files))
    from_zip = loader.load(zipped(tmp_path, files))
    assert from_folder.digest == from_zip.digest
    assert from_folder.source == from_zip.source


FLAT = "put the files of one workflow in it, flat or in one folder"
ALL = "put all files at the top, or all in one folder"
BELOW = "make it again, with names below one folder"
DEEP = "the only folders are lib/ and tests/, with no folders inside"


@pytest.mark.parametrize(
    ("names", "id", "message", "hint"),
    [
        (["a/START.md", "b/START.md"], "bad-zip", "this zip has several top folders: a, b", FLAT),
        (["START.md", "b/B.md"], "bad-zip", "this zip mixes files at the top (`START.md`) with the folder `b`", ALL),
        (["lib/r.md", "b/B.md"], "bad-zip", "this zip mixes files at the top (`lib/r.md`) with the folder `b`", ALL),
        (["a/START.md", "a/b/B.md"], "bad-zip", "`b/B.md` is nested too deeply", DEEP),
        (["START.md", "lib/a/b.md"], "bad-zip", "`lib/a/b.md` is nested too deeply", DEEP),
        ([], "empty-workflow", "there is nothing in this zip", "add START.md"),
        ([".hidden", "a/"], "empty-workflow", "there is nothing in this zip", "add START.md"),
        (["/START.md"], "bad-zip", "`/START.md` is an absolute path", BELOW),
        (["C:/START.md"], "bad-zip", "`C:/START.md` is an absolute path", BELOW),
        (["START.md", "../evil.md"], "bad-zip", "`../evil.md` leads out of its folder", BELOW),
        (["START.md", "lib/../../evil"], "bad-zip", "`lib/../../evil` leads out of its folder", BELOW),
        (["START.md", "lib//x"], "bad-zip", "`lib//x` leads out of its folder", BELOW),
        (["START.md", "../"], "bad-zip", "`../` leads out of its folder", BELOW),
        (["a\\b.md"], "bad-zip", "`a\\b.md` contains a character that is not allowed in names", BELOW),
        (["START.md", "start.MD"], "bad-zip", "`START.md` and `start.MD` differ only in case", "rename one"),
        (["START.md", "lib", "lib/x"], "bad-zip", "`lib` is both a file and a folder", "rename one"),
    ],
)
def test_a_zip_of_another_shape_is_refused(tmp_path: Path, names: list[str], id: str, message: str, hint: str) -> None:
    path = zipped(tmp_path, dict.fromkeys(names, "x"))
    assert refused(path) == Diagnostic(id=id, message=message, file=path, hint=hint)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as made:
        made.writestr("START.md", "one")
        made.writestr("START.md", "two")
    assert refused(str(tmp_path / "x.zip")).message == "`START.md` is in this zip twice"


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, kind: int) -> None:
    entry = zipfile.ZipInfo("START.md")
    entry.create_system = 3
    entry.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as made:
        made.writestr(entry, "/etc/passwd")
    found = refused(str(tmp_path / "x.zip"))
    assert (found.message, found.hint) == ("`START.md` is a link or a device", "put the file itself in the zip")


def test_too_many_files_in_a_zip_are_refused(tmp_path: Path) -> None:
    found = refused(zipped(tmp_path, {f"{number}.md": "" for number in range(1001)}))
    assert (found.id, found.message, found.hint) == ("too-large", "there are more than 1,000 files in this zip", LIMITS)


@pytest.mark.slow
def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path, {"START.md": "x", "big.bin": b"\0" * (zips.MOST_BYTES + 1)})
    found = refused(path)
    assert (found.id, found.message, found.hint) == ("too-large", "this zip unpacks to 64 MiB", LIMITS)


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    found = refused(zipped(tmp_path, {"START.md": b"\0" * 5_000_000}))
    assert (found.id, found.message) == (
        "too-large",
        "this zip unpacks to more than 100 times its size, like a zip bomb",
    )


def test_a_zip_file_that_is_too_large_is_not_even_read(tmp_path: Path) -> None:
    with open(tmp_path / "x.zip", "wb") as file:
        file.truncate(zips.MOST_BYTES + 1024**2)
    assert refused(str(tmp_path / "x.zip")).message == "this zip is 65 MiB large"


def test_a_header_that_lies_about_the_size_is_refused(tmp_path: Path) -> None:
    path = Path(zipped(tmp_path, {"START.md": os.urandom(2000).hex()}))
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<I", data, at + 24, 10)
    path.write_bytes(data)
    found = refused(str(path))
    assert found.id == "bad-zip"
    assert found.hint == "make it again"


def encrypt(data: bytearray) -> None:
    data[data.index(b"PK\x01\x02") + 8] |= 1


def unknown_method(data: bytearray) -> None:
    struct.pack_into("<H", data, 8, 77)
    struct.pack_into("<H", data, data.index(b"PK\x01\x02") + 10, 77)


def cut(data: bytearray) -> None:
    del data[-30:]


def clear(data: bytearray) -> None:
    data.clear()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (clear, "not a zip file, or it is damaged"),
        (cut, "not a zip file, or it is damaged"),
        (unknown_method, "`START.md` uses a compression method that is not supported"),
        (encrypt, "`START.md` is encrypted"),
    ],
)
def test_a_damaged_zip_is_refused(tmp_path: Path, damage: Callable[[bytearray], None], message: str) -> None:
    path = Path(zipped(tmp_path, {"START.md": "hello " * 100}))
    data = bytearray(path.read_bytes())
    damage(data)
    path.write_bytes(data)
    found = refused(str(path))
    assert (found.id, found.message) == ("bad-zip", message)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_content_that_was_damaged_is_refused(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("START.md", "hello world " * 20)
    data = bytearray(path.read_bytes())
    for at in range(50, 70):
        data[at] ^= 0xFF
    path.write_bytes(data)
    found = refused(str(path))
    assert (found.id, found.hint) == ("bad-zip", "make it again")
    assert found.message in ("`START.md` is damaged in this zip", "not a zip file, or it is damaged")


def test_no_damage_to_a_zip_escapes(tmp_path: Path) -> None:
    """Every byte of the headers changed in turn: a workflow or a WorkflowError, nothing else."""
    whole = Path(zipped(tmp_path, {"START.md": "hi", "lib/r.md": "r"})).read_bytes()
    for at in range(len(whole)):
        for change in (0x01, 0xFF):
            data = bytearray(whole)
            data[at] ^= change
            with suppress(WorkflowError):
                zips.read(bytes(data), file="x.zip")


def test_a_hash_in_the_name_must_be_that_of_the_zip(tmp_path: Path) -> None:
    path = Path(zipped(tmp_path, {"START.md": "a"}))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    good = path.rename(tmp_path / f"review-{digest.upper()}.zip")
    assert loader.load(str(good)).workflow.name == "review"
    bad = str(good.rename(tmp_path / f"review-{'0' * 64}.zip"))
    assert refused(bad) == Diagnostic(
        id="hash-mismatch",
        message="the SHA-256 in the name of this zip does not match its content",
        file=bad,
        hint=f"get it again, or rename it: its SHA-256 is {digest}",
    )
    longer = str(Path(bad).rename(tmp_path / f"{'0' * 65}.zip"))
    assert loader.load(longer).workflow.entry == "START.md"


def test_a_zip_that_is_only_a_hash_has_a_name_nevertheless(tmp_path: Path) -> None:
    path = Path(zipped(tmp_path, {"START.md": "a"}))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert loader.load(str(path.rename(tmp_path / f"{digest}.zip"))).workflow.name == "workflow"


# Snapshot


def test_the_same_files_give_the_same_snapshot(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"START.md": "a" * 1000, "B.sh": "echo", "lib/r.md": ""}
    one = loader.load(folder(tmp_path / "one", files))
    two = loader.load(folder(tmp_path / "two", dict(reversed(files.items()))))
    os.utime(tmp_path / "two" / "B.sh", (0, 0))
    os.chmod(tmp_path / "two" / "B.sh", 0o755)
    assert one.source == two.source == loader.load(str(tmp_path / "two")).source
    with zipfile.ZipFile(io.BytesIO(one.source)) as made:
        assert [(entry.filename, entry.date_time) for entry in made.infolist()] == [
            (name, (1980, 1, 1, 0, 0, 0)) for name in sorted(files)
        ]


def test_a_snapshot_is_a_zip_that_other_programs_read() -> None:
    files = {"START.md": b"", "B.sh": b"echo", "größe.md": b"\xff" * 70_000, "lib/deep/x": os.urandom(9_000)}
    with zipfile.ZipFile(io.BytesIO(zips.write(files))) as made:
        assert made.testzip() is None
        assert {entry.filename: made.read(entry) for entry in made.infolist()} == files
        assert {stat.filemode(entry.external_attr >> 16) for entry in made.infolist()} == {"-rw-------"}
        assert made.getinfo("größe.md").compress_size < 1000
    with zipfile.ZipFile(io.BytesIO(zips.write({}))) as made:
        assert made.namelist() == []


def test_a_workflow_comes_back_from_its_snapshot(tmp_path: Path) -> None:
    path = folder(
        tmp_path / "review",
        {"A.md": "a", "B.md": "---\nretries: 1\n---\n<goto>A</goto>", "data/deep/x": b"\xff" * 9_000_000},
    )
    loaded = loader.load(str(Path(path) / "B.md"))
    files = zips.read_snapshot(loaded.source, file="source.zip")
    again = loader.from_files(files, name="B", entry="B.md", platform=sys.platform)
    assert again == loaded.workflow
    changed = loader.from_files(files, name="B", entry="B.md", overrides={"B": {"retries": 9}})
    assert changed.states["B.md"].policy.retries == 9


def test_a_highly_compressible_folder_comes_back_too(tmp_path: Path) -> None:
    loaded = loader.load(folder(tmp_path, {"START.md": "a", "data/x": b"\0" * 9_000_000}))
    assert zips.read_snapshot(loaded.source, file="source.zip") == loaded.files


@pytest.mark.parametrize("data", [b"", b"no zip", zips.write({"../x": b""}), zips.write({"/x": b""})])
def test_a_damaged_snapshot_is_an_error(data: bytes) -> None:
    with pytest.raises(WorkflowError) as caught:
        zips.read_snapshot(data, file="source.zip")
    assert caught.value.diagnostics[0].id == "bad-zip"
