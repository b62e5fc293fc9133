"""`{{#expr: …}}`: arithmetic and comparison, by precedence climbing. Never Python's own `eval`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"\s*(?:(\d+(?:\.\d*)?(?:e[+-]?\d{1,3})?|\.\d+)|(<=|>=|<>|!=|[-+*/^()<>=−×÷]|[a-z]+))", re.IGNORECASE
)
_LEVELS = {
    "or": 1, "and": 2, "=": 3, "!=": 3, "<>": 3, "<": 3, ">": 3, "<=": 3, ">=": 3, "round": 4, "+": 5, "-": 5,
    "−": 5, "*": 6, "/": 6, "div": 6, "mod": 6, "×": 6, "÷": 6, "^": 7,
}  # fmt: skip
_MAX_TOKENS = 200


def evaluate(text: str) -> float | None:
    """The value of an expression, or None when it is none (or divides by zero, or is absurdly long)."""
    tokens: list[str | float] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match or len(tokens) > _MAX_TOKENS:
            return None
        tokens.append(float(match[1]) if match[1] else match[2].lower())
        position = match.end()
    try:
        value, rest = _expression(tokens, 0, 0)
    except (ArithmeticError, ValueError, IndexError):
        return None
    return value if rest == len(tokens) and math.isfinite(value) else None


def format_value(value: float) -> str:
    """As MediaWiki prints it: whole numbers without a point."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.14g}"


def _expression(tokens: list[str | float], at: int, level: int) -> tuple[float, int]:
    left, at = _operand(tokens, at)
    while at < len(tokens) and (mine := _LEVELS.get(str(tokens[at]), 0)) > level:
        sign = tokens[at]
        right, at = _expression(tokens, at + 1, mine)
        left = _apply(sign, left, right)
    return left, at


def _operand(tokens: list[str | float], at: int) -> tuple[float, int]:
    token = tokens[at]
    if isinstance(token, float):
        return token, at + 1
    if token == "(":
        value, at = _expression(tokens, at + 1, 0)
        if tokens[at] != ")":
            raise ValueError("unbalanced parenthesis")
        return value, at + 1
    if token in ("+", "-", "−"):
        value, at = _expression(tokens, at + 1, 7)
        return (value if token == "+" else -value), at
    if token == "pi":
        return math.pi, at + 1
    if token in _FUNCTIONS:
        value, at = _expression(tokens, at + 1, 7)
        return float(_FUNCTIONS[token](value)), at
    raise ValueError(f"no operand: {token!r}")


_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "abs": abs, "ceil": math.ceil, "floor": math.floor, "trunc": math.trunc, "sqrt": math.sqrt,
    "exp": math.exp, "ln": math.log, "sin": math.sin, "cos": math.cos, "tan": math.tan, "not": operator.not_,
}  # fmt: skip


def _apply(sign: str | float, a: float, b: float) -> float:
    match sign:
        case "+":
            return a + b
        case "-" | "−":
            return a - b
        case "*" | "×":
            return a * b
        case "/" | "÷" | "div":
            return a / b
        case "mod":
            return math.fmod(a, b)
        case "^":
            return math.pow(a, b)
        case "round":
            return _round(a, int(b))
        case "and":
            return float(bool(a and b))
        case "or":
            return float(bool(a or b))
        case "=":
            return float(a == b)
        case "!=" | "<>":
            return float(a != b)
        case "<":
            return float(a < b)
        case ">":
            return float(a > b)
        case "<=":
            return float(a <= b)
        case _:
            return float(a >= b)


def _round(value: float, digits: int) -> float:
    """Half away from zero, as PHP does."""
    factor = 10.0 ** max(-15, min(15, digits))
    return math.copysign(math.floor(abs(value) * factor + 0.5), value) / factor
