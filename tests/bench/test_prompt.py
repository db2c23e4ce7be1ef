from bench.prompt import N_IDS, prompt_ids


def test_prompts_are_the_same_everywhere_and_for_ever() -> None:
    assert prompt_ids(3, seed=1) == [6583, 41524, 37424]


def test_a_shorter_prompt_begins_a_longer_one_and_another_seed_makes_another() -> None:
    assert prompt_ids(1000, seed=2)[:100] == prompt_ids(100, seed=2)
    assert prompt_ids(100, seed=2) != prompt_ids(100, seed=3)
    assert all(0 <= token < N_IDS for token in prompt_ids(1000, seed=2))
