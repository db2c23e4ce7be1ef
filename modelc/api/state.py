"""What all requests of one server share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modelc.api.metrics import Metrics
from modelc.errors import BusyError

if TYPE_CHECKING:
    from modelc.api.options import ServeOptions
    from modelc.runtime import LanguageModel


class ServerState:
    """Options, figures and the model, which comes when it is loaded.

    Args:
        options: What the server was started with.
        model: The model, or None while it loads.
    """

    def __init__(self, options: ServeOptions, model: LanguageModel | None = None) -> None:
        self.options = options
        self.loaded_model = model
        self.started_s = int(time.time())
        self.metrics = Metrics(lambda: None if self.loaded_model is None else self.loaded_model.counters)

    @property
    def model(self) -> LanguageModel:
        """The loaded model.

        Raises:
            BusyError: It is still loading.
        """
        if self.loaded_model is None:
            raise BusyError("the model is loading", hint="try again in a moment")
        return self.loaded_model
