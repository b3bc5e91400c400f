"use strict";
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; });

  // On paper everything is unfolded, on white.
  let folded = [], theme;
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
    theme = root.dataset.theme;
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
  });
  // A link leads to what is folded.
  const unfold = () => document.querySelector(location.hash || "#main")?.closest("details")?.setAttribute("open", "");
  window.addEventListener("hashchange", unfold);

  // The maps: times of the algorithms beside the cell that is pointed at or focused.
  const told = JSON.parse(document.getElementById("cells").textContent);
  const tip = document.getElementById("tip");
  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }
  function show(place) {
    const cell = told[place.dataset.cell];
    if (!cell) return;
    const table = element("table"), head = element("tr");
    for (const [i, name] of ["", "median", "default/it"].entries()) head.append(element("th", name, i ? "n" : ""));
    table.append(head);
    for (const [name, time, ratio, on] of cell.rows) {
      const line = element("tr", undefined, on ? "on" : "");
      line.append(element("td", name), element("td", time, "n"), element("td", ratio, "n"));
      table.append(line);
    }
    tip.replaceChildren(element("p", cell.title), table, ...(cell.proof ? [element("div", cell.proof)] : []));
    tip.hidden = false;
    const at = place.getBoundingClientRect(), box = tip.getBoundingClientRect();
    const below = at.bottom + 6 + box.height < window.innerHeight;
    tip.style.left = `${Math.max(6, Math.min(at.left, window.innerWidth - box.width - 6))}px`;
    tip.style.top = `${below ? at.bottom + 6 : Math.max(6, at.top - box.height - 6)}px`;
    place.setAttribute("aria-describedby", "tip");
  }
  function hide(place) { tip.hidden = true; place.removeAttribute("aria-describedby"); }
  for (const map of document.querySelectorAll("table.map")) {
    const first = map.querySelector("td[class]");
    if (first) first.tabIndex = 0;
    map.addEventListener("mouseover", (event) => { if (event.target.dataset.cell) show(event.target); });
    map.addEventListener("focusin", (event) => show(event.target));
    map.addEventListener("mouseout", (event) => hide(event.target));
    map.addEventListener("focusout", (event) => hide(event.target));
    map.addEventListener("click", (event) => { if (event.target.dataset.cell) { event.target.tabIndex = 0; event.target.focus(); } });
    map.addEventListener("keydown", (event) => {
      const place = event.target;
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (event.key === "Escape") { hide(place); return; }
      if (!step) return;
      const line = place.parentElement;
      const next = step[1] ? line.parentElement.rows[line.sectionRowIndex + step[1]]?.cells[place.cellIndex] : line.cells[place.cellIndex + step[0]];
      if (!next?.textContent) return;
      event.preventDefault();
      place.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }
  root.dataset.ready = "yes";
})();
