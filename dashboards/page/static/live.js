// Keeps the page current: asks for it again when the cluster has changed, and morphs what differs. Focus, scroll
// position and opened details stay. Ages go on by themselves, so the server answers 304 while the state is the same.
// A hidden page asks for nothing. Beside each time in UTC the script shows the local time.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const silentMs = 15000; // an event comes at least each 10 s
  const live = () => document.getElementById("live");
  const lost = document.getElementById("lost");
  const isUtc = new Date().getTimezoneOffset() === 0;
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  let heardMs = Date.now();
  let asking = false;
  let again = false;
  let tag = null; // of the shown page
  let aheadMs = Date.now() - Number(live()?.dataset.now ?? Date.now()); // of this clock before the server's

  const withLocalTimes = (root) => {
    for (const time of isUtc ? [] : root.querySelectorAll("time[data-local]")) {
      const local = new Date(time.dateTime).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
      time.textContent += ` UTC, ${local} local`;
      time.removeAttribute("data-local");
    }
    return root;
  };

  const morphs = {
    morphStyle: "outerHTML",
    ignoreActiveValue: true, // words that are being typed stay
    callbacks: {
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS"),
    },
  };
  const show = (text, id = "live") => {
    const next = withLocalTimes(new DOMParser().parseFromString(text, "text/html"));
    heardMs = Date.now();
    lost.hidden = true;
    aheadMs = heardMs - Number(next.getElementById("live")?.dataset.now ?? heardMs);
    for (const part of [id, "standing"]) {
      const [before, after] = [document.getElementById(part), next.getElementById(part)];
      if (before !== null && after !== null) Idiomorph.morph(before, after, morphs);
    }
    document.title = next.title;
    document.getElementById("icon").href = next.getElementById("icon").href;
  };
  // Shows the answer to another address in place of this page's part.
  let newest = 0;
  const open = async (address, id) => {
    const mine = ++newest;
    const answer = await fetch(address);
    const text = await answer.text();
    if (mine !== newest) return;
    if (!answer.ok) return location.assign(address);
    tag = answer.headers.get("ETag");
    history.replaceState(null, "", address);
    show(text, id);
  };
  window.kontrast = { open };

  // A form that names a part of its page shows its answer there, words while they are typed.
  const submit = (form) => open(`${form.action}?${new URLSearchParams(new FormData(form))}`, form.dataset.part);
  let waiting;
  for (const kind of ["input", "change"]) {
    document.addEventListener(kind, ({ target }) => {
      const form = target.closest("form[data-part]");
      if (form === null || (kind === "input") !== target.matches("[type=search]")) return;
      clearTimeout(waiting);
      if (kind === "change") submit(form); // at once, before an update shows the former choice
      else waiting = setTimeout(submit, 150, form);
    });
  }
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-part]")) return;
    event.preventDefault();
    submit(event.target);
  });

  const lasting = (ms, most = 2) => {
    let left = Math.max(0, Math.floor(ms / 1000));
    const parts = units.map(([unit, size]) => {
      const count = Math.floor(left / size);
      left %= size;
      return [count, unit];
    });
    const first = parts.findIndex(([count]) => count > 0);
    return first < 0 ? "0 s" : parts.slice(first, first + most).filter(([count]) => count).flat().join(" ");
  };
  setInterval(() => {
    if (live() === null || document.hidden) return;
    const nowMs = Date.now() - aheadMs;
    for (const each of document.querySelectorAll("[data-since]")) {
      each.textContent = lasting(nowMs - each.dataset.since, each.dataset.units);
    }
    const age = document.getElementById("age");
    if (age === null) return;
    const words = Date.now() - heardMs < silentMs ? age.dataset.words : "last known";
    age.textContent = `${words} ${lasting(nowMs - Date.parse(age.dateTime))} ago`;
  }, 1000);

  const ask = async () => {
    again = asking;
    if (asking || document.hidden) return;
    asking = true;
    const address = location.href;
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html", ...(tag && { "If-None-Match": tag }) } });
      const text = await answer.text();
      const age = document.getElementById("age");
      heardMs = Date.now();
      again ||= address !== location.href; // the reader chose something else meanwhile, which stays
      if (address === location.href) {
        if (answer.ok) show(text, live() === null ? "history" : "live");
        else if (answer.status === 304 && age !== null) age.dateTime = answer.headers.get("Heard");
        tag = answer.headers.get("ETag");
      }
    } catch {
      // The banner says it once the server has been silent for long enough.
    }
    asking = false;
    if (again) setTimeout(ask, 500);
    askLater();
  };
  // A timeline whose rows are still being read asks until it is complete.
  const askLater = () => document.querySelector("[data-again]") !== null && setTimeout(ask, 2000);

  withLocalTimes(document);
  document.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (button === null) return;
    const words = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(button.previousElementSibling);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = words; }, 1500);
  });

  // An answer that takes long is asked for by the page itself: the result of a what-if.
  const slow = document.querySelector("[data-fetch]");
  if (slow !== null) {
    fetch(slow.dataset.fetch).then((answer) => answer.text()).then((text) => {
      const next = new DOMParser().parseFromString(text, "text/html").getElementById("result");
      if (next !== null) slow.replaceWith(next);
    });
  }

  askLater();
  let changes = null;
  const follow = () => {
    changes?.close();
    if (document.hidden) return;
    heardMs = Date.now();
    if (live() === null) return askLater();
    changes = new EventSource(live().dataset.changes);
    changes.addEventListener("changed", ask);
  };
  document.addEventListener("visibilitychange", follow);
  if (live() === null) return;
  follow();
  setInterval(() => {
    if (document.hidden || Date.now() - heardMs < silentMs) return;
    tag = null; // the next answer replaces these words
    const since = new Date(heardMs).toISOString().slice(11, 19);
    lost.textContent = `Not known since ${since} UTC: kontrast serve does not answer.`;
    lost.hidden = false;
    live().classList.add("stale");
    for (const pill of document.querySelectorAll("#standing .pill")) {
      pill.className = "pill unknown";
      pill.textContent = "not known";
    }
    document.getElementById("icon").href = "/static/icon-unknown.svg";
    document.title = `? ${document.title.replace(/^[^\p{L}\p{N}]+/u, "")}`;
  }, 1000);
})();
