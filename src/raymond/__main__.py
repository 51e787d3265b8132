"""The command `raymond`."""

import sys


def main() -> None:
    """Answer `--version` before anything is imported; everything else is cli's."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from raymond import __version__

        print(f"raymond {__version__}")
        return
    from raymond import cli

    sys.exit(cli.main(sys.argv[1:]))


if __name__ == "__main__":
    main()
