"""The command `raymond`."""

import gc
import os
import sys


def main() -> None:
    """Answer `--version` without importing anything else; leave every other command to `cli`."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from raymond import __version__

        print(f"raymond {__version__}")
        return
    # Little here is cyclic garbage, and nothing that is imported is. Later, every collection walks over all agents of a
    # large run.
    gc.set_threshold(50_000, 20, 100)
    from raymond import cli
    from raymond.cli import terminal
    from raymond.system import processes

    processes.hear_of_children()
    processes.keep_own_files_usable()
    terminal.guard()
    code = cli.main(sys.argv[1:])
    cli.flush()
    # Everything is written and closed: skip the shutdown of the interpreter, which only takes time.
    os._exit(code)


def _leave_out_cwd() -> None:
    """`python -m` lets Python import from the directory that one is in: whatever a checkout or an agent put there."""
    try:
        here = os.getcwd()
    except OSError:
        return  # it is gone, and Python has left it out
    if not sys.flags.safe_path and sys.path[0] in ("", here) and not __file__.startswith(f"{here}/raymond/"):
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_cwd()
    main()
