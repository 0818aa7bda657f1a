// The panel of notation: set when it is first opened; while one points at a formula, it shows this formula's rows alone.
const panel = document.getElementById("notation-panel");
const button = document.querySelector(".notation-button");
const hint = panel.querySelector(".notation-hint");
const back = panel.querySelector(".notation-back");
const isOpen = () => panel.matches(":popover-open");

function fill() {
  const template = panel.querySelector("template");
  if (!template) return;
  template.replaceWith(template.content);
  window.MathJax?.startup.promise.then(() => window.MathJax.typesetPromise([panel]));
}

function show(rows) {
  for (const row of panel.querySelectorAll("[data-row]")) row.hidden = rows !== null && !rows.includes(row.dataset.row);
  hint.hidden = rows !== null;
  back.hidden = rows === null;
  panel.scrollTop = 0;
}

let waiting;
function look(event) {
  const formula = event.target.closest?.("[data-symbols]");
  clearTimeout(waiting);
  if (formula && isOpen()) waiting = setTimeout(() => show(formula.dataset.symbols.split(" ")), 150);
}

panel.addEventListener("beforetoggle", (event) => event.newState === "open" && fill());
panel.addEventListener("toggle", (event) => {
  button.setAttribute("aria-expanded", event.newState === "open");
  if (event.newState === "closed") show(null);
});
back.addEventListener("click", () => {
  show(null);
  panel.querySelector("header button").focus();
});
document.addEventListener("pointerover", look);
document.addEventListener("focusin", look);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !isOpen()) return;
  const inside = panel.contains(document.activeElement);
  panel.hidePopover();
  if (inside) button.focus();
});
