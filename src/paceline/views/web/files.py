"""Files of the page: our own, and plotly's script from the installed package."""

import gzip
from functools import cache
from importlib.metadata import version
from importlib.resources import files


@cache
def own_file(name: str) -> str:
    """One of our own files; the report has the same controls."""
    views = files("paceline.views")
    return (views / "page" / name if name == "controls.js" else views / "web" / "static" / name).read_text()


@cache
def plotly_script(encoding: str) -> tuple[bytes, str]:
    """Plotly's script, compressed once or as it is, and a tag that changes with its version."""
    script = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return gzip.compress(script, 3, mtime=0) if encoding == "gzip" else script, f'"plotly-{version("plotly")}"'
