// Light or dark, as the system says or as the reader chose; and colours for what is drawn on a canvas.

const THEMES = [["", "Auto"], ["light", "Light"], ["dark", "Dark"]];
const themeListeners = [];
const colors = new Map();

/** The colour of a custom property as the canvas understands it. */
function color(property) {
  if (!colors.has(property)) {
    const probe = make("span", {hidden: true});
    probe.style.color = `var(${property})`;
    document.body.append(probe);
    colors.set(property, getComputedStyle(probe).color);
    probe.remove();
  }
  return colors.get(property);
}

function onThemeChange(listener) {
  themeListeners.push(listener);
}

function applyTheme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  colors.clear();
  for (const listener of themeListeners) listener();
}

function themeSwitch() {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    applyTheme(document.documentElement.dataset.theme));
  return make("fieldset", {class: "switch"}, make("legend", {class: "unseen"}, "Colours"),
    THEMES.map(([name, label]) => make("label", {},
      make("input", {type: "radio", name: "theme", value: name, checked: name === "", onchange: () => applyTheme(name)}),
      make("span", {}, label))));
}
