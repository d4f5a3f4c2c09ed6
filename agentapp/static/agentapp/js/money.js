/* Amounts as people read them: micro-units of the site's one currency, or tokens. */

import { gettext, locale } from "#app/i18n.js";

/** `3.10 USD`; less than a unit with as many digits as it takes to see it. @param {number} micro */
export function money(micro) {
  const value = micro / 1e6;
  const digits = micro === 0 || Math.abs(value) >= 0.1 ? 2 : Math.abs(value) >= 0.001 ? 4 : 6;
  const shown = value.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${shown} ${document.documentElement.dataset.currency ?? ""}`.trim();
}

/** @param {number} count */
export const tokens = (count) => gettext("%(count)s tokens").replace("%(count)s", count.toLocaleString(locale));
