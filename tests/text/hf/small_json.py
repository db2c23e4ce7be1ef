"""Hand-made `tokenizer.json` contents."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "data" / "tokenizers"
NAMES = sorted(path.name for path in FOLDER.iterdir())


def real(name: str) -> dict[str, Any]:
    """The parsed `tokenizer.json` of that folder."""
    return dict(json.loads((FOLDER / name / "tokenizer.json").read_text("utf-8")))


def expected(name: str) -> list[dict[str, Any]]:
    """Its texts with ids and decoded text."""
    return list(json.loads((FOLDER / name / "expected.json").read_text("utf-8")))


def added(text: str, token: int, **flags: bool) -> dict[str, Any]:
    """One entry of `added_tokens`."""
    return {"id": token, "content": text, "special": False, "normalized": False, **flags}


def words(*texts: str, added_tokens: list[dict[str, Any]] | None = None, **parts: Any) -> dict[str, Any]:
    """A WordPiece tokenizer over words between blanks; the first text is the unknown token."""
    model = {"type": "WordPiece", "unk_token": texts[0], "vocab": {text: token for token, text in enumerate(texts)}}
    return {
        "added_tokens": added_tokens or [],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": model,
        **parts,
    }
