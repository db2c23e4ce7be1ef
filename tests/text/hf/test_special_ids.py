from typing import Any

import pytest

from modelc.text.hf.special_ids import end_ids, named_id

IDS = {"<s>": 1, "</s>": 2, "<turn>": 3}


@pytest.mark.parametrize("name", ["bos", "eos", "pad"])
@pytest.mark.parametrize("text", ["<s>", {"content": "<s>", "lstrip": False}])
def test_the_tokenizer_config_names_a_token_by_its_text(name: str, text: Any) -> None:
    keys = {"tokenizer_config": {f"{name}_token": text}, "config": {f"{name}_token_id": 2}}
    assert named_id(name, keys, IDS) == 1


def test_ids_of_other_files_hold_where_it_names_none() -> None:
    keys = {"tokenizer_config": {"bos_token": None}, "config": {"bos_token_id": 2}}
    assert named_id("bos", keys, IDS) == 2
    assert named_id("bos", {**keys, "generation_config": {"bos_token_id": [3]}}, IDS) == 3
    assert named_id("pad", keys, IDS) is None


def test_every_end_of_every_file_counts() -> None:
    keys = {
        "tokenizer_config": {"eos_token": "<s>"},
        "generation_config": {"eos_token_id": [2, 99, "x"]},
        "config": {"eos_token_id": 3},
    }
    assert end_ids(keys, IDS) == {1, 2, 3}
    assert end_ids({}, IDS) == set()


@pytest.mark.parametrize("odd", [None, 7, "x", [], {"eos_token": 5, "eos_token_id": {"a": 1}}, {"eos_token": "gone"}])
def test_odd_files_name_nothing(odd: Any) -> None:
    assert end_ids({"tokenizer_config": odd, "generation_config": odd, "config": odd}, IDS) == set()
