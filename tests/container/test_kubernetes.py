import pytest

from modelc.container.kubernetes import manifests


def test_the_manifests_are_valid_and_safe() -> None:
    yaml = pytest.importorskip("yaml")
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    found = {}
    for text in manifests("tiny-model", "tiny-model:0.1.0", 100_000_000).values():
        manifest = yaml.safe_load(text)
        kubernetes_validate.validate(manifest, "1.31", strict=True)
        assert manifest["metadata"]["name"] == "tiny-model"
        found[manifest["kind"]] = manifest["spec"]
    assert set(found) == {"Deployment", "Service", "HorizontalPodAutoscaler"}
    pod = found["Deployment"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["httpGet"] == {"path": "/health", "port": "http"}
    assert container["image"] == "tiny-model:0.1.0"
    assert container["resources"]["requests"]["memory"] == "1120Mi"
    metric = found["HorizontalPodAutoscaler"]["metrics"][0]["pods"]["metric"]
    assert metric == {"name": "modelc_active_requests"}
