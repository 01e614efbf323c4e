"""Scenarios of the simulator: columns, sweeps, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import matplotlib
import pytest

import ayre
from ayre import sim

needs_tool = pytest.mark.skipif(shutil.which("ayre") is None, reason="there is no tool `ayre`")


@needs_tool
def test_a_sweep_gives_columns() -> None:
    found = sim.run(nodes=[2, 4], load=[0.1, 0.3], packets=2000, replicas=2)
    assert {len(column) for column in found.values()} == {4}
    assert found["nodes"] == [2.0, 2.0, 4.0, 4.0]
    assert found["load"] == [0.1, 0.3, 0.1, 0.3]
    assert set(found["verdict"]) == {"stable"}
    delays: list[Any] = found["delay_ns"]
    assert 0 < delays[2] < delays[3]
    assert found == sim.run(nodes=[2, 4], load=[0.1, 0.3], packets=2000, replicas=2, threads=1)


@needs_tool
def test_a_file_is_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text("load = 0.5\ntopology = ['star', 'torus']\npackets = 2000\nreplicas = 2\n")
    found = sim.run(file, load=0.2)
    assert found["topology"] == ["star", "torus"]
    assert all(0.15 < load < 0.25 for load in found["offered"])  # type: ignore[operator]
    assert sim.run(topology=["star", "torus"], load=0.2, packets=2000, replicas=2) == found


@needs_tool
def test_a_faulty_scenario_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ayre.InvalidError, match=r"is `load` meant"):
        sim.run(loda=1)
    with pytest.raises(ValueError, match=r"load"):
        sim.run(load="much")
    with pytest.raises(ayre.InvalidError, match=r"nowhere"):
        sim.run(tmp_path / "nowhere.toml")


def test_a_missing_tool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="not on the path"):
        sim.run()


def test_a_result_is_drawn() -> None:
    matplotlib.use("Agg")
    found = ayre.sim.Columns(
        load=[0.1, 0.3, 0.1, 0.3],
        p50_ns=[1.0, 2.0, 3.0, None],
        p99_ns=[5.0, 6.0, 7.0, 8.0],
        nodes=[8.0, 8.0, 16.0, 16.0],
    )
    axes = found.plot("load", "p50_ns", "p99_ns", by="nodes")
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.get_lines()]
    assert drawn == [
        ([0.1, 0.3], [1.0, 2.0]),
        ([0.1], [3.0]),
        ([0.1, 0.3], [5.0, 6.0]),
        ([0.1, 0.3], [7.0, 8.0]),
    ]
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert named[1] == "p50_ns, nodes 16.0"
    again = found.plot("load", "p99_ns", axes=axes)
    assert again is axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("load", "p99_ns")
    for columns in (("load", "none"), ("load",), ("none", "p99_ns")):
        with pytest.raises(ayre.InvalidError):
            found.plot(*columns)
