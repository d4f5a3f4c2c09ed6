/* The interactive page of the REST API: Swagger UI, and the session's CSRF token for whoever is signed in. */

const place = /** @type {HTMLElement} */ (document.getElementById("api-docs"));
const show = /** @type {any} */ (window).SwaggerUIBundle;

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

show({
  url: place.dataset.document,
  dom_id: "#api-docs",
  presets: [show.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  validatorUrl: null,
  /** @param {any} request */
  requestInterceptor(request) {
    const token = document.cookie.match(/(?:^|; )csrftoken=([^;]+)/);
    if (token && !request.headers.Authorization) request.headers["X-CSRFToken"] = decodeURIComponent(token[1]);
    return request;
  },
});

export {};
