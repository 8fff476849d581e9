"""Typed wrappers of linear algebra, and the number of threads."""

import numpy as np
import pytest
import torch

from paceline.model.linalg import (
    MUCH_WORK,
    eigenvectors,
    few_threads,
    log_normal_cdf,
    lower_solve,
    normal_cdf,
    normal_quantile,
    solve,
    tensor,
    try_cholesky,
)

A = torch.tensor([[2.0, 0.5], [0.5, 1.0]]).double()


def test_factors_and_solutions() -> None:
    factor = try_cholesky(A)
    assert factor is not None
    torch.testing.assert_close(factor @ factor.mT, A)
    torch.testing.assert_close(factor @ lower_solve(factor, A), A)
    torch.testing.assert_close(A @ solve(A, torch.eye(2).double()), torch.eye(2).double())
    values, vectors = eigenvectors(A)
    torch.testing.assert_close(vectors @ torch.diag(values) @ vectors.mT, A)
    assert try_cholesky(-A) is None


def test_tensors_are_copies_in_double_precision() -> None:
    array = np.array([1, 2])
    copy = tensor(array)
    array[0] = 9
    assert (copy.dtype, copy.tolist()) == (torch.float64, [1.0, 2.0])


def test_normal_distribution() -> None:
    x = torch.tensor([-40.0, 0.0, 1.0]).double()
    assert normal_cdf(x)[1:].tolist() == pytest.approx([0.5, 0.8413447])
    assert float(log_normal_cdf(x)[0]) == pytest.approx(-804.6084, rel=1e-6)
    assert normal_quantile(0.8413447) == pytest.approx(1.0, abs=1e-6)


def test_small_work_uses_one_thread_and_restores_the_number() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with few_threads():
            assert torch.get_num_threads() == 1
        with few_threads(work=MUCH_WORK):
            assert torch.get_num_threads() == 2
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
