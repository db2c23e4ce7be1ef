import pytest

from modelc.models.hugging_face import HuggingFace, split_name

NAMES = HuggingFace("model.", {"token_embd": "model.embed", "output": "lm_head", "attn_q": "model.layers.{}.q"})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("token_embd.weight", "model.embed.weight"),
        ("output.weight", "lm_head.weight"),
        ("blk.12.attn_q.bias", "model.layers.12.q.bias"),
        ("rope_freqs.weight", "rope_freqs.weight"),
    ],
)
def test_a_name_has_its_layer_and_its_kind(name: str, expected: str) -> None:
    assert NAMES.name_of(name, ()) == expected


def test_the_prefix_goes_where_only_the_bare_name_is_there() -> None:
    assert NAMES.name_of("token_embd.weight", {"embed.weight"}) == "embed.weight"
    assert NAMES.name_of("token_embd.weight", {"embed.weight", "model.embed.weight"}) == "model.embed.weight"


def test_names_are_split_into_part_layer_and_kind() -> None:
    assert split_name("blk.3.attn_q.weight") == ("attn_q", "3", "weight")
    assert split_name("output_norm.bias") == ("output_norm", "", "bias")
