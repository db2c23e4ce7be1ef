from modelc.runtime.prompt_share import FIRST, LEAST, MOST, SLOWER, TILE, PromptShare


def share_after(*a_row_s: float, alone_s: float | None = 1.0, answers: int = 1) -> PromptShare:
    """The share after steps whose rows of prompts cost so much each."""
    share = PromptShare()
    for seconds in a_row_s:
        prompts = share.rows(answers)
        share.note(answers, prompts, (alone_s or 1.0) + prompts * seconds, alone_s)
    return share


def test_rows_of_a_step_fill_whole_tiles() -> None:
    assert [(answers + PromptShare().rows(answers)) % TILE for answers in range(1, 20)] == [0] * 19
    assert PromptShare().rows(1) == FIRST - 1


def test_cheap_rows_make_the_share_grow_to_its_limit() -> None:
    assert share_after(*[1e-6] * 100).rows(4) == MOST


def test_a_step_stays_within_its_limit_whatever_a_row_costs() -> None:
    for cost in (0.05, 0.1, 0.2, 0.5):
        rows = share_after(*[cost] * 50).rows(1)
        assert 1.0 + (rows + 1) * cost <= SLOWER + 2 * cost or rows == LEAST


def test_dear_rows_make_the_share_shrink_but_not_vanish() -> None:
    assert share_after(*[100.0] * 10).rows(4) == LEAST


def test_one_slow_step_halves_the_share_at_most() -> None:
    share = share_after(1e-6, 1e-6)
    before = share.rows(4)
    share.note(4, before, 1e3, 1.0)
    assert share.rows(4) >= before // 2 - TILE
    share.note(4, share.rows(4), 1.0, 1.0)
    assert share.rows(4) > before // 2 - TILE


def test_the_end_of_a_prompt_does_not_make_the_share_grow() -> None:
    share = PromptShare()
    for _ in range(10):
        share.note(1, 1, 1.0, 1.0)
    assert share.rows(4) == FIRST


def test_without_a_known_cost_of_answers_the_share_stays() -> None:
    assert share_after(1e-6, 100.0, alone_s=None).rows(4) == FIRST
