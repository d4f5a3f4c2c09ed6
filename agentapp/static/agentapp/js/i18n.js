/* Words and figures in the page's language. The catalogue is Django's, loaded before all modules. */

/** @type {{gettext: (text: string) => string, ngettext: (one: string, many: string, count: number) => string, interpolate: (text: string, values: Object<string, unknown>, named: boolean) => string}} */
const catalogue = /** @type {any} */ (globalThis).django;

export const locale = document.documentElement.lang || "en";

/** @param {string} text */
export const gettext = (text) => catalogue.gettext(text);

/**
 * @param {string} text with `%(name)s` places
 * @param {Object<string, unknown>} values
 */
export const format = (text, values) => catalogue.interpolate(text, values, true);

/**
 * @param {string} one
 * @param {string} many
 * @param {number} count
 */
export const ngettext = (one, many, count) =>
  format(catalogue.ngettext(one, many, count), { count: count.toLocaleString(locale) });

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds >= 100) return `${Math.round(seconds / 60)} min`;
  const digits = seconds < 60 ? 1 : 0;
  return `${seconds.toLocaleString(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits })} s`;
}

/** A day and time. @param {string} iso */
export const moment = (iso) => new Date(iso).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });

/** @param {number} bytes */
export const megabytes = (bytes) => `${Math.round(bytes / 1e6).toLocaleString(locale)} MB`;

/** @param {number} part of 1 */
export const percent = (part) => part.toLocaleString(locale, { style: "percent" });
