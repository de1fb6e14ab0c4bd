// The impact map: rings the brokers of the square under the pointer or the focus, moves among squares by arrow keys, and
// shows another moment in place. Each square and moment is a link, so the map works without this script.
"use strict";
(() => {
  const ring = (square) => {
    for (const broker of document.querySelectorAll(".map .ringed")) broker.classList.remove("ringed");
    if (square === null) return;
    for (const id of square.dataset.on.split(" ")) square.closest("svg").querySelector(`[data-broker="${id}"]`)?.classList.add("ringed");
  };
  for (const event of ["pointerover", "focusin"]) {
    document.addEventListener(event, ({ target }) => ring(target.closest?.(".map .square") ?? null));
  }
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  document.addEventListener("keydown", (event) => {
    const square = event.target.closest?.(".map .square");
    if (!square || !(event.key in steps)) return;
    const lines = [...square.closest("svg").querySelectorAll("g:has(> .square)")];
    const [down, right] = steps[event.key];
    const line = lines[lines.indexOf(square.parentNode) + down]?.querySelectorAll(".square") ?? [];
    const place = [...square.parentNode.querySelectorAll(".square")].indexOf(square) + right;
    line[Math.min(place, line.length - 1)]?.focus();
    event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const choice = event.target.closest(".choices a");
    if (choice === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    kontrast.open(choice.href);
  });
})();
