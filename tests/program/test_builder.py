import numpy as np
import pytest

from modelc.kernels import env
from modelc.kernels.catalogue import FACTORIES
from modelc.models import lower
from modelc.program import Builder, Program, Weight
from modelc.program.builder import float_bits
from modelc.program.program import View
from tests.models.tiny_llama import tiny_llama_of
from tests.program.race_check import instructions_of

EMBEDDING = Weight("f32", 50, 40, 128)
ONES = np.ones(40, np.float32)


def small_builder(**changes: object) -> Builder:
    return Builder(**({"max_rows": 20, "max_out": 4, "n_threads": 3, "n_ctx": 100} | changes))


def fields(table: np.ndarray, row: int) -> list[int]:
    return table[row, 2:15].tolist()


def test_a_float_matmul_by_hand() -> None:
    b = small_builder()
    x = b.embed(EMBEDDING, 0.5)
    h = b.rms_norm(x, b.constant(ONES), 1e-5)
    logits = b.matmul(h, Weight("f16", 20, 40, 4096))
    program = b.finish(logits, 20)
    assert program.opcodes == ["embed.f32", "rms_norm", "matmul.f16"]
    assert program.table[:, env.I_OPCODE].tolist() == [0, 1, 2]
    # Shared first: logits (20 rows and 8 more, so 32 of 32). Then x and h, 3 more for threads (32 rows of 64).
    x_at, h_at, logits_at = 1024, 1024 + 32 * 64, 0
    assert fields(program.table, 0) == [128, 40, x_at, 64, float_bits(0.5)] + [0] * 8
    assert fields(program.table, 1) == [x_at, 64, -1, 0, h_at, float_bits(1e-5), 40, 0, 1, 0, 0] + [0] * 2
    assert fields(program.table, 2) == [4096, 40, 2, h_at, logits_at, 32, 0, 1, 64] + [0] * 4
    assert program.floats == 1024 + 2 * 32 * 64
    assert (program.logits, program.logits_stride, program.vocab_size) == (logits_at, 32, 20)
    assert program.constants.tolist() == [1] * 40 + [0] * 24
    assert program.table[:, env.I_BARRIER].tolist() == [0, 0, 2]  # rows are a thread's own until the matmul reads all


def names_of(program: Program) -> list[str]:
    return [program.opcodes[n] for n in program.table[:, env.I_OPCODE]]


def test_activations_are_quantized_once_for_all_weights_of_a_matmul() -> None:
    b = small_builder(activation="a16")
    x = b.embed(Weight("q4_0", 50, 64, 0))
    qkv = b.matmul(x, Weight("q4_0", 64, 64, 0), Weight("q8_0", 40, 64, 9000))
    program = b.finish(qkv, 50)
    assert names_of(program) == ["embed.q4_0", "quantize.a16", "matmul.q4_0.a16", "matmul.q8_0.a16"]
    assert qkv.cols == 64 + 48  # each part padded to groups of 16 rows
    first, second = program.table[2], program.table[3]
    assert second[6] - first[6] == 64  # side by side
    assert first[7] == second[7] == 128
    assert program.table[1, 5] == first[5] == second[5]
    panels = (20 + 7) // 8 + 3  # the batch's, and one for each thread
    assert program.quant_bytes == panels * 8 * (64 // 32) * env.RECORD_BYTES["a16"]


def test_rows_are_quantized_by_the_norm_or_gate_that_makes_them() -> None:
    b = small_builder()
    x = b.embed(Weight("q4_0", 50, 64, 0))
    h = b.rms_norm(x, b.constant(np.ones(64, np.float32)), 1e-5)
    gate_up = b.matmul(h, Weight("q4_0", 96, 64, 0), Weight("q4_1", 96, 64, 0))
    program = b.finish(b.matmul(b.gated(gate_up, 96), Weight("q8_0", 50, 96, 0)), 50)
    assert names_of(program)[1:] == [
        "rms_norm_quantize.a8",
        "matmul.q4_0.a8",
        "matmul.q4_1.a8",
        "swiglu_quantize.a8",
        "matmul.q8_0.a8",
    ]
    norm, q4_0, _, gate, q8_0 = program.table[1:]
    assert norm[6] == q4_0[5]
    assert gate[6] == q8_0[5]
    assert (q4_0[9], q8_0[9]) == (1, 0)  # in one-row batches threads have records of their own, or share the gate's
    assert program.table[:, env.I_BARRIER].tolist() == [0, 0, 2, 0, 0, 3]


def test_rows_that_float_weights_read_too_are_kept_as_floats() -> None:
    b = small_builder()
    h = b.rms_norm(b.embed(Weight("f32", 50, 64, 0)), b.constant(np.ones(64, np.float32)), 1e-5)
    program = b.finish(b.matmul(h, Weight("q4_0", 64, 64, 0), Weight("f16", 50, 64, 0)), 50)
    assert names_of(program) == ["embed.f32", "rms_norm", "quantize.a8", "matmul.q4_0.a8", "matmul.f16"]


def test_padding_of_buffers_and_constants_is_whole_vectors() -> None:
    b = small_builder()
    assert (b.buffer(1).stride, b.buffer(32).stride, b.buffer(33).stride) == (32, 32, 64)
    assert (b.buffer(8).rows, b.buffer(8, rows=1).rows, b.buffer(8, private=True).rows) == (32, 8, 32)
    assert [b.constant(np.zeros(n, np.float32)) for n in (1, 32, 33)] == [0, 32, 64]
    assert b.constant(np.zeros(3)) == 128  # float64 takes two floats
    assert b.constant(np.zeros(17)) == 160
    assert b.constant(np.zeros(1)) == 224


@pytest.mark.parametrize(
    ("kv", "head_bytes"), [("f16", 4096), ("f32", 8192), ("int8", 2 * (1024 + 256)), ("mixed", 2560 + 8192)]
)
def test_layers_follow_one_another_in_a_page(kv: str, head_bytes: int) -> None:
    b = small_builder(kv=kv)
    qkv = b.matmul(b.embed(Weight("f32", 50, 32, 0)), Weight("f32", 128, 32, 0))
    keys, values = View(qkv, 64, 32), View(qkv, 96, 32)
    layer_bytes = 2 * head_bytes
    angles = b.rope_angles(np.ones(8), "pairs")
    assert [b.kv_write(keys, values, 16, a) for a in (angles, None, angles)] == [0, layer_bytes, 2 * layer_bytes]
    program = b.finish(qkv, 50)
    assert program.page_bytes == 3 * layer_bytes
    assert program.kv == kv
    assert [(layer.at, layer.heads, layer.head_dim, layer.style) for layer in program.kv_layers] == [
        (0, 2, 16, "pairs"),
        (layer_bytes, 2, 16, None),
        (2 * layer_bytes, 2, 16, "pairs"),
    ]
    at = program.kv_layers[0].frequencies
    assert program.constants.view(np.float64)[at : at + 8].tolist() == [1.0] * 8


def test_each_attention_has_a_counter_of_its_own_on_its_own_cache_lines() -> None:
    b = small_builder()
    qkv = b.matmul(b.embed(Weight("f32", 50, 32, 0)), Weight("f32", 128, 32, 0))
    for _ in range(2):
        at = b.kv_write(View(qkv, 64, 32), View(qkv, 96, 32), 16, None)
        out = b.attention(View(qkv, 0, 64), 2, 16, at, 0.25)
    program = b.finish(out, 50)
    rows = [row for row in program.table if program.opcodes[row[0]] == "attention.16.2.f16"]
    assert [row[12] for row in rows] == [env.FIRST_COUNTER, env.FIRST_COUNTER + env.COUNTER_WORDS]
    assert program.counters == 2
    assert rows[0][9] == 128  # scores of 100 positions, in whole pages


def test_a_bias_lies_on_its_part_of_a_matmul_and_needs_no_barrier() -> None:
    b = small_builder()
    x = b.embed(Weight("f32", 50, 64, 0))
    qkv = b.matmul(x, Weight("f32", 40, 64, 0), Weight("f32", 32, 64, 9000))
    vector = b.constant(np.ones(40, np.float32))
    b.bias(View(qkv, 0, 40), vector, "relu")
    b.bias(View(qkv, 48, 32), b.constant(np.ones(32, np.float32)))
    logits = b.matmul(qkv, Weight("f32", 50, 80, 0), out_rows=True)
    b.bias(logits, b.constant(np.ones(50, np.float32)), out_rows=True)
    program = b.finish(logits, 50)
    assert names_of(program)[3:] == ["bias.relu", "bias.none", "matmul.f32", "bias.none"]
    assert program.table[:, env.I_BARRIER].tolist() == [0, 2, 0, 0, 0, 3, 0]  # the last matmul alone reads all columns
    at = program.table[1, 6]
    assert fields(program.table, 3)[:5] == [at, 96, vector, 3, 0]
    assert fields(program.table, 4)[:5] == [at + 48, 96, vector + 64, 2, 0]
    assert fields(program.table, 6)[:5] == [program.logits, 64, vector + 96, 4, 1]


@pytest.mark.parametrize(("kv", "window"), [("f16", 0), ("int8", 0), ("mixed", 40)])
def test_the_hot_window_is_told_to_attention_of_mixed_types_alone(kv: str, window: int) -> None:
    b = small_builder(kv=kv, kv_hot_window=40)
    qkv = b.matmul(b.embed(Weight("f32", 50, 32, 0)), Weight("f32", 128, 32, 0))
    at = b.kv_write(View(qkv, 64, 32), View(qkv, 96, 32), 16, None)
    program = b.finish(b.attention(View(qkv, 0, 64), 2, 16, at, 0.25), 50)
    scores, attention = program.table[-2:]
    assert names_of(program)[-2:] == [f"attention_scores.16.2.{kv}", f"attention.16.2.{kv}"]
    assert scores[13] == attention[13] == window


def test_layers_are_noted_for_profiles() -> None:
    b = small_builder()
    lower(tiny_llama_of("f32")).program(b)
    layers = [instruction.layer for instruction in instructions_of(b)[0]]
    assert layers == [*sorted(layers[:-2]), -1, -1]
    assert set(layers) == {-1, 0, 1}


@pytest.mark.parametrize("dtype", ["f32", "q4_k"])
def test_every_opcode_of_a_program_is_in_the_catalogue_and_every_field_in_its_memory(dtype: str) -> None:
    b = small_builder()
    program = lower(tiny_llama_of(dtype)).program(b)
    assert {name.split(".")[0] for name in program.opcodes} <= set(FACTORIES)
    assert program.table.shape == (len(program.layers), env.I_WORDS)
    assert (program.table[:, env.I_ADDRESS] == 0).all(), "filled in when it is linked"
    instructions, placement = instructions_of(b)
    for instruction in instructions:
        assert len(instruction.fields) <= 13
        for access in instruction.accesses:
            if access.buffer is not None:
                limit = placement.floats if access.buffer.space == "floats" else placement.quant_bytes
                assert 0 <= placement.offsets[access.buffer] <= limit - access.buffer.size
                assert 0 <= access.start < access.stop <= access.buffer.stride
