"""Dockerfile and entrypoint of an image: two stages, a user without rights, a health check."""

from __future__ import annotations

MODEL_FILE = "model.modelc"
COMPILED_FILE = "model-serve.pyz"  # with Python's code inside
EXECUTABLE_FILE = "model-serve"  # the same behind the header of an executable
COMMANDS = {
    MODEL_FILE: f"python3 -m modelc run ./{MODEL_FILE}",
    COMPILED_FILE: f"python3 ./{COMPILED_FILE}",
    EXECUTABLE_FILE: f"./{EXECUTABLE_FILE}",
}
USER_ID = 10001
PORT = 8080
LABEL = "org.opencontainers.image"

DOCKERFILE_HEAD = """\
# Made by modelc {version}; build it with: docker build -t {image} .
"""

BUILD_STAGE = """\
FROM {base} AS build
COPY requirements.txt /tmp/requirements.txt
RUN python3 -m venv /opt/modelc \\
    && /opt/modelc/bin/pip install --no-cache-dir --requirement /tmp/requirements.txt

"""

SERVE_STAGE = """\
FROM {base}
LABEL {label}.title="{title}" {label}.description="{title} served by modelc" {label}.version="{version}"
RUN groupadd --gid {user} modelc \\
    && useradd --uid {user} --gid {user} --no-create-home --home-dir /cache --shell /usr/sbin/nologin modelc \\
    && install --directory --owner={user} --group={user} /cache
{environment}WORKDIR /app
COPY --chmod=0755 {programs} ./
{data}ENV HOME=/cache MODELC_CACHE=/cache MODELC_BIND=0.0.0.0 MODELC_PORT={port} PYTHONDONTWRITEBYTECODE=1
USER {user}:{user}
EXPOSE {port}
HEALTHCHECK --interval=30s --timeout=5s --start-period=180s --retries=3 CMD ["/app/entrypoint.sh", "health"]
ENTRYPOINT ["/app/entrypoint.sh"]
"""

ENVIRONMENT = """\
COPY --from=build /opt/modelc /opt/modelc
COPY modelc /opt/modelc/lib/modelc-package/modelc
ENV PATH=/opt/modelc/bin:$PATH PYTHONPATH=/opt/modelc/lib/modelc-package
"""

ENTRYPOINT = """\
#!/bin/sh
# Serves the model beside this file. What follows the name is passed on: entrypoint.sh --max-concurrent 8
# MODELC_BIND, MODELC_PORT, MODELC_API_KEY and MODELC_THREADS count. `entrypoint.sh health` tells whether it answers.
set -eu
cd "$(dirname "$0")"
if [ "${{1:-}}" = health ]; then
    exec python3 -c 'import os, urllib.request
urllib.request.urlopen("http://127.0.0.1:" + os.environ.get("MODELC_PORT", "{port}") + "/health", timeout=4)'
fi
if [ "${{1:-}}" = run ]; then
    shift
fi
exec {command} --bind "${{MODELC_BIND:-0.0.0.0}}" --port "${{MODELC_PORT:-{port}}}" "$@"
"""

IGNORED = """\
**/__pycache__
kubernetes
"""


def dockerfile(base: str, image: str, title: str, version: str, model_file: str) -> str:
    """The Dockerfile.

    Args:
        base: the image to build on, with Python.
        image: what the image will be called.
        title: the model's name.
        version: of modelc.
        model_file: the model's file in the build context: MODEL_FILE, or a compiled file.
    """
    compiled = model_file != MODEL_FILE
    head = DOCKERFILE_HEAD.format(version=version, image=image)
    build = "" if compiled else BUILD_STAGE.format(base=base)
    serve = SERVE_STAGE.format(
        base=base,
        label=LABEL,
        title=title.replace("\\", "").replace('"', ""),
        version=version,
        user=USER_ID,
        port=PORT,
        environment="" if compiled else ENVIRONMENT,
        programs=f"entrypoint.sh {model_file}" if compiled else "entrypoint.sh",
        data="" if compiled else f"COPY {model_file} ./\n",
    )
    return f"{head}\n{build}{serve}"


def entrypoint(model_file: str) -> str:
    """The shell script that serves the model, in the image and beside it."""
    return ENTRYPOINT.format(command=COMMANDS[model_file], port=PORT)
