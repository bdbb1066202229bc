"""Damages bytes in the ways that files get damaged, and that people who mean harm would think of."""

import re
import struct

NUMBERS = (0, 1, -1, 2, 9, 10, 127, 128, 255, 256, 32767, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 10 ** 12,
           (1 << 63) - 1, -(1 << 63), (1 << 64) - 1)
WORDS = (b'nan', b'inf', b'-1', b'1e999', b'0', b'9' * 40, b'true', b'null', b'""', b'[]', b'{}', b'\\', b'"', b'\0', b',',
         b'\xff\xfe', b'../../x', b'/etc/passwd', '\u00b2'.encode(), b'\n', b'NaN', b'[' * 2000, b'{"a":' * 2000)


def mutated(data, rng, others=()):
    """A damaged copy: one to four changes."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        data = rng.choice(CHANGES)(bytearray(data), rng, others)
    return bytes(data)


def _span(data, rng, most=64):
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.choice([1, 2, 4, 8, rng.randint(1, most)]))


def cut(data, rng, _):
    return data[:rng.randrange(len(data) + 1)]


def lengthen(data, rng, _):
    return data + bytearray(rng.getrandbits(8) for _ in range(rng.randint(1, 100)))


def flip(data, rng, _):
    for _ in range(rng.choice([1, 1, 3, 20])):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def early_flip(data, rng, _):
    """In the first bytes, where headers are."""
    if data:
        data[rng.randrange(min(len(data), 64))] = rng.choice([0, 255, rng.randrange(256)])
    return data


def number(data, rng, _):
    """A number in the place of what is there, as 1 to 8 bytes of either order."""
    packed = struct.pack(rng.choice('<>') + 'Q', rng.choice(NUMBERS) & (1 << 64) - 1)
    size = rng.choice([1, 2, 4, 8])
    packed = packed[:size] if rng.random() < 0.5 else packed[-size:]
    start = rng.randrange(len(data) + 1)
    data[start:start + size] = packed
    return data


def varint(data, rng, _):
    """A number as protobuf writes it."""
    value, out = rng.choice(NUMBERS) & (1 << 64) - 1, bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    start, stop = _span(data, rng, 4)
    data[start:stop] = out
    return data


def digits(data, rng, _):
    """Another number where the text has one."""
    found = list(re.finditer(rb'-?\d+\.?\d*', bytes(data)))
    if found:
        match = rng.choice(found)
        data[match.start():match.end()] = rng.choice([str(rng.choice(NUMBERS)).encode(), rng.choice(WORDS)])
    return data


def word(data, rng, _):
    start, stop = _span(data, rng, 8)
    data[start:stop if rng.random() < 0.5 else start] = rng.choice(WORDS)
    return data


def drop(data, rng, _):
    start, stop = _span(data, rng)
    del data[start:stop]
    return data


def repeat(data, rng, _):
    start, stop = _span(data, rng)
    data[start:start] = data[start:stop] * rng.choice([1, 2, 50])
    return data


def line(data, rng, _):
    """A line of a text doubled, dropped or moved."""
    lines = bytes(data).split(b'\n')
    taken = lines.pop(rng.randrange(len(lines)))
    for _ in range(rng.choice([0, 1, 2])):
        lines.insert(rng.randrange(len(lines) + 1), taken)
    return bytearray(b'\n'.join(lines))


def splice(data, rng, others):
    other = rng.choice(others) if others else b''
    return data[:rng.randrange(len(data) + 1)] + bytearray(other[rng.randrange(len(other) + 1):])


CHANGES = (cut, lengthen, flip, early_flip, number, varint, digits, digits, word, drop, repeat, line, splice)
