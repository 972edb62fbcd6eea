// Filters: the list follows while they change, and the address always names what is shown. A view is such an address,
// saved in this browser under a name.

import { visit } from "./live.js";

let typing;
document.addEventListener("input", (event) => {
  const form = event.target.closest("[data-filter]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => {
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    const open = new URLSearchParams(location.search).get("todo");
    if (open) query.set("todo", open);
    history.replaceState(null, "", `${location.pathname}${query.size ? `?${query}` : ""}`);
    visit(location.href, { push: false });
  }, 120);
});

// --- saved views --------------------------------------------------------------------------------------------

const place = document.querySelector("[data-views]");
const key = `views ${location.pathname}`;

function stored() {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? [];
  } catch {
    return [];
  }
}

// What the filters select, without what is open beside them.
function shown() {
  const query = new URLSearchParams(location.search);
  for (const name of [...query.keys()]) if (name === "todo" || name === "cursor" || name.startsWith("show-")) query.delete(name);
  return query.toString();
}

function store(views) {
  localStorage.setItem(key, JSON.stringify(views));
  draw();
}

function draw() {
  const views = stored();
  const here = shown();
  const links = views.map(({ name, query }) => {
    const item = document.createElement("span");
    item.className = "view";
    const link = Object.assign(document.createElement("a"), { href: `${location.pathname}?${query}`, textContent: name });
    link.dataset.soft = "";
    if (query === here) link.setAttribute("aria-current", "true");
    const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×", title: `Forget “${name}”` });
    remove.setAttribute("aria-label", remove.title);
    remove.addEventListener("click", () => store(stored().filter((each) => each.name !== name)));
    item.append(link, remove);
    return item;
  });
  place.querySelector("[data-view-list]").replaceChildren(...links);
  place.querySelector("form").hidden = !here || views.some(({ query }) => query === here);
}

if (place) {
  place.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = event.target.elements.name.value.trim();
    if (!name) return;
    store([...stored().filter((each) => each.name !== name), { name, query: shown() }]);
    event.target.reset();
  });
  document.addEventListener("refreshed", draw);
  draw();
}
