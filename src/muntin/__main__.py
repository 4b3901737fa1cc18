"""``python -m muntin`` is the command ``muntin``."""

from muntin.cli.main import main

if __name__ == "__main__":
    main()
