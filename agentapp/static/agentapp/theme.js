/* Runs before the first paint: marks that scripts work and applies the chosen appearance. A classic script, not a module. */
(() => {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("theme") || ""; } catch { return ""; } };
  /** @param {string} choice "", "light" or "dark" */
  const apply = (choice) => {
    root.dataset.theme = choice;
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.getAttribute("data-theme-choice") === choice));
    }
  };
  root.classList.add("js");
  apply(read());
  document.addEventListener("DOMContentLoaded", () => {
    apply(read());
    document.addEventListener("click", (event) => {
      const button = event.target instanceof Element && event.target.closest("[data-theme-choice]");
      if (!button) return;
      const choice = button.getAttribute("data-theme-choice") ?? "";
      try { localStorage.setItem("theme", choice); } catch { /* private window: for this page only */ }
      apply(choice);
    });
  });
})();
