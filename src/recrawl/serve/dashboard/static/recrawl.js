"use strict";
// What script adds: live activity, a key to search, news of a job that runs. Every page works without it.

(function () {
  const MOST_LINES = 60;

  function line(list, at, kind, text) {
    const item = document.createElement("li");
    const time = document.createElement("time");
    const tag = document.createElement("span");
    const said = document.createElement("span");
    time.dateTime = at.toISOString();
    time.textContent = at.toISOString().slice(11, 19);
    tag.className = "tag " + kind;
    tag.textContent = kind;
    said.textContent = text; // never as markup: it comes from the web
    item.append(time, tag, said);
    list.prepend(item);
    while (list.children.length > MOST_LINES) list.lastElementChild.remove();
  }

  function told(event) {
    try {
      return JSON.parse(event.data);
    } catch {
      return null;
    }
  }

  function sentence(kind, news) {
    if (kind === "cycle") return news.kind + " " + news.id + (news.finished ? " has ended" : " has begun") + " (" + news.policy + ")";
    if (kind === "turn") return "a turn begins: first what is new, then what may have changed";
    if (kind === "ended") return news.finished ? "the turn has come to its end" : "the turn was stopped, and goes on later";
    return String(news.url || news.error || news.text || news.name || "");
  }

  function follow(list) {
    const note = document.querySelector("[data-live-note]");
    const pulse = document.querySelector("[data-pulse]");
    const source = new EventSource(list.dataset.live);
    const show = function (event) {
      const news = told(event);
      if (!news) return;
      const at = news.at ? new Date(typeof news.at === "number" ? news.at * 1000 : news.at) : new Date();
      const word = String(news.outcome || event.type).replace(/[^a-z-]/g, "");
      line(list, at, word, sentence(event.type, news));
    };
    for (const kind of (list.dataset.kinds || "message").split(" ")) source.addEventListener(kind, show);
    source.addEventListener("open", function () {
      if (pulse) pulse.classList.add("on");
      if (note) note.textContent = "Watching; news appears here as it happens.";
    });
    source.addEventListener("error", function () {
      if (pulse) pulse.classList.remove("on");
      if (note) note.textContent = "Not connected; trying again.";
    });
    window.addEventListener("pagehide", function () { source.close(); });
  }

  function poll(box) {
    const again = function () {
      fetch(box.dataset.job, { headers: { accept: "application/json" } })
        .then(function (answer) { return answer.json(); })
        .then(function (job) {
          if (job.state === "done" || job.state === "failed") window.location.reload();
          else {
            box.querySelector("[data-job-note]").textContent = job.told || job.state;
            window.setTimeout(again, 1000);
          }
        })
        .catch(function () { window.setTimeout(again, 5000); });
    };
    again();
  }

  document.addEventListener("keydown", function (event) {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(input|select|textarea)$/i.test(event.target.tagName)) return;
    event.preventDefault();
    const box = document.querySelector("[data-search]");
    if (box) box.focus();
    else window.location.href = "/search";
  });

  document.querySelectorAll("[data-live]").forEach(follow);
  document.querySelectorAll("[data-job]").forEach(poll);
})();
