"""The instruction sets of this machine, each of which a test sees that takes `isa`."""

import pytest

from modelc.bundle.isas import host_features, host_machine, isas_of


@pytest.fixture(scope="module", params=isas_of(host_machine()), ids=lambda isa: isa.name)
def isa(request: pytest.FixtureRequest) -> str:
    """The name of one that this processor has."""
    if missing := set(request.param.features) - host_features():
        pytest.skip(f"this processor has no {', '.join(sorted(missing))}")
    return str(request.param.name)
