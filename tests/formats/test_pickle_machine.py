import os
import pickle
import re
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.formats.pickle_machine import load
from tests.formats.pytorch_builder import name, value

PATH = Path("x.pt")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_back_as_pickle_reads_them(protocol: int) -> None:
    plain = {
        "numbers": [0, 255, 65536, -1, 1 << 40, -(1 << 70), 0.1, True, False, None],
        "text": ["", "é", "x" * 300],
        "tuples": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        "shared": [shared := [1], shared],
        5: {"bytes": b"\0\xff", 1.5: {}},
    }
    if protocol == 2:
        del plain[5]["bytes"]  # protocol 2 makes bytes by a call
    assert load(pickle.dumps(plain, protocol), PATH) == plain
    found = load(pickle.dumps(plain, protocol), PATH)
    assert found["shared"][0] is found["shared"][1]


def test_an_ordered_dictionary_is_a_dictionary() -> None:
    assert load(pickle.dumps(OrderedDict(a=1, b=2), 2), PATH) == {"a": 1, "b": 2}


class Hostile:
    """Asks whoever unpickles it to run a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self._call


@pytest.mark.parametrize("protocol", [0, 1, 2, 4])
@pytest.mark.parametrize(
    ("function", "told"),
    [(os.mkdir, "posix.mkdir"), (eval, "(__builtin__|builtins).eval"), (getattr, "(__builtin__|builtins).getattr")],
)
def test_a_global_is_refused_by_name_and_never_called(tmp_path: Path, protocol: int, function: Any, told: str) -> None:
    made = tmp_path / "made"
    argument = f"__import__('os').mkdir({str(made)!r})" if function is eval else str(made)
    with pytest.raises((UnsupportedError, BadFileError)) as caught:
        load(pickle.dumps({"a": Hostile(function, argument)}, protocol), PATH)
    assert not made.exists()
    if protocol >= 2:
        assert isinstance(caught.value, UnsupportedError)
        assert re.search(rf"made of more than tensors: x\.pt: got {told}, expected tensors", str(caught.value))


# What is wrong -> the message, and the pickle.
HOSTILE: dict[str, tuple[str, bytes]] = {
    "nothing": ("the pickle is damaged", b""),
    "no stop": ("the pickle is damaged: .*got the end of the pickle", b"\x80\x02N"),
    "unknown operation": ("the operation ff", b"\x80\x02\xff."),
    "empty stack": ("an empty stack", b"\x80\x02."),
    "mark for a value": ("an empty stack", b"\x80\x02(."),
    "no mark": ("no mark on the stack", b"\x80\x02t."),
    "call of a number": ("cannot be called: 5", b"\x80\x02" + value(5) + b")R."),
    "call of a mere name": ("cannot be called", b"\x80\x02" + name("torch", "FloatStorage") + b")R."),
    "call without a tuple": ("cannot be called", b"\x80\x02" + name("collections", "OrderedDict") + b"]R."),
    "ordered dictionary of items": (
        "with arguments",
        b"\x80\x02" + name("collections", "OrderedDict") + value(([("a", 1)],)) + b"R.",
    ),
    "state of a list": ("a state for something that is no dictionary", b"\x80\x02]}b."),
    "items of a number": ("items for something that is no dictionary: 3", b"\x80\x02" + value(3) + b"NNs."),
    "odd items": ("no dictionary", b"\x80\x02}(Nu."),
    "appending to a tuple": ("items for something that is no list", b"\x80\x02)Na."),
    "tuple for a key": ("a key that is neither text nor a number", b"\x80\x02}" + value((1,)) + b"Ns."),
    "unknown memo entry": ("an unknown memo entry: 7", b"\x80\x02h\x07."),
    "storage of another form": ("a storage of another form", b"\x80\x02" + value(("storage", 1)) + b"Q."),
    "another persistent object": ("a storage of another form", b"\x80\x02" + value("module") + b"Q."),
    "element type for a storage": (
        "a storage of another form",
        b"\x80\x02(" + value("storage") + name("torch", "float32") + value("0") + value("cpu") + value(1) + b"tQ.",
    ),
    "parameter of a number": (
        "a parameter that is no tensor",
        b"\x80\x02" + name("torch._utils", "_rebuild_parameter") + value((1, True, None)) + b"R.",
    ),
    "new object": ("the operation NEWOBJ", b"\x80\x02" + name("collections", "OrderedDict") + b")\x81."),
    "instance": ("the operation INST", b"(iposix\nsystem\n."),
    "text in quotes": ("the operation STRING", b"S'\\q'\n."),
    "extension": ("the operation EXT1", b"\x80\x02\x82\x01."),
    "global by numbers": ("a global without a name", b"\x80\x04" + value(1) + value(2) + b"\x93."),
    "text past the end": ("the pickle is damaged", b"\x80\x02X\xff\xff\xff\x7fabc."),
    "number of 2 GB": ("the pickle is damaged", b"\x80\x02\x8b\xff\xff\xff\x7f1."),
    "decimal number without end": ("the pickle is damaged: .*digits", b"L" + b"9" * 5000 + b"L\n."),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_pickle_is_one_clear_error(case: str) -> None:
    message, content = HOSTILE[case]
    with pytest.raises(BadFileError, match=message) as caught:
        load(content, PATH)
    assert str(caught.value).isprintable()


def test_a_memo_entry_with_a_large_number_takes_no_room() -> None:
    tracemalloc.start()
    assert load(b"\x80\x02" + value("x") + b"r\xff\xff\xff\x7fj\xff\xff\xff\x7f.", PATH) == "x"
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 1_000_000


def test_nesting_without_end_does_not_exhaust_the_stack() -> None:
    found = load(b"\x80\x02" + b"(" * 100_000 + b"t" * 100_000 + b".", PATH)
    assert type(found) is tuple


def test_sizes_and_operations_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modelc.formats.pickle_machine.MAX_OPERATIONS", 100)
    with pytest.raises(BadFileError, match="more than 100 operations"):
        load(b"\x80\x02" + b")" * 200 + b".", PATH)
    monkeypatch.setattr("modelc.formats.pickle_machine.MAX_PICKLE_BYTES", 100)
    with pytest.raises(BadFileError, match=r"the pickle is too large: x\.pt: got 202, expected at most 100 bytes"):
        load(b"\x80\x02" + b")" * 199 + b".", PATH)
