"""Run the command line as `python -m noetl`."""

from noetl.cli import main

if __name__ == "__main__":
    main()
