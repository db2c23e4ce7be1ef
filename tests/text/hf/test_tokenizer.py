import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelc.errors import BadFileError, ModelcError, NotFoundError, UnsupportedError
from modelc.text import BpeTokenizer, HfTokenizer, StreamDecoder, encode_prompt, load_tokenizer
from tests.text.hf.small_json import FOLDER, NAMES, added, expected, real, words

REAL = {name: real(name) for name in NAMES}


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def tokenizer(name: str) -> HfTokenizer:
    return HfTokenizer({"tokenizer": REAL[name]})


def test_there_are_five_kinds() -> None:
    assert len(NAMES) == 5


def test_all_cases_have_the_expected_ids_and_text(name: str, tokenizer: HfTokenizer) -> None:
    cases = expected(name)
    assert len(cases) == 60
    for case in cases:
        assert tokenizer.encode(case["text"], parse_special=True) == case["ids"], case["text"]
        ids = tokenizer.encode(case["text"], add_special=False, parse_special=True)
        assert ids == case["ids_no_special"], case["text"]
        assert tokenizer.decode(case["ids"], skip_special=True) == case["decoded"]


def test_the_stream_joined_is_the_whole_decoded(name: str, tokenizer: HfTokenizer) -> None:
    for case in expected(name):
        for skip in (False, True):
            decoder = StreamDecoder(tokenizer, skip_special=skip)
            joined = "".join(map(decoder.push, case["ids"])) + decoder.flush()
            assert joined == tokenizer.decode(case["ids"], skip_special=skip)


def test_a_file_its_folder_and_its_content_give_the_same() -> None:
    path = FOLDER / "wordpiece-bert"
    content = REAL["wordpiece-bert"]
    for source in (path, path / "tokenizer.json", str(path), content, {"tokenizer": content}):
        assert BpeTokenizer.from_hf(source).encode("one") == load_tokenizer({"tokenizer": content}).encode("one")


def test_files_beside_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(words("[UNK]", "a", "<end>", "<turn>")))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"bos_token": "a", "pad_token": {"content": "[UNK]"}}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 2]}))
    found = BpeTokenizer.from_hf(tmp_path)
    assert (found.bos_id, found.eos_id, found.pad_id, found.eog_ids) == (1, 3, 0, {2, 3})
    assert (found.bos_token, found.eos_token) == ("a", "<turn>")


def test_a_missing_file_and_one_that_is_not_json_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"there is no such tokenizer: .*tokenizer\.json"):
        BpeTokenizer.from_hf(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(BadFileError, match=r"the file is not JSON .*tokenizer\.json"):
        BpeTokenizer.from_hf(tmp_path)


# Special tokens

MARKED = [added("<s>", 3, special=True), added("<tool>", 4)]
FRAMED = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
    "special_tokens": {"<s>": {"ids": [3]}},
}


def test_control_tokens_in_text_are_recognised_on_request_and_others_always() -> None:
    found = HfTokenizer({"tokenizer": words("?", "a", "##<s>", added_tokens=MARKED)})
    assert found.encode("a<s><tool>") == [1, 2, 4]
    assert found.encode("a<s><tool>", parse_special=True) == [1, 3, 4]
    assert found.special_ids == {3}


def test_a_word_never_becomes_a_control_token() -> None:
    found = HfTokenizer({"tokenizer": words("?", "a", "<s>", added_tokens=[added("<s>", 2, special=True)])})
    assert found.encode("a <s>") == [1, 0]


def test_bos_is_there_once_whether_or_not_the_template_wrote_it() -> None:
    keys = {
        "tokenizer": words("?", "a", added_tokens=MARKED, post_processor=FRAMED),
        "tokenizer_config": {"bos_token": "<s>"},
    }
    found = HfTokenizer(keys)
    assert found.add_bos
    assert found.encode("a") == [3, 1]
    assert encode_prompt(found, "a") == encode_prompt(found, "<s>a") == [3, 1]


def test_without_a_decoder_tokens_are_joined_by_blanks() -> None:
    found = HfTokenizer({"tokenizer": words("?", "a", "b")})
    assert found.decode([1, 99, 2, -1, 1]) == "a b a"


def test_lone_surrogates_count_as_the_replacement_character() -> None:
    found = HfTokenizer({"tokenizer": words("?", "\ufffd", "🙂")})
    assert found.encode("\ud800 \ud83d\ude42") == [1, 2]


# Bad input


@pytest.mark.parametrize(
    ("place", "kind", "what"),
    [
        ("normalizer", "Shout", "normalizer"),
        ("pre_tokenizer", "UnicodeScripts", "pre-tokenizer"),
        ("post_processor", "Odd", "post-processor"),
        ("decoder", "CTC", "decoder"),
        ("model", "WordLevel", "tokenizer model"),
    ],
)
def test_a_part_of_an_unknown_type_is_named(place: str, kind: str, what: str) -> None:
    content = words("?", "a")
    content[place] = {**(content.get(place) or {}), "type": kind}
    with pytest.raises(UnsupportedError, match=f"this {what} is not supported: '{place}': got {kind}, expected "):
        HfTokenizer({"tokenizer": content})


@pytest.mark.parametrize("content", [None, [], "x", {}, {"model": None}, {"model": {"vocab": {"a": -1}}}])
def test_what_is_no_tokenizer_is_a_bad_file(content: object) -> None:
    with pytest.raises(BadFileError):
        HfTokenizer({"tokenizer": content})


def test_a_frame_of_tokens_that_do_not_exist_is_a_bad_file() -> None:
    with pytest.raises(BadFileError, match="adds a token that does not exist: got 3"):
        HfTokenizer({"tokenizer": words("?", "a", post_processor=FRAMED)})


LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4))
ODD = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A real tokenizer with something else at one or two places."""
    content = draw(st.sampled_from(list(REAL.values())))
    small = {**content, "model": {**content["model"]}, "added_tokens": content["added_tokens"][:4]}
    vocab = small["model"]["vocab"]
    small["model"]["vocab"] = dict(list(vocab.items())[:300]) if isinstance(vocab, dict) else vocab[:200]
    small["model"]["merges"] = small["model"].get("merges", [])[:50]
    small = copy.deepcopy(small)
    for _ in range(draw(st.integers(1, 2))):
        place: Any = small
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if not isinstance(place[key], (dict, list)) or draw(st.booleans()):
                place[key] = draw(ODD)
                break
            place = place[key]
    return small


@given(damaged(), st.text(max_size=8))
def test_whatever_the_content_is_the_tokenizer_works_or_says_why_not(content: dict[str, Any], text: str) -> None:
    with suppress(ModelcError):
        found = HfTokenizer({"tokenizer": content})
        found.decode(found.encode(text, parse_special=True))
