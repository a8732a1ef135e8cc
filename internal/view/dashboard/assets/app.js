// Keeps one page up to date: replaces the elements that the server sends, by id, and says how old they are.
"use strict";
(() => {
  const age = document.getElementById("age");
  let born = 0; // when what is shown was seen, by this browser's clock
  let heard = 0; // when the server was heard last

  const place = (part) => {
    const old = document.getElementById(part.id);
    if (!old) return;
    const active = document.activeElement;
    const link = old.contains(active) ? active.getAttribute("href") || active.textContent : null;
    const open = [...old.querySelectorAll("details")].map((d) => d.open);
    const log = old.querySelector(".log");
    const scrolled = log && log.scrollTop + log.clientHeight < log.scrollHeight - 4 ? log.scrollTop : -1;
    old.outerHTML = part.html;
    const now = document.getElementById(part.id);
    if (!now) return;
    now.querySelectorAll("details").forEach((d, n) => { d.open = !!open[n]; });
    const text = now.querySelector(".log");
    if (text) text.scrollTop = scrolled < 0 ? text.scrollHeight : scrolled;
    if (link) {
      const same = [...now.querySelectorAll("a, button, summary, [tabindex]")]
        .find((e) => (e.getAttribute("href") || e.textContent) === link);
      if (same) same.focus({ preventScroll: true });
    }
  };

  const show = () => {
    const lost = Date.now() - heard > 5000;
    const seconds = Math.max(0, Math.round((Date.now() - born) / 1000));
    age.textContent = (lost ? "connection lost, " : "") + "as of " + seconds + " s ago";
    document.body.classList.toggle("lost", lost || seconds > 30);
    if (lost && !document.title.startsWith("(?)")) document.title = "(?) " + document.title;
  };

  const path = document.body.dataset.path;
  const stream = new EventSource("/stream?path=" + encodeURIComponent(path));
  stream.addEventListener("parts", (e) => {
    performance.mark("parts");
    JSON.parse(e.data).forEach(place);
    performance.measure("update", "parts");
  });
  stream.addEventListener("tick", (e) => {
    const t = JSON.parse(e.data);
    heard = Date.now();
    born = heard - t.age;
    document.title = t.title;
    show();
  });
  setInterval(show, 1000);
  heard = born = Date.now();
  const log = document.querySelector(".log");
  if (log) log.scrollTop = log.scrollHeight;
})();
