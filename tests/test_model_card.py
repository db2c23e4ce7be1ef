from modelc.ir import JSON
from modelc.model_card import model_card
from modelc.summary import Summary, TensorSummary

TENSORS = (
    TensorSummary("a", "f32", (8,), 8, 32),
    TensorSummary("b", "q8_0", (2, 32), 64, 68),
    TensorSummary("c", "q8_0", (2, 32), 64, 68),
)


def summary_of(metadata: dict[str, JSON], path: str = "tiny.gguf") -> Summary:
    return Summary(path, "tiny", "llama", "modelc", "gguf", "zstd", "q8_0", 136, 168, 500, TENSORS, metadata)


def test_a_card_says_what_the_file_says() -> None:
    card = model_card(
        summary_of(
            {
                "general.name": "Tiny Model",
                "general.license": "apache-2.0",
                "general.description": "A test.",
                "llama.context_length": 8192,
                "llama.block_count": 0,
            }
        )
    )
    assert card.startswith("---\nlicense: apache-2.0\ntags:\n- modelc\n- llama\n---\n\n# Tiny Model\n\nA test.\n")
    for line in (
        "| Architecture | llama |",
        "| Parameters | 136 |",
        "| Format | modelc, from gguf, zstd |",
        "| Context length | 8,192 |",
        "| Layers | 0 |",
        "modelc run tiny.gguf",
        "| q8_0 | 2 | 128 | 136 |",
        "| f32 | 1 | 8 | 32 |",
    ):
        assert line in card.splitlines()


def test_a_card_of_a_file_that_says_nothing_has_its_name() -> None:
    card = model_card(summary_of({}))
    assert "license: unknown" in card
    assert "# tiny" in card.splitlines()
    assert "Context length" not in card


def test_a_configuration_of_hugging_face_is_read() -> None:
    assert "| Layers | 30 |" in model_card(summary_of({"config": {"num_hidden_layers": 30}}))


def test_what_a_file_says_cannot_become_markup() -> None:
    evil = "x\n---\n# <script>`|"
    card = model_card(summary_of({"general.name": evil, "general.license": evil}, path="a b`\n```.gguf"))
    assert "# x --- \\# \\<script\\>\\`\\|" in card.splitlines()
    assert card.count("```") == 2
    assert card.count("\n---\n") == 1
    assert "modelc run 'a b?????.gguf'" in card.splitlines()
