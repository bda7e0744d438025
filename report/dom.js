// Elements out of data. Text only ever becomes a text node: what a run is called cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

/** make("p", {class: "x", onclick: f}, "text", child...); null children are left out. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A part of the page: a heading, and what is below it. */
function section(id, title, ...children) {
  return make("section", {id, "aria-labelledby": id + "-title"}, make("h2", {id: id + "-title"}, title), ...children);
}

function card(attributes, ...children) {
  return make("div", {...attributes, class: "card " + (attributes.class ?? "")}, ...children);
}

/** columns: [{name, number: is it right-aligned}]; rows: arrays of text or elements. A wide table scrolls in its own frame. */
function table(caption, columns, rows, attributes = {}) {
  const kind = (column) => ({class: columns[column].number ? "number" : null});
  const cell = (value, column) => column === 0
    ? make("th", {scope: "row", ...kind(column)}, value) : make("td", kind(column), value);
  return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
    make("table", attributes,
      make("caption", {class: "unseen"}, caption),
      make("thead", {}, make("tr", {}, columns.map((column, i) => make("th", {scope: "col", ...kind(i)}, column.name)))),
      make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell))))));
}

/** Folded away, and built when it is first opened: a table of every chart would be most of the page. */
function folded(summary, build) {
  let built = false;
  const details = make("details", {ontoggle: () => {
    if (!details.open || built) return;
    built = true;
    details.append(build());
  }}, make("summary", {}, summary));
  return details;
}

/** A figure in a table's cell, and a bar of its share before it. */
function barAnd(share, text) {
  const filled = make("span", {class: "bar-fill"});
  filled.style.width = 100 * Math.min(1, Math.max(0, isNumber(share) ? share : 0)) + "%";
  return make("span", {class: "figure-bar"}, make("span", {class: "bar", "aria-hidden": "true"}, filled),
    make("span", {}, text));
}

function legendItem(swatch, text) {
  return make("li", {}, make("span", {class: "swatch " + swatch, "aria-hidden": "true"}), text);
}
