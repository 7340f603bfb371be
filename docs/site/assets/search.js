// Search over the sections of all pages, which index.js has as "pages".
"use strict";

const root = document.body.dataset.root;
const query = document.getElementById("query");
const found = document.getElementById("found");

// In a wide window the list of pages is always open.
const wide = matchMedia("(min-width: 60rem)");
const list = document.querySelector("nav details");
const unfold = () => { list.open = wide.matches; };
wide.addEventListener("change", unfold);
unfold();

// score returns how well a section fits all words; 0 if one of them does not occur.
function score(section, words) {
  const title = section.t.toLowerCase();
  const text = section.x.toLowerCase();
  let total = 0;
  for (const word of words) {
    const hits = (title.includes(word) ? 20 : 0) + Math.min(5, text.split(word).length - 1);
    if (hits === 0) {
      return 0;
    }
    total += hits;
  }
  return total;
}

// extract returns the text around the first word.
function extract(section, words) {
  const at = Math.max(0, section.x.toLowerCase().indexOf(words[0]) - 40);
  return (at > 0 ? "… " : "") + section.x.slice(at, at + 120) + " …";
}

function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  found.replaceChildren();
  found.hidden = words.length === 0;
  if (found.hidden) {
    return;
  }
  const hits = pages.map((section) => ({ section, score: score(section, words) })).filter((hit) => hit.score > 0);
  hits.sort((a, b) => b.score - a.score);
  for (const { section } of hits.slice(0, 12)) {
    const link = document.createElement("a");
    link.href = root + section.u;
    link.textContent = section.t;
    const text = document.createElement("small");
    text.textContent = extract(section, words);
    link.append(text);
    const item = document.createElement("li");
    item.append(link);
    found.append(item);
  }
  if (hits.length === 0) {
    const none = document.createElement("p");
    none.textContent = "Nothing was found.";
    found.append(none);
  }
}

query.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    query.value = "";
    search();
  } else if (event.key === "/" && document.activeElement !== query) {
    event.preventDefault();
    query.focus();
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) {
    found.hidden = true;
  }
});
