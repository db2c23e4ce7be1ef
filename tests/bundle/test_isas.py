import pytest

from modelc.bundle import isas
from modelc.bundle.isas import ISAS, choose_isa, isas_of
from modelc.errors import BadInputError, UnsupportedError

EVERY = [isa.name for isa in ISAS]
FEATURES = {isa.name: frozenset(isa.features) for isa in ISAS}


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> object:
    """Makes this computer another one."""

    def become(machine: str, features: frozenset[str]) -> None:
        monkeypatch.setattr(isas, "host_machine", lambda: machine)
        monkeypatch.setattr(isas, "host_features", lambda: features)

    return become


@pytest.mark.parametrize("name", EVERY)
def test_each_processor_gets_the_best_that_it_has(computer, name: str) -> None:
    isa = next(isa for isa in ISAS if isa.name == name)
    computer(isa.machine, FEATURES[name])
    assert choose_isa(EVERY).name == name


def test_one_without_vnni_does_not_get_it_for_its_avx512(computer) -> None:
    computer("x86_64", FEATURES["avx512"] | {"avxvnni"})
    assert choose_isa(EVERY).name == "avx512"


def test_only_what_there_is_code_for_is_chosen(computer) -> None:
    computer("x86_64", FEATURES["avx512vnni"])
    assert choose_isa(["generic", "avx2"]).name == "avx2"


def test_one_can_be_forced(computer) -> None:
    computer("x86_64", FEATURES["avx512vnni"])
    assert choose_isa(EVERY, "generic").name == "generic"


def test_one_that_the_processor_lacks_is_refused_with_what_is_missing(computer) -> None:
    computer("x86_64", FEATURES["avx2"])
    with pytest.raises(BadInputError, match=r"avx512, which needs avx512bw.*generic, avx2"):
        choose_isa(EVERY, "avx512")


@pytest.mark.parametrize("name", ["avx3", "neon", ""])
def test_one_that_is_none_is_refused(computer, name: str) -> None:
    computer("x86_64", FEATURES["avx2"])
    with pytest.raises(BadInputError, match="no such instruction set"):
        choose_isa(EVERY, name)


def test_a_processor_that_is_too_old_is_told_what_it_lacks(computer) -> None:
    computer("x86_64", frozenset({"sse", "sse2", "cx16"}))
    with pytest.raises(UnsupportedError, match=r"x86_64 without popcnt, sse3"):
        choose_isa(EVERY)


def test_another_kind_of_computer_is_told_so(computer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(isas.platform, "machine", lambda: "riscv64")
    with pytest.raises(UnsupportedError, match="riscv64"):
        isas.host_machine()


def test_what_linux_says_is_understood() -> None:
    has = isas.host_features()
    assert choose_isa(EVERY) in isas_of(isas.host_machine())
    assert {"sse2", "neon"} & has
