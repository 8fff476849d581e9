"""Random batches of data that is on the device already.

All random numbers of an epoch are drawn before it begins, into a table with one row per batch: which rows of the data
it takes, how far each image is shifted, whether it is mirrored. Gathering a batch is then a function of one table row.
It runs inside a recorded step without touching the host, and a run can resume in the middle of an epoch without going
through the earlier batches.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from paceline.errors import InputError


class DeviceBatches:
    """Random batches of rows of tensors, in a new order each epoch. The last rows are dropped if they fill no batch.

    Args:
        tensors: data with the same number of rows, on one device: images and labels, for example.
        size: rows per batch.
        shuffle: whether to draw a new order each epoch.
        crop: shift images at random by up to this many pixels, with zeros outside. Images are the first tensor, of
            shape (n, channels, height, width).
        flip: whether to mirror images at random, left to right.
        transform: transform(batch) -> batch, applied last. It must stay on the device and read no values on the host.

    >>> batches = DeviceBatches(torch.arange(10.0), torch.arange(10), size=4)
    >>> [len(labels) for values, labels in batches]
    [4, 4]
    """

    def __init__(
        self,
        *tensors: Tensor,
        size: int,
        shuffle: bool = True,
        crop: int = 0,
        flip: bool = False,
        transform: "Callable[[tuple[Tensor, ...]], Any] | None" = None,
    ) -> None:
        counts = [len(tensor) for tensor in tensors]
        if not tensors or len(set(counts)) > 1 or len({tensor.device for tensor in tensors}) > 1:
            given = ", ".join(f"{len(tensor)} on {tensor.device}" for tensor in tensors) or "none"
            raise InputError(f"tensors must have the same number of rows on the same device, got {given}")
        if not 1 <= size <= counts[0]:
            raise InputError(f"size must lie in 1..{counts[0]}, the number of rows, got {size}")
        if crop < 0:
            raise InputError(f"crop must not be negative, got {crop}: it is the largest shift of an image, in pixels")
        if (crop or flip) and tensors[0].ndim != 4:
            shape = tuple(tensors[0].shape)
            raise InputError(f"crop and flip need images (n, channels, height, width) as the first tensor, got {shape}")
        self.size, self.shuffle, self.crop, self.flip, self.transform = size, shuffle, crop, flip, transform
        self.tensors = (nn.functional.pad(tensors[0], (crop,) * 4), *tensors[1:]) if crop else tensors
        if crop or flip:
            channels, rows, columns = (torch.arange(n, device=self.device) for n in tensors[0].shape[1:])
            self._channels, self._rows = channels[:, None, None], rows
            self._columns = torch.stack([columns, columns.flip(0)])  # plain, mirrored

    @property
    def device(self) -> torch.device:
        """The device of the data."""
        return self.tensors[0].device

    def __len__(self) -> int:
        return len(self.tensors[0]) // self.size

    def __iter__(self) -> Iterator[Any]:
        return self.epoch()

    @property
    def can_enter(self) -> bool:
        """Whether epochs can be entered in the middle."""
        return True

    @property
    def draws_ahead(self) -> bool:
        """Whether random numbers are drawn ahead that cannot be saved: those of an epoch are drawn at its start."""
        return False

    def epoch(self, position: int = 0) -> Iterator[Any]:
        """The batches of an epoch from `position` on. All random numbers of the epoch are drawn at once."""
        table = self.draw_table().to(self.device)
        return (self.gather(table[i]) for i in range(position, len(self)))

    def draw_table(self) -> Tensor:
        """The random numbers of an epoch, from torch's generator: (batches, 1 or 4, size), on the host.

        For each batch: the rows of the data. If images are cropped or flipped, also the offsets of the crop from the
        top and from the left, and whether to mirror.
        """
        count = len(self) * self.size
        columns = [torch.randperm(len(self.tensors[0]))[:count] if self.shuffle else torch.arange(count)]
        if self.crop or self.flip:
            columns += [torch.randint(2 * self.crop + 1, (count,)) for _ in range(2)]
            columns.append(torch.randint(2, (count,)) if self.flip else torch.zeros(count, dtype=torch.long))
        return torch.stack(columns).view(len(columns), len(self), self.size).transpose(0, 1).contiguous()

    def gather(self, row: Tensor) -> Any:
        """The batch of one row of the table, (1 or 4, size)."""
        index = row[0]
        first = self._gather_images(row) if self.crop or self.flip else self.tensors[0].index_select(0, index)
        batch = (first, *(tensor.index_select(0, index) for tensor in self.tensors[1:]))
        return batch if self.transform is None else self.transform(batch)

    def _gather_images(self, row: Tensor) -> Tensor:
        """Cropped and mirrored images: pixel (i, j) comes from (top + i, left + j or its mirror image)."""
        index, top, left, mirrored = row
        down, across = top[:, None] + self._rows, left[:, None] + self._columns[mirrored]
        return self.tensors[0][
            index[:, None, None, None], self._channels, down[:, None, :, None], across[:, None, None, :]
        ]
