"""Carried: what a tree has besides the files of git, and that none of it reaches the person's."""

from workspace.checkout import Checkout, put


def test_ignored_files_in_a_folder_that_git_does_not_track_are_carried(checkout: Checkout) -> None:
    checkout.begin()
    put(checkout.path / "new/main.py", "1\n")
    put(checkout.path / "new/.env", "KEY=1\n")
    put(checkout.path / "new/node_modules/x/index.js", "1\n")
    put(checkout.path / "only/ignored/.env", "KEY=2\n")
    base = checkout.open()
    assert base.installed == ["new/node_modules"]
    assert (checkout.tree / "new/.env").read_text("utf-8") == "KEY=1\n"
    assert (checkout.tree / "only/ignored/.env").read_text("utf-8") == "KEY=2\n"
    assert checkout.taken() == {}
