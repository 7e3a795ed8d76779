"""`python -m atomcast`: the command line."""

from atomcast.cli import main

main()
