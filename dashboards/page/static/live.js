// Keeps the page current: asks for it again when the cluster has changed, and morphs what differs. Focus, scroll
// position and opened details stay. Beside each time in UTC it shows the local time.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");
  const silentMs = 15000; // an event comes at least each 10 s
  const live = () => document.getElementById("live");
  const lost = document.getElementById("lost");
  const isUtc = new Date().getTimezoneOffset() === 0;
  let heardMs = Date.now();
  let asking = false;
  let again = false;

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
    callbacks: {
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS"),
    },
  };
  const show = (text, id = "live") => {
    const next = withLocalTimes(new DOMParser().parseFromString(text, "text/html"));
    const [before, after] = [document.getElementById(id), next.getElementById(id)];
    if (before === null || after === null) return;
    Idiomorph.morph(before, after, morphs);
    document.title = next.title;
    document.body.dataset.state = next.body.dataset.state;
    document.getElementById("icon").href = next.getElementById("icon").href;
  };
  window.kontrast = { show };

  const ask = async () => {
    again = asking;
    if (asking) return;
    asking = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      const text = await answer.text();
      if (answer.ok) {
        heardMs = Date.now();
        lost.hidden = true;
        show(text);
      }
    } catch {
      // The banner says it once the server has been silent for long enough.
    }
    asking = false;
    if (again) setTimeout(ask, 500);
  };

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
  const waiting = document.querySelector("[data-fetch]");
  if (waiting !== null) {
    fetch(waiting.dataset.fetch).then((answer) => answer.text()).then((text) => {
      const next = new DOMParser().parseFromString(text, "text/html").getElementById("result");
      if (next !== null) waiting.replaceWith(next);
    });
  }

  if (live() === null) return;
  new EventSource(live().dataset.changes).addEventListener("changed", ask);
  setInterval(() => {
    if (Date.now() - heardMs < silentMs) return;
    const since = new Date(heardMs).toISOString().slice(11, 19);
    lost.textContent = `Not known since ${since} UTC: kontrast serve does not answer.`;
    lost.hidden = false;
    live().classList.add("stale");
    document.body.dataset.state = "unknown";
    document.getElementById("icon").href = "/static/icon-unknown.svg";
    document.title = `? ${document.title.replace(/^[^\p{L}\p{N}]+/u, "")}`;
  }, 1000);
})();
