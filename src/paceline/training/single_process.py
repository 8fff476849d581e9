"""Processes of a launcher: torchrun and the like start a script several times, and each would tune on its own."""

import os

from torch import distributed

from paceline.errors import InputError


def check_single_process(who: str) -> None:
    """Refuse to go on if this is one of several processes that train one model together."""
    count = _process_count()
    if count > 1:
        raise InputError(
            f"{who} works in one process, got {count} (torchrun, accelerate launch or torch.distributed): each would "
            "see other losses and choose other rates. Run the script with `python` on one device. To train on several, "
            "let paceline.tune run in one process, and the training start the others itself (docs/runners.md, "
            "'Several processes or GPUs in one fork'). If this process trains alone, unset WORLD_SIZE"
        )


def _process_count() -> int:
    """The size of torch's process group, or what the launcher has announced."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_world_size()
    announced = os.environ.get("WORLD_SIZE", "")
    return int(announced) if announced.isdecimal() else 1
