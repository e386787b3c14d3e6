"""Our kernels compute what torch's operations compute, for every shape, and fail loudly."""

from __future__ import annotations

import itertools
import platform
import shutil
import subprocess
import sys

import pytest
import torch

from fog.fast import kernels, products
from fog.fast.kernels import build

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

# Around the widths of vectors and panels, and the heights of tiles, of every processor.
COLUMNS = (1, 4, 6, 15, 16, 17, 21, 32, 33, 42, 48, 49, 64, 80)
ROWS = (1, 6, 7, 13, 15, 29, 100)
DEPTHS = (1, 5, 16, 17, 88)


@pytest.fixture
def native() -> bool:
    assert kernels.load()
    return True


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def assert_same(got: torch.Tensor, want: torch.Tensor) -> None:
    """`want` in double precision; sums of up to a hundred products in single precision differ."""
    assert got.dtype == torch.float32 and got.is_contiguous()
    torch.testing.assert_close(got.double(), want, rtol=1e-5, atol=1e-4)


def doubles(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [tensor.double() for tensor in tensors]


@needs_compiler
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("relu", [False, True])
def test_dense(native: bool, columns: int, relu: bool) -> None:
    for rows, depth in itertools.product(ROWS, DEPTHS):
        weight, bias = normal(2, depth, columns), normal(2, 1, columns)
        for inputs in (normal(2, rows, depth), normal(rows, depth)):
            got = products.dense(inputs, weight, bias, relu, native)
            want = products.dense(*doubles(inputs, weight, bias), relu, False)
            assert_same(got, want)


@needs_compiler
@pytest.mark.parametrize("columns", COLUMNS)
def test_back(native: bool, columns: int) -> None:
    for rows, depth in itertools.product(ROWS, DEPTHS):
        gradient, weight = normal(3, rows, depth), normal(3, columns, depth)
        gate = normal(3, rows, columns)
        assert_same(
            products.back(gradient, weight, None, native),
            products.back(*doubles(gradient, weight), None, False),
        )
        assert_same(
            products.back(gradient, weight, gate, native),
            products.back(*doubles(gradient, weight, gate), False),
        )


@needs_compiler
@pytest.mark.parametrize("columns", COLUMNS)
def test_weight_gradients(native: bool, columns: int) -> None:
    for rows, depth in itertools.product(ROWS, DEPTHS):
        gradient = normal(2, depth, columns)
        for inputs in (normal(2, depth, rows), normal(depth, rows)):
            got = products.weight_gradients(inputs, gradient, native)
            want = products.weight_gradients(*doubles(inputs, gradient), False)
            for mine, theirs in zip(got, want, strict=True):
                assert_same(mine, theirs)


@needs_compiler
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("columns", [1, 21, 33, 64])
def test_picked_back(native: bool, columns: int, share: float) -> None:
    for rows in ROWS:
        gradient, weight, gate = normal(rows, 17), normal(2, columns, 17), normal(2, rows, columns)
        pick = torch.arange(rows) % 10 < 10 * share
        assert_same(
            products.back_one_twin(gradient, weight, pick, None, native),
            products.back_one_twin(*doubles(gradient, weight), pick, None, False),
        )
        got = products.back_one_twin(gradient, weight, pick, gate, native)
        double_gradient, double_weight, double_gate = doubles(gradient, weight, gate)
        want = products.back_one_twin(double_gradient, double_weight, pick, double_gate, False)
        assert_same(got, want)


@needs_compiler
def test_rows_that_lie_4_kib_apart(native: bool) -> None:
    inputs, weight, bias = normal(2, 20, 1024), normal(2, 1024, 40), normal(2, 1, 40)
    got = products.dense(inputs, weight, bias, False, native)
    want = products.dense(*doubles(inputs, weight, bias), False, False)
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-3)
    gradient = normal(2, 20, 1024)
    got = products.back(gradient, weight.transpose(1, 2).contiguous(), None, native)
    want = products.back(*doubles(gradient, weight.transpose(1, 2)), None, False)
    torch.testing.assert_close(got.double(), want, rtol=1e-4, atol=1e-3)


@needs_compiler
def test_what_lies_between_the_rows_is_not_looked_at(native: bool) -> None:
    """Batches are columns of a wider block, and the action's weights rows of a larger matrix."""
    block = torch.full((20, 50), torch.nan)
    block[:, :17] = normal(20, 17)
    inputs, gradient = block[:, :17], normal(2, 20, 33)
    weight, bias = normal(2, 17, 33), normal(2, 1, 33)
    assert_same(
        products.dense(inputs, weight, bias, True, native),
        products.dense(*doubles(inputs, weight, bias), True, False),
    )
    got = products.weight_gradients(inputs, gradient, native)
    want = products.weight_gradients(*doubles(inputs, gradient), False)
    for mine, theirs in zip(got, want, strict=True):
        assert_same(mine, theirs)
    larger = torch.full((2, 30, 33), torch.nan)
    larger[:, -6:] = normal(2, 6, 33)
    assert_same(
        products.back(gradient, larger[:, -6:], None, native),
        products.back(*doubles(gradient, larger[:, -6:]), None, False),
    )


@needs_compiler
def test_nan_and_infinity_are_not_lost(native: bool) -> None:
    """A diverged agent must be seen to be so: as in torch, NaN passes a ReLU both ways."""
    weight, bias = normal(1, 5, 7), torch.zeros(1, 1, 7)
    inputs = normal(9, 5)
    inputs[4, 2] = torch.nan
    inputs[5, 2] = torch.inf
    result = products.dense(inputs, weight, bias, False, native)[0]
    assert result[5].isinf().all()
    assert result[[*range(4), *range(6, 9)]].isfinite().all()
    positive = products.dense(inputs, weight, bias, True, native)
    assert result[4].isnan().all() and positive[0, 4].isnan().all()
    assert positive[0, 5].isinf().sum() == (result[5] > 0).sum() > 0
    gradient = products.back(normal(1, 9, 6), normal(1, 7, 6), positive, native)
    assert torch.equal(gradient[0] == 0, positive[0] <= 0)


@needs_compiler
def test_the_number_of_threads_changes_no_bit(native: bool) -> None:
    inputs, weight, bias = normal(2, 256, 128), normal(2, 128, 128), normal(2, 1, 128)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(products.dense(inputs, weight, bias, True, native))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(results[0], other) for other in results[1:])


@needs_compiler
def test_what_does_not_fit_is_refused(native: bool) -> None:
    weight, bias = normal(2, 5, 7), normal(2, 1, 7)
    with pytest.raises(RuntimeError, match="sizes"):
        torch.ops.fog.dense(normal(3, 4), weight, bias, False)
    with pytest.raises(RuntimeError, match="float32"):
        torch.ops.fog.dense(normal(3, 5).double(), weight, bias, False)
    with pytest.raises(RuntimeError, match="one piece"):
        torch.ops.fog.dense(normal(5, 3).t(), weight, bias, False)
    with pytest.raises(RuntimeError, match="gate"):
        torch.ops.fog.back(normal(2, 3, 7), weight, normal(2, 3, 6))
    with pytest.raises(RuntimeError, match="sizes"):
        torch.ops.fog.weight_gradients(normal(3, 5), normal(2, 4, 7))
    with pytest.raises(RuntimeError, match="sizes"):
        torch.ops.fog.back_one_twin(normal(3, 7), weight, torch.zeros(4, dtype=torch.bool), None)


@needs_compiler
def test_the_library_is_built_once(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build.library(tmp_path)
    assert [path] == list(tmp_path.iterdir())
    monkeypatch.setattr(build, "_build", lambda *_: pytest.fail("built again"))
    assert build.library(tmp_path) == path


@needs_compiler
def test_another_source_is_another_library(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    monkeypatch.setattr(build, "_build", lambda compiler, path: built.append(path))
    build.library(tmp_path)
    for changed in ("products.cpp", "multiply.h"):
        copy = tmp_path / changed.replace(".", "-")
        shutil.copytree(build.SOURCE.parent, copy)
        (copy / changed).write_text((copy / changed).read_text() + "// changed\n")
        with monkeypatch.context() as context:
            context.setattr(build, "SOURCE", copy / "products.cpp")
            build.library(tmp_path)
    assert len(set(built)) == 3


def test_without_a_compiler_torch_serves_and_a_warning_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.warns(UserWarning, match="no-such-compiler not found"):
        assert not kernels.load.__wrapped__()


@needs_compiler
def test_what_the_compiler_says_is_passed_on(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "wrong.cpp"
    wrong.write_text("int main() { return nonsense; }\n")
    (tmp_path / "multiply.h").touch()
    monkeypatch.setattr(build, "SOURCE", wrong)
    with pytest.raises(build.BuildError, match="nonsense"):
        build.library(tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.slow
@needs_compiler
@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs an x86 processor")
@pytest.mark.parametrize("processor", ["x86-64-v2", "x86-64-v3"])
def test_older_processors(processor: str) -> None:
    """Registers of four and of eight numbers: the tests of this file in a process of its own."""
    script = (
        "import sys, pytest; from fog.fast.kernels import build; "
        f"build._FLAGS = (*build._FLAGS, '-march={processor}'); "
        f"sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', {__file__!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
