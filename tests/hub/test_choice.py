import pytest

from modelc.errors import BadInputError, NotFoundError
from modelc.hub.choice import choose

GGUFS = ("tiny-Q4_K_M.gguf", "tiny-Q8_0.gguf", "tiny.IQ4_XS.gguf", "tiny-f16.gguf", "mmproj-tiny-f16.gguf")
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "model.safetensors.index.json")


def chosen(*paths: str, file: str | None = None, quant: str | None = None) -> list[str]:
    return choose(dict.fromkeys(paths, 1_500_000_000), file, quant, "here")


def test_a_modelc_file_is_taken_before_all_else() -> None:
    assert chosen("a.gguf", "b.modelc", "model.safetensors", "config.json") == ["b.modelc"]


def test_one_gguf_is_taken_before_safetensors() -> None:
    assert chosen("README.md", "a.gguf", "model.safetensors") == ["a.gguf"]


def test_several_ggufs_are_named_with_their_sizes() -> None:
    with pytest.raises(BadInputError, match=r"Q4_K_M \(1\.50 GB\), Q8_0 .*IQ4_XS .*; choose one with --quant"):
        chosen(*GGUFS)


@pytest.mark.parametrize(
    ("quant", "file"),
    [("Q4_K_M", GGUFS[0]), ("q8_0", GGUFS[1]), ("iq4_xs", GGUFS[2]), ("F16", GGUFS[3])],
)
def test_a_quantization_is_found_by_name(quant: str, file: str) -> None:
    assert chosen(*GGUFS, quant=quant) == [file]


def test_a_quantization_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'Q4_K_M'"):
        chosen(*GGUFS, quant="Q4_K_S")


@pytest.mark.parametrize("file", ["sub/b.gguf", "b.gguf", "*b.gguf", "SUB/*"])
def test_a_file_is_found_by_path_name_or_pattern(file: str) -> None:
    assert chosen("a.gguf", "sub/b.gguf", file=file) == ["sub/b.gguf"]


def test_a_file_that_is_not_there_is_answered_with_the_nearest() -> None:
    with pytest.raises(NotFoundError, match=r"did you mean 'tiny-Q8_0\.gguf'"):
        chosen(*GGUFS, file="tiny-Q8.gguf")


def test_all_parts_of_a_split_gguf_belong_together() -> None:
    parts = ["big-Q8_0-00001-of-00002.gguf", "big-Q8_0-00002-of-00002.gguf"]
    assert chosen(*parts, "big-Q4_0.gguf", quant="q8_0") == parts
    assert chosen(*parts, "big-Q4_0.gguf", file=parts[1]) == parts


def test_shards_come_with_their_index_and_what_stands_beside() -> None:
    beside = ("config.json", "tokenizer.json", "1_Pooling/config.json")
    files = chosen(*SHARDS, *beside, "README.md", "original/consolidated.pth", "pytorch_model.bin", "onnx/model.onnx")
    assert files == [SHARDS[2], *SHARDS[:2], *beside]


def test_the_usual_name_wins_among_safetensors() -> None:
    assert chosen("adapter_model.safetensors", "model.safetensors") == ["model.safetensors"]


def test_a_model_in_a_folder_takes_what_stands_in_that_folder() -> None:
    assert chosen("pkg/m/model.onnx", "pkg/m/config.json", "config.json") == ["pkg/m/model.onnx", "pkg/m/config.json"]


def test_onnx_weights_outside_the_graph_come_with_it() -> None:
    assert chosen("model.onnx", "model.onnx.data") == ["model.onnx", "model.onnx.data"]


def test_no_model_is_told() -> None:
    with pytest.raises(NotFoundError, match=r"no model is there: here: expected \.modelc, \.gguf"):
        chosen("README.md", "mmproj-f16.gguf")
