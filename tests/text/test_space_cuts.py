from hypothesis import given
from hypothesis import strategies as st

from modelc.text.score_merges import ScoreMerges
from modelc.text.space_cuts import MAX_JOINING, space_cuts


def cut(text: str, *tokens: str) -> list[str] | None:
    pattern = space_cuts(tokens)
    return pattern.findall(text) if pattern else None


def test_text_is_cut_before_the_mark() -> None:
    assert cut("ab▁▁c▁d▁", "ab", "▁c", "▁▁") == ["ab", "▁▁c", "▁d", "▁"]
    assert cut("", "a") == []


def test_it_is_not_cut_where_a_token_has_that_character_before_the_mark() -> None:
    assert cut("a▁b▁c.▁▁d", "a▁", ".▁▁") == ["a▁b", "▁c.▁▁d"]


def test_characters_that_mean_something_in_patterns_are_only_themselves() -> None:
    assert cut("a^▁b]▁c-▁d", "^▁", "]▁", "-▁") == ["a^▁b]▁c-▁d"]


def test_many_characters_before_the_mark_make_it_useless() -> None:
    assert cut("a▁b", *(f"{chr(0x4E00 + at)}▁" for at in range(MAX_JOINING + 1))) is None


TOKENS = st.dictionaries(st.text("ab.▁", min_size=2, max_size=4), st.sampled_from([0.0, -1.0, -2.0]), max_size=15)


@given(st.text("ab.▁\n", max_size=30), TOKENS)
def test_merging_the_pieces_is_merging_the_whole(text: str, scores: dict[str, float]) -> None:
    merges = ScoreMerges({token: at for at, token in enumerate(scores)}, list(scores.values()))
    pieces = cut(text, *scores)
    assert pieces is not None
    assert "".join(pieces) == text
    assert [part for piece in pieces for part in merges.apply(piece)] == merges.apply(text)
