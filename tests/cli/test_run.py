import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from modelc.api.options import ServeOptions
from modelc.errors import BadFileError
from modelc.runtime.adapters import AdapterReport
from tests.cli.conftest import Modelc

LOADED = "modelc.runtime.load"


class Served:
    """What `serve` was called with."""

    def __init__(self) -> None:
        self.options = ServeOptions()
        self.load_model: Callable[[], Any] = lambda: None

    def __call__(self, load_model: Callable[[], Any], options: ServeOptions) -> int:
        self.load_model, self.options = load_model, options
        return 0


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    served = Served()
    monkeypatch.setattr("modelc.api.server.serve", served)
    return served


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, dict[str, Any]]]:
    """The arguments of every load of a model."""
    calls: list[tuple[Path, dict[str, Any]]] = []

    def load(path: Path, **options: Any) -> SimpleNamespace:
        calls.append((path, options))
        return SimpleNamespace()

    monkeypatch.setattr(LOADED, load)
    return calls


def test_run_without_flags_serves_on_the_loopback_address(modelc: Modelc, gguf: Path, served: Served) -> None:
    assert modelc("run", gguf).code == 0
    assert served.options == ServeOptions()


def test_every_flag_reaches_the_server(modelc: Modelc, gguf: Path, served: Served) -> None:
    flags = "--bind ::1 --port 9000 --api-key k --rate-limit 60 --max-concurrent 2 --max-tokens 9 --temperature 0.5"
    more = "--top-k 40 --top-p 0.9 --min-p 0.1 --repetition-penalty 1.1 --presence-penalty 0.2 --frequency-penalty 0.3"
    assert modelc("run", gguf, *flags.split(), *more.split(), "--seed", "7").code == 0
    options = served.options
    assert (options.bind, options.port, options.api_keys) == ("::1", 9000, ("k",))
    assert (options.rate_limit, options.max_concurrent) == (60, 2)
    assert options.defaults == {
        "max_tokens": 9,
        "temperature": 0.5,
        "top_k": 40,
        "top_p": 0.9,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
        "seed": 7,
    }


@pytest.mark.parametrize(("listen", "address"), [("[::1]:81", ("::1", 81)), ("0.0.0.0:0", ("0.0.0.0", 0))])
def test_listen_wins_over_bind_and_port(
    modelc: Modelc, gguf: Path, served: Served, listen: str, address: tuple[str, int]
) -> None:
    assert modelc("run", gguf, "--listen", listen, "--bind", "10.0.0.1", "--port", "9").code == 0
    assert (served.options.bind, served.options.port) == address


@pytest.mark.parametrize(
    ("flags", "origins"),
    [
        ([], ("*",)),
        (["--cors", "none"], ()),
        (["--cors", "http://a.example", "--cors", "HTTP://B.example:80"], ("http://a.example", "http://b.example:80")),
        (["--cors", "https://*.example", "--cors", "null"], ("https://*.example", "null")),
        (["--cors", "http://[::1]:3000"], ("http://[::1]:3000",)),
    ],
)
def test_cors_names_the_origins_whose_pages_may_call(
    modelc: Modelc, gguf: Path, served: Served, flags: list[str], origins: tuple[str, ...]
) -> None:
    assert modelc("run", gguf, *flags).code == 0
    assert served.options.cors_origins == origins


def test_clients_can_be_limited(modelc: Modelc, gguf: Path, served: Served, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one\ntwo\n")
    flags = ["--api-key", f"@{tmp_path / 'keys'}", "--api-key", "three", "--trusted-proxy", "10.0.0.0/8"]
    flags += ["--trusted-proxy", "::1", "--max-body", "1MiB", "--access-log", "json", "--adapters", str(tmp_path)]
    assert modelc("run", gguf, *flags).code == 0
    options = served.options
    assert options.api_keys == ("one", "two", "three")
    assert [str(network) for network in options.trusted_proxies] == ["10.0.0.0/8", "::1/128"]
    assert (options.max_body_bytes, options.access_log, options.adapters) == (1 << 20, "json", tmp_path)
    missing = modelc("run", gguf, "--adapters", tmp_path / "no")
    assert (missing.code, "no such folder of adapters" in missing.err) == (1, True)


def test_adapters_are_loaded_with_the_model(
    modelc: Modelc, gguf: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Path, float]] = []

    def load_loras(adapters: list[tuple[Path, float]], progress: object) -> AdapterReport:
        given.extend(adapters)
        return AdapterReport(1, 0, "LoRA loaded: 1 weight")

    monkeypatch.setattr(LOADED, lambda path, **options: SimpleNamespace(load_loras=load_loras))
    assert modelc("run", gguf, "--lora", "a.safetensors:0.5", "--lora", "b", "--lora", "c:d").code == 0
    served.load_model()
    assert given == [(Path("a.safetensors"), 0.5), (Path("b"), 1.0), (Path("c:d"), 1.0)]


def test_settings_hold_where_no_flag_is_given(
    modelc: Modelc, gguf: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODELC_PORT", "9001")
    monkeypatch.setenv("MODELC_API_KEY", "from outside")
    assert modelc("run", gguf).code == 0
    assert (served.options.port, served.options.api_keys) == (9001, ("from outside",))
    assert modelc("run", gguf, "--port", "0", "--api-key", "flag").code == 0
    assert (served.options.port, served.options.api_keys) == (0, ("flag",))


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--listen", "::1:8080"], "an IPv6 address in brackets"),
        (["--api-key", ""], "the API key is empty"),
        (["--rate-limit", "0"], "Must be >= 1"),
        (["--activations", "int4"], 'Choose from: "int8", "int16"'),
        (["--kv-memory", "2G"], "'--kv-memory': got '2G', expected one like 2GiB, 500MB"),
        (["--kv-memory", "0"], "not a size"),
        (["--max-context", "1"], "Must be >= 2"),
        (["--anchor-tokens", "-1"], "Must be >= 0"),
        (["--cors", "none", "--cors", "http://a.example"], "none stands alone"),
        (["--cors", "chat.example"], "not an origin"),
        (["--cors", "https://chat.example/"], "without a path"),
        (["--gamma", "33"], "Must be <= 32"),
        (["--max-body", "much"], "'--max-body'"),
        (["--trusted-proxy", "proxy.example"], "not a proxy"),
        (["--access-log", "xml"], 'Choose from: "json", "text"'),
    ],
)
def test_wrong_flags_are_usage_errors(modelc: Modelc, gguf: Path, served: Served, flags: list[str], told: str) -> None:
    result = modelc("run", gguf, *flags)
    assert result.code == 2
    assert told in result.err


def test_a_sampling_default_out_of_range_is_a_usage_error(modelc: Modelc, gguf: Path) -> None:
    result = modelc("run", gguf, "--top-p", "1.5", "--port", "0")
    assert result.code == 2
    assert "top_p" in result.err


def test_a_port_in_use_is_one_line(modelc: Modelc, gguf: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        result = modelc("run", gguf, "--port", listener.getsockname()[1])
    assert result.code == 1
    assert "is in use; choose another with --port" in result.err
    assert result.err.count("\n") == 1


def test_the_model_is_packed_and_loaded_by_the_server_after_it_listens(
    modelc: Modelc, gguf: Path, served: Served, loads: list[tuple[Path, dict[str, Any]]], packed_cache: Path
) -> None:
    flags = "--threads 2 --activations int16 --max-context 512 --anchor-tokens 4 --gamma 8"
    kv_flags = "--kv mixed --kv-hot-window 96 --kv-memory 1.5MiB"
    assert modelc("run", gguf, *flags.split(), *kv_flags.split()).code == 0
    assert not packed_cache.exists()
    served.load_model()
    (packed,) = packed_cache.glob("*.modelc")
    ((path, options),) = loads
    del options["progress"]
    assert (path, options) == (
        packed,
        {
            "threads": 2,
            "activations": "int16",
            "kv": "mixed",
            "kv_hot_window": 96,
            "max_context": 512,
            "anchor_tokens": 4,
            "kv_memory": 3 << 19,
            "gamma": 8,
            "kernels": None,
        },
    )


def test_a_stored_model_is_loaded_in_place(
    modelc: Modelc, gguf: Path, served: Served, loads: list[tuple[Path, dict[str, Any]]], tmp_path: Path
) -> None:
    modelc("pack", gguf, "--name", "tiny")
    for reference, file in (("tiny", "tiny.modelc"), ("tiny:1", "tiny.v1.modelc")):
        assert modelc("run", reference).code == 0
        served.load_model()
        assert loads.pop()[0] == tmp_path / "store" / file


def test_without_a_model_the_only_or_the_default_one_is_served(
    modelc: Modelc,
    gguf: Path,
    served: Served,
    loads: list[tuple[Path, dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loaded() -> str:
        assert modelc("run").code == 0
        served.load_model()
        return loads.pop()[0].name

    assert "the store has no model" in modelc("run").err
    modelc("pack", gguf, "--name", "one")
    assert loaded() == "one.modelc"
    modelc("pack", gguf, "--name", "two")
    result = modelc("run")
    assert result.code == 2
    assert "expected one of one, two" in result.err
    monkeypatch.setenv("MODELC_DEFAULT_MODEL", "two")
    assert loaded() == "two.modelc"


def test_an_unknown_model_is_told_before_anything_is_opened(modelc: Modelc, gguf: Path, served: Served) -> None:
    modelc("pack", gguf, "--name", "tiny")
    served.options = ServeOptions(port=1)
    result = modelc("run", "tiney")
    assert result.code == 1
    assert "did you mean 'tiny'?" in result.err
    assert served.options.port == 1


def test_a_damaged_file_is_one_line(modelc: Modelc, gguf: Path, served: Served) -> None:
    gguf.write_bytes(gguf.read_bytes()[:37])
    assert modelc("run", gguf).code == 0
    with pytest.raises(BadFileError, match=r"Tiny-Model\.gguf"):
        served.load_model()


def test_profile_counts_from_the_start_and_is_shown_at_the_end(
    modelc: Modelc, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []

    def serve(load_model: Callable[[], Any], _: ServeOptions) -> int:
        load_model()
        steps.append("served")
        return 0

    model = SimpleNamespace(start_profile=lambda: steps.append("started"), profile_report=lambda: "gemv 100 %")
    monkeypatch.setattr("modelc.api.server.serve", serve)
    monkeypatch.setattr(LOADED, lambda *_, **__: model)
    modelc("pack", gguf, "--name", "tiny")
    result = modelc("run", "--profile")
    assert (result.code, result.err) == (0, "gemv 100 %\n")
    assert steps == ["started", "served"]
