"""The command `raymond`."""

import os
import sys


def main() -> None:
    """Answer `--version` before anything is imported; everything else is cli's."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from raymond import __version__

        print(f"raymond {__version__}")
        return
    from raymond import cli

    code = cli.main(sys.argv[1:])
    cli.flush()
    # Everything is written and closed; taking the interpreter apart would only take time.
    os._exit(code)


if __name__ == "__main__":
    main()
