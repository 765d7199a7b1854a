"""The whole page of a report, from an evidence file alone: no network, no library, the same bytes each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

from numerics.report.graph import graph_svg
from numerics.report.portrait import portrait_section
from numerics.report.sections import VERDICTS, claim_section, shared_steps

__all__ = ["report_page"]

#: The page may load nothing at all.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return (files("numerics.report") / name).read_text(encoding="utf-8")


def report_page(document: Mapping[str, Any], mutants: Mapping[str, Any] | None = None) -> str:
    """The report of an evidence file as one HTML page.

    Parameters: ``document``, from `numerics.certificate_reader.load`; ``mutants``, the data of ``gradline verify
    --mutants --json``, if there is some.
    Returns: HTML text that loads nothing else.

    >>> from numerics import verify
    >>> from numerics.certificates import certificate
    >>> page = report_page(certificate(verify("balancedness")))
    >>> "claim-balancedness" in page, "http://" in page
    (True, False)
    """
    claims = document["claims"]
    wrong = {c["id"]: c for c in mutants["claims"]} if mutants else {}
    shared = shared_steps(claims)
    sections = "\n".join(claim_section(c, document["steps"], wrong.get(c["id"]), shared.get(c["id"])) for c in claims)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">',
            f"<title>gradline: {len(claims)} claims</title>\n<style>\n{_asset('page.css')}</style>\n</head>\n<body>",
            '<a class="skip" href="#claims">Skip to the claims</a>',
            _header(document),
            f"<main>\n{_graph(claims)}\n{portrait_section()}\n{_filters(claims)}\n{sections}",
            '<p id="none" hidden>No claim matches.</p>\n</section>\n</main>',
            _footer(document),
            f"<script>\n{_asset('page.js')}</script>\n<script>\n{_asset('portrait.js')}</script>\n</body>\n</html>\n",
        ]
    )


def _header(document: Mapping[str, Any]) -> str:
    counts = Counter(c["verdict"] for c in document["claims"])
    badges = " ".join(
        f'<span class="badge {v}" title="{VERDICTS[v]}">{counts[v]} {v}</span>' for v in VERDICTS if counts[v]
    )
    keys = " ".join(f'<span class="badge {v}">{v}</span> {VERDICTS[v]}.' for v in VERDICTS)
    return (
        f"<header class='top'>\n<h1>Claims and their evidence</h1>\n<p>{len(document['claims'])} claims: "
        f'{badges}</p>\n<p class="legend">{keys}</p>\n'
        '<nav aria-label="Parts"><a href="#graph">Graph</a> <a href="#portrait">Phase portrait</a> '
        '<a href="#claims">Claims</a> <a href="#about">About this file</a></nav>\n</header>'
    )


def _graph(claims: Any) -> str:
    known = {c["id"] for c in claims}
    said = (
        "A line leads from a claim to each claim whose derivation uses it, as found from the steps, formulas and "
        "references of the derivations."
        if any(name in known for c in claims for name in c["uses"])
        else "No derivation here uses another claim of this file."
    )
    return (
        '<section id="graph" aria-labelledby="graph-title">\n<h2 id="graph-title">What rests on what</h2>\n'
        f"<p>{said} Each box is a link.</p>\n"
        f'<div class="wide" id="graph-frame">{graph_svg(claims)}</div>\n</section>'
    )


def _filters(claims: Any) -> str:
    present = Counter(c["verdict"] for c in claims)
    boxes = " ".join(
        f'<label><input type="checkbox" name="verdict" value="{v}" checked> {v} ({present[v]})</label>'
        for v in VERDICTS
        if present[v]
    )
    return (
        '<section id="claims" aria-labelledby="claims-title">\n<h2 id="claims-title">Claims</h2>\n'
        '<form id="filter" role="search"><label class="search">Search <input type="search" id="search" '
        'placeholder="words, such as loss or factorized"></label>\n'
        f"<fieldset><legend>Verdict</legend>{boxes}</fieldset>\n"
        '<button type="button" id="unfold">Unfold all</button> <button type="button" id="fold">Fold all</button>\n'
        f'<p id="shown" role="status" aria-live="polite">{len(claims)} of {len(claims)} claims shown</p></form>'
    )


def _footer(document: Mapping[str, Any]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(version)}</td></tr>'
        for name, version in sorted(document["versions"].items())
        if name != "sha256"
    )
    ids = " ".join(f"--claim {c['id']}" for c in document["claims"] if c["source"] != "user")
    whole = len(document["claims"]) > 8
    command = f"gradline verify {'' if whole else ids + ' '}--seed {document['seed']} --json evidence.json"
    return (
        '<footer id="about">\n<h2>About this file</h2>\n<p>Made from the evidence with the SHA-256 '
        f"<code>{escape(document['sha256'])}</code>, seed {document['seed']}. To gather it again, check it, and make "
        f"this page:</p>\n<pre>{escape(' '.join(command.split()))}\ngradline verify --recheck evidence.json\n"
        f"gradline report evidence.json --out .</pre>\n<table><caption>Versions</caption><tbody>{rows}</tbody></table>"
        "\n</footer>"
    )
