"""An optimiser whose step can be recorded.

A recording reads and writes fixed places in memory. So rates and step counts are tensors on the device, and the
optimiser's state keeps its place. Checkpoints have the form that the plain optimiser writes, so any runner can continue
from them.
"""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from paceline.errors import TrainingError


class DeviceOptimizer:
    """Prepares an optimiser, in place, so that its step can be recorded.

    Adam and its relatives have a setting for that (`capturable`). SGD reads its rate from the device only in its fused
    form. Whether another optimiser's step can be recorded shows when it is.

    Args:
        optimizer: any torch optimiser.
        device: the device of its parameters.
    """

    def __init__(self, optimizer: Optimizer, device: torch.device) -> None:
        self.optimizer = optimizer
        self._settings = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
            if device.type != "cuda":
                group["foreach"] = False  # on the CPU, foreach accepts no rate that is a tensor
            elif "capturable" in group:
                group["capturable"] = True
            elif isinstance(optimizer, SGD):
                group["fused"], group["foreach"] = True, False
        for parameter, state in optimizer.state.items():  # not empty if the training continues an earlier run
            if _is_tensor(state.get("step")):
                state["step"] = state["step"].to(parameter.device)
        self.rates: list[Tensor] = [group["lr"] for group in optimizer.param_groups]
        self._buffers: dict[Tensor, dict[str, Any]] = {}

    @property
    def has_state(self) -> bool:
        """Whether the optimiser has made its state, which torch's optimisers do in their first step."""
        return bool(self.optimizer.state)

    def state_tensors(self) -> list[Tensor]:
        """The tensors of the optimiser's state."""
        return [value for state in self.optimizer.state.values() for value in state.values() if _is_tensor(value)]

    def fix_buffers(self) -> None:
        """Make the present state tensors the ones that recordings use from now on."""
        self._buffers = dict(self.optimizer.state)

    def clear_state(self) -> None:
        """Drop the state, as in a new optimiser. Run the next step plainly, and call `return_to_buffers` after it."""
        self.optimizer.state = defaultdict(dict)

    def return_to_buffers(self) -> None:
        """Copy the state that the first step after `clear_state` made into the tensors that recordings use."""
        new, self.optimizer.state = self.optimizer.state, defaultdict(dict, self._buffers)
        for parameter, state in new.items():
            _copy(self._buffer(parameter), state)

    def match_state(self, other: "DeviceOptimizer") -> None:
        """Have state if the other optimiser has some, so that it can be copied; else have none."""
        self.optimizer.state = defaultdict(dict, self._buffers if other.has_state else {})

    def state_dict(self) -> dict[str, Any]:
        """The state that the plain optimiser would have written."""
        state = self.optimizer.state_dict()
        groups = [
            {**settings, "params": group["params"]}
            for settings, group in zip(self._settings, state["param_groups"], strict=True)
        ]
        on_host = {i for g in groups if not (g.get("capturable") or g.get("fused")) for i in g["params"]}
        per_parameter = {
            i: {k: v.cpu() if k == "step" and i in on_host and _is_tensor(v) else v for k, v in values.items()}
            for i, values in state["state"].items()
        }
        return {"state": per_parameter, "param_groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy a state into the tensors that recordings use; an empty state clears the present one."""
        if not state["state"]:
            self.clear_state()
            return
        self.optimizer.state = defaultdict(dict, self._buffers)
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for index, values in state["state"].items():
            _copy(self._buffer(parameters[index]), values)

    def _buffer(self, parameter: Tensor) -> dict[str, Any]:
        if parameter not in self._buffers:
            raise TrainingError(
                f"the optimiser has a state for a parameter of shape {tuple(parameter.shape)} that got no gradient "
                "when the step was recorded: continue with runner='local', since a recording has no place for the "
                "state of parameters that join later"
            )
        return self._buffers[parameter]


def _copy(target: dict[str, Any], source: dict[str, Any]) -> None:
    for name, value in source.items():
        if _is_tensor(value) and _is_tensor(target[name]):
            target[name].copy_(value)
        else:
            target[name] = value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)
