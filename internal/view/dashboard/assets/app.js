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

  // Nothing is replaced between the press of a button and its release, and not what somebody has selected: neither the click nor the
  // selection would outlast it. What comes meanwhile waits, in order; not for ever.
  const most = 500;
  let waiting = [];
  let pressed = null; // the element that a pointer or a key is down on
  const busy = (part) => {
    const old = document.getElementById(part.id);
    if (!old) return false;
    const s = getSelection();
    return (pressed && old.contains(pressed)) || (!s.isCollapsed && s.rangeCount > 0 && s.getRangeAt(0).intersectsNode(old));
  };
  const flush = () => {
    if (!waiting.length) return;
    performance.mark("parts");
    let n = 0;
    while (n < waiting.length && (waiting.length - n > most || !busy(waiting[n]))) place(waiting[n++]);
    waiting = waiting.slice(n);
    performance.measure("update", "parts");
  };
  const release = () => { pressed = null; setTimeout(flush); }; // after the click
  addEventListener("pointerdown", (e) => { pressed = e.target; }, true);
  addEventListener("keydown", (e) => { if (e.key === "Enter" || e.key === " ") pressed = e.target; }, true);
  for (const kind of ["pointerup", "pointercancel", "keyup", "blur"]) addEventListener(kind, release, kind !== "blur");

  // The sign of the tab: a square where something is wrong, a circle where nothing is, a ring when nothing is heard.
  const icon = document.querySelector("link[rel=icon]");
  const sign = () => {
    const href = icon.dataset[document.title.startsWith("(?)") ? "lost" : document.title.startsWith("(") ? "bad" : "good"];
    if (icon.getAttribute("href") !== href) icon.href = href;
  };

  const show = () => {
    const lost = Date.now() - heard > 5000;
    const seconds = Math.max(0, Math.round((Date.now() - born) / 1000));
    const at = new Date(born);
    const day = at.toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short" }).replace(",", "");
    age.textContent = (lost ? "connection lost, " : "") + "as of " + day + ", " + at.toTimeString().slice(0, 8) + ", " + seconds + " s ago";
    document.body.classList.toggle("lost", lost || seconds > 30);
    if (lost && !document.title.startsWith("(?)")) document.title = "(?) " + document.title;
    sign();
  };

  const { path, page } = document.body.dataset;
  const stream = new EventSource("/stream?page=" + page + "&path=" + encodeURIComponent(path));
  stream.addEventListener("parts", (e) => {
    waiting.push(...JSON.parse(e.data));
    flush();
  });
  stream.addEventListener("tick", (e) => {
    const t = JSON.parse(e.data);
    heard = Date.now();
    born = heard - t.age;
    document.title = t.title;
    flush();
    show();
  });
  setInterval(show, 1000);
  heard = born = Date.now();
  const log = document.querySelector(".log");
  if (log) log.scrollTop = log.scrollHeight;
})();
