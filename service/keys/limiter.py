"""A token bucket per API key, counted in the broker so that all processes share it."""

import redis

# One step in the broker: two processes never spend the same token. The broker's clock is the
# only one that counts. Answers with the seconds to wait, 0 for none.
_TAKE = """
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local bucket = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens, at = tonumber(bucket[1]) or burst, tonumber(bucket[2]) or now
tokens = math.min(burst, tokens + math.max(0, now - at) * rate)
local wait = 0
if tokens >= 1 then tokens = tokens - 1 else wait = (1 - tokens) / rate end
redis.call('HSET', KEYS[1], 'tokens', string.format('%.6f', tokens),
           'at', string.format('%.6f', now))
redis.call('EXPIRE', KEYS[1], math.ceil(burst / rate) + 1)
return string.format('%.6f', wait)
"""


def take_token(broker: "redis.Redis", name: str, *, rate: float, burst: int) -> float:
    """Take one token from a bucket; returns the seconds to wait if it is empty, else 0."""
    answer = broker.eval(_TAKE, 1, f"scrim:rate:{name}", str(rate), str(burst))
    return float(answer)
