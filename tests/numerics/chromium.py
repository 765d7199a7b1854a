"""Headless Chromium for tests: a page with a script at its end, what the script found, and what the browser logged."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Visit", "browser", "visit", "with_chromium"]

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
#: A loaded machine may take long to start a browser; nothing is measured by this.
_LONGEST = 300


def browser() -> str | None:
    """The command of Chromium, if there is one."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


with_chromium = pytest.mark.skipif(browser() is None, reason="Chromium is not installed: apt install chromium")


def _address(event: str) -> str | None:
    """The address that a page asks for, from a line of the network log; what the browser itself wants has no origin."""
    url, origin = (re.search(rf'"{key}":"([^"]*)"', event) for key in ("url", "initiator"))
    if url is None or origin is None or origin[1] == "not an origin" or url[1].startswith(("file:", "data:", "chrome")):
        return None
    return url[1]


@dataclass(frozen=True)
class Visit:
    """What a script found, the messages of the console, and the addresses that were asked for."""

    found: Any
    console: tuple[str, ...]
    requests: tuple[str, ...]


def visit(page: str, script: str, folder: Path, *flags: str) -> Visit:
    """Open a page in a browser of its own and run a script, an expression that gives JSON data, at its end."""
    file, log = folder / "page.html", folder / "net.json"
    probe = f"const found = (() => {{ {script} }})(); document.body.dataset.found = JSON.stringify(found);"
    file.write_text(page.replace("</body>", f"<script>{probe}</script></body>"), encoding="utf-8")
    done = subprocess.run(
        [
            str(browser()), *_FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}",
            "--virtual-time-budget=2000", "--dump-dom", file.as_uri(),
        ],
        capture_output=True, text=True, check=True, timeout=_LONGEST,
    )  # fmt: skip
    data = re.search(r'data-found="([^"]*)"', done.stdout)
    console = tuple(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    asked = (_address(line) for line in log.read_text(encoding="utf-8").splitlines())
    return Visit(json.loads(unescape(data[1])) if data else None, console, tuple(dict.fromkeys(filter(None, asked))))
