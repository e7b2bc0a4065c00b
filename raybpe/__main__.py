"""`python -m raybpe` is the command `raybpe`."""

from raybpe.cli import main

if __name__ == "__main__":
    main()
