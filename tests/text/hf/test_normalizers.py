from typing import Any

import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.text.hf.normalizers import normalizer_of
from modelc.text.hf.part import Part


def normalize(text: str, kind: str, **fields: Any) -> str:
    found = normalizer_of(Part({"type": kind, **fields}, "normalizer"))
    assert found is not None
    return found(text)


def test_none_is_none() -> None:
    assert normalizer_of(None) is None


@pytest.mark.parametrize(
    ("kind", "text", "normal"),
    [
        ("NFC", "e\u0301", "é"),
        ("NFD", "é", "e\u0301"),
        ("NFKC", "ﬁ²", "fi2"),
        ("NFKD", "ﬁé", "fie\u0301"),
        ("Lowercase", "ÄΑΣ İ", "äασ i\u0307"),
        ("StripAccents", "e\u0301é", "eé"),
        ("Strip", " \u3000a b\n", "a b"),
        ("Strip", " \n ", ""),
        ("Nmt", "a\tb\x07\u200bc\u00ad", "a b c\u00ad"),
    ],
)
def test_each_kind(kind: str, text: str, normal: str) -> None:
    assert normalize(text, kind) == normal


def test_strip_takes_the_sides_it_is_told() -> None:
    assert normalize(" a ", "Strip", strip_left=False) == " a"
    assert normalize(" a ", "Strip", strip_right=False) == "a "
    assert normalize(" a ", "Strip", strip_left=False, strip_right=False) == " a "


def test_bert_cleans_parts_ideographs_and_folds() -> None:
    assert normalize("A\x00\u200b\ufffdé\tß漢c\U000e0041", "BertNormalizer") == "ae ß 漢 c"


def test_bert_keeps_accents_with_upper_case_unless_told() -> None:
    assert normalize("É", "BertNormalizer", lowercase=False) == "É"
    assert normalize("É", "BertNormalizer", lowercase=False, strip_accents=True) == "E"
    assert normalize("É", "BertNormalizer", strip_accents=False) == "é"


def test_bert_does_only_what_it_is_told() -> None:
    flags = {"clean_text": False, "handle_chinese_chars": False, "lowercase": False}
    assert normalize("A\x00漢\t", "BertNormalizer", **flags) == "A\x00漢\t"


def test_bert_keeps_unassigned_characters() -> None:
    assert normalize("\ufb37", "BertNormalizer") == "\ufb37"


def test_replace_takes_a_text_or_a_pattern() -> None:
    assert normalize("a.b", "Replace", pattern={"String": "."}, content="\\1") == "a\\1b"
    assert normalize("a   b", "Replace", pattern={"Regex": " {2,}"}, content=" ") == "a b"


def test_prepend_leaves_nothing_alone() -> None:
    assert normalize("a", "Prepend", prepend="▁") == "▁a"
    assert normalize("", "Prepend", prepend="▁") == ""


def test_a_sequence_goes_in_order() -> None:
    steps = [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]
    assert normalize("É", "Sequence", normalizers=steps) == "e"


def test_a_pattern_that_cannot_be_compiled_is_named() -> None:
    with pytest.raises(UnsupportedError, match=r"cannot be compiled .*normalizer\.pattern"):
        normalize("", "Replace", pattern={"Regex": "("}, content="")


def test_endless_nesting_is_refused() -> None:
    step: dict[str, Any] = {"type": "NFC"}
    for _ in range(50):
        step = {"type": "Sequence", "normalizers": [step]}
    with pytest.raises(BadFileError, match="nested too deeply"):
        normalizer_of(Part(step, "normalizer"))


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(BadFileError, match=r"normalizer\.prepend"):
        normalize("a", "Prepend", prepend="\ud800")
