"""Rules 5, 8, 9 and 12: what an isolated step of a run finds, what becomes of its work, and its network."""

import socket

import pytest

from workspace.person import Person, daily

CONNECT = """
import json, socket, sys
try:
    socket.create_connection(("127.0.0.1", {port}), 5).close()
    print(json.dumps("reached"))
except OSError as error:
    print(json.dumps("not reached"))
"""
OWN_SERVER = """
import json, socket
server = socket.create_server(("127.0.0.1", 0))
ours = socket.create_connection(server.getsockname(), 5)
print(json.dumps(sorted(name for _, name in socket.if_nameindex())))
"""


@pytest.mark.parametrize("where", ["in the home", "elsewhere"])
def test_raymond_s_own_home_is_hidden_but_for_the_files_of_the_step(person: Person, where: str) -> None:
    person.begin()
    if where == "elsewhere":
        person.environment["RAYMOND_HOME"] = str(person.folder / "state")
    person.ran(
        "find $RAYMOND_HOME -type f | sed 's,.*/,,' | sort > seen; find $RAYMOND_HOME -name journal.jsonl >> seen"
    )
    assert person.saved("seen") == "START.sh\nworkflow.yaml\n"


def test_what_a_step_is_given_and_what_it_gives_pass_through_its_place(person: Person) -> None:
    person.begin()
    flow = {
        "START.sh": "cat $RAYMOND_INPUT_FILE > given; echo \"<goto input='$(head -c 100000 /dev/zero | tr '\\0' x)'>LONG.py</goto>\"",
        "LONG.py": """
            import json, os
            from pathlib import Path
            values = json.loads(Path(os.environ["RAYMOND_VARS_FILE"]).read_text())
            assert values["input"] == Path(os.environ["RAYMOND_INPUT_FILE"]).read_text()
            Path("long").write_text(str(len(values["input"])))
            Path(os.environ["RAYMOND_OUT"]).write_text("<result>by a file</result>")
            """,
    }
    for name, text in flow.items():
        folder = person.flow(text, file=name)
    done = person.raymond("run", folder, "--id", "r", "--workspace", "isolated", "--input", "short")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "by a file\n"
    assert (person.saved("given"), person.saved("long")) == ("short", "100000")


def test_a_step_cannot_leave_anything_in_the_files_of_its_workflow(person: Person) -> None:
    person.begin()
    person.ran(
        "echo x > $RAYMOND_WORKFLOW_DIR/START.sh; echo x > $RAYMOND_WORKFLOW_DIR/new; ls $RAYMOND_WORKFLOW_DIR > seen"
    )
    assert person.saved("seen") == "START.sh\nworkflow.yaml\n"


def test_the_network_is_there_unless_it_is_turned_off(person: Person) -> None:
    person.begin()
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = CONNECT.format(port=server.getsockname()[1])
        assert person.python_inside(script) == "reached"
        assert person.python_inside(script, net="off") == "not reached"
    assert person.python_inside(OWN_SERVER, net="off") == ["lo"]


def test_net_off_in_the_settings_of_a_workflow_turns_it_off(anyone: Person) -> None:
    anyone.begin()
    anyone.ran(
        "ls /sys/class/net > /dev/null; cat /proc/net/dev | tail -n +3 | cut -d: -f1 > seen", settings="net: off\n"
    )
    assert anyone.saved("seen").split() == ["lo"]


# What becomes of the work


@daily
def test_what_is_saved_is_what_was_in_the_tree(person: Person) -> None:
    person.begin()
    person.ran(
        "mkdir -p d; head -c 100000 /dev/urandom > d/blob; sha256sum < d/blob > sum; ln -s sum link; chmod +x sum"
    )
    said = person.sh("git show refs/raymond/r/tip:d/blob | sha256sum")
    assert said == person.saved("sum")
    assert person.git("ls-tree", "refs/raymond/r/tip", "sum", "link").split()[0::4] == ["120000", "100755"]
    assert person.git("log", "--format=%s", "-1", "refs/raymond/r/tip~1") == "first\n"


def test_a_run_that_completes_drops_its_tree_when_all_of_it_is_under_a_reference(person: Person) -> None:
    person.begin().furnish()
    before = person.possessions()
    person.ran("echo work > work")
    assert list(person.raymond_home.rglob("tree")) == []
    person.git("gc", "-q", "--prune=now")
    person.git("fsck", "--strict")
    assert person.saved("work") == "work\n"
    assert person.raymond("apply", "r").returncode == 0
    assert (person.project / "work").read_text("utf-8") == "work\n"
    (person.project / "work").unlink()
    changed = {path for path in before if person.possessions().get(path) != before[path]}
    assert all(path.startswith("project/.git/") for path in changed)  # by the gc


def test_a_run_that_failed_keeps_its_tree_until_it_is_cleaned_and_saves_it_first(person: Person) -> None:
    person.begin()
    assert person.run("echo work > work; exit 7").returncode != 0
    [tree] = person.raymond_home.rglob("workspace/1/tree")
    (tree / "later").write_text("later\n", "utf-8")
    person.git("gc", "-q", "--prune=now")
    done = person.raymond("clean", "r", "--force")
    assert done.returncode == 0, done.stderr
    assert list(person.raymond_home.rglob("tree")) == []
    assert (person.saved("work"), person.saved("later")) == ("work\n", "later\n")


def test_a_tree_that_cannot_be_saved_is_not_dropped(person: Person) -> None:
    person.begin()
    lock = person.write(".git/refs/raymond/r/tip.lock/full", "")
    done = person.run("echo work > work")
    assert "the work is not saved yet" in done.stderr
    assert list(person.raymond_home.rglob("workspace/1/tree/work"))
    lock.unlink()
    lock.parent.rmdir()
    assert person.raymond("apply", "r").returncode == 0
    assert (person.project / "work").read_text("utf-8") == "work\n"


def test_git_may_collect_garbage_while_a_run_is_stopped(person: Person) -> None:
    person.begin()
    person.write("README", "uncommitted\n")
    assert person.run("echo work >> README; exit 7").returncode != 0
    person.sh("git checkout -q README && git reflog expire --expire=now --all && git gc -q --prune=now")
    person.write("README", "uncommitted\n")
    assert person.raymond("apply", "r").returncode == 0
    assert (person.project / "README").read_text("utf-8") == "uncommitted\nwork\n"


def test_apply_says_what_is_in_the_way_and_writes_nothing(person: Person) -> None:
    person.begin()
    person.ran("echo agent > README; echo new > new")
    person.write("README", "person\n")
    done = person.raymond("apply", "r")
    assert done.returncode == 1
    assert done.stderr.splitlines()[:2] == ["error: nothing was written: you changed 1 file since", "  README"]
    assert not (person.project / "new").exists()
