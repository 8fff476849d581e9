"""An optimiser whose step can be recorded: rates and step counts on the device, state that keeps its place in memory.

What is saved is in the form that the optimiser itself would write, so that any runner can go on from it.
"""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Optimizer

from paceline.errors import TrainingError


class CapturableOptimizer:
    """Makes an optimiser's step recordable, in place.

    Adam and its kin have a switch for it (`capturable`); SGD reads a rate from the device in its fused form only.

    Args:
        optimizer: any torch optimiser; whether its step can be recorded shows when it is.
        device: where its parameters are.
    """

    def __init__(self, optimizer: Optimizer, device: torch.device) -> None:
        self.optimizer = optimizer
        self._plain = [{k: v for k, v in group.items() if k != "params"} for group in optimizer.param_groups]
        for group in optimizer.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=device)
            if device.type != "cuda":
                group["foreach"] = False  # on the host, a rate that is a tensor is taken one parameter at a time
            elif "capturable" in group:
                group["capturable"] = True
            elif isinstance(optimizer, SGD):
                group["fused"], group["foreach"] = True, False
        for parameter, state in optimizer.state.items():  # of a training that does not begin from nothing
            if _is_tensor(state.get("step")):
                state["step"] = state["step"].to(parameter.device)
        self.rates: list[Tensor] = [group["lr"] for group in optimizer.param_groups]
        self._places: dict[Tensor, dict[str, Any]] = {}

    @property
    def begun(self) -> bool:
        """Whether the optimiser has state of its own: torch's make it in their first step."""
        return bool(self.optimizer.state)

    def tensors(self) -> list[Tensor]:
        """The optimiser's state, as far as it is tensors."""
        return [value for state in self.optimizer.state.values() for value in state.values() if _is_tensor(value)]

    def keep_places(self) -> None:
        """From now on the state stays where it is in memory."""
        self._places = dict(self.optimizer.state)

    def forget(self) -> None:
        """Be as new; the next step must not be a recorded one, and `recall` must follow it."""
        self.optimizer.state = defaultdict(dict)

    def recall(self) -> None:
        """Move the state, made anew after `forget`, to where it was in memory."""
        made, self.optimizer.state = self.optimizer.state, defaultdict(dict, self._places)
        for parameter, state in made.items():
            _copy(self._place(parameter), state)

    def match(self, other: "CapturableOptimizer") -> None:
        """Have state where another one has it, to be copied."""
        self.optimizer.state = defaultdict(dict, self._places if other.begun else {})

    def state_dict(self) -> dict[str, Any]:
        """What the optimiser would have written if nothing had been done to it."""
        state = self.optimizer.state_dict()
        groups = [{**plain, "params": g["params"]} for plain, g in zip(self._plain, state["param_groups"], strict=True)]
        on_host = {i for g in groups if not (g.get("capturable") or g.get("fused")) for i in g["params"]}
        per_parameter = {
            i: {k: v.cpu() if k == "step" and i in on_host and _is_tensor(v) else v for k, v in values.items()}
            for i, values in state["state"].items()
        }
        return {"state": per_parameter, "param_groups": groups}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy a state to where the present one is; one without any is as new."""
        if not state["state"]:
            self.forget()
            return
        self.optimizer.state = defaultdict(dict, self._places)
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for index, values in state["state"].items():
            _copy(self._place(parameters[index]), values)

    def _place(self, parameter: Tensor) -> dict[str, Any]:
        if parameter not in self._places:
            raise TrainingError(
                f"the optimiser has a state for a parameter of shape {tuple(parameter.shape)} that got no gradient "
                "when the step was recorded: go on with runner='local', parameters that join later cannot be replayed"
            )
        return self._places[parameter]


def _copy(target: dict[str, Any], source: dict[str, Any]) -> None:
    for name, value in source.items():
        if _is_tensor(value) and _is_tensor(target[name]):
            target[name].copy_(value)
        else:
            target[name] = value


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)
