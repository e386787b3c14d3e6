from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet as pq
import pytest

from fog.errors import UserError
from fog.records.ledger import Ledger, fingerprint
from fog.records.tables import CsvTable, ProbeTable


def test_rows_survive_without_closing_and_floats_are_exact(tmp_path: Path) -> None:
    table = CsvTable(tmp_path / "t.csv", ("env_step", "x", "note"), Ledger(tmp_path))
    table.append({"env_step": 1, "x": 0.1 + 0.2})
    table.append({"env_step": 2, "x": np.float32(0.1), "note": "a,b"})
    frame = pd.read_csv(tmp_path / "t.csv")
    assert list(frame["x"]) == [0.1 + 0.2, float(np.float32(0.1))]
    assert frame["note"].iloc[1] == "a,b"
    with pytest.raises(ValueError, match="no column"):
        table.append({"y": 1})


def test_truncating_forgets_later_rows_only(tmp_path: Path) -> None:
    path, ledger = tmp_path / "evals.csv", Ledger(tmp_path)
    table = CsvTable(path, ("env_step",), ledger)
    table.append({"env_step": 1})
    known = ledger.sync()
    table.append({"env_step": 2})
    table.close()
    again = Ledger(tmp_path)
    again.restore({"tables": known, "env_step": 1})
    again.truncate(1)
    CsvTable(path, ("env_step",), again).append({"env_step": 3})
    assert list(pd.read_csv(path)["env_step"]) == [1, 3]
    # The running checksum is that of the file, over the resume too.
    assert again.sync()["evals.csv"] == fingerprint(path, 1000)


def test_probe_tables_are_read_by_pandas_alone(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    table = ProbeTable(tmp_path / "probes", "scores", ledger)
    home = tmp_path / "probes" / "scores"
    table.write(10, {"layer": ["a", "b"], "neurons": np.ones((2, 3), np.float32)})
    table.write(10, {"layer": ["c"], "neurons": np.zeros((1, 4), np.float32)})
    known = ledger.sync()
    table.write(20, {"layer": ["d"], "neurons": np.zeros((1, 4), np.float32)})
    frame = pd.concat(pd.read_parquet(path) for path in sorted(home.iterdir()))
    assert list(frame["env_step"]) == [10, 10, 10, 20]
    assert list(frame["layer"]) == list("abcd")
    assert np.array_equal(frame["neurons"].iloc[0], np.ones(3))
    for path in home.iterdir():
        assert ledger.files[f"probes/scores/{path.name}"] == fingerprint(path, 1 << 30)
    # Recorded on the checkpoint's own step, but after it.
    table.write(10, {"layer": ["e"], "neurons": np.zeros((1, 4), np.float32)})
    ledger.restore({"tables": known, "env_step": 10})
    ledger.truncate(10)
    assert sorted(path.name for path in home.iterdir()) == [
        f"{10:012d}-0{k}.parquet" for k in (0, 1)
    ]
    with pytest.raises(ValueError, match="different lengths"):
        table.write(30, {"a": [1], "b": [1, 2]})


def test_parquet_pages_carry_checksums(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=4000).astype(np.float32)
    path = ProbeTable(tmp_path, "scores").write(10, {"x": values})
    raw = bytearray(path.read_bytes())
    unseen = 0
    for at in range(200, 3000, 100):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        try:
            read = pq.ParquetFile(path, page_checksum_verification=True).read()
        except (OSError, pyarrow.ArrowException):
            continue
        unseen += not np.array_equal(read["x"].to_numpy(), values)
    assert unseen == 0


def test_a_table_that_someone_else_touched_ends_the_run(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    table = CsvTable(tmp_path / "evals.csv", ("env_step",), ledger)
    table.append({"env_step": 1})
    ledger.sync()
    with (tmp_path / "evals.csv").open("a") as file:
        file.write("2\n")
    with pytest.raises(UserError, match=r"evals.csv was changed by another program"):
        ledger.sync()
    (tmp_path / "evals.csv").unlink()
    with pytest.raises(UserError, match=r"evals.csv was removed"):
        ledger.sync()
