"""What is known of git, with real repositories, and with programs that stand in for git where a real one cannot."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from raymond.system import git

NOBODY = 65534
MISSING = "1" * 40
WHO = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always")
TOPLEVEL = ("rev-parse", "--show-toplevel")

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture(autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without settings of git; the machine's own are not read either."""
    home = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    return home


def run(folder: Path, *args: str) -> str:
    """What the real git prints."""
    done = subprocess.run(["git", *WHO, *args], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(path: Path, *options: str) -> Path:
    path.mkdir(parents=True)
    run(path, "init", "-q", "-b", "main", *options)
    commit(path)
    return path


def commit(path: Path) -> str:
    run(path, "commit", "-q", "--allow-empty", "-m", "change")
    return run(path, "rev-parse", "HEAD")


def give(path: Path, uid: int = NOBODY) -> None:
    for folder, folders, files in os.walk(path):
        for name in [".", *folders, *files]:
            os.lchown(os.path.join(folder, name), uid, -1)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo")


@pytest.fixture
def foreign(repo: Path) -> Path:
    give(repo)
    return repo


def without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a script in the place of git."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text(f"#!/bin/sh\n{text}\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")


# Where a repository begins


def test_nothing_is_found_outside_of_a_repository(tmp_path: Path) -> None:
    assert git.top(str(tmp_path)) == ""


def test_the_top_is_found_from_below_without_asking_git(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = commit(repo)
    (repo / "a" / "b").mkdir(parents=True)
    stand_in(tmp_path, monkeypatch, f"touch '{tmp_path}/asked'; exit 1")
    assert git.top(str(repo)) == str(repo)
    assert git.top(str(repo / "a" / "b")) == str(repo)
    assert git.head(str(repo)) == made
    assert not (tmp_path / "asked").exists()


def test_the_top_is_a_real_path(repo: Path, tmp_path: Path) -> None:
    (repo / "a").mkdir()
    (tmp_path / "link").symlink_to(repo / "a")
    assert git.top(str(tmp_path / "link")) == str(repo)


def test_a_worktree_is_its_own_top(repo: Path, tmp_path: Path) -> None:
    run(repo, "worktree", "add", "-q", "-b", "other", "../tree")
    (tmp_path / "tree" / "a").mkdir()
    made = commit(tmp_path / "tree")
    assert git.top(str(tmp_path / "tree" / "a")) == str(tmp_path / "tree")
    assert git.head(str(tmp_path / "tree")) == made != git.head(str(repo))


def test_a_submodule_is_its_own_top(repo: Path, tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    run(repo, "submodule", "add", "-q", str(other), "part")
    (repo / "part" / "a").mkdir()
    assert (repo / "part" / ".git").is_file()
    assert git.top(str(repo / "part" / "a")) == str(repo / "part")
    assert git.head(str(repo / "part")) == run(other, "rev-parse", "HEAD")


def test_a_git_directory_elsewhere_is_followed(tmp_path: Path) -> None:
    apart = repository(tmp_path / "apart", "--separate-git-dir", str(tmp_path / "kept"))
    assert (git.top(str(apart)), git.head(str(apart))) == (str(apart), run(apart, "rev-parse", "HEAD"))
    assert git.top(str(tmp_path / "kept")) == ""


def test_a_git_that_is_a_link_is_followed(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "view").mkdir()
    (tmp_path / "view" / ".git").symlink_to(repo / ".git")
    assert git.top(str(tmp_path / "view")) == str(tmp_path / "view") == run(tmp_path / "view", *TOPLEVEL)
    assert git.head(str(tmp_path / "view")) == git.head(str(repo)) != ""


def test_inside_of_a_git_directory_there_is_no_top(repo: Path) -> None:
    for inside in (".git", ".git/refs/heads"):
        assert git.top(str(repo / inside)) == ""


def test_a_bare_repository_has_no_top_and_hides_the_one_around_it(repo: Path) -> None:
    run(repo, "init", "-q", "--bare", "store")
    assert git.top(str(repo / "store")) == ""
    assert git.top(str(repo / "store" / "refs")) == ""


@pytest.mark.parametrize("text", ["gitdir: ../nowhere\n", "gitdir: .\n", "../.git\n", "", "gitdir: a\0b\n"])
def test_a_git_file_that_leads_nowhere_hides_the_repository_above(repo: Path, text: str) -> None:
    (repo / "a" / "b").mkdir(parents=True)
    (repo / "a" / ".git").write_text(text)
    assert git.top(str(repo / "a" / "b")) == ""
    with pytest.raises(subprocess.CalledProcessError):
        run(repo / "a" / "b", *TOPLEVEL)


def test_what_git_does_not_take_for_a_repository_is_passed_over(repo: Path) -> None:
    for name in ("empty", "half", "headless", "dangling", "pipe"):
        (repo / name).mkdir()
    (repo / "empty" / ".git").mkdir()
    (repo / "half" / ".git" / "refs").mkdir(parents=True)
    (repo / "half" / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for part in ("objects", "refs"):
        (repo / "headless" / ".git" / part).mkdir(parents=True)
    (repo / "dangling" / ".git").symlink_to("nowhere")
    os.mkfifo(repo / "pipe" / ".git")
    for name in ("empty", "half", "headless", "dangling"):
        assert git.top(str(repo / name)) == str(repo) == run(repo / name, *TOPLEVEL)
    assert git.top(str(repo / "pipe")) == str(repo)


def test_the_environment_names_no_other_repository(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = repository(tmp_path / "other")
    only_there = commit(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
    assert git.top(str(repo)) == str(repo)
    assert git.has_commit(str(repo), only_there) is False
    assert git.has_commit(str(repo), git.head(str(repo))) is True


# Whom git trusts


@as_root
def test_the_repository_of_another_user_is_not_trusted(foreign: Path) -> None:
    (foreign / "a").mkdir()
    assert git.top(str(foreign)) == ""
    assert git.top(str(foreign / "a")) == ""


@as_root
@pytest.mark.parametrize("part", [".", ".git", "../tree", "../tree/.git", "../repo/.git/worktrees/tree"])
def test_one_part_that_belongs_to_another_user_is_enough(repo: Path, tmp_path: Path, part: str) -> None:
    run(repo, "worktree", "add", "-q", "../tree")
    asked = tmp_path / "tree" if "tree" in part else repo
    assert git.top(str(asked)) == str(asked)
    os.chown(repo / part, NOBODY, -1)
    assert git.top(str(asked)) == ""
    with pytest.raises(subprocess.CalledProcessError):
        run(asked, *TOPLEVEL)


@as_root
@pytest.mark.parametrize("scope", ["global", "system", "command"])
def test_a_safe_directory_is_trusted(
    foreign: Path, settings: Path, monkeypatch: pytest.MonkeyPatch, scope: str
) -> None:
    text = f"[safe]\n\tdirectory = {foreign}\n"
    if scope == "command":
        for name, value in {"COUNT": "1", "KEY_0": "safe.directory", "VALUE_0": str(foreign)}.items():
            monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    else:
        (settings / ".gitconfig").write_text(text if scope == "global" else "")
        (settings / "system").write_text(text if scope == "system" else "")
        monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(settings / "system"))
    (foreign / "a").mkdir()
    assert git.top(str(foreign / "a")) == str(foreign)


@as_root
def test_it_does_not_matter_where_we_stand(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(foreign / ".git")
    assert git.top(str(foreign)) == ""


@as_root
def test_a_repository_cannot_call_itself_safe(foreign: Path) -> None:
    with (foreign / ".git" / "config").open("a") as file:
        file.write("[safe]\n\tdirectory = *\n")
    assert git.top(str(foreign)) == ""


@as_root
def test_without_git_nobody_else_is_trusted(
    foreign: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
    assert git.top(str(foreign)) == str(foreign)
    without_git(tmp_path, monkeypatch)
    assert git.top(str(foreign)) == ""


@as_root
def test_what_the_caller_of_sudo_owns_is_trusted(
    foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_git(tmp_path, monkeypatch)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert git.top(str(foreign)) == str(foreign)
    os.chown(foreign, 0, -1)
    assert git.top(str(foreign)) == str(foreign)  # root's own is trusted beside it
    for other in (str(NOBODY - 1), "", "nobody", f"{NOBODY}x"):
        monkeypatch.setenv("SUDO_UID", other)
        assert git.top(str(foreign)) == ""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, which pytest's are not."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield Path(path).resolve()


@as_root
def test_only_root_may_have_come_by_sudo(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(open_folder / "repo")
    monkeypatch.setenv("SUDO_UID", "0")
    os.seteuid(NOBODY)
    try:
        found = git.top(str(repo))
    finally:
        os.seteuid(0)
    assert found == ""


# The commit of HEAD


def test_before_the_first_commit_there_is_no_head(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q")
    assert git.top(str(tmp_path)) == str(tmp_path)
    assert (git.head(str(tmp_path)), git.root_commit(str(tmp_path))) == ("", "")


def test_where_there_is_no_top_there_is_nothing_to_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "repo")
    (repo / "file").write_text("")
    run(repo, "add", "file")
    monkeypatch.chdir(repo)
    assert (git.head(""), git.root_commit("")) == ("", "")
    assert git.has_commit("", git.head(str(repo))) is None
    assert git.head(str(tmp_path)) == ""


def test_the_head_is_read_from_packed_references(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "main-2", "x/main"):
        run(repo, "branch", name)
    run(repo, "tag", "-a", "-m", "tag", "heads/main")
    made = commit(repo)
    run(repo, "pack-refs", "--all")
    without_git(tmp_path, monkeypatch)
    assert not (repo / ".git" / "refs" / "heads" / "main").exists()
    assert git.head(str(repo)) == made


def test_a_loose_reference_is_newer_than_a_packed_one(repo: Path) -> None:
    run(repo, "pack-refs", "--all")
    made = commit(repo)
    assert git.head(str(repo)) == made


def test_a_worktree_reads_references_from_the_common_directory(repo: Path, tmp_path: Path) -> None:
    run(repo, "worktree", "add", "-q", "-b", "other", "../tree")
    made = commit(tmp_path / "tree")
    run(repo, "pack-refs", "--all")
    assert git.head(str(tmp_path / "tree")) == made


def test_a_detached_head_is_the_commit_itself(repo: Path) -> None:
    first = git.head(str(repo))
    commit(repo)
    run(repo, "checkout", "-q", "--detach", first)
    assert git.head(str(repo)) == first


def test_a_head_that_is_a_link_is_followed(repo: Path) -> None:
    """Git wrote such heads once, and still does with `core.preferSymlinkRefs`."""
    (repo / ".git" / "HEAD").unlink()
    (repo / ".git" / "HEAD").symlink_to("refs/heads/main")
    assert git.head(git.top(str(repo))) == run(repo, "rev-parse", "HEAD")
    run(repo, "pack-refs", "--all")
    assert git.head(git.top(str(repo))) == run(repo, "rev-parse", "HEAD")


def test_a_branch_that_names_another_is_followed(repo: Path) -> None:
    made = commit(repo)
    run(repo, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    run(repo, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert git.head(str(repo)) == made


@pytest.mark.parametrize("head", ["branch", "commit", "alias", "link", "unborn"])
def test_the_branch_in_head_is_what_git_says_it_is(repo: Path, head: str) -> None:
    made = commit(repo)
    if head == "commit":
        run(repo, "checkout", "-q", "--detach")
    elif head == "alias":
        run(repo, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
        run(repo, "symbolic-ref", "HEAD", "refs/heads/alias")
    elif head == "link":
        (repo / ".git" / "HEAD").unlink()
        (repo / ".git" / "HEAD").symlink_to("refs/heads/main")
    elif head == "unborn":
        run(repo, "symbolic-ref", "HEAD", "refs/heads/unborn")
    assert git.branch_line(str(repo)) == {"commit": "", "unborn": "ref: refs/heads/unborn"}.get(
        head, "ref: refs/heads/main"
    )
    assert head == "unborn" or git.head(str(repo)) == made


def test_references_in_a_circle_name_no_commit(repo: Path) -> None:
    (repo / ".git" / "refs" / "heads" / "main").write_text("ref: refs/heads/main\n")
    assert git.head(str(repo)) == ""


def test_a_damaged_reference_is_not_replaced_by_an_older_one(repo: Path) -> None:
    run(repo, "pack-refs", "--all")
    (repo / ".git" / "refs" / "heads" / "main").write_text("")
    assert git.head(str(repo)) == ""


def test_a_reference_cannot_lead_out_of_the_repository(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(MISSING)
    for name in ("refs/heads/a\0b", "refs/../../../file", "../../file", f"{tmp_path}/file"):
        (repo / ".git" / "HEAD").write_text(f"ref: {name}\n")
        assert git.head(str(repo)) == ""


@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "commondir", "refs/heads/main"])
def test_a_pipe_or_device_in_place_of_a_file_is_not_read(repo: Path, name: str) -> None:
    made = git.head(str(repo))
    (repo / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo / ".git" / name)
    expected = ("", "") if name == "HEAD" else (str(repo), "" if name.startswith("refs/") else made)
    assert (git.top(str(repo)), git.head(str(repo))) == expected
    (repo / ".git" / name).unlink()
    (repo / ".git" / name).symlink_to("/dev/zero")
    assert (git.top(str(repo)), git.head(str(repo))) == expected


def test_a_commit_may_be_named_by_sha256(tmp_path: Path) -> None:
    repo = repository(tmp_path / "long", "--object-format=sha256")
    assert len(git.head(str(repo))) == 64
    assert git.head(str(repo)) == git.root_commit(str(repo)) == run(repo, "rev-parse", "HEAD")
    assert git.has_commit(str(repo), git.head(str(repo))) is True


def test_a_repository_with_reftable_has_a_head(tmp_path: Path) -> None:
    made = subprocess.run(["git", "init", "-q", "--ref-format=reftable", tmp_path], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("this git has no reftable")
    assert git.head(str(tmp_path)) == ""
    first = commit(tmp_path)
    assert (git.top(str(tmp_path)), git.head(str(tmp_path))) == (str(tmp_path), first)


def test_git_is_asked_for_what_files_do_not_tell(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `test_a_repository_with_reftable_has_a_head`, for machines whose git does not have it."""
    (repo / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    stand_in(tmp_path, monkeypatch, f"echo {MISSING}")
    assert git.head(str(repo)) == MISSING


# Commits and files


def test_a_repository_has_its_own_commits_only(repo: Path, tmp_path: Path) -> None:
    (repo / "a").mkdir()
    made = commit(repo)
    assert git.has_commit(str(repo), made) is True
    assert git.has_commit(str(repo / "a"), made) is True
    assert git.has_commit(str(repository(tmp_path / "other")), made) is False
    assert git.has_commit(str(repo), run(repo, "rev-parse", "HEAD^{tree}")) is False


@pytest.mark.parametrize(
    "text", ["", "HEAD", "main", "--help", "abcdef", MISSING[1:], MISSING[1:] + "g", MISSING + "^"]
)
def test_what_is_not_the_name_of_a_commit_is_in_no_repository(repo: Path, text: str) -> None:
    assert git.has_commit(str(repo), text) is False


def test_without_a_repository_nobody_can_tell(tmp_path: Path) -> None:
    assert git.has_commit(str(tmp_path), MISSING) is None
    assert git.has_commit(str(tmp_path / "nowhere"), MISSING) is None


def test_without_git_nobody_can_tell(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_git(tmp_path, monkeypatch)
    assert git.has_commit(str(repo), git.head(str(repo))) is None
    assert git.root_commit(str(repo)) == ""
    assert git.ignored_folders(str(repo)) == frozenset()


@as_root
def test_what_git_does_not_trust_is_not_asked_for_commits(foreign: Path) -> None:
    assert git.has_commit(str(foreign), MISSING) is None


def test_the_root_is_the_first_commit_and_the_oldest_of_several(repo: Path) -> None:
    first = git.head(str(repo))
    commit(repo)
    assert git.root_commit(str(repo)) == first
    run(repo, "checkout", "-q", "--orphan", "second")
    commit(repo)
    run(repo, "merge", "-q", "--allow-unrelated-histories", "-m", "merge", "main")
    assert git.root_commit(str(repo)) == run(repo, "rev-list", "--max-parents=0", "HEAD").split()[-1]


def test_a_file_named_head_does_not_hide_the_root(repo: Path) -> None:
    (repo / "HEAD").write_text("")
    assert git.root_commit(str(repo)) == git.head(str(repo))


def test_a_shallow_clone_has_no_root(repo: Path, tmp_path: Path) -> None:
    commit(repo)
    run(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "clone")
    assert git.head(str(tmp_path / "clone")) == git.head(str(repo))
    assert git.root_commit(str(tmp_path / "clone")) == ""


def test_a_root_that_takes_too_long_is_not_waited_for(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, f"echo {MISSING}; exec sleep 60")
    assert git.root_commit(str(repo), within=0.1) == ""


def test_a_git_that_is_killed_says_nothing_about_a_commit(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, monkeypatch, 'case "$*" in *cat-file*) kill -9 $$;; esac')
    assert git.has_commit(str(repo), MISSING) is None


def test_another_work_tree_in_the_settings_hides_no_ignored_folder(repo: Path, tmp_path: Path) -> None:
    (repo / "build").mkdir()
    (repo / "build" / "file").write_text("")
    (repo / ".gitignore").write_text("build\n")
    run(repo, "config", "core.worktree", str(tmp_path))
    assert git.top(str(repo)) == str(repo)
    assert git.ignored_folders(str(repo)) == frozenset({str(repo / "build")})


# A repository that means harm


def ask_everything(repo: Path) -> None:
    (repo / "a").mkdir(exist_ok=True)
    top = git.top(str(repo / "a"))
    git.head(top)
    git.has_commit(top, MISSING)
    git.root_commit(top)
    git.ignored_folders(top)
    git.worktrees(str(repo))


def test_no_monitor_of_the_repository_is_run(repo: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    (repo / "file").write_text("")
    run(repo, "add", "file")
    run(repo, "config", "core.fsmonitor", f"touch '{trace}'; false")
    run(repo, "ls-files")
    assert trace.exists(), "a plain git would have run it"
    trace.unlink()
    ask_everything(repo)
    assert not trace.exists()


@pytest.mark.parametrize("unknown", ["GIT_NO_LAZY_FETCH", "GIT_ALLOW_PROTOCOL"])
def test_nothing_is_fetched_with_a_command_of_the_repository(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown: str
) -> None:
    """Older versions of git do not know the first of the two variables that forbid it, so each has to be enough."""
    trace = tmp_path / "trace"
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "evil",
        "remote.evil.promisor": "true",
        "remote.evil.url": f"ext::sh -c touch% {trace}",
        "protocol.ext.allow": "always",
    }.items():
        run(repo, "config", name, value)
    subprocess.run(["git", "cat-file", "-e", MISSING], cwd=repo, capture_output=True, check=False)
    assert trace.exists(), "a plain git would have run it"
    trace.unlink()
    stand_in(tmp_path, monkeypatch, f'unset {unknown}; exec {shutil.which("git")} "$@"')
    ask_everything(repo)
    assert not trace.exists()


@contextmanager
def open_as_input(path: Path) -> Iterator[None]:
    before = os.dup(0)
    with path.open() as file:
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(before, 0)
            os.close(before)


def test_git_gets_a_clean_environment_and_no_input(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_TRACE", "GIT_PAGER", "GIT_CEILING_DIRECTORIES", "GIT_CONFIG"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    stand_in(
        tmp_path,
        monkeypatch,
        f"{{ printf '%s ' \"$@\"; echo; env | grep -E '^(GIT|LC)_' | sort; readlink /proc/self/fd/0; }} > '{tmp_path}/seen'",
    )
    with open_as_input(repo / ".git" / "HEAD"):
        git.ignored_folders(str(repo))
    arguments, *environment = (tmp_path / "seen").read_text().splitlines()
    assert arguments.startswith(
        "--no-pager -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.commitGraph=false -C "
    )
    assert environment == [
        "GIT_ALLOW_PROTOCOL=none",
        "GIT_CONFIG_NOSYSTEM=1",
        "GIT_CONFIG_SYSTEM=/dev/null",
        "GIT_NO_LAZY_FETCH=1",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_TERMINAL_PROMPT=0",
        "LC_ALL=C",
        *(["/dev/null"] if os.path.isdir("/proc/self") else []),
    ]


# Worktrees, and what it costs to look


def test_all_worktrees_are_found_from_each_of_them(repo: Path, tmp_path: Path) -> None:
    run(repo, "worktree", "add", "-q", "../one")
    run(repo, "worktree", "add", "-q", "../two")
    (tmp_path / "two" / "a").mkdir()
    every = sorted(str(tmp_path / name) for name in ("one", "repo", "two"))
    for place in (repo, tmp_path / "one", tmp_path / "two" / "a"):
        assert sorted(git.worktrees(str(place))) == every
    assert git.worktrees("/") == []


def test_the_module_is_light() -> None:
    code = "import sys; before = set(sys.modules); import raymond.system.git; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["raymond", "raymond.system", "raymond.system.git"]


@pytest.mark.parametrize("kept", ["nested", "nested and kept apart", "a submodule"])
def test_a_folder_does_not_get_the_worktrees_of_a_repository_below_it(repo: Path, tmp_path: Path, kept: str) -> None:
    run(repo, "commit", "-q", "--allow-empty", "-m", "one")
    work, apart = tmp_path / "work", ["--separate-git-dir", str(tmp_path / "work/proj/.data")]
    work.mkdir()
    if kept == "a submodule":
        run(work, "init", "-q", "super")
        run(work / "super", "submodule", "--quiet", "add", str(repo), "proj")
        proj, own = work / "super/proj", "super/.git/modules/proj"
    else:
        run(work, "clone", "-q", *(apart if "apart" in kept else []), str(repo), "proj")
        proj, own = work / "proj", "proj/.data" if "apart" in kept else "proj/.git"
    run(proj, "worktree", "add", "-q", str(tmp_path / "outside"))
    (work / ".git").write_text(f"gitdir: {own}\n")
    assert git.worktrees(str(work)) == []
    assert str(tmp_path / "outside") in git.worktrees(str(tmp_path / "outside"))


@pytest.mark.parametrize("forged", ["a file", "a link", "a common directory"])
def test_a_repository_says_itself_what_belongs_to_it(repo: Path, tmp_path: Path, forged: str) -> None:
    """Anybody can write a `.git` that points to the repository of somebody else."""
    run(repo, "commit", "-q", "--allow-empty", "-m", "one")
    run(repo, "worktree", "add", "-q", str(tmp_path / "real"))
    evil = tmp_path / "evil"
    evil.mkdir()
    if forged == "a link":
        (evil / ".git").symlink_to(repo / ".git")
    elif forged == "a file":
        (evil / ".git").write_text(f"gitdir: {repo}/.git\n")
    else:
        own = evil / "made" / "worktrees" / "evil"
        own.mkdir(parents=True)
        (own / "commondir").write_text(f"{repo}/.git\n")
        (own / "gitdir").write_text(f"{evil}/.git\n")
        (evil / ".git").write_text(f"gitdir: {own}\n")
    assert git.worktrees(str(evil)) == []
    assert sorted(git.worktrees(str(repo))) == sorted([str(repo), str(tmp_path / "real")])


def test_worktrees_of_a_submodule_are_found(repo: Path, tmp_path: Path) -> None:
    run(repo, "commit", "-q", "--allow-empty", "-m", "one")
    main = tmp_path / "main"
    run(tmp_path, "init", "-q", str(main))
    run(main, "submodule", "--quiet", "add", str(repo), "sub")
    run(main / "sub", "worktree", "add", "-q", str(tmp_path / "other"))
    assert git.worktrees(str(main / "sub")) == [str(tmp_path / "other")]
    assert git.worktrees(str(tmp_path / "other")) == [str(tmp_path / "other")]


def test_worktrees_of_a_repository_that_is_kept_below_are_found(repo: Path, tmp_path: Path) -> None:
    run(repo, "commit", "-q", "--allow-empty", "-m", "one")
    top = tmp_path / "top"
    top.mkdir()
    run(top, "clone", "-q", "--bare", str(repo), ".bare")
    (top / ".git").write_text("gitdir: ./.bare\n")
    run(top, "worktree", "add", "-q", str(tmp_path / "one"))
    assert git.worktrees(str(top)) == [str(tmp_path / "one")]
