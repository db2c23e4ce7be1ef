"""Which tensors get which type, and what packing makes of them."""

from pathlib import Path

import numpy as np
import pytest

from modelc.dtypes import DTYPES
from modelc.errors import BadFileError, BadInputError
from modelc.formats import gguf_writer, modelc
from modelc.ir import JSON, Model, Tensor
from modelc.layout import dequantize, float_rows, plain_bytes, quantize
from modelc.packing import pack
from modelc.quantizing import FALLBACKS, Quantization

SHAPES: dict[str, tuple[int, ...]] = {
    "blk.0.attn_norm.weight": (512,),
    "blk.0.attn_q.weight": (32, 512),
    "blk.0.ffn_up.weight": (40, 96),
    "blk.0.odd.weight": (64, 50),
    "blk.0.tiny.weight": (2, 32),
    "conv.weight": (8, 4, 64),
    "output.weight": (32, 512),
    "position_embd.weight": (32, 512),
}


def tensor(name: str, shape: tuple[int, ...], dtype: str = "f32", seed: int = 0) -> Tensor:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    stored = values.astype(DTYPES[dtype].numpy).reshape(-1).view(np.uint8)
    return Tensor(name, DTYPES[dtype], shape, stored)


def make_model(metadata: dict[str, JSON] | None = None) -> Model:
    tensors = {name: tensor(name, shape, seed=i) for i, (name, shape) in enumerate(SHAPES.items())}
    return Model("tiny", "llama", "gguf", metadata or {}, tensors)


def types_of(quantization: Quantization) -> dict[str, str]:
    return {name: quantization.dtype_of(entry).name for name, entry in make_model().tensors.items()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    gguf_writer.write(make_model({"general.architecture": "llama", "general.file_type": 0}), path)
    return path


def test_matrices_are_quantized_and_everything_else_stays() -> None:
    types = types_of(Quantization.parse("q4_0", [], 0))
    assert {name for name, dtype in types.items() if dtype == "q4_0"} == {
        "blk.0.attn_q.weight",
        "blk.0.ffn_up.weight",
        "output.weight",
    }
    assert types["blk.0.odd.weight"] == "f16"
    stay = ("blk.0.attn_norm.weight", "blk.0.tiny.weight", "conv.weight", "position_embd.weight")
    assert [types[name] for name in stay] == ["f32"] * 4


@pytest.mark.parametrize("wanted", FALLBACKS)
def test_columns_that_do_not_fill_blocks_of_256_get_blocks_of_32(wanted: str) -> None:
    types = types_of(Quantization.parse(wanted, [], 0))
    assert types["blk.0.attn_q.weight"] == wanted
    assert types["blk.0.ffn_up.weight"] == FALLBACKS[wanted]
    assert types["blk.0.odd.weight"] == "f16"


@pytest.mark.parametrize(("alias", "name"), [("int8", "q8_0"), ("int4", "q4_0"), ("fp16", "f16"), ("Q4_K", "q4_k")])
def test_names_that_users_write(alias: str, name: str) -> None:
    assert types_of(Quantization.parse(alias, [], 0))["output.weight"] == name


def test_the_first_rule_that_matches_counts() -> None:
    types = types_of(Quantization.parse("q4_k", ["output*=q8_0", "out*=q5_0", "*ffn*", "position*=f16"], 0))
    assert types["output.weight"] == "q8_0"
    assert types["blk.0.ffn_up.weight"] == "f32"
    assert types["position_embd.weight"] == "f16"
    assert types["blk.0.attn_q.weight"] == "q4_k"


def test_rules_do_not_change_vectors() -> None:
    assert types_of(Quantization.parse(None, ["*=q8_0"], 0))["blk.0.attn_norm.weight"] == "f32"


@pytest.mark.parametrize(
    ("target", "keep", "prune", "param"),
    [
        ("q4_x", [], 0, "quantize"),
        ("i8", [], 0, "quantize"),
        (None, ["output=q9"], 0, "keep"),
        (None, ["=q8_0"], 0, "keep"),
        (None, [], -1, "prune"),
        (None, [], float("nan"), "prune"),
    ],
)
def test_what_cannot_be_meant_is_refused(target: str | None, keep: list[str], prune: float, param: str) -> None:
    with pytest.raises(BadInputError) as error:
        Quantization.parse(target, keep, prune)
    assert error.value.param == param


def test_a_rule_that_matches_nothing_is_refused_with_the_nearest_name(source: Path, tmp_path: Path) -> None:
    rules = Quantization.parse("q4_0", ["outptu.weight=q8_0"], 0)
    with pytest.raises(BadInputError, match=r"did you mean 'output\.weight'"):
        pack(source, tmp_path / "out.modelc", quantization=rules)


@pytest.mark.parametrize("dtype", ["f32", "f16", "f64"])
def test_a_quantized_tensor_holds_the_sources_values(dtype: str) -> None:
    before = tensor("w", (48, 256), dtype)
    after = Quantization.parse("q6_k", [], 0).convert(before)
    values = np.frombuffer(before.stored.tobytes(), DTYPES[dtype].numpy).astype(np.float32).reshape(48, 256)
    assert np.array_equal(after.stored, quantize(DTYPES["q6_k"], values, values.shape))


@pytest.mark.parametrize("dtype", ["f8_e4m3", "f8_e5m2"])
def test_eight_bit_floats_have_their_values(dtype: str) -> None:
    every = Tensor("w", DTYPES[dtype], (1, 256), np.arange(256, dtype=np.uint8))
    values = float_rows(every, 0, 1)[0]
    bias, bits = (7, 3) if dtype == "f8_e4m3" else (15, 2)
    for code in (0, 1, (1 << bits) - 1, 1 << bits, 0x3B, 0x77):
        exponent, mantissa = code >> bits, code & ((1 << bits) - 1)
        expected = (mantissa + ((1 << bits) if exponent else 0)) * 2.0 ** (max(exponent, 1) - bias - bits)
        assert (values[code], values[code | 128]) == (expected, -expected)
    assert np.isnan(values[[0x7F, 0xFF]]).all()
    assert np.isinf(values).sum() == (0 if dtype == "f8_e4m3" else 2)


def test_large_tensors_are_converted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    before, rules = tensor("w", (100, 64)), Quantization.parse("q5_1", [], 0.1)
    whole = rules.convert(before)
    monkeypatch.setattr("modelc.quantizing.CHUNK_BYTES", 1)
    assert np.array_equal(rules.convert(before).stored, whole.stored)


def test_pruned_weights_are_zero_before_they_are_quantized() -> None:
    before = tensor("w", (40, 64))
    values = before.stored.view(np.float32).reshape(40, 64)
    pruned = np.where(np.abs(values) < 0.5, np.float32(0), values)
    alone = Quantization.parse(None, [], 0.5).convert(before)
    assert (alone.dtype.name, alone.stored.tobytes()) == ("f32", pruned.tobytes())
    both = Quantization.parse("q4_0", [], 0.5).convert(before)
    assert np.array_equal(both.stored, quantize(DTYPES["q4_0"], pruned, pruned.shape))


def test_pruning_leaves_norms_and_kept_tensors_alone() -> None:
    rules, model = Quantization.parse(None, ["output*"], 100), make_model()
    changed = {name for name, entry in model.tensors.items() if rules.convert(entry) is not entry}
    assert changed == {"blk.0.attn_q.weight", "blk.0.ffn_up.weight", "blk.0.odd.weight"}


def test_the_same_type_keeps_its_bytes() -> None:
    values = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32)
    entry = Tensor("w", DTYPES["q4_0"], (40, 64), quantize(DTYPES["q4_0"], values, values.shape))
    assert Quantization.parse("q4_0", [], 0).convert(entry) is entry


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e6])
def test_a_value_that_no_block_holds_is_named_with_its_tensor(bad: float) -> None:
    entry = tensor("blk.0.w", (40, 64))
    entry.stored.view(np.float32)[77] = bad
    with pytest.raises(BadFileError, match=r"tensor 'blk\.0\.w'.*--keep 'blk\.0\.w'"):
        Quantization.parse("q4_0", [], 0).convert(entry)


@pytest.mark.parametrize("compress", [False, True])
def test_a_packed_model_reads_exactly_as_quantized(source: Path, tmp_path: Path, compress: bool) -> None:
    rules = Quantization.parse("q4_k", ["output*=q8_0"], 0.01)
    calls: list[tuple[int, int, str]] = []
    output = pack(
        source,
        tmp_path / "out.modelc",
        compress=compress,
        quantization=rules,
        progress=lambda *call: calls.append(call),
    )
    after = modelc.read(output)
    for name, entry in make_model().tensors.items():
        expected = rules.convert(entry)
        assert (after.tensors[name].dtype, after.tensors[name].shape) == (expected.dtype, expected.shape)
        assert np.array_equal(plain_bytes(after.tensors[name]), expected.stored)
    assert after.metadata["general.file_type"] == 14
    assert calls[-1][0] == calls[-1][1]
    modelc.verify(output)


def test_quantizing_twice_gives_the_same_bytes(source: Path, tmp_path: Path) -> None:
    rules = Quantization.parse("q5_k", [], 0)
    first, second = (pack(source, tmp_path / f"{n}.modelc", quantization=rules) for n in range(2))
    assert first.read_bytes() == second.read_bytes()


def test_a_quantized_model_can_be_quantized_again(source: Path, tmp_path: Path) -> None:
    first = pack(source, tmp_path / "first.modelc", quantization=Quantization.parse("q8_0", [], 0))
    second = modelc.read(pack(first, tmp_path / "2.modelc", quantization=Quantization.parse("q4_0", [], 0)))
    q8 = modelc.read(first).tensors["output.weight"]
    values = dequantize(q8.dtype, plain_bytes(q8), q8.shape)
    assert np.array_equal(plain_bytes(second.tensors["output.weight"]), quantize(DTYPES["q4_0"], values, q8.shape))
