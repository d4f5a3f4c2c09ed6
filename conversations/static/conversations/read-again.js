/* The conversation as the server renders it now, for what happened while this page was not connected. */

/**
 * @param {{changed: string | null, branch: string | null}} page when the conversation last changed, as far as the page knows, and the end of its branch
 * @returns {Promise<{element: ParentNode, runs: any[]} | null>} null: nothing has changed, or it cannot be read now
 */
export async function readAgain(page) {
  const address = new URL(location.href);
  if (page.changed) address.searchParams.set("since", page.changed);
  let response;
  try {
    response = await fetch(address);
  } catch {
    return null;
  }
  if (response.status !== 200 || response.redirected) return null;
  const rendered = new DOMParser().parseFromString(await response.text(), "text/html");
  const { runs, changed, branch } = JSON.parse(rendered.querySelector("#page-data")?.textContent ?? "{}");
  Object.assign(page, { changed, branch });
  const element = rendered.querySelector(".thread");
  return element && { element, runs };
}
