// Asks for the page again when what it shows has changed, and says so when nobody answers any more.
"use strict";
(() => {
  const live = () => document.getElementById("live");
  if (live() === null) return;
  const lost = document.getElementById("lost");
  const silentMs = 15000; // an event comes at least each 10 s
  let heardMs = Date.now();
  let asking = false;
  let again = false;

  const heard = () => {
    heardMs = Date.now();
    lost.hidden = true;
  };
  const ask = () => {
    again = asking;
    if (asking) return;
    asking = true;
    htmx.trigger(live(), "changed");
  };

  const source = new EventSource(live().dataset.changes);
  source.addEventListener("changed", ask);
  document.body.addEventListener("htmx:afterRequest", (event) => {
    asking = false;
    if (event.detail.successful) heard();
    if (again) setTimeout(ask, 500);
  });
  setInterval(() => {
    if (Date.now() - heardMs < silentMs) return;
    lost.textContent = "kontrast serve does not answer: what is shown is from " +
      new Date(heardMs).toISOString().slice(0, 19).replace("T", " ") + "Z and may be over.";
    lost.hidden = false;
  }, 1000);
})();
