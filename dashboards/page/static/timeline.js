// Says the moment that the slider stands at while it is moved; the page is asked for when it is let go.
"use strict";
document.addEventListener("input", (event) => {
  const slider = event.target;
  if (slider.id !== "at") return;
  const words = new Date(Number(slider.value)).toISOString().slice(0, 19).replace("T", " ") + "Z";
  slider.setAttribute("aria-valuetext", words);
  document.getElementById("at-words").textContent = words;
});
