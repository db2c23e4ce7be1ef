from modelc.bundle.distributions import FOR_GRAPHS, LEFT_OUT, needed_packages


def test_a_compiled_file_carries_what_serving_needs_and_no_compiler() -> None:
    names = {package.name for package in needed_packages()}
    assert {"numpy", "litestar", "uvicorn", "msgspec"} <= names
    assert not names & (LEFT_OUT.keys() | FOR_GRAPHS)


def test_onnx_graphs_have_the_element_types_that_numpy_lacks() -> None:
    plain, graph = ({package.name for package in needed_packages(is_graph=is_graph)} for is_graph in (False, True))
    assert graph - plain == FOR_GRAPHS
