"""Configuration of the documentation: ``make docs``."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

project = "gradline"
author = "The gradline developers"
copyright = "The gradline developers, MIT license"
try:
    release = metadata.version("gradline")
except metadata.PackageNotFoundError:
    release = "0"

extensions = ["myst_parser", "gradline_docs", "api"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = "gradline"
html_static_path = ["_static"]
html_css_files = ["gradline.css"]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "tutorials/*.py"]
