"""``gradwire.nn.modules`` has PyTorch's files, and each has the names that programs import from it."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import torch

import gradwire

LEFT_OUT = {
    "_functions": "autograd functions of torch's own, nothing that a program imports",
    "linear_cross_entropy": "how torch computes a loss in chunks",
    "container.Container": "was replaced by Module long ago",
}
PRIVATE = {
    "batchnorm": ["_BatchNorm", "_NormBase"], "conv": ["_ConvNd", "_ConvTransposeNd"], "dropout": ["_DropoutNd"],
    "instancenorm": ["_InstanceNorm"], "linear": ["NonDynamicallyQuantizableLinear"],
    "loss": ["_Loss", "_WeightedLoss"], "module": ["_IncompatibleKeys", "_addindent"], "pooling": ["_MaxPoolNd"],
    "transformer": ["_get_activation_fn", "_get_clones"],
    "utils": ["_ntuple", "_single", "_pair", "_triple", "_quadruple", "_reverse_repeat_tuple", "_list_with_default"],
}  # fmt: skip
FILES = [m.name for m in pkgutil.iter_modules(torch.nn.modules.__path__) if m.name not in LEFT_OUT]


@pytest.mark.parametrize("file", FILES)
def test_a_file_has_pytorchs_names(file) -> None:
    theirs = importlib.import_module(f"torch.nn.modules.{file}")
    ours = importlib.import_module(f"gradwire.nn.modules.{file}")
    wanted = [*getattr(theirs, "__all__", []), *PRIVATE.get(file, [])]
    assert [n for n in wanted if not hasattr(ours, n) and f"{file}.{n}" not in LEFT_OUT] == []
    assert getattr(gradwire.nn.modules, file) is ours


def test_classes_are_those_of_nn() -> None:
    from gradwire.nn.modules import Linear, loss

    assert Linear is gradwire.nn.Linear
    assert loss.CTCLoss is gradwire.nn.CTCLoss
    assert set(torch.nn.modules.__all__) - set(gradwire.nn.modules.__all__) == {"Container"}
    with pytest.raises(AttributeError, match="Lineer"):
        gradwire.nn.modules.Lineer


def test_private_bases_tell_classes_apart_as_pytorchs_do() -> None:
    for lib in (torch, gradwire):
        m = lib.nn.modules
        assert isinstance(lib.nn.BatchNorm2d(3), m.batchnorm._BatchNorm)
        assert not isinstance(lib.nn.InstanceNorm2d(3), m.batchnorm._BatchNorm)
        assert isinstance(lib.nn.InstanceNorm2d(3), m.instancenorm._InstanceNorm)
        assert isinstance(lib.nn.ConvTranspose2d(1, 1, 1), m.conv._ConvNd)
        assert isinstance(lib.nn.BCELoss(), m.loss._WeightedLoss)
        assert not isinstance(lib.nn.MSELoss(), m.loss._WeightedLoss)


@pytest.mark.parametrize("given", [3, (3, 4), [5], "ab"])
def test_tuples_of_numbers(given) -> None:
    for name in ("_single", "_pair", "_triple", "_quadruple"):
        theirs, ours = (getattr(lib.nn.modules.utils, name) for lib in (torch, gradwire))
        assert ours(given) == theirs(given)
        assert ours.__name__ == theirs.__name__


def test_paddings_sizes_and_prefixes() -> None:
    for lib in (torch, gradwire):
        utils = lib.nn.modules.utils
        assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
        assert utils._list_with_default([None, 4], [7, 8, 9]) == [8, 4]
        assert utils._list_with_default(5, [7, 8]) == 5
        with pytest.raises(ValueError, match="dimension"):
            utils._list_with_default([1, 2], [3])
        state = lib.nn.Sequential(lib.nn.Linear(1, 1)).state_dict(prefix="module.")
        utils.consume_prefix_in_state_dict_if_present(state, "module.")
        assert list(state) == ["0.weight", "0.bias"]
        assert lib.nn.modules.module._addindent("a\nb", 3) == "a\n   b"
