"""`python -m paceline` is the command line."""

from paceline.cli import app

if __name__ == "__main__":
    app()
