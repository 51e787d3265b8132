"""A workspace without a run: `visit.py ASKED` does what a JSON document asks for, and prints one."""

import json
import os
import sys
from typing import Any

from raymond.errors import Error
from raymond.workspace import home
from raymond.workspace.place import Place


def main() -> None:
    """Do it; a refusal is an answer too."""
    asked = json.loads(sys.argv[1])
    try:
        said = _do(asked)
    except Error as error:
        said = {"refused": str(error)}
    if said is not None:
        print(json.dumps(said))


def _do(asked: dict[str, Any]) -> dict[str, Any] | None:
    place = Place(asked["folder"], asked["top"], "r", asked["raymond"], "isolated")
    if asked["do"] == "harvest":
        with place.alone():
            taken = place.harvest()
        commit = place.save(taken, "work\n", 0.0)
        return {"tree": taken.tree, "left_out": taken.left_out, "commit": commit}
    place.open(asked["carry"], lambda text: None, 0.0)
    if not asked["argv"]:
        return {}
    environment = home.environment(dict(os.environb), asked["lend"], ())
    shown = home.lent(asked["lend"], dict(os.environb))
    sys.exit(place.call(asked["argv"], asked["cwd"], environment, shown, asked["net"]))


if __name__ == "__main__":
    main()
