"""How tokens are chosen: the options that `run` and `chat` share."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from cyclopts import Parameter


@Parameter(name="*", group="Sampling")
@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """Fields of `Sampling`; None keeps the built-in value."""

    max_tokens: Annotated[int | None, Parameter(help="Most tokens to generate. [default: 128; chat: 1024]")] = None
    temperature: Annotated[float | None, Parameter(help="0 takes the likeliest token. [default: 0]")] = None
    top_k: Annotated[int | None, Parameter(help="Only the K likeliest tokens. [default: 0, off]")] = None
    top_p: Annotated[
        float | None, Parameter(help="The fewest tokens whose probabilities exceed P. [default: 0, off]")
    ] = None
    min_p: Annotated[
        float | None, Parameter(help="Only tokens of at least P times the likeliest one's. [default: 0, off]")
    ] = None
    repetition_penalty: Annotated[
        float | None, Parameter(help="Divides what prompt and answer contain. [default: 1, off; chat: 1.1]")
    ] = None
    presence_penalty: Annotated[
        float | None, Parameter(help="Taken once from tokens in the answer. [default: 0, off]")
    ] = None
    frequency_penalty: Annotated[
        float | None, Parameter(help="Taken for each time a token is in the answer. [default: 0, off]")
    ] = None
    seed: Annotated[int | None, Parameter(help="Draw the same tokens every time. [default: a fresh one]")] = None

    def given(self) -> dict[str, Any]:
        """Return the fields that have a value, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


NOTHING_SAID = SamplingOptions()
