from pathlib import Path

import pytest

from modelc.formats.architecture import architecture_of, infer_architecture
from modelc.ir import JSON


@pytest.mark.parametrize(
    ("architecture", "names"),
    [
        ("llama", ["token_embd.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight", "blk.0.ffn_gate.weight"]),
        ("llama", ["model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.gate_proj.weight"]),
        ("gpt2", ["position_embd.weight", "blk.0.attn_qkv.weight"]),
        ("gpt2", ["wte.weight", "h.0.attn.c_attn.weight"]),
        ("gpt2", ["transformer.h.0.attn.c_attn.weight"]),
        ("bert", ["token_types.weight", "blk.0.attn_output_norm.weight", "position_embd.weight"]),
        ("bert", ["bert.encoder.layer.0.attention.self.query.weight"]),
        ("bert", ["encoder.layer.0.attention.self.query.weight"]),
        ("mlp", ["layer0.bias", "layer0.weight", "layer1.weight"]),
        ("mlp", ["weight", "bias"]),
        ("unknown", ["conv.weight", "my.weight"]),
        ("unknown", ["blk.0.attn_q.weight"]),
        ("unknown", []),
    ],
)
def test_tensor_names_tell_the_architecture(architecture: str, names: list[str]) -> None:
    assert infer_architecture(names) == architecture


@pytest.mark.parametrize(
    ("architecture", "config"),
    [
        ("llama", {"model_type": "llama", "architectures": ["MistralForCausalLM"]}),
        ("gemma3", {"model_type": "gemma3_text"}),
        ("mistral", {"architectures": ["MistralForCausalLM"]}),
        ("gpt2", {"architectures": ["GPT2LMHeadModel"], "model_type": ""}),
        ("bert", {"architectures": ["BertForSequenceClassification"]}),
        ("qwen2", {"architectures": ["Qwen2Model"], "model_type": None}),
        ("mlp", {"architectures": []}),
        ("mlp", {"architectures": ["odd"]}),
        ("mlp", {}),
        ("mlp", None),
    ],
)
def test_the_configuration_wins_over_the_names(architecture: str, config: JSON) -> None:
    assert architecture_of({"config": config}, ["layer0.weight"], Path("x")) == architecture
