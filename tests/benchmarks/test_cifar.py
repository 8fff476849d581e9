"""CIFAR-10 as its authors publish it, and the networks made for it."""

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import _cifar


def test_cifar_10_is_read_as_its_authors_publish_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACELINE_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match="expected CIFAR-10's folder cifar-10-batches-bin"):
        _cifar.stored()
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    rows = np.random.default_rng(0).integers(0, 256, (6, 2, 3073), dtype=np.uint8)
    rows[..., 0] %= 10
    for name, batch in zip([*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"], rows, strict=True):
        batch.tofile(folder / f"{name}.bin")
    x, y, x_test, y_test = _cifar.cifar10.__wrapped__("cpu")
    assert (len(y), x.shape, y_test.tolist()) == (10, (10, 3, 32, 32), rows[5, :, 0].tolist())
    red = (rows[5, 1, 1:1025].astype(float) / 255 - 0.4914) / 0.2470
    assert np.allclose(x_test[1, 0].flatten().numpy(), red, atol=1e-5)


@pytest.mark.parametrize(("depth", "parameters"), [(20, 269_722), (56, 853_018)])
def test_residual_networks_have_the_published_size(depth: int, parameters: int) -> None:
    model = _cifar.resnet(depth, 0)
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert model.eval()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)
