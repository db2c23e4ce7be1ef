import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from modelc.constraints import Automaton, Constraint, ConstraintCompiler
from modelc.errors import BadInputError
from modelc.text import BpeTokenizer, Tokenizer, load_tokenizer
from tests.text.small_vocabulary import BYTE, CONTROL, NORMAL, UNKNOWN, USER_DEFINED, metadata

MERGES = ("a b", "ab c", "y e", "ye s", "n o", '{ "', '" :', "Ġ a", "Ġa b", "1 2")
EOS = 256 + len(MERGES)
SMALL = load_tokenizer(metadata(*MERGES, special={"<eos>": CONTROL, "<think>": USER_DEFINED}, eos_token_id=EOS))
PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "a", "b", "▁a", "▁ab", "é", "yes"]
SENTENCEPIECE = load_tokenizer(
    {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": PIECES,
        "tokenizer.ggml.scores": [0.0] * len(PIECES),
        "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * 7],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
)


def automaton_of(constraint: Constraint, tokenizer: Tokenizer = SMALL, vocab_size: int | None = None) -> Automaton:
    return ConstraintCompiler(tokenizer, vocab_size or tokenizer.vocab_size).automaton(constraint)


def regex(source: str) -> Constraint:
    return Constraint("regex", source)


def allowed(automaton: Automaton) -> list[int]:
    """Tokens of the mask, or the forced one."""
    if automaton.forced:
        return automaton.forced[:1]
    return np.flatnonzero(np.unpackbits(automaton.mask.view(np.uint8), bitorder="little")).tolist()


def random_answer(automaton: Automaton, tokenizer: Tokenizer, seed: int, most: int = 300) -> tuple[str, bool]:
    """Text of random allowed tokens, and whether it ended by itself."""
    rng = np.random.default_rng(seed)
    tokens: list[int] = []
    while not automaton.finished and len(tokens) < most:
        token = int(rng.choice(allowed(automaton)))
        automaton.advance(token)
        if token not in tokenizer.eog_ids:
            tokens.append(token)
    return b"".join(map(tokenizer.token_bytes, tokens)).decode("utf-8", "ignore"), automaton.finished


@pytest.mark.parametrize("tokenizer", [SMALL, SENTENCEPIECE, BpeTokenizer.byte_fallback()], ids=["bpe", "spm", "bytes"])
@pytest.mark.parametrize(
    "pattern", [r"(yes|no)", r"[ab]{2,5}", r"\d{3}-\d\d", r"a*b", r"( a| ab)+", r"[éa]+", r"x?", r"\w+@\w+\.(com|org)"]
)
def test_what_ends_by_itself_matches(pattern: str, tokenizer: Tokenizer) -> None:
    ended = 0
    for seed in range(12):
        text, finished = random_answer(automaton_of(regex(pattern), tokenizer), tokenizer, seed)
        if finished:
            ended += 1
            assert re.fullmatch(pattern, text)
    assert ended or pattern in (r"[éa]+", r"( a| ab)+", r"\w+@\w+\.(com|org)"), "it ends, unless it may go on for ever"


def test_the_mask_has_exactly_the_tokens_with_which_a_match_may_go_on() -> None:
    automaton = automaton_of(regex("(yes|no|ab ab|ye)"))
    texts = {SMALL.decode([token]) for token in allowed(automaton)}
    assert texts == {"yes", "ye", "y", "no", "n", "a", "ab"}
    automaton.advance(SMALL.encode("ye")[0])
    assert {SMALL.decode([token]) for token in allowed(automaton)} == {"s", "<eos>"}


def test_end_of_generation_is_allowed_exactly_where_the_answer_may_end() -> None:
    automaton = automaton_of(regex("a{2,}"))
    for may_end in (False, False, True, True):
        assert (EOS in allowed(automaton)) == may_end
        automaton.advance(ord("a"))
    automaton.advance(EOS)
    assert automaton.finished


def test_a_complete_answer_that_cannot_go_on_is_finished_without_an_end_token() -> None:
    for tokenizer in (SMALL, BpeTokenizer.byte_fallback()):
        automaton = automaton_of(regex("[ab]c"), tokenizer)
        automaton.advance(ord("b"))
        assert not automaton.finished
        automaton.advance(ord("c"))
        assert automaton.finished


def test_an_empty_language_of_one_is_finished_at_once() -> None:
    assert automaton_of(regex("")).finished


def test_forced_tokens_are_those_of_the_model_s_own_spelling() -> None:
    automaton = automaton_of(regex('[xy]abc ab\\{"12"(yes|no)'))
    automaton.advance(ord("x"))
    forced = list(automaton.forced)
    assert forced[:3] == SMALL.encode("abc ab", add_special=False)
    for token in forced:
        assert automaton.forced[0] == token
        automaton.advance(token)
    assert not automaton.forced or SMALL.decode(automaton.forced)


def test_control_tokens_are_never_allowed_inside_and_user_defined_ones_are_text() -> None:
    assert EOS not in allowed(automaton_of(regex("[^x]{3}")))
    assert EOS + 1 in allowed(automaton_of(regex("<?[^x]{7}")))


def test_tokens_beyond_the_tokenizer_or_the_model_are_never_allowed() -> None:
    for vocab_size in (SMALL.vocab_size + 100, 200, 33):
        automaton = automaton_of(regex("[a-zA-Z0-9 !]{9}"), vocab_size=vocab_size)
        assert len(automaton.mask) == (vocab_size + 31) // 32
        assert max(allowed(automaton)) < min(vocab_size, SMALL.vocab_size)


def test_proposals_are_counted_as_far_as_they_may_come() -> None:
    automaton = automaton_of(regex("a+b"))
    assert automaton.allowed([97, 97, 98]) == 3
    assert automaton.allowed([97, 98, 98]) == 2
    assert automaton.allowed([98]) == 0
    assert allowed(automaton) == [97, 256], "looking does not move it"


def test_a_space_that_the_language_does_not_have_is_not_allowed_at_the_beginning() -> None:
    automaton = automaton_of(regex("ab?"), SENTENCEPIECE)
    assert {SENTENCEPIECE.token_bytes(token) for token in allowed(automaton)} == {b"a"}


def test_the_automaton_depends_on_the_tokens_alone() -> None:
    compiler = ConstraintCompiler(SMALL, SMALL.vocab_size)
    answers = {random_answer(compiler.automaton(regex("[ab]+(12)*!")), SMALL, 5) for _ in range(4)}
    assert len(answers) == 1


def test_a_dead_end_is_an_error_and_no_endless_loop() -> None:
    automaton = automaton_of(Constraint("lark", 'start: "b" | "a" x\nx: x "b"'))
    with pytest.raises(BadInputError, match="'grammar'"):
        for token in (97, 98):
            automaton.advance(token)


def test_masks_made_in_another_thread_are_the_same() -> None:
    with ThreadPoolExecutor(1) as pool:
        for pattern in (r"[^x]{1,400}", r"([a-z]{2,6} ){9}end", "(yes|no)", "a{3}"):
            alone = automaton_of(regex(pattern))
            aided = Automaton(alone._matcher.deep_copy(), alone._table, alone._failure, pool)
            rng = np.random.default_rng(7)
            for _ in range(60):
                if alone.finished:
                    break
                aided._mask_s = 1.0  # as if the last one had taken long
                assert (aided.forced, aided.finished) == (alone.forced, alone.finished)
                assert allowed(aided) == allowed(alone)
                token = int(rng.choice(allowed(alone)))
                alone.advance(token)
                aided.advance(token)
            assert aided.finished == alone.finished


def test_a_dead_end_found_in_another_thread_is_an_error_where_the_mask_is_needed() -> None:
    with ThreadPoolExecutor(1) as pool:
        plain = automaton_of(Constraint("lark", 'start: "b" | "a" x\nx: x "b"'))
        automaton = Automaton(plain._matcher.deep_copy(), plain._table, plain._failure, pool)
        automaton._mask_s = 1.0
        with pytest.raises(BadInputError, match="'grammar'"):
            automaton.advance(97)
            automaton.wait()
