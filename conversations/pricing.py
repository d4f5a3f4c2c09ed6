"""What a call may cost before it happens, and what it did cost."""

from collections.abc import Sequence
from typing import Any

from agentapp.engine import CallKind, ChatModel, Prices, Usage
from conversations.allotments import Amount
from tools_admin.models import LanguageModel


class Pricing:
    """Of one run. `model` is its own; `rows` are all that may be asked: its stand-ins, and those of other roles."""

    def __init__(self, model: ChatModel, rows: Sequence[LanguageModel]) -> None:
        self._model: Any = model
        self._prices = {row.name: Prices(*row.prices) for row in reversed(rows)}  # of two with one name the first
        self._ids = {row.name: row.pk for row in reversed(rows)}
        self._longest_reply = max(row.max_output_tokens for row in rows)

    def model_id(self, request: dict[str, Any]) -> int:
        """The row of the model that a call is for."""
        asked = self._ids.get(request.get("model", ""))
        return asked or int(getattr(self._model, "current", self._model).row.pk)

    def estimate(self, request: dict[str, Any]) -> Amount:
        """What a model call may take: the request and the longest reply, by the dearest model that may answer."""
        size = int(request.get("size", 0))
        usage = Usage(size, self._longest_reply)
        return Amount(max(prices.cost_of(usage) for prices in self._prices.values()), size + self._longest_reply)

    def price(self, kind: CallKind, result: dict[str, Any], reserved: Amount) -> Amount:
        """What a call took, by the price of the model that answered. A tool has one price for each call that ran."""
        if kind is not CallKind.LLM:
            return Amount() if result.get("not_run") else reserved
        usage = Usage(**(result.get("usage") or {}))
        prices = self._prices.get(result.get("model", ""))
        cost = prices.cost_of(usage) if prices else int(self._model.cost_of(usage))
        return Amount(cost, usage.input_tokens + usage.output_tokens)
