"""Rate limits of keys: a token bucket per key, shared by all processes through the broker.

A process takes several tokens at a time and spends them locally, so most requests need no
broker. Unused tokens of a process are never returned: per process, a key can make up to a tenth of
its burst more requests than the bucket allows.
"""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from uuid import UUID

import redis
from starlette.types import Scope

# One atomic script: two processes never spend the same token. Only the broker's clock is used.
# Returns the tokens taken and the seconds to wait for the next one.
_TAKE = """
local rate, burst, wanted = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate)
local taken, wait = math.min(wanted, math.floor(tokens)), 0
tokens = tokens - taken
if taken == 0 then wait = (1 - tokens) / rate end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens),
           'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) + 1)
return {taken, string.format('%.6f', wait)}
"""
_KEYS_REMEMBERED = 10_000
"""Largest number of keys whose local tokens are remembered."""
_LEAVE = "scrim.leave"


class Limiter:
    """Limits the requests of each key: per second, and at the same time."""

    def __init__(
        self, broker: "redis.Redis", *, rate: float, burst: int, most_at_once: int
    ) -> None:
        self._take = broker.register_script(_TAKE)
        self._rate, self._burst = rate, burst
        self._batch = max(1, burst // 10)
        self._most_at_once = most_at_once
        self._held: OrderedDict[UUID, int] = OrderedDict()
        self._present: Counter[UUID] = Counter()
        self._lock = threading.Lock()

    def take_token(self, key_id: UUID) -> float:
        """Take one token of a key; returns the seconds to wait if there is none, else 0."""
        with self._lock:
            held = self._held.pop(key_id, 0)
            if held > 1:
                self._held[key_id] = held - 1
            if held:
                return 0.0
        taken, wait = self._take(
            keys=[f"scrim:rate:{key_id}"], args=[self._rate, self._burst, self._batch]
        )
        with self._lock:
            if taken > 1:
                self._held[key_id] = self._held.get(key_id, 0) + taken - 1
            if len(self._held) > _KEYS_REMEMBERED:
                self._held.popitem(last=False)
        return float(wait)

    def enter(self, key_id: UUID, scope: Scope) -> bool:
        """Count a request until it calls `leave`; False if the key has too many at this moment."""
        with self._lock:
            if self._present[key_id] >= self._most_at_once:
                return False
            self._present[key_id] += 1
        scope[_LEAVE] = lambda: self._leave(key_id)
        return True

    def _leave(self, key_id: UUID) -> None:
        with self._lock:
            self._present[key_id] -= 1
            if not self._present[key_id]:
                del self._present[key_id]


def leave(scope: Scope) -> None:
    """Stop counting a request, if it was counted."""
    end: Callable[[], None] | None = scope.pop(_LEAVE, None)
    if end is not None:
        end()
