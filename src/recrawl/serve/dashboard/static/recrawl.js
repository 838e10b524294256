"use strict";
// Live activity, keys, what runs now, and progress of a job. Every page works without this script.

(function () {
  const MAX_LINES = 60;
  const RUN_INTERVAL = 1500;

  function line(list, at, kind, text) {
    const item = document.createElement("li");
    const time = document.createElement("time");
    const tag = document.createElement("span");
    const body = document.createElement("span");
    time.dateTime = at.toISOString();
    time.textContent = at.toISOString().slice(11, 19);
    tag.className = "tag " + kind;
    tag.textContent = kind;
    body.textContent = text; // never as markup: the text comes from the web
    item.append(time, tag, body);
    list.prepend(item);
    while (list.children.length > MAX_LINES) list.lastElementChild.remove();
  }

  function parsed(event) {
    try {
      return JSON.parse(event.data);
    } catch {
      return null;
    }
  }

  function sentence(kind, data) {
    if (kind === "cycle") return data.kind + " " + data.id + (data.finished ? " finished" : " started") + " (" + data.policy + ")";
    if (kind === "turn") return "scheduled run started: crawl of new pages, then a cycle";
    if (kind === "ended") return data.finished ? "scheduled run finished" : "scheduled run stopped; it resumes later";
    return String(data.url || data.error || data.text || data.name || "");
  }

  function showEvents(list) {
    const note = document.querySelector("[data-live-note]");
    const pulse = document.querySelector("[data-pulse]");
    const source = new EventSource(list.dataset.live);
    const show = function (event) {
      const data = parsed(event);
      if (!data) return;
      const at = data.at ? new Date(typeof data.at === "number" ? data.at * 1000 : data.at) : new Date();
      const word = String(data.result || data.outcome || event.type).replace(/[^a-z-]/g, "");
      line(list, at, word, sentence(event.type, data));
    };
    for (const kind of (list.dataset.kinds || "message").split(" ")) source.addEventListener(kind, show);
    source.addEventListener("open", function () {
      if (pulse) pulse.classList.add("on");
      if (note) note.textContent = "Connected; visits appear here as they are made.";
    });
    source.addEventListener("error", function () {
      if (pulse) pulse.classList.remove("on");
      if (note) note.textContent = "Not connected; reconnecting.";
    });
    window.addEventListener("pagehide", function () { source.close(); });
  }

  function slide(form) {
    const range = form.querySelector("input[type=range]");
    const time = form.querySelector("output");
    range.addEventListener("input", function () {
      const option = range.list && range.list.options[range.value - 1];
      if (option) time.textContent = option.label;
    });
    range.addEventListener("change", function () { form.requestSubmit(); });
  }

  function wipe(box) {
    const range = box.querySelector("input[type=range]");
    const top = box.querySelector(".wipe-top");
    const show = function () { top.style.setProperty("--wipe", range.value + "%"); };
    range.addEventListener("input", show);
    box.hidden = false;
    show();
  }

  // The frame of a stored page tells which element was clicked; what it says is text, whoever says it.
  function pick(box) {
    const frame = box.querySelector("iframe");
    const note = box.querySelector("[data-pick-note]");
    box.hidden = false;
    window.addEventListener("message", function (event) {
      if (event.source !== frame.contentWindow || !event.data || typeof event.data.selector !== "string") return;
      const chosen = box.querySelector("input[type=radio]:checked");
      const field = document.getElementById(chosen ? chosen.value : "selector");
      field.value = event.data.selector.slice(0, 1000);
      note.textContent = "Chosen: " + String(event.data.text || "").slice(0, 200);
    });
  }

  // Two screenshots side by side begin at the first difference.
  function begin(box) {
    const image = box.querySelector("img");
    const show = function () { box.scrollTop = Number(box.dataset.first) * image.clientHeight - box.clientHeight / 4; };
    image.loading = "eager";
    if (image.complete) show();
    image.addEventListener("load", show);
  }

  function poll(box) {
    const again = function () {
      fetch(box.dataset.job, { headers: { accept: "application/json" } })
        .then(function (answer) { return answer.json(); })
        .then(function (job) {
          if (job.state === "done" || job.state === "failed") window.location.reload();
          else {
            const bar = box.querySelector("[data-job-bar]");
            if (bar && job.total) {
              bar.max = job.total;
              bar.value = job.done;
            }
            box.querySelector("[data-job-note]").textContent = job.told || job.state;
            window.setTimeout(again, 1000);
          }
        })
        .catch(function () { window.setTimeout(again, 5000); });
    };
    again();
  }

  // The server renders what runs, so the same template shows it on load and while it changes.
  function follow(box) {
    const again = function () {
      if (document.hidden || box.contains(document.activeElement)) return void window.setTimeout(again, RUN_INTERVAL);
      fetch(box.dataset.running)
        .then(function (answer) { return answer.ok ? answer.text() : Promise.reject(); })
        .then(function (text) {
          const ran = box.childElementCount > 0;
          box.replaceChildren(...new DOMParser().parseFromString(text, "text/html").body.childNodes);
          if (ran && !box.childElementCount && "reload" in box.dataset) window.location.reload();
          else window.setTimeout(again, RUN_INTERVAL);
        })
        .catch(function () { window.setTimeout(again, 5 * RUN_INTERVAL); });
    };
    window.setTimeout(again, RUN_INTERVAL);
  }

  // Keys: "/" searches, "?" shows the help, "g" and a letter lead to a page of the menu.
  const help = document.querySelector("[data-keys]");
  let going = 0;

  function visible(box) { return box.getClientRects().length > 0; }

  function search(event) {
    event.preventDefault();
    const boxes = [...document.querySelectorAll("[data-search]")].filter(visible);
    const box = boxes.find(function (one) { return one.closest("main"); }) || boxes[0];
    if (box) box.focus();
    else window.location.href = "/search";
  }

  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(input|select|textarea)$/i.test(event.target.tagName)) return;
    if (event.key === "/") return search(event);
    if (event.key === "?" && help && !help.open) return help.showModal();
    if (event.key === "g") { going = Date.now(); return; }
    if (Date.now() - going > 1500) return;
    going = 0;
    const found = document.querySelector('[data-key="' + CSS.escape(event.key) + '"]');
    if (found) window.location.href = found.dataset.go;
  });

  document.querySelectorAll("[data-keys-button]").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () { help.showModal(); });
  });

  // On a small screen the tabs scroll sideways: begin at the current one.
  document.querySelectorAll(".tabs [aria-current]").forEach(function (tab) {
    const row = tab.closest(".tabs");
    row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
  });
  document.querySelectorAll("[data-submit]").forEach(function (field) {
    field.addEventListener("change", function () { field.form.submit(); });
  });
  document.querySelectorAll("[data-running]").forEach(follow);
  document.querySelectorAll("[data-live]").forEach(showEvents);
  document.querySelectorAll("[data-first]").forEach(begin);
  document.querySelectorAll("[data-job]").forEach(poll);
  document.querySelectorAll("[data-slider]").forEach(slide);
  document.querySelectorAll("[data-wipe]").forEach(wipe);
  document.querySelectorAll("[data-pick]").forEach(pick);
})();
