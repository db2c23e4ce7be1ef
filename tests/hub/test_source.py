import pytest

from modelc.hub.source import Wish, _hub_parts


@pytest.mark.parametrize(
    ("id", "parts"),
    [
        ("user/model", ("user/model", None, None, None)),
        ("user/model.v1:Q4_K_M", ("user/model.v1", None, None, "Q4_K_M")),
        ("hf:user/model", ("user/model", None, None, None)),
        ("hf.co/user/model:q8_0", ("user/model", None, None, "q8_0")),
        ("https://huggingface.co/user/model", ("user/model", None, None, None)),
        ("https://huggingface.co/user/model/tree/v2", ("user/model", "v2", None, None)),
        ("https://huggingface.co/user/model/blob/main/a%20b.gguf", ("user/model", "main", "a b.gguf", None)),
        (
            "https://huggingface.co/user/model/resolve/main/x/a.gguf?download=true",
            ("user/model", "main", "x/a.gguf", None),
        ),
        ("https://example.com/user/model", (None, None, None, None)),
        ("../model", (None, None, None, None)),
        ("user/mo..del", (None, None, None, None)),
        ("a/b/c", (None, None, None, None)),
        ("model", (None, None, None, None)),
    ],
)
def test_what_means_a_model_on_the_hub(
    monkeypatch: pytest.MonkeyPatch, id: str, parts: tuple[str | None, str | None, str | None, str | None]
) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert _hub_parts(Wish(id)) == parts


def test_options_win_over_what_an_address_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror:1/")
    wish = Wish("http://mirror:1/user/model/blob/main/a.gguf", version="v2", file="b.gguf")
    assert _hub_parts(wish) == ("user/model", "v2", "b.gguf", None)
