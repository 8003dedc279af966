"""Memory that was touched once is kept: batches are of one size, and the next one fills the pages of the last.

By default glibc and Arrow's allocator hand freed memory back, and each batch then pays for its pages again: on virtual
machines 3 to 5 µs a record, more than decoding it (measured: +10 to 15 % throughput without). What is kept is bounded,
since what is buffered and under way is.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

_LARGEST: Final = 32 << 20
"""Bytes; the most that glibc takes for the second of them."""


def keep_memory() -> None:
    """Have both allocators keep what they have got; to be called before pyarrow is imported."""
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "-1")
    with suppress(AttributeError, OSError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGEST)
