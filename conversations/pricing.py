"""What a call may cost before it happens, and what it did cost."""

from collections.abc import Sequence
from typing import Any

from agentapp.engine import CallKind, ChatModel, Prices, Usage
from conversations.allotments import Amount
from tools_admin.models import LanguageModel


class Pricing:
    """Of one run, whose `model` is one of these `rows` at a time (any of them, after a fallback)."""

    def __init__(self, model: ChatModel, rows: Sequence[LanguageModel]) -> None:
        self._model: Any = model
        self._prices = [Prices(*row.prices) for row in rows]
        self._by_name = {row.name: Prices(*row.prices) for row in reversed(rows)}
        self._longest_reply = max(row.max_output_tokens for row in rows)

    @property
    def model_id(self) -> int:
        """The row of the model in use."""
        return int(getattr(self._model, "current", self._model).row.pk)

    def estimate(self, request: dict[str, Any]) -> Amount:
        """What a model call may take: the request and the longest reply, by the dearest model that may answer."""
        size = int(request.get("size", 0))
        usage = Usage(size, self._longest_reply)
        return Amount(max(prices.cost_of(usage) for prices in self._prices), size + self._longest_reply)

    def price(self, kind: CallKind, result: dict[str, Any], reserved: Amount) -> Amount:
        """What a call took. A tool has one price for each call that ran."""
        if kind is CallKind.LLM:
            usage = Usage(**(result.get("usage") or {}))
            prices: Any = self._by_name.get(
                str(result.get("model")), self._model
            )  # parts of a plan have models of their own
            return Amount(int(prices.cost_of(usage)), usage.input_tokens + usage.output_tokens)
        return Amount() if result.get("not_run") else reserved
