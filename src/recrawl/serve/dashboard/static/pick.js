"use strict";
// In the frame of a stored page: a click chooses an element, and the dashboard gets its selector. Runs nowhere else.
(function () {
  const style = document.createElement("style");
  style.textContent = "*{cursor:crosshair!important}.recrawl-over{outline:2px solid #1d6fd1!important}" +
    ".recrawl-chosen{outline:3px solid #1d7a3c!important;background:#c9f2d4!important;color:#000!important}";
  document.head.append(style);
  let over = null;

  function alone(selector) {
    try {
      return document.querySelectorAll(selector).length === 1;
    } catch {
      return false;
    }
  }

  function own(name) { return !/^recrawl-|\d{3,}/.test(name); }

  function step(node) {
    const tag = node.localName;
    const same = [...node.parentElement.children].filter(function (one) { return one.localName === tag; });
    return same.length > 1 ? tag + ":nth-of-type(" + (same.indexOf(node) + 1) + ")" : tag;
  }

  function selector(node) {
    const parts = [];
    for (let at = node; at && at !== document.documentElement; at = at.parentElement) {
      const id = at.id && own(at.id) ? "#" + CSS.escape(at.id) : "";
      const classes = [...at.classList].filter(own).map(function (name) { return "." + CSS.escape(name); });
      for (const short of [id, ...classes, classes.length ? at.localName + classes.join("") : ""]) {
        const whole = [short, ...parts].join(" > ");
        if (short && alone(whole)) return whole;
      }
      if (at === document.body) break;
      parts.unshift(step(at));
    }
    return ["body", ...parts].join(" > ");
  }

  document.addEventListener("mouseover", function (event) {
    if (over) over.classList.remove("recrawl-over");
    over = event.target;
    over.classList.add("recrawl-over");
  });
  document.addEventListener("click", function (event) {
    event.preventDefault();
    event.stopPropagation();
    const node = event.target;
    if (over) over.classList.remove("recrawl-over");
    document.querySelectorAll(".recrawl-chosen").forEach(function (one) { one.classList.remove("recrawl-chosen"); });
    const found = selector(node);
    node.classList.add("recrawl-chosen");
    window.parent.postMessage({ selector: found, text: node.textContent.replace(/\s+/g, " ").trim().slice(0, 200) }, "*");
  }, true);
})();
