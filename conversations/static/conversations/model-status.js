/* A quiet line while no model can answer yet. Asks the server only until one can. */

import { ApiError, request } from "#app/api.js";
import { one, setText } from "#app/dom.js";
import { format, gettext, megabytes } from "#app/i18n.js";

const PAUSE_MS = 2000;

let timer = 0;

export async function watchModelStatus() {
  clearTimeout(timer);
  const bar = one("#model-status");
  let status;
  try {
    status = await request("GET", "/status");
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    timer = setTimeout(watchModelStatus, PAUSE_MS * 5);
    return;
  }
  const { model, worker } = status;
  bar.hidden = model.state === "ready" && worker;
  setText(one("[data-message]", bar), words(model));
  const progress = /** @type {HTMLProgressElement} */ (one("progress", bar));
  progress.hidden = model.state !== "downloading" || !model.total_bytes;
  progress.max = model.total_bytes || 1;
  progress.value = model.done_bytes;
  if (!bar.hidden) timer = setTimeout(watchModelStatus, PAUSE_MS);
}

/** @param {{state: string, message: string, done_bytes: number, total_bytes: number}} model */
function words(model) {
  switch (model.state) {
    case "ready": return gettext("No worker is running at the moment. What you send is kept and answered when one is back.");
    case "downloading": return format(gettext("The demo model is being downloaded: %(done)s of %(total)s. What you send until then is kept and answered afterwards."), { done: megabytes(model.done_bytes), total: megabytes(model.total_bytes) });
    case "loading": return gettext("The demo model is starting. What you send until then is kept and answered afterwards.");
    case "failed": return format(gettext("The demo model could not be started. %(message)s"), { message: model.message });
    default: return model.message || gettext("No model is connected. What you send is kept.");
  }
}
