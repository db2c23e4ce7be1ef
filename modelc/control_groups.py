"""Where the limits of this process's control groups are written (Linux)."""

from __future__ import annotations

from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


def group_folders(controller: str, cgroups: Path = CGROUPS, membership: Path = MEMBERSHIP) -> list[Path]:
    """The folders of the groups on the way from the root to this process, those that exist and others.

    Within a container the mounted tree often begins at its own group, so the root is always among them.

    Args:
        controller: `cpu` or `memory`.
        cgroups: Where version 2 control groups, or version 1's controllers, are mounted.
        membership: The file that names this process's groups.
    """
    folders = [cgroups, cgroups / controller]
    try:
        lines = membership.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return folders
    for line in lines:
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        root = cgroups if controllers == "" else cgroups / controller
        if controllers == "" or controller in controllers.split(","):
            parts = [part for part in group.split("/") if part not in ("", "..")]
            folders += [root.joinpath(*parts[:n]) for n in range(1, len(parts) + 1)]
    return folders
