import pytest

from modelc.constraints import Automaton, Constraint
from modelc.text import Tokenizer, load_tokenizer
from tests.constraints.test_automaton import allowed, automaton_of, random_answer
from tests.text.small_vocabulary import CONTROL, USER_DEFINED, metadata

OPENER, CLOSER = "<think>", "</think>"
MERGES = ("t h", "th i", "thi n", "thin k", "< think", "> {", "Ċ Ċ", "> ĊĊ", "a b")


def tokenizer_of(*merges: str, kind: int | None = None) -> Tokenizer:
    """With marks of this kind as tokens, or without such tokens."""
    special = {"<eos>": CONTROL} | ({} if kind is None else {OPENER: kind, CLOSER: kind})
    return load_tokenizer(metadata(*merges, special=special, eos_token_id=256 + len(merges)))


KINDS = {
    "control": tokenizer_of(*MERGES, kind=CONTROL),
    "text": tokenizer_of(*MERGES, kind=USER_DEFINED),
    "several": tokenizer_of(*MERGES),
    "bytes": tokenizer_of(),
}
every_kind = pytest.mark.parametrize("tokenizer", KINDS.values(), ids=KINDS)


def behind_reasoning(source: str = "[ab]c", opener: str = "") -> Constraint:
    return Constraint("regex", source, after=CLOSER, opener=opener)


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special=False, parse_special=True)


def write(automaton: Automaton, tokenizer: Tokenizer, text: str) -> None:
    """Go on with a text, as far as it may come."""
    for token in ids(tokenizer, text):
        assert token in allowed(automaton), f"{tokenizer.token_bytes(token)!r} of {text!r}"
        automaton.advance(token)


def texts(automaton: Automaton, tokenizer: Tokenizer) -> set[bytes]:
    return {tokenizer.token_bytes(token) for token in allowed(automaton)}


@every_kind
def test_reasoning_is_free_and_what_follows_it_is_constrained(tokenizer: Tokenizer) -> None:
    automaton = automaton_of(behind_reasoning(), tokenizer)
    assert not set(tokenizer.eog_ids) & set(allowed(automaton))
    write(automaton, tokenizer, "ab < so: </thin </think>")
    assert {text for text in texts(automaton, tokenizer) if text.strip()} == {b"a", b"b"}
    write(automaton, tokenizer, "a")
    assert automaton.forced == [ord("c")]
    automaton.advance(ord("c"))
    assert automaton.finished


@every_kind
def test_one_token_of_white_space_may_stand_between_reasoning_and_answer(tokenizer: Tokenizer) -> None:
    automaton = automaton_of(behind_reasoning(), tokenizer)
    write(automaton, tokenizer, "x</think>")
    blank = next(token for token in allowed(automaton) if tokenizer.token_bytes(token).isspace())
    automaton.advance(blank)
    assert texts(automaton, tokenizer) == {b"a", b"b"}


def test_white_space_with_which_the_answer_may_begin_is_the_answers() -> None:
    tokenizer = KINDS["control"]
    automaton = automaton_of(behind_reasoning(" a"), tokenizer)
    write(automaton, tokenizer, "x</think>")
    automaton.advance(ids(tokenizer, " ")[0])
    assert automaton.forced == [ord("a")]


def test_no_token_holds_the_end_of_reasoning_and_words_behind_it() -> None:
    tokenizer = KINDS["several"]
    words, space = (256 + MERGES.index(merge) for merge in ("> {", "> ĊĊ"))
    automaton = automaton_of(behind_reasoning(), tokenizer)
    assert words in allowed(automaton), "before the mark it is text like any other"
    write(automaton, tokenizer, "</think")
    assert words not in allowed(automaton)
    assert space in allowed(automaton)
    automaton.advance(space)
    assert {b"a", b"b"} <= texts(automaton, tokenizer)


@every_kind
def test_an_answer_may_open_reasoning_or_begin_at_once(tokenizer: Tokenizer) -> None:
    at_once = automaton_of(behind_reasoning(opener=OPENER), tokenizer)
    assert ord("z") not in allowed(at_once)
    assert not at_once.forced
    write(at_once, tokenizer, "bc")
    assert at_once.finished
    reasoned = automaton_of(behind_reasoning(opener=OPENER), tokenizer)
    write(reasoned, tokenizer, "<think>zzz</think>bc")
    assert reasoned.finished


@pytest.mark.parametrize("kind", ["several", "bytes"])
def test_what_begins_to_open_reasoning_goes_on_to_open_it(kind: str) -> None:
    tokenizer = KINDS[kind]
    automaton = automaton_of(behind_reasoning(opener=OPENER), tokenizer)
    automaton.advance(ord("<"))
    assert texts(automaton, tokenizer) <= {OPENER[1:n].encode() for n in range(2, len(OPENER))}
    assert ord("t") in allowed(automaton)


@pytest.mark.parametrize("kind", ["text", "several", "bytes"])  # a control token is never an answer's text
def test_an_answer_whose_own_language_opens_reasoning_is_constrained_as_a_whole(kind: str) -> None:
    tokenizer = KINDS[kind]
    automaton = automaton_of(behind_reasoning("<think>[ab]", opener=OPENER), tokenizer)
    write(automaton, tokenizer, "<think>a")
    assert automaton.finished


@every_kind
@pytest.mark.parametrize("opener", ["", OPENER])
def test_what_stands_behind_random_reasoning_matches(tokenizer: Tokenizer, opener: str) -> None:
    ended = 0
    for seed in range(40):
        automaton = automaton_of(behind_reasoning(r"\d{2}", opener), tokenizer)
        reasoning = f"<{seed}>\n"
        write(automaton, tokenizer, f"{opener}{reasoning}</think>")
        text, finished = random_answer(automaton, tokenizer, seed)
        ended += finished
        assert len(text.strip()) == 2
        assert text.strip().isdigit()
    assert ended == 40


def test_guesses_are_kept_up_to_what_is_no_text() -> None:
    tokenizer = KINDS["control"]
    automaton = automaton_of(behind_reasoning(), tokenizer)
    (eos,) = tokenizer.eog_ids
    assert automaton.allowed([ord("z"), ord("b"), eos]) == 2


def test_an_empty_answer_ends_with_the_reasoning() -> None:
    tokenizer = KINDS["control"]
    automaton = automaton_of(behind_reasoning(""), tokenizer)
    write(automaton, tokenizer, "x</think>")
    assert automaton.finished
