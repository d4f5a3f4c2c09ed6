/* The rest of a long list, page by page, as its end comes into view. */

/**
 * @param {HTMLElement} list with a link to its next page, if there is one
 * @param {(item: HTMLElement) => void} append
 */
export function startOlder(list, append) {
  const found = list.querySelector("[data-older]");
  if (!(found instanceof HTMLAnchorElement)) return;
  const link = found;
  let loading = false;

  async function load() {
    if (loading) return;
    loading = true;
    const page = await read(link.href);
    loading = false;
    if (!page) return; // the link stays, to be pressed
    for (const item of page.querySelectorAll(".conversation")) append(/** @type {HTMLElement} */ (item));
    const next = page.querySelector("[data-older]");
    if (!(next instanceof HTMLAnchorElement)) {
      watcher.disconnect();
      return link.remove();
    }
    link.href = next.getAttribute("href") ?? "";
    watcher.unobserve(link); // observed anew it tells again whether it is in view
    watcher.observe(link);
  }

  const watcher = new IntersectionObserver((entries) => entries.some((e) => e.isIntersecting) && load(), { root: list, rootMargin: "200px" });
  watcher.observe(link);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    load();
  });
}

/** @param {string} address @returns {Promise<Element | null>} */
async function read(address) {
  try {
    const answer = await fetch(address);
    if (!answer.ok || answer.redirected) return null;
    return new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".conversations");
  } catch {
    return null;
  }
}
