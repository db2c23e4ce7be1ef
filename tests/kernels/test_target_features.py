"""What a processor has decides which way its machine code goes, after a kernel was lowered."""

from __future__ import annotations

from modelc.kernels.target_features import with_features


def test_the_ir_has_every_way_and_the_features_choose_one(dots_ir: tuple[str, str]) -> None:
    _, text = dots_ir
    assert "vpdpbusd.512" in text
    assert "pmadd.wd" in text
    for features, answer in (({"avx512vnni"}, "true"), (set(), "false")):
        chosen = with_features(text, features)
        definition = chosen[chosen.index("@modelc.has.avx512vnni() ") :].partition("}")[0]
        assert f"ret i1 {answer}" in definition
