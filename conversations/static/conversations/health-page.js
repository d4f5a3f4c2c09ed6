/* The admin's health page: does a WebSocket get from this browser to the site? */

const PATIENCE_MS = 6_000;
const row = /** @type {HTMLElement} */ (document.getElementById("websocket"));
const begun = performance.now();

/** @param {"ok" | "bad"} state */
function show(state) {
  if (row.dataset.state !== "wait") return;
  row.dataset.state = state;
  for (const part of row.querySelectorAll("[data-when]")) {
    /** @type {HTMLElement} */ (part).hidden = part.getAttribute("data-when") !== state;
  }
  const time = /** @type {HTMLElement} */ (row.querySelector("[data-time]"));
  time.textContent = `${Math.round(performance.now() - begun)} ms`;
  socket.close();
}

const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws/`);
// A refused sign-in opens too, and is closed at once: only an answer proves the way in both directions.
socket.onopen = () => socket.send(JSON.stringify({ type: "ping" }));
socket.onmessage = () => show("ok");
socket.onclose = () => show("bad");
setTimeout(() => show("bad"), PATIENCE_MS);
