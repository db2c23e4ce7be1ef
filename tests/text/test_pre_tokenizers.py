import logging
import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from modelc.errors import UnsupportedError
from modelc.text.pre_tokenizers import _FAMILIES, find_pre_tokenizer

FAMILIES = [family.names.split()[0] for family in _FAMILIES]
PIECES = [*"aBé中ーʰ\u0301९½1'\n\t\u00a0\u2028,.!$+-/🙂\u200b\0ſǅ", "23", "'s", "'LL", "'re", "\r\n", "<|", " ", "  "]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)

# Words are separated by a bar.
WORDS = {
    "gpt-2": ["I|'m| 12345|  | years|!!|\n\n|\n|ok|  ", "it|'|S", "don|'t"],
    "smollm": ["I|'m|  |1|2|3|  | years", "x| |1| |2", "a|1|b|  "],
    "llama-bpe": ["I|'M| |123|45|!!\n\n|ok", "(hello| world|)\n", "a|\n\n| | b"],
    "qwen2": ["I|'ll| |1|2|3|!\n", " \n| hi", "don|'T"],
    "qwen35": ["e\u0301te\u0301| x"],
    "tekken": ["Hello|World| camel|Case|HTTP|/foo", "1|2| |3|!/\n"],
    "gpt-4o": ["Hello|World's| it's| |123|4|!/\n"],
    "deepseek-v3": ["123|45|中文かな|abc|+=\n| x", "(abc"],
    "deepseek-llm": ["ab| cd|\n|123|中文|  "],
    "deepseek-coder": ["ab| cd|\n|1|2|中文"],
    "falcon": ["a|--|b| |123|45"],
    "bloom": ["Hello| world|,| how| are", "a| | b"],
    "viking": ["abc|1|2| d"],
    "default": ["a| |--|b| |123|4"],
    "seed-coder": ["a|!!|\n\n|b"],
    "ufakzeka": ["Ankara|'nın| |1|2"],
    "exaone-moe": ["a b c| |1|2"],
    "chameleon": ["a|\t|1|2|!|!|IMGIMGABZ| b"],
    "minicpm5": ["a|  |123|4| b"],
    "laguna": ["a|\n\n| b| |1"],
    "bailingmoe": ["a|'S|  \n|b"],
}


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, found in WORDS.items() for words in found])
def test_text_is_cut_where_the_published_pattern_cuts_it(name: str, words: str) -> None:
    expected = words.split("|")
    assert find_pre_tokenizer(name).split("".join(expected)) == expected


@pytest.mark.parametrize("name", FAMILIES)
@given(text=st.one_of(TEXTS, st.text(max_size=40)))
def test_words_joined_are_the_text(name: str, text: str) -> None:
    words = find_pre_tokenizer(name).split(text)
    assert "".join(words) == text
    assert all(words)


@pytest.mark.parametrize(
    ("name", "stages"),
    [
        ("smollm", (r"\p{N}", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")),
        (
            "minicpm5",
            (
                r"\p{N}{1,3}",
                r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+"
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
            ),
        ),
    ],
)
@given(text=TEXTS.filter(lambda text: "ſ" not in text))  # folds to s; the one-pass pattern is for ASCII letters only
def test_one_pass_cuts_as_the_two_published_stages_do(name: str, stages: tuple[str, ...], text: str) -> None:
    pieces = [text]
    for stage in stages:
        pieces = [word for piece in pieces for word in regex.split(f"({stage})", piece) if word]
    assert find_pre_tokenizer(name).split(text) == pieces


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("unit", [" ", "a", "A", "1", "\n", " \n", "'", "!", "\u0301", "ʰ", "中", "Aa", " !"])
def test_long_runs_take_linear_time(name: str, unit: str) -> None:
    pre_tokenizer = find_pre_tokenizer(name)
    text = unit * (50_000 // len(unit)) + "x"
    start = time.perf_counter()
    words = pre_tokenizer.split(text)
    assert time.perf_counter() - start < 1.0
    assert "".join(words) == text


def test_an_unknown_name_is_one_warning_that_names_it_and_the_nearest(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="modelc"):
        found = find_pre_tokenizer("qwen2-moe")
    assert found.name == "qwen2"
    assert [record.getMessage() for record in caplog.records] == [
        "unknown pre-tokenizer 'qwen2-moe': using 'qwen2', tokens may differ from the model's own"
    ]


def test_a_known_name_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="modelc"):
        assert find_pre_tokenizer("llama3").whole_words
    assert not caplog.records


def test_a_file_without_a_name_is_warned_about_and_takes_the_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="modelc"):
        assert find_pre_tokenizer(None).name == "default"
    assert "names no pre-tokenizer" in caplog.text


@pytest.mark.parametrize(("name", "nearest"), [("kimi-k2", "gpt-4o"), ("\x00" * 1000, "default"), ("", "default")])
def test_other_names_take_what_comes_nearest(name: str, nearest: str) -> None:
    assert find_pre_tokenizer(name).name == nearest


def test_a_tokenizer_that_is_not_byte_level_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="not byte-level: got gemma4"):
        find_pre_tokenizer("gemma4")
