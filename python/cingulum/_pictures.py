"""What notebooks show: tables and pictures as HTML, without any further package."""

from __future__ import annotations

import base64
import html
import struct
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

# Segments that are drawn at most: more of them change no picture of this size, and cost time.
_MOST_SEGMENTS = 300_000
_PIXELS = 180


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of texts."""
    line = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{line}</tr></thead><tbody>{body}</tbody></table>"


def png(image: npt.NDArray[np.uint8]) -> bytes:
    """A picture of shape (rows, columns) or (rows, columns, 3) as a PNG file."""
    rows, columns = image.shape[:2]
    colour_type = 2 if image.ndim == 3 else 0

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each row begins with the number of its filter: none.
    lines = np.zeros((rows, 1 + columns * (3 if colour_type else 1)), np.uint8)
    lines[:, 1:] = image.reshape(rows, -1)
    head = struct.pack(">IIBBBBB", columns, rows, 8, colour_type, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def picture(image: npt.NDArray[np.uint8], caption: str) -> str:
    """A picture with a line below, as HTML."""
    data = base64.b64encode(png(image)).decode("ascii")
    return (
        f"<figure style='display:inline-block;margin:4px;text-align:center'><img style='background:#000' "
        f"src='data:image/png;base64,{data}'/><figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def views(positions: npt.NDArray[np.floating], offsets: npt.NDArray[np.uint64]) -> str:
    """Streamlines from three sides, coloured by direction."""
    if len(positions) < 2:
        return ""
    step = max(1, len(positions) // _MOST_SEGMENTS)
    # Segments join points that follow one another: the last of a streamline begins no segment.
    chosen = np.arange(0, len(positions) - 1, step)
    is_last = np.zeros(len(positions), bool)
    ends = offsets[1:].astype(np.int64) - 1
    is_last[ends[ends >= 0]] = True
    chosen = chosen[~is_last[chosen]]
    if len(chosen) == 0:
        return ""
    first = positions[chosen].astype(np.float32)
    along = positions[chosen + 1].astype(np.float32) - first
    middle = first + along / 2
    length = np.linalg.norm(along, axis=1, keepdims=True)
    colour = np.abs(along) / np.maximum(length, 1e-12)
    low, high = middle.min(axis=0), middle.max(axis=0)
    scale = (_PIXELS - 1) / max(float((high - low).max()), 1e-6)
    pictures = []
    for across, up, name in ((0, 1, "from above"), (0, 2, "from the front"), (1, 2, "from the side")):
        columns = int((high - low)[across] * scale) + 1
        rows = int((high - low)[up] * scale) + 1
        x = ((middle[:, across] - low[across]) * scale).astype(np.int64)
        y = rows - 1 - ((middle[:, up] - low[up]) * scale).astype(np.int64)
        place = y * columns + x
        count = np.bincount(place, minlength=rows * columns)
        sums = np.stack([np.bincount(place, colour[:, i], rows * columns) for i in range(3)], axis=1)
        mean = sums / np.maximum(count, 1)[:, None]
        bright = np.log1p(count) / np.log1p(max(int(count.max()), 1))
        image = (255 * np.clip(mean * (0.25 + 0.75 * bright)[:, None], 0, 1) * (count > 0)[:, None]).astype(np.uint8)
        pictures.append(picture(image.reshape(rows, columns, 3), name))
    return "".join(pictures)


def bars(values: npt.NDArray[np.float64], unit: str) -> str:
    """How values are spread, as a drawing of 24 bars."""
    counts, edges = np.histogram(values, bins=24)
    tallest = max(int(counts.max()), 1)
    drawn = "".join(
        f"<rect x='{10 * i}' y='{60 - 60 * count / tallest:.1f}' width='9' height='{60 * count / tallest:.1f}' fill='#58a'/>"
        for i, count in enumerate(counts)
    )
    ends = f"<text x='0' y='74' font-size='10'>{edges[0]:.0f}</text>"
    ends += f"<text x='240' y='74' font-size='10' text-anchor='end'>{edges[-1]:.0f} {html.escape(unit)}</text>"
    return f"<svg width='240' height='78' fill='currentColor'>{drawn}{ends}</svg>"


def slices(volume: npt.NDArray[np.floating], name: str) -> str:
    """The three slices through the middle of a map, from its 1st to its 99th percentile."""
    values = volume[np.isfinite(volume) & (volume != 0)]
    low, high = (float(one) for one in np.percentile(values, [1, 99])) if len(values) else (0.0, 1.0)
    low = min(low, 0.0)
    shown = np.clip((np.nan_to_num(volume) - low) / max(high - low, 1e-12), 0, 1)
    repeat = max(1, _PIXELS // max(volume.shape[:3]))
    pictures = []
    for axis, side in ((2, "axial"), (1, "coronal"), (0, "sagittal")):
        plane = np.take(shown, volume.shape[axis] // 2, axis=axis)
        turned = (255 * plane.swapaxes(0, 1)[::-1]).astype(np.uint8)
        large = turned.repeat(repeat, axis=0).repeat(repeat, axis=1)
        pictures.append(picture(np.ascontiguousarray(large), f"{name}, {side}"))
    return "".join(pictures)
