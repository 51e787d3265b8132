"""Agents that cheat with what git knows besides files: history, references, settings. It is named, and put back."""

from pathlib import Path

import pytest

from looping import Night

pytestmark = pytest.mark.slow
DONE = "echo 42 > answer.txt; echo ITERATION_COMPLETE"
EVIL = "git commit-tree -p main -m evil main^{tree}"
TAMPERED = {
    # what it is called: what the agent does, what the summary says
    "a worktree": (
        "git worktree add -q $TEST_ROOM/../new main; git -C $TEST_ROOM/../new commit -q --allow-empty -m evil",
        ("added the worktree ", "moved main"),
    ),
    "main in a worktree of before": (
        "git -C $TEST_ROOM/../tree switch -q main; git -C $TEST_ROOM/../tree commit -q --allow-empty -m evil",
        ("moved main",),
    ),
    "a history that is cut off": ("git rev-parse HEAD > .git/shallow", ("added .git/shallow",)),
    "a trailer in small letters": (
        "git commit -q --allow-empty -m x -m 'raymond-item: n/forged'",
        ("wrote a commit in the name of Raymond",),
    ),
    "a trailer as a subject": (
        "git commit -q --allow-empty -m 'Raymond-Item: n/forged'",
        ("wrote a commit in the name of Raymond",),
    ),
    "a place that is taken": ("git update-ref refs/raymond/n/1.1 HEAD", ("made raymond/n/1.1",)),
    "a place that is a folder": ("git update-ref refs/raymond/n/1.1/x HEAD", ("made raymond/n/1.1/x",)),
    "the beginning": (f"git update-ref refs/raymond/n/base $({EVIL})", ("moved raymond/n/base",)),
    "an older night": ("git update-ref -d refs/raymond/m/1.1", ("removed raymond/m/1.1",)),
    "another default branch": (
        "git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/x; git update-ref refs/remotes/origin/x HEAD",
        ("moved remotes/origin/HEAD",),
    ),
    "a reference of another kind": (
        "git update-ref -d refs/wip/mine; git reflog expire --expire=now --all",
        ("removed wip/mine", "shortened the reflog of HEAD, feature, main"),
    ),
    "one stash": ("git stash drop -q stash@{1}", ("changed the list of stashes",)),
    "all stashes": ("git stash clear", ("removed stash", "changed the list of stashes")),
}


THERE = "git -c user.name=x -c user.email=x -C $TEST_ROOM/../origin.git"
PUSHED = {
    "a commit of no branch": (
        f"git push -q origin $({EVIL}):refs/heads/evil",
        "pushed to origin/evil",
    ),
    "back": ("git push -qf origin HEAD~1:main", "pushed to origin/main"),
    "there and back": (
        "git push -qf origin HEAD~1:main; git push -q origin main:main",
        "pushed to origin/main",
    ),
    "a branch is removed": ("git push -q origin :old", '"origin/old", which was at '),
    "a reflog that is gone": (
        "rm -r .git/logs/refs/remotes; git -c core.logAllRefUpdates=false push -qf origin HEAD~1:main",
        '"origin/main" moved backwards, from ',
    ),
    "nothing, and fetches": (
        f"{THERE} update-ref refs/heads/main $({THERE} commit-tree -p main -m theirs main^{{tree}}); git fetch -q --prune",
        "- Success rate: 100% (1/1)",
    ),
    "what a person has committed elsewhere": (
        "cd $TEST_ROOM/../tree; git commit -q --allow-empty -m mine; git push -q origin feature; cd $TEST_ROOM",
        '"origin/feature" was pushed to, by the agent or in another worktree',
    ),
}


@pytest.mark.parametrize("name", PUSHED)
def test_a_push_is_named_and_a_fetch_is_not(tmp_path: Path, name: str) -> None:
    script, told = PUSHED[name]
    night = full(tmp_path, script)
    night.git("commit", "-q", "--allow-empty", "-m", "more")
    night.git("push", "-q", "origin", "main", "main:old")
    ran = night.loop("--attempts", "1")
    assert told in ran.out, ran.err
    assert ("tampered" in ran.err, "Noticed" in ran.out) == (told.startswith("pushed"), not told.startswith("-"))
    if "fetch" in name:
        assert night.git("log", "-1", "--format=%s", "origin/main") == "theirs"


def references(night: Night) -> dict[str, str]:
    form = "--format=%(refname) %(symref) %(objectname)"
    lines = (line.split(" ", 1) for line in night.git("for-each-ref", form).splitlines())
    return {name: what for name, what in lines if not name.startswith(("refs/raymond/n/", "refs/heads/raymond/"))}


def full(path: Path, script: str) -> Night:
    """A repository with a bit of everything."""
    night = Night(path, agent=f"{script}; {DONE}")
    night.git("clone", "-q", "--bare", ".", str(path / "origin.git"))
    night.git("remote", "add", "origin", str(path / "origin.git"))
    night.git("fetch", "-q", "origin")
    night.git("remote", "set-head", "origin", "main")
    night.git("worktree", "add", "-q", "-b", "feature", str(path / "tree"))
    night.git("update-ref", "refs/raymond/m/1.1", "HEAD")
    night.git("update-ref", "refs/wip/mine", "HEAD")
    for text in ("one", "two"):
        night.write({"README.md": text})
        night.git("stash")
    return night


@pytest.mark.parametrize("name", TAMPERED)
def test_it_is_tampered_with_and_put_back(tmp_path: Path, name: str) -> None:
    script, told = TAMPERED[name]
    night = full(tmp_path, script)
    before, stashes = references(night), night.git("stash", "list", "--format=%gd %H %gs")
    ran = night.loop("--attempts", "1")
    [failed] = night.state["failedItems"]
    assert (ran.code, failed["verdict"]) == (1, "tampered"), ran.out + ran.err
    for one in told:
        assert one in ran.out
    assert {name: references(night).get(name) for name in before} == before
    assert night.git("stash", "list", "--format=%gd %H %gs") == stashes
    assert night.git("show", "refs/raymond/n/1.1:answer.txt") == "42", "what it left is kept"
    assert night.git("log", "-1", "--format=%s", "refs/raymond/n/start") == "raymond: before the item"
    assert not (night.path / ".git/shallow").exists()
    assert not (night.path / "answer.txt").exists()
    assert "from being put back" not in ran.out


@pytest.mark.parametrize("branch", ["main", "raymond/m"])
def test_a_worktree_of_an_agent_lets_no_later_one_move_its_branch(tmp_path: Path, branch: str) -> None:
    queue = "1. [VERIFY: false] Prepare\n2. [VERIFY: sh check.sh] Write the answer\n"
    night = Night(tmp_path, queue)
    night.git("branch", "raymond/m")
    night.agent(f"""
    if grep -q '^# Prepare' $PROMPT; then git worktree add -q $TEST_ROOM/../new {branch}
    else git -C $TEST_ROOM/../new commit -q --allow-empty -m evil; fi
    {DONE}
    """)
    before = night.git("rev-parse", branch)
    ran = night.loop("--attempts", "1")
    assert [one["verdict"] for one in night.state["failedItems"]] == ["tampered", "tampered"], ran.out
    assert night.git("rev-parse", branch) == before
    assert ran.out.count("added the worktree") == 2, "as a failure and as a note, of the item that did it"


def test_what_an_item_left_is_not_removed_by_the_next(tmp_path: Path) -> None:
    queue = "1. [VERIFY: sh check.sh] Prepare\n2. [VERIFY: test -e second.txt] Go on\n"
    night = Night(tmp_path, queue)
    night.agent("""
    if grep -q '^# Prepare' $PROMPT; then echo true > check.sh
    else touch second.txt; git update-ref -d refs/raymond/n/1.1; fi
    echo ITERATION_COMPLETE
    """)
    ran = night.loop("--attempts", "1")
    assert "removed raymond/n/1.1" in ran.out
    assert night.git("show", "refs/raymond/n/1.1:check.sh") == "true"


def test_what_a_first_attempt_left_is_not_removed_by_the_second(tmp_path: Path) -> None:
    agent = "if [ -e tried ]; then git update-ref -d refs/raymond/n/1.1; fi; touch tried; echo done"
    night = Night(tmp_path, "1. [VERIFY: test -e never] Try\n", agent)
    ran = night.loop("--attempts", "2")
    assert "removed raymond/n/1.1" in ran.out
    assert night.git("cat-file", "-t", "refs/raymond/n/1.1") == "commit"


def test_what_cannot_be_put_back_is_said_with_the_way(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.agent(f"""
    git update-ref refs/heads/main $({EVIL}); touch .git/refs/heads/main.lock
    git update-ref 'refs/raymond/n/a;b' HEAD; touch '.git/refs/raymond/n/a;b.lock'
    {DONE}
    """)
    main = night.git("rev-parse", "main")
    with night.git_at_work():
        night.loop("--attempts", "1")
    summary = next((night.path / "docs/summaries").iterdir()).read_text("utf-8")
    way = f"then: git update-ref refs/heads/main {main}"
    assert f"the agent kept main from being put back; remove the lock in .git/refs, {way}" in summary
    assert "then: git update-ref -d 'refs/raymond/n/a;b'" in summary


def test_work_that_cannot_be_saved_is_neither_put_away_nor_what_the_next_attempt_begins_with(tmp_path: Path) -> None:
    lock = ".git/refs/raymond/n/1.1.lock"
    night = Night(tmp_path, agent=f"mkdir -p .git/refs/raymond/n; touch {lock}; echo true > check.sh; echo done")
    with night.git_at_work():
        ran = night.loop("--attempts", "1")
    assert (ran.code, night.state["status"]) == (3, "paused")
    assert "refs/raymond/n/1.1 cannot be written, because there is a lock: .git/refs/raymond/n/1.1.lock" in ran.err
    assert "if there is none, remove the file" in ran.err
    assert night.text("check.sh") == "true\n", "it is still there"
    with night.git_at_work():
        assert night.loop("--yes", verb="resume").code == 3, "the lock is still there"
    (night.path / lock).unlink()
    assert night.loop("--yes", verb="resume").code == 1
    assert night.git("show", "refs/raymond/n/1.1:check.sh") == "true"


HONEST = {
    "a stash that comes and goes": "echo x > README.md; git stash -q; git stash pop -q; git checkout -q README.md",
    "a worktree that comes and goes": (
        "git worktree add -q --detach $TEST_ROOM/../look; git worktree remove $TEST_ROOM/../look"
    ),
    "a branch of its own": "git update-ref refs/wip/new HEAD; git branch idea; git branch -q -t follows origin/main",
    "settings of nobody": (
        "git config lfs.repositoryformatversion 0; git config core.pager cat; git config color.ui never;"
        " git config alias.ci commit; git submodule -q init"
    ),
    "a commit in a worktree of before": "git -C $TEST_ROOM/../tree commit -q --allow-empty -m mine",
    "another branch there": (
        "git -C $TEST_ROOM/../tree switch -q -c more; git -C $TEST_ROOM/../tree commit -q --allow-empty -m mine"
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_it_counts(tmp_path: Path, name: str) -> None:
    night = full(tmp_path, HONEST[name])
    if "submodule" in HONEST[name]:
        (night.path / "x").mkdir()
        night.write({".gitmodules": '[submodule "x"]\n\tpath = x\n\turl = ../x.git\n'})
        night.git("update-index", "--add", "--cacheinfo", f"160000,{night.git('rev-parse', 'HEAD')},x")
        night.commit("a submodule")
    ran = night.loop("--attempts", "1")
    assert ran.code == 0, ran.out + ran.err
    assert night.git("show", "HEAD~1:answer.txt") == "42"
    assert ("x.git" in night.text(".git/config")) == ("submodule" in HONEST[name])


SETTINGS = {
    "remote.origin.pushurl": "git config remote.origin.pushurl elsewhere",
    "remote.origin.url": "git config remote.origin.url elsewhere",
    "http.proxy": "git config http.proxy http://elsewhere.example",
    "user.name": "git config user.name Linus",
    "gc.pruneexpire": "git config gc.pruneExpire now",
    "core.logallrefupdates": "git config core.logAllRefUpdates false",
    "branch.main.pushremote": "git config branch.main.pushRemote elsewhere",
    "url.elsewhere.insteadof": "git config url.elsewhere.insteadOf https://",
    "remote.pushdefault": "git config remote.pushDefault elsewhere",
    "submodule.x.url": "git config submodule.x.url ext::evil",
    "alias.st": "git config alias.st push",
    "i18n.logoutputencoding": (
        "git config i18n.logOutputEncoding IBM037; git commit -q --allow-empty -m x -m 'Raymond-Item: n/forged'"
    ),
}


@pytest.mark.parametrize("key", SETTINGS)
def test_a_setting_about_commits_and_pushes_is_put_back(tmp_path: Path, key: str) -> None:
    night = full(tmp_path, SETTINGS[key])
    night.git("config", "alias.st", "status")
    config = night.text(".git/config")
    ran = night.loop("--attempts", "1")
    [failed] = night.state["failedItems"]
    assert failed["verdict"] == "tampered"
    assert f"the git setting {key}" in ran.out
    assert night.text(".git/config") == config
    assert ("in the name of Raymond" in ran.out) == ("forged" in SETTINGS[key])


INCLUDED = "printf '[core]\\nhooksPath = tools\\n' >> .gitconfig"
GLOBAL = "git config --global core.hooksPath $TEST_ROOM/tools"


@pytest.mark.parametrize("setting", [INCLUDED, GLOBAL])
def test_other_hooks_by_a_file_outside_of_git(tmp_path: Path, setting: str) -> None:
    """The agent's own hook is not run in Raymond's name, that of the project is: also for the item after it."""
    queue = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: test -e second.txt] Go on\n"
    hook = "mkdir -p tools; printf '#!/bin/sh\\ntouch $TEST_ROOM/../ran\\n' > tools/post-commit; chmod +x tools/post-commit"
    night = Night(tmp_path, queue, **{".gitconfig": "[alias]\n\tst = status\n"})
    night.git("config", "include.path", "../.gitconfig")
    night.agent(f"""
    if grep -q '^# Write' $PROMPT; then {hook}; {setting}; echo 42 > answer.txt; else touch second.txt; fi
    echo ITERATION_COMPLETE
    """)
    pre = night.path / ".git/hooks/pre-commit"
    pre.write_text("#!/bin/sh\necho looked >> $TEST_ROOM/../looked\n", "utf-8")
    pre.chmod(0o755)
    ran = night.loop("--attempts", "1")
    [failed] = night.state["failedItems"]
    assert (failed["title"], failed["verdict"]) == ("Write the answer", "tampered"), ran.out
    assert "added the git setting core.hookspath, in a file outside of .git" in ran.out
    assert [one["title"] for one in night.state["completedItems"]] == ["Go on"]
    assert (tmp_path / "looked").read_text("utf-8") == "looked\n"
    assert not (tmp_path / "ran").exists()


HIDDEN = """
fake=$(git commit-tree -p HEAD -m start HEAD^{tree}); new=$(git commit-tree -m new HEAD^{tree})
git update-ref refs/heads/raymond/n $new; git pack-refs --all
python3 - $new $fake <<'END'
import sys
new, fake = sys.argv[1:]
head, *lines = open(".git/packed-refs").read().splitlines()
lines += [f"{new} refs/a/{number:04}{'x' * 200}" for number in range(5000)]
lines = sorted([*lines, f"{fake} refs/replace/{new}"], key=lambda line: line.split(" ")[1])
open(".git/packed-refs", "w").write("\\n".join([head, *lines]) + "\\n")
END
echo 42 > answer.txt; echo ITERATION_COMPLETE
"""
"""Rewrites the history, and lets an object that stands in say that it did not, behind a megabyte of references."""


def test_an_object_that_stands_in_tells_no_history(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=HIDDEN)
    head = night.git("rev-parse", "HEAD")
    ran = night.loop("--attempts", "1")
    assert "rewrote the history" in ran.out
    assert "added the replaced object " in ran.out
    assert (night.git("replace", "-l"), night.git("rev-parse", "HEAD~1")) == ("", head)


FORGED = """
echo 42 > answer.txt; git add -A; base=$(git rev-parse HEAD)
new=$(git commit-tree -m new $(git write-tree)); git update-ref HEAD $(git commit-tree -p $new -m tip $(git write-tree))
git commit-graph write --reachable
python3 - .git/objects/info/commit-graph $new $base <<'END'
import hashlib, os, struct, sys
path, child, parent = sys.argv[1:]
data = bytearray(open(path, "rb").read())
heads = (8 + 12 * at for at in range(data[6] + 1))
chunks = {bytes(data[at : at + 4]): struct.unpack(">Q", data[at + 4 : at + 12])[0] for at in heads}
[count] = struct.unpack_from(">I", data, chunks[b"OIDF"] + 255 * 4)
names = [data[chunks[b"OIDL"] + 20 * at :][:20].hex() for at in range(count)]
row, above = (chunks[b"CDAT"] + 36 * names.index(one) for one in (child, parent))
struct.pack_into(">I", data, row + 20, names.index(parent))
generation, low = struct.unpack_from(">I", data, above + 28)[0] >> 2, struct.unpack_from(">I", data, row + 28)[0] & 3
struct.pack_into(">I", data, row + 28, generation + 1 << 2 | low)
if b"GDA2" in chunks:
    struct.pack_into(">I", data, chunks[b"GDA2"] + 4 * names.index(child), 100000)
data[-20:] = hashlib.sha1(data[:-20]).digest()
os.chmod(path, 0o644)
open(path, "wb").write(data)
END
echo ITERATION_COMPLETE
"""
"""Rewrites the history, and lets the commit graph say that it did not."""


def test_a_commit_graph_tells_no_history(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=FORGED)
    ran = night.loop("--attempts", "1")
    assert "rewrote the history" in ran.out
    assert night.git("-c", "core.commitGraph=false", "log", "--reverse", "--format=%s").startswith("start")
