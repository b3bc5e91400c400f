"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const cells = read("cells"), charts = read("charts");
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const palette = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8d6bc9", "#7f7f7f"];

  // Charts: drawn again when the colours change, for an SVG keeps the colours that it was drawn with.
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  function config(dark) {
    const ink = dark ? "#e8eaed" : "#1b1f24", line = dark ? "#4a525c" : "#c9d0d8";
    const text = { labelColor: ink, titleColor: ink };
    return {
      background: null,
      // One image with one name: its parts are not to be read out one by one.
      mark: { aria: false },
      group: { aria: false },
      view: { stroke: line },
      axis: { ...text, aria: false, gridColor: dark ? "#2b3138" : "#e6e9ed", domainColor: line, tickColor: line },
      legend: { ...text, aria: false, symbolType: "circle" },
      header: text,
      rule: { color: ink },
      range: { category: palette },
    };
  }
  async function draw(dark) {
    for (const place of document.querySelectorAll("[data-chart]")) {
      const spec = charts[place.dataset.chart];
      await window.colltuneEmbed(place, spec, { actions: false, renderer: "svg", config: config(dark) });
      for (const svg of place.querySelectorAll("svg")) {
        svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", spec.description);
      }
    }
    root.dataset.drawn = dark ? "dark" : "light";
  }
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    draw(isDark());
  });
  system.addEventListener("change", () => draw(isDark()));
  let wasDark = false;
  window.addEventListener("beforeprint", () => { wasDark = isDark(); root.dataset.theme = "light"; draw(false); });
  window.addEventListener("afterprint", () => { root.dataset.theme = wasDark ? "dark" : "light"; draw(wasDark); });
  draw(isDark());

  // The map: times of all algorithms beside the cell that is pointed at or focused.
  const tip = document.getElementById("tip");
  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }
  function show(button) {
    const cell = cells[button.dataset.cell];
    const table = element("table"), head = element("tr");
    for (const [i, name] of ["", "median", "95% interval", "default/it"].entries()) head.append(element("th", name, i ? "n" : ""));
    table.append(head);
    for (const row of cell.rows) {
      const line = element("tr", undefined, row[0] === cell.chosen ? "on" : "");
      row.forEach((value, i) => line.append(element("td", value, i ? "n" : "")));
      table.append(line);
    }
    tip.replaceChildren(element("p", cell.title), table, ...(cell.proof ? [element("div", cell.proof)] : []));
    tip.hidden = false;
    const at = button.getBoundingClientRect(), box = tip.getBoundingClientRect();
    const below = at.bottom + 6 + box.height < window.innerHeight;
    tip.style.left = `${Math.max(6, Math.min(at.left, window.innerWidth - box.width - 6))}px`;
    tip.style.top = `${below ? at.bottom + 6 : Math.max(6, at.top - box.height - 6)}px`;
    button.setAttribute("aria-describedby", "tip");
  }
  function hide(button) { tip.hidden = true; button.removeAttribute("aria-describedby"); }
  for (const button of document.querySelectorAll("button.cell")) {
    button.addEventListener("mouseenter", () => show(button));
    button.addEventListener("focus", () => show(button));
    button.addEventListener("mouseleave", () => hide(button));
    button.addEventListener("blur", () => hide(button));
    button.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (event.key === "Escape") { hide(button); return; }
      if (!step) return;
      const place = button.closest("td"), line = place.parentElement;
      const next = step[1] ? line.parentElement.rows[line.sectionRowIndex + step[1]]?.cells[place.cellIndex] : line.cells[place.cellIndex + step[0]];
      const target = next?.querySelector("button.cell");
      if (!target) return;
      event.preventDefault();
      button.tabIndex = -1;
      target.tabIndex = 0;
      target.focus();
    });
  }
})();
