from typing import Any

import pytest

from modelc.errors import BadFileError
from modelc.text.hf.model import Context, kind_of, model_of, vocab_of
from modelc.text.hf.part import Part
from modelc.text.hf.splitters import Words


def ids(word: str, hidden: frozenset[int] = frozenset(), **fields: Any) -> tuple[int, ...]:
    part = Part(fields, "model")
    return model_of(part, Context(vocab_of(part), hidden, Words())).encode(word)


def bpe(word: str, *merges: str | list[str], tokens: str = "? a b ab c", **fields: Any) -> tuple[int, ...]:
    vocab = {text: token for token, text in enumerate(tokens.split())}
    return ids(word, type="BPE", vocab=vocab, merges=list(merges), **fields)


# BPE


def test_merges_are_pairs_or_texts() -> None:
    assert bpe("abc", "a b") == bpe("abc", ["a", "b"]) == (3, 4)


def test_unknown_characters_are_left_out_or_one_token_each_or_together() -> None:
    assert bpe("axyb", "a b") == (3,)
    assert bpe("axyb", unk_token="?") == (1, 0, 0, 2)
    assert bpe("axyb", unk_token="?", fuse_unk=True) == (1, 0, 2)


def test_unknown_characters_become_bytes_where_all_bytes_are_tokens() -> None:
    tokens = " ".join(["?", "a", *(f"<0x{byte:02X}>" for byte in range(256))])
    assert bpe("aé", tokens=tokens, unk_token="?", byte_fallback=True) == (1, 2 + 0xC3, 2 + 0xA9)
    assert bpe("aé", tokens=tokens[:-7], unk_token="?", byte_fallback=True) == (1, 0)


def test_a_word_in_the_vocabulary_is_one_token_where_merges_are_ignored() -> None:
    assert bpe("ab", ignore_merges=True) == (3,)
    assert bpe("ab") == (1, 2)


def test_prefix_and_suffix_mark_the_inside_and_the_end_of_a_word() -> None:
    assert bpe("ab", "a ##b", tokens="a ##b ab", continuing_subword_prefix="##") == (2,)
    assert bpe("ab", "a b</w>", tokens="a b</w> ab</w>", end_of_word_suffix="</w>") == (2,)


def test_a_merge_through_a_text_that_is_no_token_falls_back_to_its_characters() -> None:
    assert bpe("abc", "a b", "ab c", tokens="a b c abc") == (3,)
    assert bpe("ab", "a b", tokens="a b c abc") == (0, 1)


def test_long_text_is_cut_only_where_no_merge_reaches() -> None:
    assert bpe("▁ab" * 40, "b ▁", "b▁ a", tokens="▁ a b b▁ b▁a") == (0, 1, *[4] * 39, 2)
    assert bpe("▁ab" * 40, "▁ a", "▁a b", tokens="▁ a b ▁a ▁ab") == (4,) * 40


@pytest.mark.parametrize("merges", [["a"], [["a"]], [["a", 1]], [None], "a b"])
def test_merges_of_another_form_are_refused(merges: Any) -> None:
    with pytest.raises(BadFileError, match=r"model\.merges"):
        ids("a", type="BPE", vocab={"a": 0}, merges=merges)


# Others


def test_unigram_and_word_piece_are_built() -> None:
    assert ids("abx", type="Unigram", vocab=[["?", 0], ["a", -1.0], ["b", -1], ["ab", -1.5]], unk_id=0) == (3, 0)
    assert ids("abb", type="WordPiece", vocab={"?": 0, "a": 1, "##b": 2}, unk_token="?") == (1, 2, 2)
    assert ids("abb", type="WordPiece", vocab={"?": 0, "a": 1}, unk_token="?") == (0,)


def test_control_tokens_are_never_made() -> None:
    vocab = [["?", 0], ["a", -9.0], ["aa", -1.0]]
    assert ids("aa", type="Unigram", vocab=vocab, unk_id=0) == (2,)
    assert ids("aa", frozenset({2}), type="Unigram", vocab=vocab, unk_id=0) == (1, 1)


def test_early_files_do_not_name_the_type() -> None:
    assert kind_of(Part({"vocab": {}, "merges": []}, "")) == "BPE"
    assert kind_of(Part({"vocab": []}, "")) == "Unigram"
    assert kind_of(Part({"vocab": {}}, "")) == "WordPiece"


@pytest.mark.parametrize("vocab", [None, 3, {"a": "b"}, {"a": -1}, {"a": 1 << 40}, [["a"]], [[[], 0.0]], [3]])
def test_a_vocabulary_of_another_form_is_refused(vocab: Any) -> None:
    with pytest.raises(BadFileError, match=r"model\.vocab"):
        vocab_of(Part({"vocab": vocab}, "model"))


@pytest.mark.parametrize("score", ["x", None, float("nan"), float("inf"), 10**400])
def test_scores_that_are_no_sensible_numbers_are_refused(score: Any) -> None:
    with pytest.raises(BadFileError, match=r"model\.vocab"):
        ids("a", type="Unigram", vocab=[["a", score]])
    with pytest.raises(BadFileError, match=r"model\.unk_id"):
        ids("a", type="Unigram", vocab=[["a", 0.0]], unk_id=1)
