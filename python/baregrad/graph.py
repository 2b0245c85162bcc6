"""Shows a recorded graph: as a picture, as a table, with the norm of every gradient."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any

from baregrad._core.graph import GradientRecorder, summary, to_dot

__all__ = ["Drawing", "GradientRecorder", "draw", "summary", "to_dot"]


class Drawing:
    """A graph that notebooks display as a picture."""

    def __init__(self, dot: str) -> None:
        self.dot = dot
        """The graph in Graphviz's language."""

    def svg(self) -> str:
        """The picture. Needs Graphviz's program `dot`."""
        program = shutil.which("dot")
        if program is None:
            raise RuntimeError(
                "draw: there is no `dot` on the PATH (Debian's package graphviz has it); "
                "the attribute .dot holds the graph as text"
            )
        made = subprocess.run(
            [program, "-Tsvg"], input=self.dot, capture_output=True, text=True, check=False
        )
        if made.returncode != 0:
            raise RuntimeError(f"draw: dot failed: {made.stderr.strip()}")
        return made.stdout

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<graph of {self.dot.count(chr(10))} lines; .dot and .svg() have it>"


def draw(
    root: Any, names: Any = None, gradients: GradientRecorder | None = None, **options: Any
) -> Drawing:
    """The graph of a tensor as a picture in a notebook. Takes the arguments of to_dot.

    >>> x = bg.tensor(2.0, requires_grad=True)
    >>> bg.graph.draw(x * x).dot.startswith("digraph")
    True
    """
    return Drawing(to_dot(root, names, gradients, **options))
