from pathlib import Path

import pytest
from cyclopts import CycloptsError

from modelc.cli import serve
from modelc.cli.compile import built_in_options, python_versions
from modelc.cli.serve import with_defaults
from modelc.errors import BadInputError, UnsupportedError
from tests.cli.conftest import Modelc


def test_options_of_run_are_kept_with_their_values() -> None:
    tokens = ["--port", "9000", "--cors", "https://a.example", "--profile", "--temperature=0.5", "--cors", "http://b"]
    assert built_in_options(tokens) == [
        ["--port", "9000"],
        ["--cors", "https://a.example", "--cors", "http://b"],
        ["--profile"],
        ["--temperature", "0.5"],
    ]


def test_listen_is_kept_as_address_and_port_so_that_each_can_be_changed() -> None:
    options = built_in_options(["--port", "5", "--listen", "[::1]:80"])
    assert sorted(options) == [["--bind", "::1"], ["--port", "80"]]


@pytest.mark.parametrize("tokens", [["--nonsense"], ["--port", "many"], ["--kv", "f8"], ["second"], ["--threads", "0"]])
def test_what_run_would_refuse_is_refused(tokens: list[str]) -> None:
    with pytest.raises(CycloptsError):
        built_in_options(tokens)


@pytest.mark.parametrize("tokens", [["--aot"], ["--store", "x"]])
def test_options_without_a_meaning_are_refused(tokens: list[str]) -> None:
    with pytest.raises(BadInputError, match=tokens[0]):
        built_in_options(tokens)


@pytest.mark.parametrize(
    "tokens", [["--kv-memory", "1XB"], ["--max-body", "x"], ["--cors", "x"], ["--trusted-proxy", "x"]]
)
def test_values_that_would_be_refused_at_every_start_are_refused(tokens: list[str]) -> None:
    with pytest.raises(BadInputError, match=tokens[0]):
        built_in_options(tokens)


def test_files_of_the_other_computer_are_not_looked_for() -> None:
    tokens = ["--api-key", "@keys.txt", "--adapters", "adapters", "--lora", "pirate.safetensors"]
    assert [each for option in built_in_options(tokens) for each in option] == tokens


def test_a_bad_address_is_refused() -> None:
    with pytest.raises(BadInputError, match="listen"):
        built_in_options(["--listen", "nothing"])


def test_what_is_given_at_the_start_wins() -> None:
    built_in = [["--port", "1"], ["--cors", "a", "--cors", "b"], ["--profile"]]
    assert with_defaults(built_in, []) == ["--port", "1", "--cors", "a", "--cors", "b", "--profile"]
    assert with_defaults(built_in, ["--port=2", "--cors", "c"]) == ["--profile", "--port=2", "--cors", "c"]


def test_what_is_inside_is_told_on_any_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(names: object, wanted: str | None = None) -> None:
        raise UnsupportedError("processor")

    monkeypatch.setattr(serve, "choose_isa", refuse)
    about = serve._about({"payloads": {}, "name": "m"}, {"avx2": "avx2.so"})
    assert about == {"payloads": {}, "name": "m", "isas": ["avx2"], "isa": None}


def test_versions_of_python_are_a_list() -> None:
    assert python_versions("3.12, 3.11,3.12") == ["3.11", "3.12"]


@pytest.mark.parametrize("text", ["", "3", "3.10", "2.7", "3.11;3.12", "three", "3.11.4"])
def test_other_lists_are_refused(text: str) -> None:
    with pytest.raises(BadInputError, match=r"like 3\.11,3\.12"):
        python_versions(text)


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["none.gguf"], "no such file"),
        (["--target", "amiga"], "no such target"),
        (["--python", "1.5"], "not a list of Python versions"),
        (["-o", "nowhere/x.pyz"], "the output's folder does not exist"),
        (["--format", "exe"], "--format"),
        (["--format", "elf", "--python", "3.99"], "Python of an executable"),
        (["--isa", "avx1024"], "no such instruction set"),
        (["--target", "aarch64-linux", "--isa", "avx2"], "expected neon, dotprod"),
        (["--nonsense"], "See `modelc compile --help`"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    modelc: Modelc, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = modelc("compile", *([str(gguf)] if tokens[0].startswith("-") else []), *tokens)
    assert result.code != 0
    lines = [line for line in result.err.splitlines() if not line.startswith("modelc 0")]
    assert len(lines) == 1
    assert said in lines[0]
    assert [path for path in sorted(tmp_path.iterdir()) if path not in before and path.name != "cache"] == []


def test_the_model_itself_is_not_replaced(modelc: Modelc, gguf: Path) -> None:
    content = gguf.read_bytes()
    result = modelc("compile", str(gguf), "-o", str(gguf))
    assert result.code == 2
    assert "the output is the model itself" in result.err
    assert gguf.read_bytes() == content
