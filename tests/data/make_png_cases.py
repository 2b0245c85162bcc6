#!/usr/bin/env python3
"""Writes png_cases.txt: PNG files of every kind, made here from known pixels, with those pixels.

Each case is three lines: name, dtype and shape; the file in hex; the pixels as [channels, height,
width] in hex, 16-bit samples with the low byte first. An encoder of its own, on zlib alone: every
filter, both interlacings, several IDAT chunks.
"""

import pathlib
import random
import struct
import zlib

ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]}
NAMES = {0: "gray", 2: "rgb", 3: "palette", 4: "gray_alpha", 6: "rgba"}


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def pack(samples: list[int], depth: int) -> bytes:
    if depth == 16:
        return b"".join(struct.pack(">H", s) for s in samples)
    bits = "".join(format(s, f"0{depth}b") for s in samples)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def predictor(kind: int, a: int, b: int, c: int) -> int:
    if kind == 4:
        return min((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c))[2]
    return [0, a, b, (a + b) // 2][kind]


def filtered(row: bytes, above: bytes, step: int, kind: int) -> bytes:
    out = bytearray([kind])
    for i, value in enumerate(row):
        left = row[i - step] if i >= step else 0
        corner = above[i - step] if i >= step else 0
        out.append((value - predictor(kind, left, above[i], corner)) % 256)
    return bytes(out)


def encode(pixels, depth, colour, interlaced, extra=b"", kinds=(0, 1, 2, 3, 4)) -> bytes:
    height, width = len(pixels), len(pixels[0])
    step = max(1, SAMPLES[colour] * depth // 8)
    stream, row_number = b"", 0
    for x0, y0, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        if x0 >= width:
            continue
        above = None
        for y in range(y0, height, dy):
            row = pack([s for x in range(x0, width, dx) for s in pixels[y][x]], depth)
            above = bytes(len(row)) if above is None else above
            stream += filtered(row, above, step, kinds[row_number % len(kinds)])
            above, row_number = row, row_number + 1
    data = zlib.compress(stream, 9)
    cut = len(data) // 3
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    parts = [data[:cut], b"", data[cut : 2 * cut], data[2 * cut :]]
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"tEXt", b"Comment\0a chunk to be skipped")
        + extra
        + b"".join(chunk(b"IDAT", part) for part in parts)
        + chunk(b"tEXt", b"Comment\0another")
        + chunk(b"IEND", b"")
    )


def planar(pixels, depth) -> bytes:
    out = b""
    for c in range(len(pixels[0][0])):
        for row in pixels:
            for pixel in row:
                out += struct.pack("<H", pixel[c]) if depth == 16 else bytes([pixel[c]])
    return out


def random_image(rng, width, height, samples, most):
    # Partly smooth, so that filters and matches apply.
    return [
        [tuple((x * 3 + y * 5 + c + rng.choice([0, 0, 0, rng.randrange(most)])) % most for c in range(samples))
         for x in range(width)]
        for y in range(height)
    ]


def case(rng, colour, depth, interlaced, width, height, transparent=False):
    palette_size = min(1 << depth, 20)
    most = palette_size if colour == 3 else 1 << depth
    raw = random_image(rng, width, height, SAMPLES[colour], most)
    extra, shown = b"", raw
    if depth < 8 and colour == 0:
        shown = [[(p[0] * 255 // ((1 << depth) - 1),) for p in row] for row in raw]
    if colour == 3:
        palette = [tuple(rng.randrange(256) for _ in range(3)) for _ in range(palette_size)]
        alpha = [rng.randrange(256) for _ in range(palette_size - 1)] if transparent else []
        extra = chunk(b"PLTE", b"".join(bytes(p) for p in palette))
        extra += chunk(b"tRNS", bytes(alpha)) if transparent else b""
        full = [p + ((alpha + [255])[i],) if transparent else p for i, p in enumerate(palette)]
        shown = [[full[p[0]] for p in row] for row in raw]
    elif transparent:
        key = raw[1][2]
        extra = chunk(b"tRNS", b"".join(struct.pack(">H", s) for s in key))
        opaque = 65535 if depth == 16 else 255
        shown = [[s + (0 if p == key else opaque,) for p, s in zip(row, line)] for row, line in zip(raw, shown)]
    name = f"{NAMES[colour]}_{depth}{'_adam7' if interlaced else ''}{'_trns' if transparent else ''}_{width}x{height}"
    dtype = "uint16" if depth == 16 else "uint8"
    return [f"{name} {dtype} {len(shown[0][0])} {height} {width}", encode(raw, depth, colour, interlaced, extra).hex(),
            planar(shown, depth).hex()]


def main() -> None:
    rng = random.Random(5)
    lines = []
    for colour, depths in DEPTHS.items():
        for depth in depths:
            for interlaced in (False, True):
                lines += case(rng, colour, depth, interlaced, 9, 10 if interlaced else 7)
    for colour, depth in ((0, 4), (0, 16), (2, 8), (2, 16), (3, 4), (3, 8)):
        lines += case(rng, colour, depth, depth == 8, 5, 6, transparent=True)
    # Passes of Adam7 that are empty.
    for width, height in ((1, 1), (1, 9), (3, 2), (5, 1)):
        lines += case(rng, 0, 8, True, width, height) if height > 1 else case(rng, 2, 8, True, width, height)
    path = pathlib.Path(__file__).with_name("png_cases.txt")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
