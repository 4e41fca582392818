"""Server-sent events."""

import json

from scrim.records import Event


class EventReader:
    """Parses events line by line; comments and events without a number are skipped."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def feed(self, line: str) -> Event | None:
        """Return the event that this line completes, if any."""
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        if not fields.get("id", "").isdigit() or "data" not in fields:
            return None
        return Event(
            id=int(fields["id"]),
            kind=fields.get("event", "message"),
            data=json.loads(fields["data"]),
        )
