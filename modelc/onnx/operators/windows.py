"""Where the windows of convolutions and pooling lie: kernel, strides, dilations, padding, output sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from modelc.onnx.call import Call
from modelc.onnx.values import Array

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
MAX_WINDOW = 1 << 16  # elements of a window, and steps of it


@dataclass(frozen=True, slots=True)
class Windows:
    """One number for each spatial dimension.

    Attributes:
        sizes: of the input.
        kernel: of a window.
        strides: from one window to the next.
        dilations: from one element of a window to the next.
        before, after: padding.
        out: windows.
    """

    sizes: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    out: tuple[int, ...]

    def places(self) -> list[tuple[int, ...]]:
        """The offsets of a window's elements, in order."""
        return list(product(*(range(n) for n in self.kernel)))

    def part(self, offset: Sequence[int]) -> Any:
        """The index of the padded input that takes element `offset` of each window."""
        along = zip(offset, self.dilations, self.out, self.strides, strict=True)
        return (..., *(slice(o * d, o * d + (n - 1) * s + 1, s) for o, d, n, s in along))


def windows(
    call: Call, sizes: Sequence[int], kernel: Sequence[int], ceil: bool = False, dilated: bool = True
) -> Windows:
    """The windows over an input of `sizes`, from the attributes of the node."""
    n = len(sizes)
    strides = call.integers("strides", [1] * n, n)
    dilations = call.integers("dilations", [1] * n, n) if dilated else [1] * n
    pads = call.integers("pads", [0] * (2 * n), 2 * n)
    automatic = call.choice("auto_pad", "NOTSET", AUTO_PADS)
    if min([*strides, *dilations, *kernel]) < 1 or max([*strides, *dilations, *kernel, *map(abs, pads)]) > MAX_WINDOW:
        raise call.fail("kernel, strides, dilations or pads are out of range", got=f"{kernel} {strides} {dilations}")
    if min(pads) < 0:
        raise call.unsupported("negative padding", got=pads)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    before, after, out = pads[:n], pads[n:], []
    for i in range(n):
        if automatic.startswith("SAME"):
            count = -(-sizes[i] // strides[i])
            total = max((count - 1) * strides[i] + reach[i] - sizes[i], 0)
            before[i] = total // 2 if automatic == "SAME_UPPER" else total - total // 2
            after[i] = total - before[i]
        elif automatic == "VALID":
            before[i] = after[i] = 0
        span = sizes[i] + before[i] + after[i] - reach[i]
        count = (-(-span // strides[i]) if ceil else span // strides[i]) + 1
        if ceil and (count - 1) * strides[i] >= sizes[i] + before[i]:
            count -= 1  # a window that would begin in the padding behind
        out.append(count)
    if min(out) < 0:
        raise call.fail("the kernel is larger than its input", got=reach, expected=f"at most {list(sizes)} and padding")
    return Windows(*map(tuple, (sizes, kernel, strides, dilations, before, after, out)))


def spatial(call: Call, x: Array) -> tuple[int, ...]:
    """Sizes after batch and channels."""
    if x.ndim < 3:
        raise call.fail("too few dimensions", got=list(x.shape), expected="batch, channels, and at least one more")
    return x.shape[2:]
