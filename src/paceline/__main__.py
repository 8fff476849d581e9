"""`python -m paceline` is the command line."""

from paceline.cli import app

app()
