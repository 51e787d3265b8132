"""The command `raymond`."""

import os
import sys


def main() -> None:
    """Answer `--version` without importing anything else; leave every other command to `cli`."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from raymond import __version__

        print(f"raymond {__version__}")
        return
    from raymond import cli

    code = cli.main(sys.argv[1:])
    cli.flush()
    # Everything is written and closed: skip the shutdown of the interpreter, which only takes time.
    os._exit(code)


if __name__ == "__main__":
    main()
