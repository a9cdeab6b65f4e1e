"""Statistics in LiteLLM's Redis: one hash a deployment, one field an observation, merged by the server.

A write changes the fields that it names, and only where they are newer (of what was accepted: larger): a worker whose
figures are old erases nothing. Whoever has the Redis can write anything there, so the server hands out only small
fields, and what comes back is checked by type and range.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ctx_hooks.learning.stats import KEPT_SECONDS as HELD_SECONDS
from ctx_hooks.learning.stats import KINDS, LARGEST_STAYS, DeploymentStats, Key, Observation, valid

KEY_PREFIX = "ctx_hooks:stats:"
KEPT_SECONDS = 7 * 24 * 3600
MOST_FIELDS, KEPT_FIELDS = 720, 640
"""Eleven kinds of 64 tenants, and four of the deployment's own. Of more, the fields of the tenants go from whom nothing was
heard for longest, a ninth at once; a hash in which others wrote so much besides is started anew."""
REFUSAL, NO_REFUSAL = "refusal", "none"
"""The field that names the newest refusal, and its value where it is missing. A worker that knows it has nothing to read."""
SHOWN_BY_REFUSALS = frozenset({"limit", "own_limit", "refused", "output_limit", "holds_output"})
LARGEST_FIELD_BYTES = 512
"""Sixteen ratios are about 150 bytes, a field's name is below 64."""

READ = f"""
local newest = redis.pcall('HGET', KEYS[1], '{REFUSAL}')
if type(newest) == 'table' or (newest or '{NO_REFUSAL}') == ARGV[1] then return {{}} end
if redis.call('HLEN', KEYS[1]) > {MOST_FIELDS} then return {{}} end
local fields, found = redis.call('HGETALL', KEYS[1]), {{}}
for i = 1, #fields, 2 do
  if #fields[i] <= {LARGEST_FIELD_BYTES} and #fields[i + 1] <= {LARGEST_FIELD_BYTES} then
    found[#found + 1], found[#found + 2] = fields[i], fields[i + 1]
  end
end
return found
"""
"""One command where nothing was refused since, three to read everything. A key of another type is none of ours."""
MERGE = f"""
local held = redis.pcall('HLEN', KEYS[1])
if type(held) == 'table' or held > {2 * MOST_FIELDS} then
  redis.call('DEL', KEYS[1])
  held = 0
end
local names, news = {{}}, {{}}
for i = 2, #ARGV, 4 do names[#names + 1] = ARGV[i] end
local all_known = redis.call('HMGET', KEYS[1], unpack(names))
for n, known in ipairs(all_known) do
  local i = 4 * n - 2
  local order, oldest = tonumber(ARGV[i + 1]), tonumber(ARGV[i + 3])
  local known_order = known and tonumber(string.match(known, '^(%d+%.?%d*)|'))
  local known_at = known and tonumber(string.match(known, '|(%d+%.?%d*)|'))
  if not known_order or not known_at or known_at < oldest or known_order <= order then
    news[#news + 1], news[#news + 2] = ARGV[i], ARGV[i + 2]
  end
end
if ARGV[1] ~= '' then news[#news + 1], news[#news + 2] = '{REFUSAL}', ARGV[1] end
if #news > 0 then held = held + redis.call('HSET', KEYS[1], unpack(news)) end
if held > {MOST_FIELDS} then
  local fields, newest, of, tenants = redis.call('HGETALL', KEYS[1]), {{}}, {{}}, {{}}
  for i = 1, #fields, 2 do
    local tenant = string.match(fields[i], '^[a-z_]+:(.+)$')
    local at = tonumber(string.match(fields[i + 1], '|(%d+%.?%d*)|')) or 0
    if tenant and not of[tenant] then
      tenants[#tenants + 1], of[tenant] = tenant, {{}}
    end
    if tenant then
      newest[tenant] = math.max(newest[tenant] or 0, at)
      table.insert(of[tenant], fields[i])
    end
  end
  table.sort(tenants, function(a, b) return newest[a] < newest[b] end)
  for _, tenant in ipairs(tenants) do
    if redis.call('HLEN', KEYS[1]) <= {KEPT_FIELDS} then break end
    redis.call('HDEL', KEYS[1], unpack(of[tenant]))
  end
  if redis.call('HLEN', KEYS[1]) > {MOST_FIELDS} then redis.call('DEL', KEYS[1]) end
end
redis.call('EXPIRE', KEYS[1], {KEPT_SECONDS})
return 1
"""
"""A field is `order|at|[values]`: the greater order replaces the smaller, and any replaces what is older than `oldest`. Four
commands, however many fields; dropping tenants takes more."""


def observations(answer: Any, now: float) -> DeploymentStats:
    """Return what READ answers, field and value in turn, without whatever is no observation or too old."""
    found: dict[Key, Observation] = {}
    for name, value in _fields(answer).items():
        (kind, _, tenant), observation = name.partition(":"), _observation(value)
        if kind in KINDS and observation is not None and valid(kind, observation, now):
            found[kind, tenant] = observation
    return DeploymentStats(found)


def refusal(answer: Any) -> str:
    """Return which refusal is the newest by what READ answers."""
    return _fields(answer).get(REFUSAL, NO_REFUSAL)


def shows_refusal(shown: Mapping[Key, Observation]) -> bool:
    """Return whether a refusal has shown any of some observations: other workers' next requests have to know those."""
    return any(kind in SHOWN_BY_REFUSALS for kind, _ in shown)


def arguments(shown: Mapping[Key, Observation]) -> list[Any]:
    """Return the arguments by which MERGE merges observations."""
    args: list[Any] = [uuid4().hex if shows_refusal(shown) else ""]
    for (kind, tenant), o in shown.items():
        order = o.values[0] if kind in LARGEST_STAYS else o.at
        text = f"{order}|{o.at}|{json.dumps(list(o.values))}"
        args += [f"{kind}:{tenant}", order, text, o.at - HELD_SECONDS[kind]]
    return args


def _fields(answer: Any) -> dict[str, str]:
    found = answer if isinstance(answer, (list, tuple)) else []
    texts = [each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each) for each in found]
    return dict(zip(texts[::2], texts[1::2], strict=False))


def _observation(text: str) -> Observation | None:
    try:
        _, at, values = text.split("|", 2)
        return Observation(tuple(float(v) for v in json.loads(values)), float(at))
    except (ValueError, TypeError, OverflowError):
        return None
