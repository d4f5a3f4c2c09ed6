from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from typing import Any

from tools_admin.connectors.base import ToolError

# About 1,200 digits: plenty for people, and every single operation stays in the range of microseconds.
MAX_BITS = 4_000
MAX_LENGTH = 300

CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau}

# Small models write arithmetic as people do; these are the spellings that have one meaning only.
SPELLINGS = [
    (re.compile("[×·]"), "*"),
    (re.compile("[÷∕]"), "/"),
    (re.compile("[−–]"), "-"),
    (re.compile(r"\^"), "**"),
    # A percent sign before an operand is a remainder, anywhere else a percentage.
    (re.compile(r"(\d+(?:\.\d+)?)\s*%\s*of\b"), r"(\1/100)*"),
    (re.compile(r"(\d+(?:\.\d+)?)\s*%(?=\s*(?:[*/)]|$))"), r"(\1/100)"),
]
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def calculate(expression: str) -> str:
    """The expression and its value, as ``17 * 3 = 51``; raises `ToolError` for all that is not arithmetic."""
    if len(expression) > MAX_LENGTH:
        raise ToolError(f"The expression is longer than {MAX_LENGTH} characters. Calculate it in parts.")
    text = expression.strip().rstrip("=? ")
    try:
        value = _evaluate(_as_python(text))
    except ToolError:
        raise
    except ZeroDivisionError:
        raise ToolError("Division by zero.") from None
    except OverflowError:
        raise ToolError("The result is too large.") from None
    except (SyntaxError, MemoryError, RecursionError):
        raise ToolError(f"{text!r} is not an arithmetic expression. Write it like 12 * (3 + 4).") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise ToolError(f"This cannot be calculated: {error}.") from None
    return f"{text} = {_show(value)}"


def _as_python(text: str) -> str:
    if "(" not in text:  # inside a function's parentheses a comma separates arguments
        text = THOUSANDS.sub("", text)
    for spelling, python in SPELLINGS:
        text = spelling.sub(python, text)
    return text


def _evaluate(text: str) -> Any:
    from simpleeval import InvalidExpression, SimpleEval

    if ";" in text or "\n" in text:  # the library would evaluate the first of several statements
        raise SyntaxError
    evaluator = SimpleEval(operators=OPERATORS, functions=FUNCTIONS, names=CONSTANTS)
    # Arithmetic is all there is: no strings, subscripts, attributes, comparisons or comprehensions.
    kinds = (ast.Expr, ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)
    evaluator.nodes = {kind: evaluator.nodes[kind] for kind in kinds} | {ast.Constant: _number}
    try:
        return evaluator.eval(text)
    except InvalidExpression as error:
        known = ", ".join([*FUNCTIONS, *CONSTANTS])
        reason = str(error).rstrip(".")
        raise ToolError(f"{reason}. Only numbers, + - * / // % ** and these are allowed: {known}.") from None


def _number(node: ast.Constant) -> Any:
    if type(node.value) not in (int, float):
        raise ToolError(f"{node.value!r} is not a number.")
    return _bounded(node.value)


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise ToolError("The result is too large.")
    return value


def _power(base: Any, exponent: Any) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and base.bit_length() * exponent > MAX_BITS + base.bit_length():
        raise ToolError("The result is too large.")
    return base**exponent


def _small_integers(function: Callable[..., int]) -> Callable[..., int]:
    """Combinatorics grow faster than their arguments show: bound these, then the result."""

    def bounded(*arguments: int) -> int:
        if any(isinstance(argument, int) and argument > 1_000 for argument in arguments):
            raise ToolError(f"{function.__name__} takes whole numbers up to 1000.")
        return int(_bounded(function(*arguments)))

    return bounded


def _show(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ToolError("The result is not a real number.")
    if isinstance(value, int):
        return str(_bounded(value))
    if not math.isfinite(value):
        raise ToolError("The result is too large.")
    return f"{value:.12g}"


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: lambda left, right: _bounded(left * right),
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "cbrt": math.cbrt,
    "abs": abs,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "min": min,
    "max": max,
    "exp": math.exp,
    "ln": math.log,
    "log": math.log,
    "log10": math.log10,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "degrees": math.degrees,
    "radians": math.radians,
    "hypot": math.hypot,
    "gcd": math.gcd,
    "lcm": _small_integers(math.lcm),
    "factorial": _small_integers(math.factorial),
    "comb": _small_integers(math.comb),
    "perm": _small_integers(math.perm),
}
