from pathlib import Path

import pytest

from modelc.errors import BadFileError, ModelcError
from modelc.formats import modelc
from tests.formats.modelc.artifacts import forge, tiny_model


@pytest.fixture(params=[False, True], ids=["plain", "zstd"])
def artifact(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "tiny.modelc"
    modelc.write(tiny_model(), path, compress=request.param)
    return path


def test_a_whole_file_passes_with_progress(artifact: Path) -> None:
    calls: list[tuple[int, int, str]] = []
    header = modelc.verify(artifact, lambda *call: calls.append(call))
    total = sum(entry.length for entry in header.entries)
    assert len(header.entries) == len(calls) == 4
    assert calls[-1] == (total, total, "verifying")


def test_a_flipped_bit_anywhere_is_found_and_its_tensor_named(artifact: Path) -> None:
    content = artifact.read_bytes()
    header = modelc.read_header(artifact)
    start = 64 + int.from_bytes(content[16:24], "little")
    start += -start % 4096
    owners = {start + entry.offset + byte: entry.name for entry in header.entries for byte in range(entry.length)}
    offsets = [*range(64), *range(64, start, 7), *range(start, len(content))]
    with artifact.open("r+b", buffering=0) as file:
        for number, offset in enumerate(offsets):
            file.seek(offset)
            file.write(bytes([content[offset] ^ 1 << number % 8]))
            with pytest.raises(ModelcError) as caught:
                modelc.verify(artifact)
            assert caught.value.tensor == owners.get(offset), offset
            file.seek(offset)
            file.write(content[offset : offset + 1])
    modelc.verify(artifact)


def test_damaged_padding_is_found_with_its_offset(artifact: Path) -> None:
    header = modelc.read_header(artifact)
    content = bytearray(artifact.read_bytes())
    offset = len(content) - header.entries[-1].length - 1
    content[offset] = 7
    artifact.write_bytes(content)
    with pytest.raises(BadFileError, match=rf"padding before tensor .* is damaged: .*offset {offset}: got byte 7"):
        modelc.verify(artifact)
    assert len(modelc.read(artifact).tensors) == 4


def test_reading_does_not_look_at_checksums_of_tensors(tmp_path: Path) -> None:
    path = tmp_path / "x.modelc"
    modelc.write(tiny_model(), path)
    forge(path, lambda header: header["tensors"][1].update(checksum="0" * 64))
    assert len(modelc.read(path).tensors) == 4
    with pytest.raises(
        BadFileError, match=r"a tensor's bytes are damaged: .*tensor 'b'.*expected BLAKE2b 0000000000000000…"
    ):
        modelc.verify(path)


def test_a_wrong_checksum_behind_the_compression_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.modelc"
    modelc.write(tiny_model(), path, compress=True)
    forge(path, lambda header: header["tensors"][2].update(checksum="0" * 64))
    with pytest.raises(BadFileError, match=r"a tensor's bytes are damaged: .*tensor 'c'"):
        modelc.verify(path)
