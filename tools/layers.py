"""The map of the rooms, as tutti/README.md draws it: `### tutti/base (level 0)`."""

import re
from pathlib import Path

HEADING = re.compile(r"^###\s+(?P<rooms>.+?)\s+\(level (?P<level>\d+)\)\s*$", re.MULTILINE)
FIRST_LEVEL_WITH_TORCH = 3


def read_levels(root: Path) -> dict[str, int]:
    """Level by room ("tutti/base", "cli"); a heading may name several rooms, with commas between them."""
    text = (root / "tutti" / "README.md").read_text(encoding="utf-8")
    levels: dict[str, int] = {}
    for heading in HEADING.finditer(text):
        for room in heading["rooms"].split(","):
            levels[room.strip().strip("`").rstrip("/")] = int(heading["level"])
    return levels


def room_of(path: str, levels: dict[str, int]) -> str | None:
    """The room that holds a file, by its path from the repository's root."""
    inside = [room for room in levels if path.startswith(room + "/")]
    return max(inside, key=len, default=None)
