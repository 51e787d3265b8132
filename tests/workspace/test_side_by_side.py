"""Agents that work in one tree at the same time."""

from workspace.person import Person

BOTH = """
echo "$RAYMOND_VAR_n" > "inside.$RAYMOND_VAR_n"
while [ ! -e inside.1 ] || [ ! -e inside.2 ]; do sleep 0.02; done
echo "by $RAYMOND_VAR_n" > "node_modules/$RAYMOND_VAR_n/index.js" || exit 1
echo "<result>$RAYMOND_VAR_n</result>"
"""


def test_each_of_them_can_change_an_installed_package(person: Person) -> None:
    person.begin({"file": "1\n", ".gitignore": "node_modules/\n"})
    for number in (1, 2):
        person.write(f"node_modules/{number}/index.js", "the person's\n")
    flow = person.flow(BOTH, file="WORK.sh")
    person.flow(
        'echo "<result>$(cat node_modules/1/index.js node_modules/2/index.js | tr "\\n" " ")</result>"', file="END.sh"
    )
    person.flow('echo \'<fork n="1">WORK.sh</fork><fork n="2">WORK.sh</fork><wait>END.sh</wait>\'')
    done = person.raymond("run", flow, "--id", "r", "--workspace", "isolated")
    assert (done.returncode, done.stdout) == (0, "by 1 by 2 \n"), done.stderr
    assert (person.project / "node_modules/1/index.js").read_text("utf-8") == "the person's\n"
