from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fog.tables import CsvTable, ProbeTable, truncate, truncate_probe_tables


def test_rows_survive_without_closing_and_floats_are_exact(tmp_path: Path) -> None:
    table = CsvTable(tmp_path / "t.csv", ("env_step", "x", "note"))
    table.append({"env_step": 1, "x": 0.1 + 0.2})
    table.append({"env_step": 2, "x": np.float32(0.1), "note": "a,b"})
    frame = pd.read_csv(tmp_path / "t.csv")
    assert list(frame["x"]) == [0.1 + 0.2, float(np.float32(0.1))]
    assert frame["note"].iloc[1] == "a,b"
    with pytest.raises(ValueError, match="no column"):
        table.append({"y": 1})


def test_truncating_forgets_later_rows_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    table = CsvTable(path, ("env_step",))
    table.append({"env_step": 1})
    size = path.stat().st_size
    table.append({"env_step": 2})
    table.close()
    truncate(path, size)
    CsvTable(path, ("env_step",)).append({"env_step": 3})
    assert list(pd.read_csv(path)["env_step"]) == [1, 3]


def test_probe_tables_are_read_by_pandas_alone(tmp_path: Path) -> None:
    table = ProbeTable(tmp_path, "scores")
    table.write(10, {"layer": ["a", "b"], "neurons": np.ones((2, 3), np.float32)})
    table.write(10, {"layer": ["c"], "neurons": np.zeros((1, 4), np.float32)})
    table.write(20, {"layer": ["d"], "neurons": np.zeros((1, 4), np.float32)})
    frame = pd.concat(pd.read_parquet(path) for path in sorted((tmp_path / "scores").iterdir()))
    assert list(frame["env_step"]) == [10, 10, 10, 20]
    assert list(frame["layer"]) == list("abcd")
    assert np.array_equal(frame["neurons"].iloc[0], np.ones(3))
    truncate_probe_tables(tmp_path, 10)
    assert {path.name[:12] for path in (tmp_path / "scores").iterdir()} == {f"{10:012d}"}
    with pytest.raises(ValueError, match="different lengths"):
        table.write(30, {"a": [1], "b": [1, 2]})
