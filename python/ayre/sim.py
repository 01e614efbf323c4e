"""Networks in simulated time, by the tool `ayre`.

    import ayre.sim
    import pandas

    found = ayre.sim.run(nodes=8, load=[0.1, 0.3, 0.5])
    found.plot("load", "p50_ns", "p99_ns")  # with matplotlib
    pandas.DataFrame(found)

The tool has to be on the path.
"""

from __future__ import annotations

import csv
import os
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any, Union

from ._errors import InvalidError

Value = Union[str, int, float]


class Columns(dict[str, list[Union[str, float, None]]]):
    """The columns of a result by their names: a dict, of which pandas and polars make a frame."""

    def plot(self, x: str, *y: str, by: str | None = None, axes: Any = None) -> Any:
        """Draw curves over the column `x`: one for each column of `y`.

        With `by` each has a curve for each value of that column. Points without a value are left
        out. Gives the axes of matplotlib, `axes` or new ones; only this method needs matplotlib.
        Raises InvalidError for a column that is not there.
        """
        for name in (x, *y, *(() if by is None else (by,))):
            if name not in self:
                raise InvalidError(f"the result has no column {name!r}: {', '.join(self)}")
        if not y:
            raise InvalidError("name at least one column to draw over the other one")
        if axes is None:
            from matplotlib import pyplot

            axes = pyplot.subplots()[1]
        groups = [None] if by is None else list(dict.fromkeys(self[by]))
        for name in y:
            for group in groups:
                label = name if by is None else f"{name}, {by} {group}"
                axes.plot(*self._curve(x, name, by, group), marker="o", label=label)
        axes.set_xlabel(x)
        if len(y) == 1:
            axes.set_ylabel(y[0])
        if len(y) * len(groups) > 1:
            axes.legend()
        return axes

    def _curve(
        self, x: str, y: str, by: str | None, group: str | float | None
    ) -> tuple[list[Any], list[Any]]:
        rows = zip(self[x], self[y], self[x] if by is None else self[by])
        points = [
            (across, up)
            for across, up, key in rows
            if across is not None and up is not None and (by is None or key == group)
        ]
        return [across for across, _ in points], [up for _, up in points]


_FAULTY = 2
"""The tool's exit status for a faulty scenario."""
_NOT_CARRIED = 3
"""The tool's exit status if a network does not carry the load: the column `verdict` says so."""


def run(
    scenario: str | os.PathLike[str] | None = None,
    *,
    threads: int | None = None,
    **parameters: Value | Sequence[Value],
) -> Columns:
    """Run a scenario, and give its results as columns, which pandas and polars make a frame of.

    `scenario` is a TOML file of parameters, as `ayre sim list` names them; `parameters` take the
    place of those in the file. Each combination of values in lists is a point: a row of the result.
    Columns with `_ns` are in nanoseconds. A column has None where it does not apply to a point.
    `verdict` is not "stable" where the network does not carry the load. The results do not depend
    on `threads`.

    Blocks until all points are done. Raises InvalidError for a faulty scenario, and a
    FileNotFoundError without the tool.
    """
    with tempfile.TemporaryDirectory() as folder:
        table = os.path.join(folder, "points.csv")
        command = ["ayre", "sim", "sweep", *([] if scenario is None else [os.fspath(scenario)])]
        command += [f"{name}={_text(value)}" for name, value in parameters.items()]
        command += ["--csv", table, *([] if threads is None else ["--threads", str(threads)])]
        try:
            ended = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError as error:
            what = "the tool `ayre` is not on the path: `make install` puts it there"
            raise FileNotFoundError(error.errno, what) from None
        if ended.returncode == _FAULTY:
            raise InvalidError(ended.stderr.strip())
        if ended.returncode not in (0, _NOT_CARRIED):
            raise subprocess.CalledProcessError(
                ended.returncode, command, ended.stdout, ended.stderr
            )
        with open(table, newline="") as file:
            rows = list(csv.reader(file))
    found = {name: [_value(row[at]) for row in rows[1:]] for at, name in enumerate(rows[0])}
    return Columns(found)


def _text(value: Value | Sequence[Value]) -> str:
    """Write a value as the tool reads it: several between brackets."""
    if isinstance(value, (str, int, float)):
        return str(value)
    return f"[{', '.join(_quoted(one) for one in value)}]"


def _quoted(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _value(text: str) -> str | float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text
