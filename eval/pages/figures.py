"""Figures as text: shares in percent, log-probabilities as they are."""

from __future__ import annotations

import math
from typing import Any

MISSING = "–"


def is_share(metric: str) -> bool:
    """All metric values lie in [0, 1], log-probabilities apart."""
    return "log" not in metric


def figure(value: Any, metric: str, sign: str = "") -> str:
    if value is None or math.isnan(value):
        return MISSING
    text = f"{100 * value:{sign}.1f}" if is_share(metric) else f"{value:{sign}.3f}"
    return text.lstrip("+-") if float(text) == 0 else text


def interval(low: Any, high: Any, metric: str, sign: str = "") -> str:
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    return f"[{figure(low, metric, sign)}, {figure(high, metric, sign)}]"
