"""A character map for tests: a double-array trie made by hand."""

import struct


def charsmap(forms: dict[str, str]) -> bytes:
    """The map of `forms`, no key of which begins another; each branch of the trie has a page of 256 units."""
    units = {0: 1 << 8 + 10}  # the root's children are on page 1
    pages = 2
    at_of = {b"": 0}
    texts = b""
    for key, form in forms.items():
        data = key.encode()
        for end in range(1, len(data) + 1):
            if data[:end] in at_of:
                continue
            before = at_of[data[: end - 1]]
            at = before ^ units[before] >> 10 ^ data[end - 1]
            leaf = end == len(data)
            # The next page: its offset turns this place into the page's beginning.
            units[at] = (at ^ pages << 8) << 10 | leaf << 8 | data[end - 1]
            at_of[data[:end]] = at
            if leaf:
                units[pages << 8] = 1 << 31 | len(texts)
            pages += 1
        texts += form.encode() + b"\0"
    trie = b"".join(struct.pack("<I", units.get(at, 0)) for at in range(pages << 8))
    return struct.pack("<I", len(trie)) + trie + texts
