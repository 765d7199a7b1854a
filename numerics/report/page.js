"use strict";
(() => {
  const claims = [...document.querySelectorAll("article.claim")];
  const search = document.getElementById("search");
  const boxes = [...document.querySelectorAll('input[name="verdict"]')];
  const shown = document.getElementById("shown");

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const claim of claims) {
      const fits = verdicts.has(claim.dataset.verdict) && words.every((word) => claim.dataset.words.includes(word));
      claim.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${claims.length} claims shown`;
    document.getElementById("none").hidden = count > 0;
  }

  /** A link to a claim that is filtered away shows it again. */
  function reveal() {
    const target = document.getElementById(location.hash.slice(1));
    if (target === null || !target.matches("article.claim")) return;
    if (target.hidden) {
      search.value = "";
      for (const box of boxes) box.checked = true;
      filter();
    }
    target.scrollIntoView();
    target.focus({ preventScroll: true });
  }

  function unfold(open) {
    for (const part of document.querySelectorAll("article.claim details")) part.open = open;
  }

  search.addEventListener("input", filter);
  for (const box of boxes) box.addEventListener("change", filter);
  document.getElementById("filter").addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("unfold").addEventListener("click", () => unfold(true));
  document.getElementById("fold").addEventListener("click", () => unfold(false));
  addEventListener("hashchange", reveal);

  /** What is wider than its place can be reached and moved by keyboard; what is not is no stop on the way. */
  function reachable(part) {
    const boxes = [...part.querySelectorAll(".display, .wide")].filter((box) => !box.closest("details:not([open])"));
    const wide = boxes.filter((box) => box.scrollWidth > box.clientWidth + 1); // all are measured before any is changed
    for (const box of boxes) {
      if (wide.includes(box) === box.hasAttribute("tabindex")) continue;
      for (const [name, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", "Wider than the page"]]) {
        if (box.hasAttribute(name)) box.removeAttribute(name);
        else box.setAttribute(name, value);
      }
    }
  }

  addEventListener("load", () => setTimeout(() => reachable(document)));
  addEventListener("resize", () => reachable(document));
  document.addEventListener("toggle", (event) => event.target.open && reachable(event.target), true);

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("article.claim details:not([open], .folded)")];
    for (const part of folded) part.open = true;
  });
  addEventListener("afterprint", () => {
    for (const part of folded) part.open = false;
  });
  filter();
  reveal();
})();
