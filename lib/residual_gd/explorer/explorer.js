// An explorer: curves, or a place in a triangle, over a grid of settings moved through by sliders. It draws what Python
// put into its payload (grid.py, explorer.py and triangle.py say what) and computes nothing. Two hosts: anywidget calls
// `render` in a live kernel; a page of the book calls `hydrate`.

const SVG = "http://www.w3.org/2000/svg";
const MARGIN = { top: 12, right: 14, bottom: 46, left: 62 };
const COLOURS = 25; // steps of the scale of colours, interpolated between these
const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
const html = (name, attributes = {}, ...children) => make(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => make(document.createElementNS(SVG, name), attributes, children);

// ---- axes

function decades(low, high) {
  const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9);
  const every = Math.max(1, Math.ceil((last - first) / 6));
  const ticks = [];
  for (let k = last; k >= first; k -= every)
    ticks.push([10 ** k, "10" + [...String(k)].map((sign) => SUPERSCRIPT[sign]).join("")]);
  return ticks;
}

function round_steps(low, high, most) {
  const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough * (1 - 1e-9));
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++)
    ticks.push([k * step, String(Number((k * step).toPrecision(6)))]);
  return ticks;
}

// Where a value of the axis lies on `length` pixels; `up`: the axis points upwards.
function scale(axis, length, up) {
  const f = axis.log ? (v) => (v > 0 ? Math.log10(v) : -Infinity) : (v) => v;
  const [low, high] = axis.range.map(f);
  const at = (value) => {
    const share = Math.min(Math.max((f(value) - low) / (high - low), -0.1), 1.1); // what is outside is cut off
    return length * (up ? 1 - share : share);
  };
  const ticks = axis.log ? decades(low, high) : round_steps(low, high, length < 330 ? 5 : 8);
  return { at, ticks };
}

// ---- the picture

function outline(x, y, mark, across, upwards) {
  let path = "", pen = "M";
  for (let k = 0; k < Math.min(x.length, y.length); k++) {
    if (y[k] === null) {
      pen = "M";
      continue;
    }
    path += `${pen}${across.at(x[k]).toFixed(2)} ${upwards.at(y[k]).toFixed(2)}`;
    if (mark === "points") path += "h0";
    else pen = "L";
  }
  return path;
}

function picture(payload, frame, width) {
  const height = Math.max(230, Math.min(340, 0.55 * width));
  const w = width - MARGIN.left - MARGIN.right, h = height - MARGIN.top - MARGIN.bottom;
  const { x: xAxis, y: yAxis } = payload.axes;
  const across = scale(xAxis, w, false), upwards = scale(yAxis, h, true);
  const grid = svg("g", { class: "explorer-grid" });
  for (const [value, text] of across.ticks) {
    const x = across.at(value);
    grid.append(
      svg("line", { x1: x, x2: x, y1: 0, y2: h }),
      svg("text", { x, y: h + 18, "text-anchor": "middle" }, text),
    );
  }
  for (const [value, text] of upwards.ticks) {
    const y = upwards.at(value);
    grid.append(
      svg("line", { x1: 0, x2: w, y1: y, y2: y }),
      svg("text", { x: -8, y: y + 4, "text-anchor": "end" }, text),
    );
  }
  grid.append(
    svg("text", { x: w / 2, y: h + 38, "text-anchor": "middle" }, xAxis.label),
    svg("text", { transform: `translate(-48 ${h / 2}) rotate(-90)`, "text-anchor": "middle" }, yAxis.label),
  );
  // An inner <svg> cuts off what lies outside of the axes (but not half of a point on them).
  const box = { x: -5, y: -5, width: w + 10, height: h + 10, viewBox: `-5 -5 ${w + 10} ${h + 10}` };
  const inside = svg("svg", { ...box, class: "explorer-curves", overflow: "hidden" });
  payload.curves.forEach(({ label, mark }, k) => {
    const d = outline(payload.x, frame.y[k], mark, across, upwards);
    inside.append(svg("path", { d, class: `explorer-curve-${k} explorer-${mark}`, "data-label": label }));
  });
  const names = payload.curves.map((curve) => curve.label).join(", ");
  return svg(
    "svg",
    { width, height, role: "img", "aria-label": `${payload.title}: ${yAxis.label} over ${xAxis.label}; ${names}` },
    svg("g", { transform: `translate(${MARGIN.left} ${MARGIN.top})` }, grid, inside),
  );
}

function legend(curves) {
  const items = curves.map(({ label, mark }, k) => {
    const d = mark === "points" ? "M14 6h0" : "M1 6L27 6";
    const sample = svg("path", { d, class: `explorer-curve-${k} explorer-${mark}` });
    return html("li", {}, svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, sample), label);
  });
  return html("ul", { class: "explorer-legend" }, ...items);
}

// ---- maps over a triangle, with a place and a direction in each

function colour(k) {
  const at = (k / (COLOURS - 1)) * (VIRIDIS.length - 1), low = Math.min(Math.floor(at), VIRIDIS.length - 2);
  return `rgb(${VIRIDIS[low].map((c, i) => Math.round(c + (at - low) * (VIRIDIS[low + 1][i] - c)))})`;
}

// The place and the direction on map m, all that moves.
function here({ at, turn }, m, size) {
  const place = `translate(${at[0] * size} ${(Math.sqrt(0.75) - at[1]) * size})`;
  const arrow = { d: "M-38 0H38M-29 -7L-38 0L-29 7M29 -7L38 0L29 7", transform: `rotate(${-turn[m]})` };
  const arrows = turn[m] === null ? [] : [svg("path", { ...arrow, class: "explorer-halo" }), svg("path", arrow)];
  return svg("g", { class: "explorer-here", transform: place, "data-size": size }, ...arrows, svg("circle", { r: 5 }));
}

function triangle({ side, corners, maps }, m, frame, size) {
  const { label, values, range } = maps[m], up = size * Math.sqrt(0.75);
  // The values run over (i, j), the steps towards tokens 1 and 2; the corners lie left, right and above.
  const place = ([i, j]) => `${((side - i + j) / side / 2 * size).toFixed(1)} ${((i + j) / side * up).toFixed(1)}`;
  const share = ([i, j]) => values[(i * (2 * side + 3 - i)) / 2 + j] / range[1];
  const paths = Array(COLOURS).fill("");
  const cell = (...ends) => {
    const mean = ends.reduce((sum, end) => sum + share(end), 0) / 3;
    paths[Math.min(Math.floor(mean * COLOURS), COLOURS - 1)] += `M${ends.map(place).join("L")}Z`;
  };
  for (let i = 0; i < side; i++)
    for (let j = 0; i + j < side; j++) {
      cell([i, j], [i + 1, j], [i, j + 1]);
      if (i + j + 2 <= side) cell([i + 1, j], [i, j + 1], [i + 1, j + 1]);
    }
  const cells = paths.map((d, k) => svg("path", { d, fill: colour(k), stroke: colour(k) }));
  const piece = { width: size / COLOURS + 0.5, height: 9, y: up + 32 };
  const bar = paths.map((_, k) => svg("rect", { ...piece, x: (k * size) / COLOURS, fill: colour(k) }));
  const ticks = scale({ log: false, range }, size, false);
  const words = [
    [0, up + 19, corners[0]], [size, up + 19, corners[1]], [size / 2, -6, corners[2]], [size / 2, -30, label],
    ...ticks.ticks.map(([value, text]) => [ticks.at(value), up + 57, text]),
  ].map(([x, y, text]) => svg("text", { x, y, "text-anchor": "middle" }, text));
  const map = svg("g", { class: "explorer-map" }, ...cells);
  const texts = svg("g", { class: "explorer-grid" }, ...bar, ...words);
  const whole = svg("g", { transform: "translate(35 45)" }, map, here(frame, m, size), texts);
  const told = { role: "img", "aria-label": `${label} over ${corners.join(", ")}` };
  return svg("svg", { ...told, width: size + 70, height: up + 110 }, whole);
}

function pictures(payload, frame, width) {
  if (!payload.triangle) return [picture(payload, frame, width)];
  const { maps } = payload.triangle, columns = width < 300 * maps.length ? 1 : maps.length;
  return maps.map((_, m) => triangle(payload.triangle, m, frame, Math.min(width / columns, 350) - 75));
}

// ---- the read-out

function readout(labels, values) {
  const pairs = labels.map((label, k) => {
    const bad = /fails|refused/i.test(values[k]);
    return html("div", bad ? { class: "explorer-fails" } : {}, html("dt", {}, label), html("dd", {}, values[k]));
  });
  return html("dl", {}, ...pairs);
}

function table({ caption, head, names }, { rows, fails }) {
  const top = head.map((text) => html("th", { scope: "col" }, text));
  const body = rows.map((cells, k) => {
    const row = [html("th", { scope: "row" }, names[k]), ...cells.map((text) => html("td", {}, text))];
    return html("tr", fails.includes(k) ? { class: "explorer-fails" } : {}, ...row);
  });
  const parts = [html("thead", {}, html("tr", {}, ...top)), html("tbody", {}, ...body)];
  return html("table", {}, html("caption", {}, caption), ...parts);
}

// ---- the whole: sliders, picture, legend, read-out

// ask: in a live kernel, a function from the values of the controls to a promise of a frame.
export function explore(host, payload, ask = null) {
  const at = payload.controls.map((control) => control.start);
  let frame = null, width = 0;

  const plot = html("div", { class: "explorer-plot" });
  const reading = html("div", { class: "explorer-reading", role: "status" });
  // A box that may scroll must be within the keyboard's reach.
  const box = payload.table ? { role: "region", tabindex: 0, "aria-label": payload.table.caption } : {};
  const rows = html("div", { class: "explorer-table", ...box });

  const draw = () => {
    width = Math.max(280, host.clientWidth || 640);
    plot.replaceChildren(...pictures(payload, frame, width));
  };
  const show = (next) => {
    frame = next;
    const moving = plot.querySelectorAll(".explorer-here");
    moving.forEach((old, m) => old.replaceWith(here(frame, m, Number(old.dataset.size))));
    if (!moving.length) draw();
    reading.replaceChildren(readout(payload.readings, frame.read));
    if (payload.table) rows.replaceChildren(table(payload.table, frame));
  };
  const sliders = payload.controls.map(({ label, text }, c) => {
    const output = html("span", { class: "explorer-value" });
    const input = html("input", {
      type: "range", min: 0, max: text.length - 1, step: 1, value: at[c], "aria-label": label,
    });
    const tell = () => {
      output.textContent = text[at[c]];
      input.setAttribute("aria-valuetext", text[at[c]]);
    };
    input.addEventListener("input", () => {
      at[c] = Number(input.value);
      tell();
      show(payload.frames[at.reduce((index, k, i) => index * payload.controls[i].text.length + k, 0)]);
    });
    tell();
    return html("label", {}, html("span", {}, label, " ", output), input);
  });

  host.classList.add("explorer");
  host.addEventListener("keydown", (event) => event.stopPropagation()); // JupyterLab would take the arrow keys
  host.setAttribute("role", "group");
  host.setAttribute("aria-label", payload.title);
  host.replaceChildren(
    html("p", { class: "explorer-title" }, payload.title),
    html("div", { class: "explorer-controls" }, ...sliders),
    plot,
    legend(payload.curves ?? []),
    reading,
    rows,
  );
  if (ask) host.append(off_grid(payload.controls, at, ask, show));
  show(payload.frames[at.reduce((index, k, i) => index * payload.controls[i].text.length + k, 0)]);
  new ResizeObserver(() => {
    if (host.clientWidth && Math.max(280, host.clientWidth) !== width) draw();
  }).observe(host);
}

function off_grid(controls, at, ask, show) {
  const fields = controls.map(({ label, numbers }, c) => {
    if (!numbers) return null;
    const input = html("input", { type: "number", step: "any", value: numbers[at[c]] });
    return { input, part: html("label", {}, html("span", {}, label), input) };
  });
  const button = html("button", { type: "button" }, "Compute this setting");
  const message = html("span", { role: "status" });
  button.addEventListener("click", async () => {
    message.textContent = "computing ...";
    try {
      show(await ask(controls.map(({ text }, c) => (fields[c] ? Number(fields[c].input.value) : text[at[c]]))));
      message.textContent = "computed by the library";
    } catch (error) {
      message.textContent = error.message;
    }
  });
  return html("div", { class: "explorer-live" }, ...fields.filter(Boolean).map((f) => f.part), button, message);
}

// ---- hosts

// The picture that stands in for the explorer, in the same output; on a page it is a link to the picture.
function hide_picture(host) {
  const output = host.closest(".cell_output, .jp-OutputArea");
  for (const image of output ? output.querySelectorAll("img") : []) (image.closest("a") ?? image).hidden = true;
}

export function hydrate(root) {
  for (const data of root.querySelectorAll(".explorer-data > script[type='application/json']")) {
    const host = html("div");
    hide_picture(data);
    data.parentElement.replaceWith(host);
    explore(host, JSON.parse(data.textContent));
  }
}

function render({ model, el }) {
  const host = html("div");
  el.append(host);
  let count = 0;
  const ask = (values) =>
    new Promise((resolve, reject) => {
      const number = ++count;
      const answered = () => {
        const answer = model.get("answer");
        if (answer.number !== number) return;
        model.off("change:answer", answered);
        if (answer.error) reject(new Error(answer.error));
        else resolve(answer.frame);
      };
      model.on("change:answer", answered);
      model.set("wanted", { number, values });
      model.save_changes();
    });
  explore(host, model.get("payload"), model.get("anywhere") ? ask : null);
  // The front end may draw the picture after the widget.
  for (const wait of [0, 300, 1500]) setTimeout(() => hide_picture(el), wait);
}

export default { render };
