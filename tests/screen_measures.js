// What is wrong with the boxes of a page: sentences.
(function () {
  const wrong = [];
  const width = document.documentElement.clientWidth;
  const name = function (node) {
    const text = (node.innerText || node.textContent || "").trim().replace(/\s+/g, " ").slice(0, 60);
    return node.tagName.toLowerCase() + (node.className && node.className.baseVal === undefined
      ? "." + String(node.className).trim().replace(/\s+/g, ".") : "") + " '" + text + "'";
  };
  const fixed = function (node) {  // what stays in place while the page scrolls under it, or is not shown
    for (let at = node; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.position === "fixed" || style.position === "sticky" || style.visibility === "hidden"
          || style.clipPath === "inset(50%)" || at.closest("dialog, [aria-hidden=true]")) return true;
    }
    return false;
  };
  const scrolled = function (node) {  // within a box of its own that scrolls or cuts
    for (let at = node; at && at !== document.body; at = at.parentElement)
      if (getComputedStyle(at).overflowX !== "visible") return true;
    return false;
  };
  if (document.documentElement.scrollWidth > width)
    wrong.push("the page is " + document.documentElement.scrollWidth + " pixels wide, the window " + width);
  // 1. Text: its lines, by node.
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, parent = node.parentElement;
    if (!node.data.trim() || !parent || /^(script|style|noscript|option|datalist|textarea|title|desc)$/i.test(parent.tagName)) continue;
    if (parent.closest("svg") || !parent.checkVisibility() || fixed(parent)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((it) => it.width > 1 && it.height > 1);
    if (!rects.length) continue;
    const own = scrolled(parent);
    const box = range.getBoundingClientRect();
    if (!own && box.right > width + 1) wrong.push("wider than the window: " + name(parent));
    const shown = node.data.trim().length, lines = new Set(rects.map((it) => Math.round(it.top))).size;
    if (shown >= 20 && lines > 6 && shown / lines < 6) wrong.push(lines + " lines for " + shown + " characters: " + name(parent));
    texts.push({ parent: parent, rects: rects, own: own });
  }
  // 2. Rows and entries are as high as what they hold.
  document.querySelectorAll("tr, .stream > li, .timeline > li, dl.facts > dd, .happening > li, .fields > .field, .tree li").forEach(function (row) {
    const box = row.getBoundingClientRect();
    if (!box.height || !row.checkVisibility() || fixed(row)) return;
    const parts = [];
    texts.forEach(function (text) { if (row.contains(text.parent)) parts.push(...text.rects); });
    row.querySelectorAll("input:not([type=hidden]), select, textarea, button, svg, meter, img").forEach((it) => parts.push(it.getBoundingClientRect()));
    if (!parts.length) { if (box.height > 60) wrong.push("an empty row of " + Math.round(box.height) + " pixels: " + name(row)); return; }
    const held = Math.max(...parts.map((it) => it.bottom)) - Math.min(...parts.map((it) => it.top));
    if (box.height > held + 48) wrong.push("a row of " + Math.round(box.height) + " pixels with " + Math.round(held) + " of text: " + name(row));
    if (held > box.height + 4) wrong.push("text of " + Math.round(held) + " pixels in a row of " + Math.round(box.height) + ": " + name(row));
  });
  // 3. No text on other text or on a control.
  const boxes = [];
  texts.forEach((text) => text.rects.forEach((it) => boxes.push({ node: text.parent, rect: it })));
  document.querySelectorAll("main input, main select, main textarea, main button, main img, main iframe").forEach(function (it) {
    if (it.checkVisibility() && it.type !== "hidden" && !fixed(it)) boxes.push({ node: it, rect: it.getBoundingClientRect() });
  });
  boxes.sort((one, other) => one.rect.top - other.rect.top);
  for (let i = 0; i < boxes.length && wrong.length < 40; i++) {
    const one = boxes[i];
    for (let j = i + 1; j < boxes.length && boxes[j].rect.top < one.rect.bottom - 3; j++) {
      const other = boxes[j];
      if (one.node.contains(other.node) || other.node.contains(one.node)) continue;
      const wide = Math.min(one.rect.right, other.rect.right) - Math.max(one.rect.left, other.rect.left);
      const high = Math.min(one.rect.bottom, other.rect.bottom) - Math.max(one.rect.top, other.rect.top);
      if (wide > 3 && high > 6) { wrong.push("overlap: " + name(one.node) + " and " + name(other.node)); break; }
    }
  }
  // 4. Boxes within the window.
  document.querySelectorAll("body *").forEach(function (node) {
    if (wrong.length > 40 || node.closest("svg") || !node.checkVisibility() || fixed(node) || scrolled(node.parentElement)) return;
    const box = node.getBoundingClientRect();
    if (box.width > 1 && (box.right > width + 1 || box.left < -1)) wrong.push("beyond the window, " + Math.round(box.left) + " to " + Math.round(box.right) + ": " + name(node));
  });
  return [...new Set(wrong)];
})()
