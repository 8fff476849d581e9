"""Batches from data that lies on the device: what is random about a pass is drawn before it begins.

A batch is then a function of one row of a table: which rows of the data, how far each image is shifted, whether it is
mirrored. So it can be gathered inside a captured step, with nothing read from or written to the host, and a run can be
continued in the middle of a pass without going through what was before.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from paceline.errors import InputError


class DeviceBatches:
    """Random batches of rows of tensors, in a new order for each pass; rows left over at its end are left out.

    Args:
        tensors: data with the same number of rows, on one device: images and labels, say.
        size: rows in a batch.
        shuffle: whether each pass has an order of its own.
        crop: pixels by which images, the first tensor (n, channels, height, width), are shifted at random at most, with
            zeros outside.
        flip: whether images are mirrored at random, left to right.
        transform: transform(batch) -> batch, after all that; on the device, and with no look at values on the host.

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
        rows = [len(tensor) for tensor in tensors]
        if not tensors or len(set(rows)) > 1 or len({tensor.device for tensor in tensors}) > 1:
            where = ", ".join(f"{len(tensor)} on {tensor.device}" for tensor in tensors) or "none"
            raise InputError(f"tensors must have the same number of rows on the same device, got {where}")
        if not 1 <= size <= rows[0]:
            raise InputError(f"size must lie in 1..{rows[0]}, the rows there are, got {size}")
        if crop < 0:
            raise InputError(
                f"crop must not be negative, got {crop}: it is the pixels that images are shifted by at most"
            )
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
        """Where the data lies."""
        return self.tensors[0].device

    def __len__(self) -> int:
        return len(self.tensors[0]) // self.size

    def __iter__(self) -> Iterator[Any]:
        return self.passing()

    def passing(self, position: int = 0) -> Iterator[Any]:
        """One pass, from the batch at `position` on; what is random about it is drawn at once."""
        table = self.draw().to(self.device)
        return (self.batch(table[i]) for i in range(position, len(self)))

    def draw(self) -> Tensor:
        """All that is random about a pass, with torch's generator: (batches, 1 or 4, size), on the host.

        Per batch, the rows of the data; then, where images are cropped or flipped, offsets of the crop from the top and
        from the left, and whether to mirror.
        """
        count = len(self) * self.size
        columns = [torch.randperm(len(self.tensors[0]))[:count] if self.shuffle else torch.arange(count)]
        if self.crop or self.flip:
            columns += [torch.randint(2 * self.crop + 1, (count,)) for _ in range(2)]
            columns.append(torch.randint(2, (count,)) if self.flip else torch.zeros(count, dtype=torch.long))
        return torch.stack(columns).view(len(columns), len(self), self.size).transpose(0, 1).contiguous()

    def batch(self, row: Tensor) -> Any:
        """The batch that one row of the table, (1 or 4, size), stands for."""
        index = row[0]
        first = self._images(row) if self.crop or self.flip else self.tensors[0].index_select(0, index)
        batch = (first, *(tensor.index_select(0, index) for tensor in self.tensors[1:]))
        return batch if self.transform is None else self.transform(batch)

    def _images(self, row: Tensor) -> Tensor:
        """Cropped and mirrored images: pixel (i, j) is taken from (top + i, left + j or its mirror image)."""
        index, top, left, mirrored = row
        down, across = top[:, None] + self._rows, left[:, None] + self._columns[mirrored]
        return self.tensors[0][
            index[:, None, None, None], self._channels, down[:, None, :, None], across[:, None, None, :]
        ]
