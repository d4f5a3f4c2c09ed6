/* A long list of models: what is typed narrows it. */

const box = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-filter]"));
box?.addEventListener("input", () => {
  const wanted = box.value.trim().toLowerCase();
  for (const row of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-model]"))) {
    row.hidden = !(row.dataset.model ?? "").toLowerCase().includes(wanted);
  }
});
