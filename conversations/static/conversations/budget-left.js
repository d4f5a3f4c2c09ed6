/* What is left of the tightest budget, below the list of conversations. */

import { one, setText } from "#app/dom.js";
import { gettext } from "#app/i18n.js";
import { money, tokens } from "#app/money.js";

/** @param {{unit: "cost" | "tokens", left: number, low: boolean}} budget */
export function showBudget({ unit, left, low }) {
  const link = one(".budget-left");
  const amount = unit === "cost" ? money(left) : tokens(left);
  setText(one("[data-rest]", link), gettext("%(left)s left").replace("%(left)s", amount));
  link.toggleAttribute("data-low", low);
  link.hidden = false;
}
