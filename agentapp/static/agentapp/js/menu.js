/* Menus are popovers: the browser opens, closes and dismisses them; this puts them beside their button. */

const GAP = 4;

/**
 * @param {HTMLElement} menu
 * @param {Element} button
 */
function place(menu, button) {
  const anchor = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = anchor.bottom + GAP + height <= innerHeight;
  const left = Math.min(anchor.left, innerWidth - width - GAP * 2);
  menu.style.left = `${Math.max(GAP * 2, left)}px`;
  menu.style.top = `${below ? anchor.bottom + GAP : Math.max(GAP, anchor.top - GAP - height)}px`;
}

/** @param {HTMLElement} menu */
const entries = (menu) => [.../** @type {NodeListOf<HTMLElement>} */ (menu.querySelectorAll("a, button"))].filter((e) => e.offsetParent !== null);

/** @param {KeyboardEvent} event */
function moveFocus(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const all = entries(/** @type {HTMLElement} */ (event.currentTarget));
  if (all.length === 0) return; // radio buttons move by themselves
  const now = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  all[(now + step + all.length) % all.length]?.focus();
  event.preventDefault();
}

/**
 * Opens a menu beside a button and keeps `aria-expanded` true to it.
 * @param {HTMLElement} menu
 * @param {HTMLElement} button
 */
export function openMenu(menu, button) {
  if (!menu.matches(":popover-open")) menu.showPopover();
  place(menu, button);
  button.setAttribute("aria-expanded", "true");
  entries(menu)[0]?.focus({ preventScroll: true });
  menu.addEventListener("toggle", function closed(event) {
    if (/** @type {ToggleEvent} */ (event).newState !== "closed") return; // that of the opening comes late
    menu.removeEventListener("toggle", closed);
    button.removeAttribute("aria-expanded");
    if (menu.contains(document.activeElement) || document.activeElement === document.body) button.focus({ preventScroll: true });
  });
}

export function startMenus() {
  for (const menu of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".menu[popover]"))) {
    const button = /** @type {HTMLElement | null} */ (document.querySelector(`[popovertarget="${menu.id}"]`));
    menu.addEventListener("keydown", moveFocus);
    if (!button) continue;
    menu.addEventListener("toggle", (event) => {
      const open = /** @type {ToggleEvent} */ (event).newState === "open";
      button.setAttribute("aria-expanded", String(open));
      if (open) place(menu, button);
    });
  }
}
