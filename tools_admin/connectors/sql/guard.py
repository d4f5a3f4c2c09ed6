"""What a query may be: one reading statement, over tables on a list, made of parts that are known to be harmless.

Everything is an allow-list: a kind of expression, a function, a type or a table that is not named here is refused, so
that a new feature of a database is not a new hole. What runs is not the text that was sent but the text written anew
from the parsed tree: a trick of quoting or comments that a database might read differently is gone by then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from tools_admin.connectors.base import ToolError
from tools_admin.connectors.sql.functions import allowed_functions

MAX_SQL_CHARS = 10_000
MAX_NODES = 3_000
MAX_DEPTH = 120
MAX_BRACKETS = 3
MAX_PARENTHESES = 40
MAX_NAME_BYTES = 63  # PostgreSQL cuts longer names, and two different names would become one

_PARTS = """
    Select Union Intersect Except Subquery Values With CTE RecursiveWithSearch
    From Table TableAlias Column Identifier Star Alias Aliases Literal National RawString Null Boolean Tuple Paren
    Where Having Group Order Ordered Limit Offset Fetch LimitOptions Distinct Join Lateral Unnest Explode Cube Rollup
    GroupingSets Window WindowSpec Filter WithinGroup IgnoreNulls RespectNulls Qualify Placeholder Var
    DataType DataTypeParam Interval IntervalSpan Collate Escape AtTimeZone Bracket Slice Array Dot
    Add Sub Mul Div IntDiv Mod Neg Not And Or Xor EQ NEQ GT GTE LT LTE Is NullSafeEQ NullSafeNEQ Between In Like ILike
    Glob SimilarTo Any All Exists DPipe BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseLeftShift BitwiseRightShift
    HexString TsOrDsToTimestamp TsOrDsToDate
    Case If RegexpLike RegexpILike JSONExtract JSONExtractScalar JSONBExtract JSONBExtractScalar JSONPath JSONPathRoot
    JSONPathKey JSONPathSubscript JSONBContains ArrayContainsAll ArrayContainedBy ArrayOverlaps ArrayContains
    MatchAgainst Pow Distance JSONKeyValue JSONKeyValuePair PropertyEQ Kwarg FormatJson
"""
PARTS = frozenset(_PARTS.split())

_TYPES = """
    ARRAY BIGINT BIT BOOLEAN CHAR DATE DATERANGE DATETIME DECIMAL DOUBLE FLOAT INET INT INT128 INTERVAL INTEGER JSON
    JSONB MONEY NCHAR NULL NUMRANGE INT4RANGE INT8RANGE NVARCHAR SMALLINT TEXT TIME TIMETZ TIMESTAMP TIMESTAMPLTZ
    TIMESTAMPTZ TIMESTAMPNTZ TINYINT TSRANGE TSTZRANGE UUID VARBINARY VARCHAR BIGDECIMAL BLOB BINARY
"""
TYPES = frozenset(_TYPES.split())

_MAIN = "main"  # how SQLite calls the only schema that can be read
_TABLE_PARTS = {"this", "db", "catalog", "alias", "joins", "laterals", "ordinality"}
_CLOSES = {TokenType.R_PAREN: TokenType.L_PAREN, TokenType.R_BRACKET: TokenType.L_BRACKET}
_MARK = "\ue000"  # of private use, and refused in what is sent
_PLAIN_NAME = re.compile(r"[^\W\d][\w$]*")
_FUNCTION_NAME = re.compile(r'"?([A-Za-z_][A-Za-z0-9_]*)"?\s*\(')


@dataclass(frozen=True, slots=True)
class Table:
    """A table that may be read, spelled as in the database."""

    schema: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True, slots=True)
class Checked:
    """A query that may run: its text as `sqlalchemy.text` reads it, the names of its parameters and of its WITH."""

    sql: str
    parameters: tuple[str, ...]
    named: frozenset[str] = frozenset()


def check_query(sql: str, dialect: str, tables: Collection[Table]) -> Checked:
    """The query as it may run on a database of `dialect` (sqlglot's name); raises `ToolError` that says what to do."""
    tree = _parse(sql, dialect)
    functions = allowed_functions(dialect)
    known = _Tables(dialect, tables)
    parameters: list[str] = []
    for number, node in enumerate(tree.walk()):
        if number > MAX_NODES or node.depth > MAX_DEPTH:
            raise ToolError("The query is too large. Ask for less at a time.")
        _check_part(node, dialect, functions)
        if isinstance(node, exp.Table) and not isinstance(node.this, exp.Func):
            known.resolve(node)
        elif isinstance(node, exp.Placeholder):
            parameters.append(_parameter(node))
    named = frozenset(cte.alias.lower() for cte in tree.find_all(exp.CTE))
    return Checked(_written(tree, dialect), tuple(dict.fromkeys(parameters)), named)


def _written(tree: exp.Expr, dialect: str) -> str:
    """The tree as text. Colons of its own are escaped, so that only parameters are taken for parameters."""
    for node in list(tree.find_all(exp.Placeholder)):
        node.replace(exp.Var(this=f"{_MARK}{node.name}{_MARK}"))
    try:
        text = tree.sql(dialect=dialect, comments=False, unsupported_level=ErrorLevel.RAISE)
    except (SqlglotError, RecursionError) as error:
        raise ToolError(f"The query uses what this database does not know: {_short(error)}") from None
    return re.sub(f"{_MARK}(\\w+){_MARK}", r":\1", text.replace(":", "\\:"))


def _parse(sql: str, dialect: str) -> exp.Expr:
    if len(sql) > MAX_SQL_CHARS:
        raise ToolError(f"The query has {len(sql):,} characters; at most {MAX_SQL_CHARS:,} are allowed.")
    if any(char == "\x00" or "\ud800" <= char <= "\uf8ff" for char in sql):
        raise ToolError("The query holds characters that no database takes.")
    try:
        _check_nesting(sqlglot.tokenize(sql, read=dialect))
        statements = [tree for tree in sqlglot.parse(sql, read=dialect) if tree is not None]
    except (SqlglotError, RecursionError) as error:
        raise ToolError(f"The query cannot be read: {_short(error)}") from None
    if len(statements) != 1:
        raise ToolError(f"Send exactly one SELECT statement; there are {len(statements)}.")
    tree = statements[0]
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery | exp.Values):
        raise ToolError(f"Only SELECT is allowed, not {_spoken(tree)}. This tool reads and changes nothing.")
    return tree


def _check_nesting(tokens: Iterable[Token]) -> None:
    """The parser needs exponential time for arrays and structs in one another."""
    depths = {TokenType.L_PAREN: 0, TokenType.L_BRACKET: 0}
    for token in tokens:
        if token.token_type in depths:
            depths[token.token_type] += 1
        elif (opening := _CLOSES.get(token.token_type)) is not None:
            depths[opening] -= 1
        elif token.token_type is TokenType.STRUCT:
            raise ToolError("STRUCT is not allowed here.")
        if depths[TokenType.L_BRACKET] > MAX_BRACKETS or depths[TokenType.L_PAREN] > MAX_PARENTHESES:
            raise ToolError("The query is nested too deeply. Use WITH, or ask for less at a time.")


def _check_part(node: exp.Expr, dialect: str, functions: Collection[str]) -> None:
    kind = type(node).__name__
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        raise ToolError(f"Call functions by their name alone, without a schema: {node.sql(dialect)[:80]}")
    if isinstance(node, exp.DataType):
        type_name = node.this.name if isinstance(node.this, exp.DType) else str(node.this)
        if type_name not in TYPES:
            raise ToolError(f"Values cannot be cast to {node.sql(dialect)[:80]} here.")
    if isinstance(node, exp.Identifier) and len(node.name.encode()) > MAX_NAME_BYTES:
        raise ToolError(f"Names have at most {MAX_NAME_BYTES} bytes: {node.name[:40]}…")
    if isinstance(node, exp.Identifier) and not node.args.get("quoted") and not _PLAIN_NAME.fullmatch(node.name):
        raise ToolError(f"{node.name[:40]} is no plain name. Write parameters as :name, and odd names in quotes.")
    if isinstance(node, exp.In) and node.args.get("field"):
        raise ToolError("Write IN with a list or with (SELECT …).")
    if isinstance(node, exp.Select) and not node.expressions:
        raise ToolError("The SELECT names no columns.")
    if isinstance(node, exp.Cast) and (node.args.get("format") or node.args.get("action")):
        raise ToolError(f"This kind of cast is not allowed: {node.sql(dialect)[:80]}")
    if kind in PARTS:
        return
    if isinstance(node, exp.Func):
        written = _FUNCTION_NAME.match(node.sql(dialect))
        name = written[1].lower() if written else str(node.sql(dialect)).lower()
        if name in functions:
            return
        raise ToolError(f"The function {name[:80]} is not allowed here. Use the usual functions for reading.")
    raise ToolError(f"{_spoken(node)} is not allowed here: {node.sql(dialect)[:80]}")


class _Tables:
    """The allow-list, and which name in a query means which table."""

    def __init__(self, dialect: str, tables: Collection[Table]) -> None:
        self._dialect = dialect
        self._all = {(table.schema and self._fold(table.schema), self._fold(table.name)): table for table in tables}

    def resolve(self, node: exp.Table) -> None:
        """Writes the table's schema into the query, so that no search path has a say; refuses what is not listed."""
        odd = [part for part, value in node.args.items() if value and part not in _TABLE_PARTS]
        if odd or node.args.get("catalog") or not isinstance(node.this, exp.Identifier):
            raise ToolError(f"This way to name a table is not allowed: {node.sql(self._dialect)[:80]}")
        schema = node.args.get("db")
        name = self._key(node.this)
        if schema is None and self._is_cte(node, name):
            return
        found = [
            table
            for (its_schema, its_name), table in self._all.items()
            if its_name == name and (schema is None or (its_schema or _MAIN) == self._key(schema))
        ]
        if not found:
            names = ", ".join(sorted(str(table) for table in self._all.values())[:40]) or "none"
            raise ToolError(f"There is no table {node.sql(self._dialect)[:80]} here. The tables are: {names}")
        table = found[0]
        if table.schema:
            node.set("db", exp.to_identifier(table.schema, quoted=True))
            node.set("this", exp.to_identifier(table.name, quoted=True))

    def _is_cte(self, node: exp.Table, name: str) -> bool:
        for clause, inside in _with_clauses(node):
            for cte in self._visible(clause, inside):
                if self._key(cte.args["alias"].this) == name:
                    if self._dialect == "postgres" and name.startswith("pg_"):
                        raise ToolError(f"Give {name} another name: names with pg_ are the database's own.")
                    return True
        return False

    def _visible(self, clause: exp.With, inside: exp.CTE | None) -> list[exp.CTE]:
        """The named queries of a WITH that can be seen from its body, or from inside one of them."""
        ctes = list(clause.expressions)
        if inside is None or clause.args.get("recursive") or self._dialect == "sqlite":
            return ctes
        return ctes[: ctes.index(inside)]

    def _key(self, identifier: exp.Identifier) -> str:
        exact = identifier.args.get("quoted") and self._dialect == "postgres"
        return identifier.name if exact else _ascii_lower(identifier.name)

    def _fold(self, name: str) -> str:
        """The allow-list holds names as they are; only databases that do not tell case apart fold them."""
        return name if self._dialect == "postgres" else _ascii_lower(name)


def _with_clauses(node: exp.Expr) -> Iterator[tuple[exp.With, exp.CTE | None]]:
    """All WITH clauses whose names can be seen from a node, inner ones first, and the CTE in which the node is."""
    inside: exp.CTE | None = None
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(child, exp.CTE):
            inside = child
        elif not isinstance(child, exp.With):
            inside = None
        clause = parent.args.get("with_")
        if clause is not None:
            yield clause, inside if child is clause else None
        child, parent = parent, parent.parent


def _parameter(node: exp.Placeholder) -> str:
    name = node.name
    if not name or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ToolError("Write parameters as :name and pass their values by that name.")
    return name


def _ascii_lower(name: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in name)


def _spoken(node: exp.Expr) -> str:
    """ "explain" of a command, "Delete", "Into" …"""
    if isinstance(node, exp.Command):
        return str(node.name).upper()[:20]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()


def _short(error: Exception) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error)) or type(error).__name__
    return " ".join(text.split())[:200]
