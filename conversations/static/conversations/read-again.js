/* The conversation as the server renders it now, for what happened while this page was not connected. */

let reads = 0;

/**
 * @param {{changed: string | null, branch: string | null}} page when the conversation last changed, as far as the page knows, and the end of its branch
 * @returns {Promise<{element: ParentNode, runs: any[]} | null>} null: nothing has changed, it cannot be read now, or it is
 *   being read anew
 */
export async function readAgain(page) {
  const address = new URL(location.href);
  if (page.changed) address.searchParams.set("since", page.changed);
  const number = ++reads;
  let response;
  try {
    response = await fetch(address);
  } catch {
    return null;
  }
  if (response.status !== 200 || response.redirected) return null;
  const text = await response.text();
  if (number !== reads) return null;
  const rendered = new DOMParser().parseFromString(text, "text/html");
  const { runs, changed, branch } = JSON.parse(rendered.querySelector("#page-data")?.textContent ?? "{}");
  Object.assign(page, { changed, branch });
  const element = rendered.querySelector(".thread");
  return element && { element, runs };
}
