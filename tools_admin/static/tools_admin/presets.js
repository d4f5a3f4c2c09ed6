/* The form of a provider: the chosen kind fills in its address, unless somebody wrote another one. */

/** @type {Object<string, {url: string, hint: string, key: boolean}>} */
const presets = JSON.parse(/** @type {HTMLElement} */ (document.getElementById("presets")).textContent ?? "{}");
const kind = /** @type {HTMLSelectElement | null} */ (document.getElementById("id_preset"));
const address = /** @type {HTMLInputElement | null} */ (document.getElementById("id_base_url"));

if (kind && address) {
  const hint = document.createElement("p");
  hint.className = "leading-relaxed mt-2 text-xs";
  address.after(hint);
  const known = Object.values(presets).map((preset) => preset.url);
  const follow = () => {
    const preset = presets[kind.value];
    if (known.includes(address.value)) address.value = preset.url;
    address.placeholder = preset.url || "https://api.example.org/v1";
    hint.textContent = preset.hint;
    hint.hidden = !preset.hint;
  };
  kind.addEventListener("change", follow);
  follow();
}
