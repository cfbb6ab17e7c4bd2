"""The files of a deployment: what they name exists, and Kubernetes would accept them."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from castpoi import __version__
from tests.conftest import CommandLine

ROOT = Path(__file__).parents[2]
MANIFESTS = [
    each
    for file in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml"))
    for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
]
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
PROXY = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: each["kind"])
@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_manifests_are_valid_without_unknown_fields(manifest: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_misspelt_field_of_a_manifest_is_found() -> None:
    wrong = MANIFESTS[0] | {"spec": MANIFESTS[0]["spec"] | {"replicsa": 3}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.37", strict=True)


def test_the_parts_of_the_manifests_fit_together() -> None:
    deployment, service, budget = MANIFESTS
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"]
    assert labels == service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["replicas"] > budget["spec"]["minAvailable"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["spec"]["volumes"]}
    assert container["image"] == f"castpoi:{__version__}"


def test_commands_of_containers_have_options_that_exist(castpoi: CommandLine) -> None:
    (container,) = MANIFESTS[0]["spec"]["template"]["spec"]["containers"]
    services = COMPOSE["services"]
    for words in (container["args"], services["castpoi-a"]["command"]):
        plain = [word.replace("${CASTPOI_WORKERS:-1}", "1") for word in words]
        ended = castpoi("serve", "no-such-run", *plain[1:])
        assert ended.code == 1  # of the run, not 2 of the options
        assert "no-such-run" in ended.err


def test_the_proxy_has_every_replica_of_compose() -> None:
    servers = [line.split()[2] for line in PROXY.splitlines() if line.startswith("  server ")]
    replicas = [name for name in COMPOSE["services"] if name.startswith("castpoi-")]
    assert servers == [f"{name}:8080" for name in replicas]
    assert "option httpchk GET /readyz" in PROXY
