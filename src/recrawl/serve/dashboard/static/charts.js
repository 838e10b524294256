"use strict";
// Tooltips and zoom for the charts that the server draws. A chart is whole without this script: its marks have titles,
// its numbers are in a table, and time ranges are links.

(function () {
  const SMALLEST_DRAG = 12;

  // The marks of a chart as columns: texts and times by place, from left to right.
  function columns(chart) {
    const found = new Map();
    chart.querySelectorAll("circle, rect").forEach(function (mark) {
      const title = mark.querySelector("title");
      if (!title) return;
      const box = mark.getBBox();
      const x = Math.round(box.x + box.width / 2);
      const column = found.get(x) || { x: x, y: box.y, text: title.textContent, at: Number(mark.dataset.at), marks: [] };
      column.y = Math.min(column.y, box.y);
      column.marks.push(mark);
      title.remove(); // the browser's own tooltip would cover ours
      found.set(x, column);
    });
    return [...found.values()].sort(function (a, b) { return a.x - b.x; });
  }

  function place(chart, clientX) {
    const box = chart.getBoundingClientRect();
    return ((clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
  }

  function explain(chart, all, tip) {
    let chosen = -1;
    const show = function (index) {
      if (chosen >= 0) all[chosen].marks.forEach(function (mark) { mark.classList.remove("on"); });
      chosen = index;
      tip.hidden = index < 0;
      if (index < 0) return;
      const column = all[index];
      column.marks.forEach(function (mark) { mark.classList.add("on"); });
      tip.textContent = column.text; // never as markup
      const box = chart.getBoundingClientRect();
      const scale = box.width / chart.viewBox.baseVal.width;
      const left = window.scrollX + box.left + column.x * scale - tip.offsetWidth / 2;
      const widest = document.documentElement.clientWidth - tip.offsetWidth - 8;
      tip.style.left = Math.max(8, Math.min(widest, left)) + "px";
      tip.style.top = window.scrollY + box.top + column.y * scale - tip.offsetHeight - 8 + "px";
    };
    const nearest = function (event) {
      const x = place(chart, event.clientX);
      let best = 0;
      all.forEach(function (column, k) { if (Math.abs(column.x - x) < Math.abs(all[best].x - x)) best = k; });
      show(best);
    };
    chart.addEventListener("pointermove", nearest);
    chart.addEventListener("pointerdown", nearest);
    chart.addEventListener("pointerleave", function () { show(-1); });
    chart.addEventListener("focus", function () { if (chart.matches(":focus-visible")) show(all.length - 1); });
    chart.addEventListener("blur", function () { show(-1); });
    chart.addEventListener("keydown", function (event) {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") show(-1);
      if (!step) return;
      event.preventDefault();
      show(Math.max(0, Math.min(all.length - 1, (chosen < 0 ? all.length : chosen) + step)));
    });
    chart.setAttribute("tabindex", "0");
  }

  // Drag over a chart to see only what lies between: the server draws the page again for that time.
  function zoom(chart, all) {
    let begin = null;
    const frame = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    frame.setAttribute("class", "selection");
    frame.setAttribute("height", String(chart.viewBox.baseVal.height));
    const draw = function (one, other) {
      frame.setAttribute("x", String(Math.min(one, other)));
      frame.setAttribute("width", String(Math.abs(one - other)));
    };
    chart.addEventListener("pointerdown", function (event) {
      if (event.button || event.pointerType === "touch") return; // a finger scrolls
      event.preventDefault();
      begin = place(chart, event.clientX);
      draw(begin, begin);
      chart.append(frame);
    });
    window.addEventListener("pointermove", function (event) { if (begin !== null) draw(begin, place(chart, event.clientX)); });
    window.addEventListener("pointerup", function (event) {
      if (begin === null) return;
      const end = place(chart, event.clientX);
      const low = Math.min(begin, end), high = Math.max(begin, end);
      begin = null;
      frame.remove();
      const inside = all.filter(function (column) { return column.x >= low && column.x <= high; });
      if (high - low < SMALLEST_DRAG || !inside.length) return;
      const from = inside[0].at, to = inside[inside.length - 1].at;
      window.location.search = "?from=" + Math.floor(from - 1) + "&to=" + Math.ceil(to + 1);
    });
  }

  const charts = document.querySelectorAll("svg[data-tips]");
  if (!charts.length) return;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  charts.forEach(function (chart) {
    const all = columns(chart);
    if (!all.length) return;
    explain(chart, all, tip);
    if ("zoom" in chart.dataset) zoom(chart, all);
  });
})();
