// The slider and the picture of the timeline: a moved slider shows its moment, dragging over the picture zooms, and so
// do + and - while the picture has the focus.
"use strict";
(() => {
  const part = (id) => document.getElementById(id);
  const open = (address) => kontrast.open(address, "history");

  document.addEventListener("input", ({ target }) => {
    if (target.id !== "at") return;
    const words = new Date(Number(target.value)).toISOString().slice(0, 19).replace("T", " ") + "Z";
    target.setAttribute("aria-valuetext", words);
    part("at-words").textContent = words;
  });

  // A slider that nobody moved chooses no moment, so a choice of events or of a window leaves the present.
  document.addEventListener("formdata", ({ target, formData }) => {
    const at = target.querySelector("#at[data-now]");
    if (at !== null && at.value === at.defaultValue) formData.delete("at");
  });

  const momentAt = (picture, x) => {
    const { begin, end, left, right } = picture.dataset;
    const box = picture.firstElementChild.getBoundingClientRect();
    const from = box.left + box.width * left;
    const share = Math.min(1, Math.max(0, (x - from) / (box.width * (1 - left - right))));
    return Number(begin) + share * (end - begin);
  };
  let begun = null;
  document.addEventListener("pointerdown", (event) => {
    const picture = event.target.closest("#picture");
    if (picture !== null && event.pointerType === "mouse") begun = momentAt(picture, event.clientX);
  });
  document.addEventListener("pointerup", (event) => {
    const picture = part("picture");
    if (begun === null || picture === null) return;
    const [first, last] = [begun, momentAt(picture, event.clientX)].sort((one, other) => one - other);
    begun = null;
    const windows = picture.dataset.windows.split(" ");
    if (last - first < (picture.dataset.end - picture.dataset.begin) / 200) return;
    const seconds = windows.find((each) => each * 1000 >= last - first) ?? windows.at(-1);
    open(`${picture.dataset.address}window=${seconds}&at=${Math.round((first + last) / 2)}`);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.id !== "picture" || !["+", "-", "="].includes(event.key)) return;
    const link = part(event.key === "-" ? "zoom-out" : "zoom-in");
    if (link !== null) open(link.href);
  });
})();
