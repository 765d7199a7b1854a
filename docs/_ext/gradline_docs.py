"""Sphinx: formulas as MathML, without network, and directives that take their formulas from the package.

``{equations} CLAIM [CLAIM/NAME ...]`` displays the equations of a claim; ``{symbols}`` the table of symbols;
``{claims}`` the table of all claims.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from numerics.report.mathml import mathml


def _inline(self: Any, node: Any) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(self: Any, node: Any) -> None:
    self.body.append('<div class="math-block">')
    self.body.append(mathml(node.astext(), block=True))
    self.body.append("</div>")
    raise nodes.SkipNode


def _math(text: str) -> Any:
    return nodes.math_block(text, text, nowrap=False, number=None, label=None, docname="")


class Equations(SphinxDirective):
    """The equations of claims, from their stated formulas."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[Any]:
        from theory.latex import Notation
        from theory.latex.claims.displays import condition, inline
        from theory.latex.claims.equations import folded
        from theory.registry import find

        notation, found = Notation(), []
        for word in self.arguments[0].split():
            claim, _, name = word.partition("/")
            chosen = [e for e in folded(find(claim)) if not name or e.family == f"{claim}.{name}"]
            if not chosen:
                raise self.error(
                    f"no equation {word!r}; {claim} has {', '.join(e.family for e in folded(find(claim)))}"
                )
            for equation in chosen:
                where = condition(equation, notation)
                found.append(_math(inline(equation, notation) + (rf"\qquad ({where})" if where else "")))
        return found


def _signs(text: str) -> str:
    """A range with the signs that people read."""
    return text.replace(">=", "≥").replace("<=", "≤").replace("alpha", "α")


class Symbols(SphinxDirective):
    """Every symbol with its space and meaning."""

    def run(self) -> list[Any]:
        from theory.symbols import SYMBOLS

        rows = [
            (nodes.math(i.latex, i.latex), nodes.Text(_signs(i.space)), nodes.Text(i.meaning)) for i in SYMBOLS.values()
        ]
        return [_table(("symbol", "space", "meaning"), rows)]


class Claims(Directive):
    """Every claim with its title."""

    def run(self) -> list[Any]:
        from theory.registry import claims, reference_claims

        rows = [
            (nodes.literal(c.id, c.id), nodes.Text(c.title), nodes.Text(c.source))
            for c in (*claims(), *reference_claims())
        ]
        return [_table(("claim", "states", "source"), rows)]


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Any:
    table, group = nodes.table(), nodes.tgroup(cols=len(head))
    table += group
    for _ in head:
        group += nodes.colspec(colwidth=1)
    top, body = nodes.thead(), nodes.tbody()
    group += top
    group += body
    top += _row([nodes.Text(text) for text in head])
    for row in rows:
        body += _row(list(row))
    return table


def _row(cells: list[Any]) -> Any:
    row = nodes.row()
    for cell in cells:
        paragraph = nodes.paragraph()
        paragraph += cell
        entry = nodes.entry()
        entry += paragraph
        row += entry
    return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Register directives and the writer of formulas."""
    app.add_directive("equations", Equations)
    app.add_directive("symbols", Symbols)
    app.add_directive("claims", Claims)
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
