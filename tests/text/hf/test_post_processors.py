from typing import Any

import pytest

from modelc.errors import BadFileError, UnsupportedError
from modelc.text.hf.part import Part
from modelc.text.hf.post_processors import Frame, frame_of

TEXT = {"Sequence": {"id": "A", "type_id": 0}}
BOS = {"SpecialToken": {"id": "<s>", "type_id": 0}}
EOS = {"SpecialToken": {"id": "</s>", "type_id": 0}}
IDS = {"<s>": {"ids": [1]}, "</s>": {"ids": [2, 3]}}


def frame(kind: str, **fields: Any) -> Frame:
    return frame_of(Part({"type": kind, **fields}, "post_processor"))


def template(*pieces: dict[str, Any]) -> Frame:
    return frame("TemplateProcessing", single=list(pieces), special_tokens=IDS)


def test_none_and_byte_level_add_nothing() -> None:
    assert frame_of(None) == frame("ByteLevel") == ((), ())


def test_a_template_puts_its_tokens_around() -> None:
    assert template(BOS, TEXT, EOS) == ((1,), (2, 3))
    assert template(TEXT) == ((), ())


@pytest.mark.parametrize("kind", ["BertProcessing", "RobertaProcessing"])
def test_begin_and_end_of_bert(kind: str) -> None:
    assert frame(kind, cls=["[CLS]", 5], sep=["[SEP]", 6]) == ((5,), (6,))


def test_in_a_sequence_later_tokens_are_further_out() -> None:
    inner = {"type": "BertProcessing", "cls": ["c", 5], "sep": ["s", 6]}
    outer = {"type": "TemplateProcessing", "single": [BOS, TEXT], "special_tokens": IDS}
    assert frame("Sequence", processors=[inner, {"type": "ByteLevel"}, outer]) == ((1, 5), (6,))


@pytest.mark.parametrize("pieces", [[BOS], [TEXT, TEXT]])
def test_a_template_without_just_one_text_is_refused(pieces: list[dict[str, Any]]) -> None:
    with pytest.raises(UnsupportedError, match="the text just once"):
        template(*pieces)


def test_a_token_without_ids_is_refused() -> None:
    with pytest.raises(BadFileError, match=r"post_processor\.special_tokens\.<x>"):
        template({"SpecialToken": {"id": "<x>"}}, TEXT)
    with pytest.raises(BadFileError, match=r"post_processor\.cls"):
        frame("BertProcessing", cls="[CLS]", sep=["s", 6])
