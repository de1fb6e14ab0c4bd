// Suggestions of the search: "/" focuses the box, arrows choose, Enter opens. The server opens an only hit.
// The switch of clusters shows the names with the typed text.
"use strict";
(() => {
  const form = document.querySelector("form.search");
  const input = form.elements.of;
  const list = document.createElement("div");
  list.className = "suggestions";
  list.id = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  list.hidden = true;
  form.append(list);
  for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", list.id], ["aria-autocomplete", "list"]]) {
    input.setAttribute(name, value);
  }
  let chosen = -1;
  let asked = 0;

  const choose = (at) => {
    const options = [...list.children];
    chosen = options.length ? (at + options.length) % options.length : -1;
    options.forEach((option, number) => option.setAttribute("aria-selected", String(number === chosen)));
    if (chosen < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", options[chosen].id);
      options[chosen].scrollIntoView({ block: "nearest" });
    }
  };
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1 - list.children.length);
    chosen = -1;
  };
  const suggest = async () => {
    const mine = ++asked;
    const words = input.value.trim();
    if (words === "") return close();
    const answer = await fetch(`${form.dataset.search}?of=${encodeURIComponent(words)}`);
    if (!answer.ok || mine !== asked) return;
    const found = await answer.json();
    list.replaceChildren(...found.hits.map((hit, number) => {
      const option = document.createElement("div");
      option.id = `suggestion-${number}`;
      option.setAttribute("role", "option");
      option.dataset.href = `/${hit.path.map(encodeURIComponent).join("/")}`;
      option.textContent = hit.name;
      const says = document.createElement("small");
      says.textContent = [hit.kind, hit.says].filter(Boolean).join(": ");
      option.append(says);
      return option;
    }));
    list.hidden = found.hits.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    chosen = -1;
  };

  input.addEventListener("input", suggest);
  input.addEventListener("blur", () => setTimeout(close, 150));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(event.key === "ArrowDown" ? chosen + 1 : Math.max(chosen, 0) - 1);
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      location.href = list.children[chosen].dataset.href;
    } else if (event.key === "Escape") close();
  });
  list.addEventListener("mousedown", (event) => {
    const option = event.target.closest("[role=option]");
    if (option !== null) location.href = option.dataset.href;
  });
  document.querySelector(".switch input")?.addEventListener("input", ({ target }) => {
    const words = target.value.trim().toLowerCase();
    for (const each of document.querySelectorAll(".switch li")) each.hidden = !each.textContent.toLowerCase().includes(words);
  });
  document.addEventListener("keydown", (event) => {
    const isTyped = event.target.closest("input, select, textarea") !== null;
    if (event.key !== "/" || isTyped || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
})();
