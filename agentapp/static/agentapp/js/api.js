/* The REST API, as the signed-in person. */

import { gettext } from "#app/i18n.js";

/** A refusal of the server, or its absence (`code` "unreachable"), in words for people. */
export class ApiError extends Error {
  /**
   * @param {string} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

function csrfToken() {
  const found = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/);
  return found ? decodeURIComponent(found[1]) : "";
}

/**
 * @param {"GET" | "PATCH" | "POST" | "DELETE"} method
 * @param {string} path below /api/v1
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export async function request(method, path, body) {
  let response;
  try {
    response = await fetch(`/api/v1${path}`, {
      method,
      headers: { Accept: "application/json", "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
      body: body ? JSON.stringify(body) : undefined,
    });
  } catch {
    throw new ApiError("unreachable", gettext("The server cannot be reached. Nothing was changed; try again when the connection is back."));
  }
  const text = await response.text();
  /** @type {any} */
  let data = null;
  try { data = text ? JSON.parse(text) : null; } catch { /* a proxy's page: the status says enough */ }
  if (response.ok) return data;
  throw new ApiError(data?.code ?? String(response.status), data?.detail || data?.title || gettext("The server refused. Nothing was changed; reload the page and try again."));
}
