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
  return answer(response.status, await response.text());
}

/**
 * Posts a file, and tells how much of it is there. An aborted one never ends.
 * @param {string} path below /api/v1
 * @param {File} file
 * @param {(share: number) => void} progress from 0 to 1
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export function upload(path, file, progress, signal) {
  const sending = new XMLHttpRequest(); // `fetch` does not tell how far a request is
  const body = new FormData();
  body.append("file", file);
  return new Promise((resolve, reject) => {
    sending.open("POST", `/api/v1${path}`);
    sending.setRequestHeader("Accept", "application/json");
    sending.setRequestHeader("X-CSRFToken", csrfToken());
    sending.upload.addEventListener("progress", (event) => event.lengthComputable && progress(event.loaded / event.total));
    sending.addEventListener("error", () => reject(new ApiError("unreachable", gettext("The server cannot be reached"))));
    sending.addEventListener("load", () => {
      try { resolve(answer(sending.status, sending.responseText)); } catch (error) { reject(error); }
    });
    signal.addEventListener("abort", () => sending.abort());
    sending.send(body);
  });
}

/** What the server says, or its refusal. @param {number} status @param {string} text */
function answer(status, text) {
  /** @type {any} */
  let data = null;
  try { data = text ? JSON.parse(text) : null; } catch { /* a proxy's page: the status says enough */ }
  if (status >= 200 && status < 300) return data;
  throw new ApiError(data?.code ?? String(status), data?.detail || data?.title || gettext("The server refused. Nothing was changed; reload the page and try again."));
}
